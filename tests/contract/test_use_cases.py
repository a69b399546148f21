"""Random programs of every use case there is, and what must hold after each step of them."""

import importlib
import itertools
import pkgutil
from contextlib import AbstractContextManager, suppress
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from herdbook import services
from herdbook.domain.agents.model import Agent
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.conversation import Message, Party
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.claims import Claim
from herdbook.domain.plan.model import (
    ChangeSet,
    ExecutionMode,
    Initiative,
    Phase,
    PhaseStatus,
    Project,
    Proposal,
    ProposalTarget,
    Task,
    TaskStatus,
)
from herdbook.domain.record.model import Account
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.value_store import ChannelValue
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.repositories.checkpoints import TaskWrite
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.journal import undo
from herdbook.services.stores.store_check import check
from tests.cases import for_each
from tests.contract.holdings import Holdings, check_agents
from tests.contract.proposed import kept
from tests.contract.use_cases import (
    MODULES,
    PARTS,
    TRIED,
    USE_CASES,
    Call,
    areas_of,
    takes_uow,
    unknown,
)

SHARES = {"memory": 2, "lmdb": 5, "postgres": 50, "duckdb": 50}
"""How many programs run on the fastest store for each that runs on this one."""
OFTEN = (
    "plan.claims.claim",
    "plan.claims.complete",
    "plan.proposals.accept_all",
    "journal.undo.revert",
    "record.grading.report_bug",
)
"""What builds on what others have done, and so must be tried more than once."""

BEFORE_OTHERS = ("plan.claims.claim", "plan.proposals.accept", "agents.agent_lifecycle.wait")
"""What other use cases can only follow."""

_numbers = itertools.count(1)

choices = st.lists(st.integers(0, 30), min_size=7, max_size=7)
steps = st.tuples(st.sampled_from([*TRIED, *OFTEN * 3, *["crud.add"] * 4]), choices)
programs = st.lists(st.lists(steps, min_size=1, max_size=2), min_size=5, max_size=25)
working = steps.filter(lambda step: Area.WORK in areas_of(USE_CASES[step[0]]))
Transaction = list[tuple[str, list[int]]]


def _begun(uow: UnitOfWork) -> None:
    """A plan to begin with, and proposals to change it."""
    agents = uow.agents.add_all([Agent(name=name) for name in ("otter", "heron")])
    modes = [{}, {"execution_mode": ExecutionMode.YOLO, "quality_review": True}]
    initiatives = uow.initiatives.add_all([Initiative(name="x", **mode) for mode in modes])
    phases = uow.phases.add_all(
        [
            Phase(initiative_id=initiative.id, name="x", status=status)
            for initiative in initiatives
            for status in (PhaseStatus.APPROVED, PhaseStatus.COMPLETED)
        ]
    )
    tasks = uow.tasks.add_all([Task(name="x", phase_id=phase.id) for phase in phases])
    uow.tasks.add(Task(name="x", parent_task_id=tasks[1].id))
    uow.tasks.add_dependency(tasks[2].id, tasks[0].id)
    uow.phases.add_dependency(phases[1].id, phases[0].id)
    project = uow.projects.add(Project(name="x", url="x"))
    uow.projects.set_for_initiative(initiatives[0].id, [project.id])
    uow.messages.add(Message(sender_type=Party.USER, recipient_type=Party.USER, content="x"))
    for at, initiative in enumerate(initiatives):
        place = {"phase_id": phases[2 * at + 1].id, "depends_on": [tasks[0].id]}
        ideas = [
            (ProposalTarget.TASK, None, place),
            (ProposalTarget.TASK, tasks[2 * at].id, {"priority": "high"}),
            (ProposalTarget.PHASE, None, {"depends_on": [phases[2 * at].id]}),
            (ProposalTarget.PAGE, None, None),
            (ProposalTarget.PAGE, None, {"colour": "red"}),
        ]
        for target_type, target_id, metadata in ideas:
            uow.proposals.add(
                Proposal(
                    agent_id=agents[at].id,
                    initiative_id=initiative.id,
                    target_type=target_type,
                    target_id=target_id,
                    title="y",
                    summary="y",
                    content="y",
                    metadata=metadata,
                )
            )


