"""Every use case there is, and how chance chooses what it is called with.

A use case is a plain function of a module in `MODULES` whose first parameter is `uow`. What else it
takes is chosen by the parameter's name, which means the same everywhere, else by its type. So a new
use case is tried by being written, a new module is one more line in `MODULES`, and a new name that
says what its type does not is one more line in `BY_NAME`.
"""

import importlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from types import ModuleType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from herdbook.adapters.hosts import parse_event
from herdbook.domain.agents.model import Agent
from herdbook.domain.checkpoints.model import decode_checkpoint_id, decode_text
from herdbook.domain.errors import NotFound
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.claims import LEASE
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.domain.plan.readiness import Opening
from herdbook.domain.record.events import HookEvent, SessionSetup
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    CHANGE_SETS,
    CHAT_SESSIONS,
    CONVERSATIONS,
    DICTIONARY,
    ERRANDS,
    INITIATIVES,
    LANES,
    MESSAGES,
    PHASES,
    PROJECTS,
    PROPOSALS,
    REVIEW_COMMENTS,
    STANDINGS,
    TASKS,
)
from herdbook.ports.engine.dictionary import CHECKPOINTS as KEPT
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.activity import AgentActivity
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.guarded_fields import guards_of
from herdbook.services.plan import review_subjects, reviews
from herdbook.services.plan.board_model import BoardState
from herdbook.services.plan.status import Status, status
from herdbook.services.plan_text import import_export
from tests.contract.claims import BLINK
from tests.contract.rows import STAMPED, build, value_for
from tests.contract.trackers import tracked

E = TypeVar("E")
UseCase = Callable[..., Any]

WORK, RECORD, CHECKPOINTS = (Area.WORK,), (Area.RECORD,), (Area.CHECKPOINTS,)
MODULES = {
    "agents.accounts": RECORD,
    "record.setup_advice": RECORD,
    "agent_tracker.import_records": RECORD,
    "plan.board": WORK,
    "journal.differences": WORK,
    "journal.history": WORK,
    "journal.moments": WORK,
    "journal.prune": WORK,
    "journal.undo": WORK,
    "checkpoints.threads": CHECKPOINTS,
    "plan.claims": WORK,
    "agents.agent_lifecycle": WORK,
    "agents.briefing": WORK,
    "agents.liveness": WORK,
    "plan.dependencies": WORK,
    "plan.diagram": WORK,
    "plan.errands": WORK,
    "plan.initiatives": WORK,
    "plan.lanes": WORK,
    "plan.lease_renewal": WORK,
    "plan.pages": WORK,
    "plan.phases": WORK,
    "plan.move_task": WORK,
    "plan.progress": WORK,
    "plan.projects": WORK,
    "record.grading": RECORD,
    "record.leaderboard": RECORD,
    "crud": (*WORK, *WORK, *RECORD),
    "agents.introduction": WORK,
    "agents.logs": WORK,
    "agents.person_queue": WORK,
    "agents.editor_comments": WORK,
    "plan.schedule": WORK,
    "plan_text.import_export": WORK,
    "plan.proposals": WORK,
    "record.prior_art": RECORD,
    "plan.review_queue": WORK,
    "plan.review_subjects": WORK,
    "record.project_commits": RECORD,
    "plan.reviews": WORK,
    "plan.status": WORK,
    "plan.task_details": WORK,
    "removal": (*WORK, *RECORD),
    "search": WORK,
    "plan.wait_reasons": WORK,
    "messaging": WORK,
    "talk": WORK,
    "record.record_ingest": RECORD,
    "agents.worktree_changes": WORK,
    "agents.worktrees": WORK,
}
"""The modules of use cases, and in which areas they are at home."""
PARTS = {
    "agents.halts",
    "agents.log_bounds",
    "journal.state_proof",
    "listing",
    "plan.board_filter",
    "plan.plan_order",
    "plan_text.matching",
    "plan_text.render",
}
"""The modules that use cases are made of and nobody calls by themselves."""
HELD = (TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW)


def takes_uow(module: ModuleType) -> list[UseCase]:
    """The public functions of a module itself that work in a unit of work."""
    return [
        each
        for name, each in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_")
        and each.__module__ == module.__name__
        and next(iter(inspect.signature(each).parameters), None) == "uow"
    ]


def module_of(use_case: UseCase) -> str:
    """The module it is in, from `services` on."""
    return use_case.__module__.removeprefix("herdbook.services.")


def name_of(use_case: UseCase) -> str:
    """Its name with that of its module."""
    return f"{module_of(use_case)}.{use_case.__name__}"


USE_CASES = {
    name_of(each): each
    for name in MODULES
    for each in takes_uow(importlib.import_module(f"herdbook.services.{name}"))
}


def areas_of(use_case: UseCase) -> tuple[Area, ...]:
    """The areas in which a use case can be tried."""
    return MODULES[module_of(use_case)]


