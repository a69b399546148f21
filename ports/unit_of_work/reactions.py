"""Rows that follow other rows by a rule of the domain, and are journalled like any other change.

The unit of work runs `REACTIONS` over the net changes of a transaction before it commits and before
anybody asks for projections, so no use case can forget one. However often they run, in the end the
rows are as if they had run once, on the net changes. A rule never undoes what a use case set: a
phase whose status was written in this transaction keeps it. A rule may read projections; they are
then those of the rows without what the rules of this run want.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from herdbook.domain.agents.current_work import stay_at, take_up
from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.plan.claims import HELD
from herdbook.domain.plan.model import Phase, Task, TaskStatus
from herdbook.domain.plan.phases import TaskChange, follow_tasks, summarize_changes
from herdbook.domain.plan.readiness import holder_of, is_held_review
from herdbook.ports.engine.dictionary import (
    AGENTS,
    INITIATIVES,
    OPENINGS,
    PHASES,
    PROPOSALS,
    TASKS,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.changes import NetChanges, RowChange, net_changes

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

FindRow = Callable[[Kind[Any], Any], Any]
"""A row as it would be without any reaction of this transaction; None if it is not there."""
Reaction = Callable[["UnitOfWork", NetChanges, FindRow], Iterable[tuple[Kind[Any], Any]]]
"""From the net changes of a transaction to the rows as they should be."""


def phases_follow_tasks(
    uow: "UnitOfWork", nets: NetChanges, find_row: FindRow
) -> Iterator[tuple[Kind[Any], Any]]:
    """Let the phases of changed tasks follow them."""
    by_phase: dict[str, list[TaskChange]] = {}
    for change in nets[TASKS.name].values():
        for phase_id in dict.fromkeys(task.phase_id for task in change.rows if task.phase_id):
            by_phase.setdefault(phase_id, []).append(TaskChange(change.before, change.after))
    for phase_id, changes in by_phase.items():
        phase = find_row(PHASES, phase_id)
        if phase is None or _status_is_set(nets.get(PHASES.name, {}).get(phase_id)):
            continue
        yield PHASES, _follow(uow, phase, changes)


def _follow(uow: "UnitOfWork", phase: Phase, changes: list[TaskChange]) -> Phase:
    return follow_tasks(
        phase,
        summarize_changes(phase.id, changes),
        lambda: uow.get(INITIATIVES, [phase.initiative_id])[0],
        lambda: uow.tasks.any_unfinished_in(phase.id),
    )


def _status_is_set(change: RowChange | None) -> bool:
    """Whether the transaction itself gave a phase its status."""
    if change is None or change.after is None:
        return False
    return change.before is None or change.before.status is not change.after.status


def claims_end_with_status(
    uow: "UnitOfWork", nets: NetChanges, find_row: FindRow
) -> Iterator[tuple[Kind[Any], Any]]:
    """Let a task that nobody holds any more have no claim, also if its status was set by hand."""
    for change in nets[TASKS.name].values():
        before, after = change.before, change.after
        if before is None or after is None or after.claim_stamp is None:
            continue
        if (before.status, before.claim_stamp) == (after.status, after.claim_stamp):
            continue
        if after.status is TaskStatus.IN_PROGRESS or _review_is_held(uow, after):
            continue
        yield TASKS, evolve(find_row(TASKS, change.key), claim_stamp=None, lease_until=None)


def _review_is_held(uow: "UnitOfWork", task: Task) -> bool:
    if task.status is not TaskStatus.QUALITY_REVIEW:
        return False
    (opening,) = uow.get(OPENINGS, [task.id])
    return opening is not None and is_held_review(opening)


FOLLOWED = frozenset({TASKS.name, PHASES.name, PROPOSALS.name, AGENTS.name})
"""The kinds of rows whose changes this reaction looks at."""


def agents_follow_tasks(
    uow: "UnitOfWork", nets: NetChanges, find_row: FindRow
) -> Iterator[tuple[Kind[Any], Any]]:
    """Let the agents that hold or held changed tasks follow them.

    An agent is at what it claimed last. When that ends, it is at another thing it holds, else at
    nothing, and idle. Its initiative is the task's; without a task, the one it was at last or made
    a proposal for.
    """
    return _CurrentWork(uow, nets, find_row).rows()


class _CurrentWork:
    """The agents whose task, initiative and status may have to follow what they hold."""

    def __init__(self, uow: "UnitOfWork", nets: NetChanges, find_row: FindRow) -> None:
        self._uow = uow
        self._tasks = nets.get(TASKS.name, {})
        self._nets = nets
        self._find_row = find_row
        self._affected: dict[str, Task | None] = {}
        """The agents that may have to move, each with the task it claimed in this transaction."""
        self._proposed: dict[str, str] = {}

    def rows(self) -> Iterator[tuple[Kind[Any], Any]]:
        self._collect_tasks()
        self._collect_moved()
        for agent_id, claimed in self._affected.items():
            agent = self._find_row(AGENTS, agent_id)
            if agent is not None:
                yield AGENTS, self._follow(agent, claimed)

    def _collect_tasks(self) -> None:
        ended: list[str] = []
        for change in self._tasks.values():
            before, after = change.before, change.after
            if after is not None:
                holder = self._holder(after)
                if holder is not None:
                    claimed = after if before is None or _is_claimed(before, after) else None
                    self._affected[holder] = claimed or self._affected.get(holder)
            if before is None or after is None:
                continue  # a removed task was emptied from its agents, which are changed too
            if before.status is TaskStatus.IN_PROGRESS and before.assignee_id is not None:
                self._affected.setdefault(before.assignee_id)
            if before.status is TaskStatus.QUALITY_REVIEW or after.is_finished:
                ended.append(after.id)
        if ended:
            there = self._uow.select(find(AGENTS, {"task_id": any_of(ended)}))
            self._affect(agent.id for agent in there)

    def _collect_moved(self) -> None:
        """Find agents whose task or initiative is another without a change of the task itself."""
        phases = [
            change.key for change in self._changes(PHASES) if _has_changed(change, "initiative_id")
        ]
        if phases:
            inside = {"phase_id": any_of(phases)}
            tasks = [task for task in self._uow.select(find(TASKS, inside)) if task.status in HELD]
            holders = map(self._holder, tasks)
            self._affect(each for each in holders if each is not None)
        for change in self._changes(AGENTS):
            if _has_changed(change, "task_id") or _has_changed(change, "initiative_id"):
                self._affected.setdefault(change.key)
        for change in self._changes(PROPOSALS):
            if change.before is None:
                self._proposed[change.after.agent_id] = change.after.initiative_id
        self._affect(self._proposed)
        self._affect(self._uow.reactions.saved.get(AGENTS.name, ()))

    def _changes(self, kind: Kind[Any]) -> list[RowChange]:
        return list(self._nets.get(kind.name, {}).values())

    def _affect(self, agent_ids: Iterable[str]) -> None:
        for each in agent_ids:
            self._affected.setdefault(each)

    def _follow(self, agent: Agent, claimed: Task | None) -> Agent:
        if claimed is not None:
            return take_up(agent, claimed.id, self._uow.tasks.initiative_id_of(claimed))
        current = None if agent.task_id is None else self._uow.tasks.find(agent.task_id)
        task = current
        if current is None or self._holder(current) != agent.id:
            task = self._other_held(agent) or self._by_hand(current)
        if task is not None:
            return stay_at(agent, task.id, self._uow.tasks.initiative_id_of(task))
        return stay_at(agent, None, self._proposed.get(agent.id, agent.initiative_id))

    def _by_hand(self, task: Task | None) -> Task | None:
        """The task that an agent was set to by hand; it stays there until the task ends."""
        change = None if task is None else self._tasks.get(task.id)
        if task is None or change is None:
            return task
        was_held = change.before is not None and change.before.status in HELD
        return None if was_held or task.is_finished else task

    def _other_held(self, agent: Agent) -> Task | None:
        """Of what an agent holds, the task that was changed last."""
        held = self._uow.tasks.in_progress_of([agent.id])
        reviews = self._uow.openings.reviews_of([agent.id])
        held += self._uow.tasks.get_many(each.task_id for each in reviews)
        return max(held, key=lambda task: (task.updated_at, task.id), default=None)

    def _holder(self, task: Task) -> str | None:
        if task.status not in HELD:
            return None
        reviewed = task.status is TaskStatus.QUALITY_REVIEW
        return holder_of(task, self._uow.openings.find(task.id) if reviewed else None)


def _is_claimed(before: Task, after: Task) -> bool:
    """Whether a held task was claimed in between: each claim has a fence of its own.

    A task that is held again because its end was undone has the fence that it had.
    """
    return before.fence != after.fence


def _has_changed(change: RowChange, field: str) -> bool:
    """Whether a row that was there, and still is, has another value in a field."""
    if change.before is None or change.after is None:
        return False
    return bool(getattr(change.before, field) != getattr(change.after, field))


REACTIONS: tuple[tuple[frozenset[str], Reaction], ...] = (
    (frozenset({TASKS.name}), phases_follow_tasks),
    (frozenset({TASKS.name}), claims_end_with_status),
    (FOLLOWED, agents_follow_tasks),
)
"""The rules in their order, each with the kinds of rows whose changes it follows."""
_READ = frozenset({INITIATIVES.name}).union(*(names for names, _ in REACTIONS))
"""The kinds of rows that the rules read: after a change of one they are applied again."""


class Reactions:
    """Runs the reactions of one unit of work; may be run again after further changes."""

    def __init__(self, uow: "UnitOfWork") -> None:
        self.saved: dict[str, dict[Any, Any]] = {}
        """The rows that reactions have written so far, by kind and key."""
        self._uow = uow
        self._seen = 0
        self._changes: list[RowChange] = []
        """The changes of the use cases, as if no reaction had run between them."""
        self._unreacted: dict[tuple[str, Any], Any] = {}
        """The rows that reactions have written, as they would be without that."""
        self._excluded: set[tuple[str, Any]] = set()
        self._enabled = True
        self._is_running = False

    def disable(self) -> None:
        """Let every row of this transaction be as it is written, as a merge has to."""
        self._enabled = False

    def exclude(self, kind: Kind[Any], keys: Iterable[Any]) -> None:
        """Let these rows be as they are, as an undo wants them."""
        self._excluded.update((kind.name, key) for key in keys)

    def run(self) -> None:
        """Save every row that a rule wants otherwise than it is.

        Does nothing while it runs: a rule may ask for projections, which wait for reactions.
        """
        if self._is_running:
            return
        changes = self._uow.changes
        fresh = changes[self._seen :]
        self._seen = len(changes)
        self._changes += map(self._without_reactions, fresh)
        if not self._enabled or not any(each.kind.name in _READ for each in fresh):
            return
        nets, kinds = net_changes(self._changes), self._uow.dictionary.kinds
        # What no rule wants otherwise any more is again as it was.
        wanted = {known: (kinds[known[0]], row) for known, row in self._unreacted.items()}
        self._is_running = True
        try:
            for names, reaction in REACTIONS:
                rows = () if names.isdisjoint(nets) else reaction(self._uow, nets, self._find_row)
                wanted.update(((kind.name, kind.key_of(row)), (kind, row)) for kind, row in rows)
            for kind, row in wanted.values():
                self._save(kind, row)
        finally:
            self._is_running = False
        self._seen = len(changes)

    def _without_reactions(self, change: RowChange) -> RowChange:
        """A change as it would be if no reaction had written its row before.

        What the use case left as the reaction wrote it, it has not set itself.
        """
        known = (change.kind.name, change.key)
        if known not in self._unreacted:
            return change
        before = self._unreacted.pop(known)
        if change.after is None:
            return change._replace(before=before)
        written = vars(change.before)
        fields = {name: each for name, each in vars(change.after).items() if each != written[name]}
        after = self._unreacted[known] = evolve(before, **fields)
        return change._replace(before=before, after=after)

    def _find_row(self, kind: Kind[Any], key: Any) -> Any:
        known = (kind.name, key)
        return self._unreacted[known] if known in self._unreacted else self._uow.get(kind, [key])[0]

    def _save(self, kind: Kind[Any], row: Any) -> None:
        key = kind.key_of(row)
        (current,) = self._uow.get_existing(kind, [key])
        values = {**vars(row), "version": current.version, "updated_at": current.updated_at}
        if values == vars(current) or (kind.name, key) in self._excluded:
            return
        self._unreacted.setdefault((kind.name, key), current)
        self.saved.setdefault(kind.name, {})[key] = self._uow.save(kind, [type(row)(**values)])[0]