def _checkpointed(keeping: CheckpointWriter) -> None:
    """Two threads of three steps each, with what was written since the last one."""
    said = {"metadata": TaggedBytes("json", b"{}"), "state": TaggedBytes("json", b"{}")}
    for thread in ("one", "two"):
        for number in range(3):
            before = f"{thread} {number - 1}" if number else None
            offer = ChannelValue(
                number, changed=True, write=lambda: TaggedBytes("bytes", b"x" * 5_000)
            )
            keeping.put(
                thread, "", f"{thread} {number}", parent_id=before, values={"x": offer}, **said
            )
        done = TaskWrite("task", "", 0, "x", TaggedBytes("null", b""))
        keeping.put_writes(thread, "", f"{thread} 2", [done])


class Spaces:
    """A space of each area with something in it, and ids by which a program does the same again."""

    def __init__(self, store: Store) -> None:
        number = next(_numbers)
        self.number = 0
        self.store = store
        self.names = {area: f"{area}/use-cases-{number}" for area in Area}
        with self.begin(Area.WORK) as uow:
            _begun(uow)
            uow.commit()
        with self.begin(Area.RECORD) as uow:
            uow.accounts.add_all([Account(email="x"), Account(email="y", credentials="z")])
            uow.commit()
        with self.begin(Area.CHECKPOINTS) as uow:
            _checkpointed(CheckpointWriter(uow))
            uow.commit()

    def ids(self) -> str:
        """The next id."""
        self.number += 1
        return f"{self.number:020x}"

    def begin(self, area: Area, *, write: bool = True) -> AbstractContextManager[UnitOfWork]:
        """Begin a unit of work in one of them."""
        return unit_of_work(self.store, self.names[area], ids=self.ids, write=write)

    def attempt(self, transaction: Transaction) -> bool:
        """Do some use cases in one transaction, as `run` does: all, or nothing if one is refused.

        The first decides where; others that are at home elsewhere are left out.
        """
        area = _area(transaction)
        with self.begin(area) as uow:
            try:
                for name, chosen in transaction:
                    if area in areas_of(USE_CASES[name]):
                        Call(uow, chosen).run(USE_CASES[name])
                        assert find_differences(uow) == [], name
            except HerdbookError:
                return False
            uow.commit()
        return True


def _area(transaction: Transaction) -> Area:
    name, chosen = transaction[0]
    areas = areas_of(USE_CASES[name])
    return areas[chosen[0] % len(areas)]


def test_every_space_is_whole_after_every_use_case(store: Store, engine: str) -> None:
    """Derived rows are what a recount makes of them after each step, and a check finds nothing.

    What a use case cannot do it refuses with an error of ours, and never with another.
    """

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=programs)
    def holds(program: list[Transaction]) -> None:
        spaces = Spaces(store)
        for transaction in program:
            spaces.attempt(transaction)
            with spaces.begin(_area(transaction), write=False) as uow:
                assert find_differences(uow) == [], transaction
        assert check(store, list(spaces.names.values())) == []

    holds()


class Plan:
    """The phases and tasks of a space at one moment."""

    def __init__(self, uow: UnitOfWork) -> None:
        self.phases = {each.id: each for each in select_all(uow, find(PHASES, limit=PAGE))}
        self.tasks = {each.id: each for each in select_all(uow, find(TASKS, limit=PAGE))}
        self.yolo = {
            each.id
            for each in select_all(uow, find(INITIATIVES, limit=PAGE))
            if each.execution_mode is ExecutionMode.YOLO
        }

    def open_in(self, phase_id: str) -> set[str]:
        """The ids of the unfinished tasks in a phase."""
        tasks = self.tasks.values()
        return {each.id for each in tasks if each.phase_id == phase_id and not each.is_finished}