class Call:
    """One call of a use case, with its choices made."""

    def __init__(self, uow: UnitOfWork, choices: Sequence[int]) -> None:
        self.uow = uow
        self.chosen: dict[str, Any] = {}
        self._choices = itertools.cycle(choices)

    def number(self) -> int:
        """The next choice."""
        return next(self._choices)

    def one_of(self, values: Sequence[E]) -> E:
        """One of some values; NotFound if there is none."""
        if not values:
            raise NotFound("choice", "any")
        return values[self.number() % len(values)]

    def row(self, kind: Kind[E]) -> E:
        """A row that is there."""
        return self.one_of(self.uow.select(find(kind)))

    def keys(self, kind: Kind[Any]) -> list[Any]:
        """One or two rows that are there."""
        return [kind.key_of(self.row(kind)) for _ in range(1 + self.number() % 2)]

    def run(self, use_case: UseCase) -> Any:
        """Choose what to call it with, and call it."""
        hints = get_type_hints(use_case)
        given: list[Any] = []
        named: dict[str, Any] = {}
        for name, parameter in inspect.signature(use_case).parameters.items():
            if name == "uow":
                continue
            choose = _chooser(name, hints[name])
            needed = parameter.default is parameter.empty
            if choose is None or not (needed or self.number() % 2):
                self.chosen[name] = parameter.default
            else:
                self.chosen[name] = choose(self)
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[name] = self.chosen[name]
            else:
                given.append(self.chosen[name])
        return use_case(self.uow, *given, **named)


Choose = Callable[[Call], Any]


def _key(kind: Kind[Any]) -> Choose:
    return lambda call: kind.key_of(call.row(kind))


def _task_id(call: Call) -> str:
    """Mostly of one that is held, if there is any."""
    tasks = call.uow.select(find(TASKS))
    held = [task for task in tasks if task.status in HELD]
    return call.one_of(held if held and call.number() % 3 else tasks).id


def _others(call: Call) -> list[str]:
    """Now and then what the task or the phase waits for already."""
    rows, key = call.uow.phases, call.chosen.get("phase_id")
    if key is None:
        rows, key = call.uow.tasks, call.chosen["task_id"]
    known = rows.dependencies(key) if call.number() % 2 else []
    return [each.id for each in known] or call.keys(rows.kind)


def _fence(call: Call) -> int:
    """Mostly the right one."""
    fence = call.uow.tasks.get(call.chosen["task_id"]).fence
    return fence if call.number() % 4 else fence - 1


def _kind(call: Call) -> Kind[Any]:
    area = call.uow.area
    return call.one_of([kind for kind in DICTIONARY if kind.area is area and not kind.derived])


def _values(call: Call) -> dict[str, Any]:
    """A whole row, or a field or two of one that is there."""
    kind = call.chosen["kind"]
    if "text" not in call.chosen:
        row = build(call.uow, kind)
        return {n: v for n, v in vars(row).items() if n not in STAMPED and v is not None}
    references = {each.field: DICTIONARY.kinds[each.target] for each in kind.references}
    changed = {}
    for _ in range(2):
        own = guards_of(kind.name) if call.number() % 4 else {}
        left_out = STAMPED | own.keys()
        column = call.one_of([each for n, each in kind.columns.items() if n not in left_out])
        if column.name in references:
            changed[column.name] = _key(references[column.name])(call)
        else:
            changed[column.name] = value_for(column, call.number())
    return changed


def _events(call: Call) -> list[HookEvent]:
    """What hooks told, now and then what they had told before."""
    names = ("PostToolUse", "command.executed", "post-commit", "SessionStart", "Unheard")
    return [
        parse_event(
            id=f"{call.number()}",
            at=1_700_000_000_000_000 + call.number(),
            event=call.one_of(names),
            cwd="here",
            env={"HERDBOOK_AGENT": f"agent {call.number()}"},
        )._replace(commit_hash=f"{call.number()}")
        for _ in range(1 + call.number() % 3)
    ]


def _comments(call: Call) -> list[reviews.NewComment]:
    """Comments on lines, and on the lines of a comment that is there."""
    known = call.keys(REVIEW_COMMENTS)
    new = reviews.NewComment("why?", file_path="a.py", line_number=call.number() + 1)
    return [new, *(reviews.NewComment("so", reply_to=each) for each in known[:1])]


def _thread_id(call: Call) -> str:
    return decode_text(call.row(LANES).thread_id)