def _recount_phase(before: Plan, after: Plan, phase: Phase) -> PhaseStatus:
    """The status of a phase after one use case, from what it left when nothing reacted to it."""
    finished = (PhaseStatus.COMPLETED, PhaseStatus.PENDING_REVIEW)
    was = before.phases.get(phase.id)
    if was is None or was.status is not phase.status:
        return phase.status
    inside = [each for each in after.tasks.values() if each.phase_id == phase.id]
    for task in inside:
        earlier = before.tasks.get(task.id)
        same = (
            earlier is not None
            and earlier.phase_id == phase.id
            and (earlier.status, earlier.fence) == (task.status, task.fence)
        )
        if task.status is TaskStatus.IN_PROGRESS and not same:
            return PhaseStatus.IN_PROGRESS
    left, there = before.open_in(phase.id), after.open_in(phase.id)
    if there - left and phase.status in finished:
        return PhaseStatus.IN_PROGRESS
    if there or not left or phase.status in finished:
        return phase.status
    only_left = not left & {each.id for each in inside}
    yolo = phase.initiative_id in after.yolo
    kept = {PhaseStatus.BLOCKED} if yolo else {PhaseStatus.BLOCKED, PhaseStatus.PENDING}
    if only_left and phase.status in kept:
        return phase.status
    return PhaseStatus.COMPLETED if yolo else PhaseStatus.PENDING_REVIEW


def _settled(uow: UnitOfWork, after: Plan, change_set: ChangeSet) -> set[str]:
    """The phases that a change set's being taken back leaves as they are."""
    first = min(each.seq for each in uow.journal.of_tx(change_set.tx))
    return {
        each
        for each in after.phases
        if all(entry.seq < first for entry in uow.journal.of_row(PHASES, each))
        or not any(task.phase_id == each for task in after.tasks.values())
    }


def test_every_phase_follows_its_tasks(store: Store, engine: str) -> None:
    """After any use case each phase has the status that a recount of its tasks gives it.

    The use case is tried first with nothing reacting to it, and undone: what it leaves then is what
    is counted. After a change set was taken back, a phase is as it was if it is empty, or if nobody
    has changed it since.
    """

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=st.lists(working, min_size=10, max_size=40))
    def holds(program: Transaction) -> None:
        spaces = Spaces(store)
        for step in program:
            name, chosen = step
            if _area([step]) is not Area.WORK:
                continue
            numbers = spaces.number
            with spaces.begin(Area.WORK) as uow:
                before = Plan(uow)
                uow.reactions.disable()
                try:
                    result = Call(uow, chosen).run(USE_CASES[name])
                except HerdbookError:
                    continue
                after = Plan(uow)
                settled = _settled(uow, after, result) if name == "journal.undo.revert" else set()
            spaces.number = numbers
            expected = {
                phase.id: phase.status
                if phase.id in settled
                else _recount_phase(before, after, phase)
                for phase in after.phases.values()
            }
            assert spaces.attempt([step]), step
            with spaces.begin(Area.WORK, write=False) as uow:
                found = {each.id: each.status for each in Plan(uow).phases.values()}
            assert found == expected, step

    holds()


def test_every_agent_is_at_what_it_holds(store: Store, engine: str) -> None:
    """After any use case, of several in a transaction too, a recount of what is held agrees.

    Only what a person writes into the row of an agent itself is left out.
    """

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=st.lists(st.lists(working, min_size=1, max_size=3), min_size=5, max_size=20))
    def holds(program: list[Transaction]) -> None:
        spaces = Spaces(store)
        claimers: dict[str, str] = {}
        for transaction in program:
            claimed: dict[str, str] = {}
            with spaces.begin(Area.WORK) as uow:
                before = Holdings(uow)
                try:
                    for name, chosen in transaction:
                        call = Call(uow, chosen)
                        answer = call.run(USE_CASES[name])
                        if call.chosen.get("kind") is AGENTS:
                            raise InvalidValue("kind", "is written by hand")
                        if isinstance(answer, Claim):
                            claimed[answer.task.id] = call.chosen["agent_id"]
                except HerdbookError:
                    continue
                uow.commit()
            claimers |= claimed
            with spaces.begin(Area.WORK, write=False) as uow:
                after = Holdings(uow)
            check_agents(after, before)
            for task_id, reviewer_id in after.reviewers.items():
                assert reviewer_id in (None, claimers.get(task_id)), transaction

    holds()


def test_no_module_of_use_cases_is_forgotten() -> None:
    """Whatever in `services/` works in a unit of work is named in `MODULES`, or is part of one."""
    found = {
        each.name.removeprefix(f"{services.__name__}.")
        for each in pkgutil.walk_packages(services.__path__, f"{services.__name__}.")
        if takes_uow(importlib.import_module(each.name))
    }
    assert found == MODULES.keys() | PARTS, "see tests/contract/use_cases.py"


def test_no_use_case_is_left_out() -> None:
    """Of every parameter it is known how to choose what it is given."""
    left_out = {name: unknown(each) for name, each in USE_CASES.items() if unknown(each)}
    assert left_out == {}, "see BY_NAME in tests/contract/use_cases.py"


@pytest.mark.parametrize("engine", ["memory"], indirect=True)
@for_each("name", TRIED)
def test_every_use_case_can_be_done(store: Store, name: str) -> None:
    """The choices the programs make are such that it is not always refused."""
    spaces = Spaces(store)
    random = Random(1)
    for _ in range(600):
        if spaces.attempt([(name, random.choices(range(31), k=7))]):
            return
        any_one = random.choice([*TRIED, *OFTEN * 3])
        for each in (any_one, "crud.add", *BEFORE_OTHERS):
            spaces.attempt([(each, random.choices(range(31), k=7))])
    pytest.fail("it was refused every time: see BY_NAME")


UNTOUCHED = {"openings", "waiting", "chat_messages", "log_chunks", "operations", "worktrees"}
"""Leases are not in the journal; what was said or printed and the sight of a worktree stay."""


def _kept(spaces: Spaces) -> dict[str, Any]:
    found = kept(spaces.store, spaces.names[Area.WORK])
    return {name: rows for name, rows in found.items() if name not in UNTOUCHED}


@pytest.mark.parametrize("engine", ["memory", "lmdb"], indirect=True)
def test_whatever_is_taken_back_at_once_is_as_it_was(store: Store, engine: str) -> None:
    """Any transaction of any use cases, if a change set stands for it.

    It is refused only where something went that the journal does not tell enough of, where the
    change set would go itself, or where a fence moved, which never goes back.
    """

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=programs, last=st.lists(working, min_size=1, max_size=4))
    def holds(program: list[Transaction], last: Transaction) -> None:
        spaces = Spaces(store)
        for transaction in program[:10]:
            spaces.attempt(transaction)
        before = _kept(spaces)
        with spaces.begin(Area.WORK) as uow:
            done = 0
            for name, chosen in last:
                with suppress(HerdbookError):
                    Call(uow, chosen).run(USE_CASES[name])
                    done += 1
            owners = uow.initiatives.page()
            assume(done and owners)
            row = ChangeSet(initiative_id=owners[0].id, summary="x", tx=uow.tx)
            change_set = uow.change_sets.add(row)
            uow.commit()
        try:
            with spaces.begin(Area.WORK) as uow:
                undo.revert(uow, change_set.id)
                uow.commit()
        except InvalidValue as error:
            told = str(error)
            own = f"change set '{change_set.id}'"
            with spaces.begin(Area.WORK, write=False) as uow:
                entries = uow.journal.of_tx(change_set.tx)
            is_claim = any("fence" in (entry.before or {}) for entry in entries)
            is_claim = is_claim and "was claimed or sent to a review" in told
            assert "no more than the key" in told or own in told or is_claim
        else:
            assert _kept(spaces) == before
            assert check(store, [spaces.names[Area.WORK]]) == []

    holds()