BY_NAME: dict[str, Choose] = {
    "account_id": _key(ACCOUNTS),
    "account_ids": lambda call: call.keys(ACCOUNTS),
    "after": lambda _: None,
    "agent": lambda call: f"agent {call.number() % 4}",
    "agent_id": _key(AGENTS),
    "agent_ids": lambda call: call.keys(AGENTS),
    "agents": lambda call: call.keys(AGENTS),
    "change_set_id": _key(CHANGE_SETS),
    "chat_session_id": _key(CHAT_SESSIONS),
    "checkpoint_id": lambda call: decode_checkpoint_id(call.row(KEPT).place),
    "comment_id": _key(REVIEW_COMMENTS),
    "conversation_id": _key(CONVERSATIONS),
    "crew": lambda _: {f"agent {number}": SessionSetup() for number in range(4)},
    "comments": _comments,
    "errand_id": _key(ERRANDS),
    "events": _events,
    "fence": _fence,
    "found": lambda call: call.uow.select(find(STANDINGS)),
    "from_agent_id": _key(AGENTS),
    "halts": lambda _: NO_HALTS,
    "initiative_id": _key(INITIATIVES),
    "key": lambda call: call.row(call.one_of([MESSAGES, CONVERSATIONS, CHAT_SESSIONS])).id,
    "kind": _kind,
    "limit": lambda call: call.number() + 1,
    "line_number": lambda call: call.number() + 1,
    "max_retries": lambda _: 1,
    "message_id": _key(MESSAGES),
    "name": lambda call: call.one_of(["otter", "heron", "vole"]),
    "named": lambda call: call.row(call.one_of(review_subjects.KINDS)).id,
    "names": lambda _: ["x"],
    "other_id": lambda call: decode_checkpoint_id(call.row(KEPT).place),
    "others": _others,
    "parent_message_id": _key(MESSAGES),
    "phase_id": _key(PHASES),
    "phase_ids": lambda call: call.keys(PHASES),
    "plan": lambda call: import_export.export_plan(call.uow),
    "project_id": _key(PROJECTS),
    "project_ids": lambda call: call.keys(PROJECTS),
    "proposal_id": _key(PROPOSALS),
    "proposal_ids": lambda call: call.keys(PROPOSALS),
    "reader_id": _key(AGENTS),
    "recipient_id": _key(AGENTS),
    "row": lambda call: call.row(call.one_of(review_subjects.KINDS)),
    "rows": lambda call: [call.row(call.chosen["kind"])],
    "sender_id": _key(AGENTS),
    "sessions": lambda call: [(f"s{call.number()}", f"agent {call.number()}")],
    "skill_points": lambda call: call.number() + 1,
    "source": _thread_id,
    "started_at_of": lambda call: {0: call.uow.now}.get,
    "target_id": lambda call: call.row(call.one_of([PHASES, TASKS])).id,
    "state": lambda call: list(BoardState)[call.number() % len(BoardState)],
    "task_id": _task_id,
    "tasks": lambda call: [call.row(TASKS)],
    "text": lambda call: str(_key(call.chosen["kind"])(call)) if "kind" in call.chosen else "text",
    "thread_id": _thread_id,
    "thread_ids": lambda call: [_thread_id(call) for _ in range(1 + call.number() % 2)],
    "texts": lambda call: call.keys(call.chosen["kind"]),
    "to_agent_id": _key(AGENTS),
    "tracker": lambda call: tracked(call.number()),
    "ttl": lambda call: call.one_of([BLINK, LEASE]),
    "values": _values,
    "where": lambda _: {},
    "worktree_id": lambda call: call.one_of(["wkt_a", "wkt_b"]),
}
"""How to choose what a parameter of this name is given."""


def _by_type(name: str, hint: Any) -> Choose | None:
    if get_origin(hint) in (Union, UnionType):
        hint = next(each for each in get_args(hint) if each is not type(None))
    if not isinstance(hint, type):
        return None
    if issubclass(hint, Enum):
        return lambda call: call.one_of(list(hint))
    plain: dict[type, Choose] = {
        str: lambda call: f"{name} {call.number()}",
        bool: lambda call: call.one_of([False, True]),
        int: lambda call: call.number(),
        datetime: lambda call: call.uow.now + timedelta(seconds=call.number() - 10),
    }
    return plain.get(hint)


class _SeenAt:
    """Knows that every agent was seen at a time."""

    def __init__(self, moment: datetime) -> None:
        self._moment = moment

    def last_seen(self, agent: Agent) -> datetime | None:
        del agent
        return self._moment


BY_TYPE: dict[Any, Choose] = {
    Agent: lambda call: call.row(AGENTS),
    AgentActivity: lambda call: _SeenAt(call.uow.now),
    Iterable[str]: lambda call: [f"s{call.number()}"],
    Opening: lambda call: call.uow.openings.get(call.chosen["task"].id),
    Status: lambda call: status(call.uow),
    Task: lambda call: call.row(TASKS),
}
"""How to choose what a parameter of this type is given, whatever its name is."""


def _chooser(name: str, hint: Any) -> Choose | None:
    types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if name == "agents" and int in types:
        return lambda call: call.number() + 1  # how many of them, and not which
    if Mapping[str, str] in types:
        return lambda _: {"x": "y"}
    known = next((BY_TYPE[each] for each in types if each in BY_TYPE), None)
    return known or BY_NAME.get(name) or _by_type(name, hint)


def unknown(use_case: UseCase) -> list[str]:
    """The parameters it must be given and that nobody knows how to choose."""
    hints = get_type_hints(use_case)
    return [
        name
        for name, parameter in list(inspect.signature(use_case).parameters.items())[1:]
        if parameter.default is parameter.empty and _chooser(name, hints[name]) is None
    ]


TRIED = [name for name, each in USE_CASES.items() if not unknown(each)]
"""The use cases that can be called, which a test states to be all of them."""
