"""The projection of the two queues of the plan: blocked tasks and claimable tasks."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from herdbook.domain.plan.model import (
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Task,
    TaskStatus,
)
from herdbook.domain.plan.readiness import (
    Opening,
    WaitingTask,
    count_blockers,
    gate_is_open,
    phase_is_open,
    queue_row,
)
from herdbook.ports.engine.dictionary import (
    INITIATIVES,
    OPENINGS,
    PHASE_DEPENDENCIES,
    PHASES,
    TASK_DEPENDENCIES,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.changes import NetChanges, RowChange, group_by_key

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

Row = WaitingTask | Opening
SOURCES: frozenset[Kind[Any]] = frozenset(
    {TASKS, TASK_DEPENDENCIES, PHASES, PHASE_DEPENDENCIES, INITIATIVES}
)
"""The kinds that the queues are computed from."""
QUEUES: tuple[tuple[Kind[Any], type], ...] = ((WAITING, WaitingTask), (OPENINGS, Opening))


class ReadinessProjection:
    """Updates `waiting` and `openings` for changes of the plan."""

    def __init__(self, uow: "UnitOfWork", nets: NetChanges) -> None:
        self.uow = uow
        self.nets = nets
        self.fresh = {each.key for each in self._changes(TASKS) if each.before is None}
        self.recount: dict[str, None] = {}
        self.reshape: dict[str, None] = {}
        self.gone: list[str] = []

    def update(self) -> None:
        """Find the tasks whose row may differ now, and write the rows that do."""
        self._collect_tasks()
        self._collect_dependencies()
        self._collect_gates()
        recount = self._unfinished_or_gone(self.recount)
        reshape = [key for key in self._unfinished_or_gone(self.reshape) if key not in recount]
        rows = self.current_rows([*recount, *reshape])
        wanted = self.recount_rows(list(recount.values()), rows)
        for task in self.uow.get_existing(TASKS, reshape):
            row = rows.get(task.id)
            phase = self._phase(task)
            wanted[task.id] = queue_row(task, phase, row.blockers if row else 0, row)
        self._write(rows, wanted)

    def _changes(self, kind: Kind[Any]) -> Iterable[RowChange]:
        return self.nets.get(kind.name, {}).values()

    def _collect_tasks(self) -> None:
        finishing: list[str] = []
        for change in self._changes(TASKS):
            before, after = change.before, change.after
            if after is None:
                self.gone.append(change.key)
                self._collect_parent(before)
                continue
            if before is None:
                self.recount[after.id] = None
                self._collect_parent(after)
                continue
            if before.is_finished != after.is_finished:
                finishing.append(after.id)
            if _blocking_state(before) != _blocking_state(after):
                self.recount[after.id] = None
                self._collect_parent(before)
                self._collect_parent(after)
            else:
                self.reshape[after.id] = None
        if finishing:
            waiting = find(TASK_DEPENDENCIES, {"depends_on_task_id": any_of(finishing)})
            for edge in self.uow.select(waiting):
                self.recount[edge.task_id] = None

    def _collect_parent(self, task: Task) -> None:
        if task.parent_task_id:
            self.recount[task.parent_task_id] = None

    def _collect_dependencies(self) -> None:
        for change in self._changes(TASK_DEPENDENCIES):
            self.recount.update((edge.task_id, None) for edge in change.rows)

    def _collect_gates(self) -> None:
        """A gate that opened or closed affects every task of its phase."""
        phases: dict[str, None] = {}
        finishing: list[str] = []
        for change in self._changes(PHASE_DEPENDENCIES):
            phases.update((edge.phase_id, None) for edge in change.rows)
        for change in self._changes(PHASES):
            before, after = change.before, change.after
            if before is None or after is None:
                continue
            if _open_state(self.uow, before) != _open_state(self.uow, after):
                phases[after.id] = None
            if (before.status is PhaseStatus.COMPLETED) != (after.status is PhaseStatus.COMPLETED):
                finishing.append(after.id)
        if finishing:
            waiting = find(PHASE_DEPENDENCIES, {"depends_on_phase_id": any_of(finishing)})
            phases.update((edge.phase_id, None) for edge in self.uow.select(waiting))
        initiatives = [
            change.key
            for change in self._changes(INITIATIVES)
            if change.before
            and change.after
            and _gate_rules(change.before) != _gate_rules(change.after)
        ]
        if initiatives:
            inside = {"initiative_id": any_of(initiatives)}
            phases.update((phase.id, None) for phase in self.uow.select(find(PHASES, inside)))
            self.recount.update((task.id, None) for task in self.uow.select(find(TASKS, inside)))
        if phases:
            behind = self.uow.select(find(TASKS, {"phase_id": any_of(phases)}))
            self.recount.update((task.id, None) for task in behind)

    def _unfinished_or_gone(self, keys: Iterable[str]) -> dict[str, Task]:
        """The tasks that are still unfinished; rows of finished or removed ones have to go."""
        wanted = list(keys)
        found = self.uow.get(TASKS, wanted)
        tasks: dict[str, Task] = {}
        for key, task in zip(wanted, found, strict=True):
            if task is None or task.is_finished:
                self.gone.append(key)
            else:
                tasks[key] = task
        return tasks

    def current_rows(self, keys: Sequence[str]) -> dict[str, Row]:
        """The stored rows of these tasks; a task that was just added has none."""
        old = [key for key in dict.fromkeys((*keys, *self.gone)) if key not in self.fresh]
        rows: dict[str, Row] = {}
        for kind, _ in reversed(QUEUES):  # openings first: only they store leases
            rest = [key for key in old if key not in rows]
            found = self.uow.get(kind, rest) if rest else []
            rows.update((row.task_id, row) for row in found if row is not None)
        return rows

    def recount_rows(
        self, tasks: Sequence[Task], rows: dict[str, Row]
    ) -> dict[str, WaitingTask | Opening | None]:
        """The rows these tasks should have, with their blockers counted again."""
        if not tasks:
            return {}
        depends_on = self._depends_on(tasks)
        children = self._children(tasks)
        gates = self._gates(tasks)
        wanted: dict[str, WaitingTask | Opening | None] = {}
        for task in tasks:
            phase, gate_open = gates[task.id]
            before = rows.get(task.id)
            blocked_by = count_blockers(
                task,
                gate_open=gate_open,
                depends_on=depends_on.get(task.id, ()),
                children=children.get(task.id, ()),
            )
            wanted[task.id] = queue_row(task, phase, blocked_by, before)
        return wanted

    def _depends_on(self, tasks: Sequence[Task]) -> dict[str, list[Task]]:
        # The dependencies of a fresh task were written in this very transaction.
        edges = [
            change.after
            for change in self._changes(TASK_DEPENDENCIES)
            if change.after and change.after.task_id in self.fresh
        ]
        old = [task.id for task in tasks if task.id not in self.fresh]
        if old:
            edges += self.uow.select(find(TASK_DEPENDENCIES, {"task_id": any_of(old)}))
        return group_by_key(
            (edge.task_id, task)
            for edge, task in zip(
                edges,
                self.uow.get_existing(TASKS, [edge.depends_on_task_id for edge in edges]),
                strict=True,
            )
        )

    def _children(self, tasks: Sequence[Task]) -> dict[str, list[Task]]:
        found = [
            change.after
            for change in self._changes(TASKS)
            if change.after and change.after.parent_task_id in self.fresh
        ]
        old = [task.id for task in tasks if task.id not in self.fresh]
        if old:
            found += self.uow.select(find(TASKS, {"parent_task_id": any_of(old)}))
        return group_by_key((child.parent_task_id, child) for child in found)

    def _gates(self, tasks: Sequence[Task]) -> dict[str, tuple[Phase | None, bool]]:
        phase_ids = list(dict.fromkeys(task.phase_id for task in tasks if task.phase_id))
        phases = dict(zip(phase_ids, self.uow.get_existing(PHASES, phase_ids), strict=True))
        edges = (
            self.uow.select(find(PHASE_DEPENDENCIES, {"phase_id": any_of(phase_ids)}))
            if phase_ids
            else []
        )
        ends = [edge.depends_on_phase_id for edge in edges]
        waits_for = group_by_key(
            (edge.phase_id, phase)
            for edge, phase in zip(edges, self.uow.get_existing(PHASES, ends), strict=True)
        )
        gates: dict[str, tuple[Phase | None, bool]] = {}
        owners = {
            task.id: phases[task.phase_id].initiative_id if task.phase_id else task.initiative_id
            for task in tasks
        }
        wanted = list(dict.fromkeys(owner for owner in owners.values() if owner))
        initiatives = dict(zip(wanted, self.uow.get_existing(INITIATIVES, wanted), strict=True))
        for task in tasks:
            phase = phases[task.phase_id] if task.phase_id else None
            owner = owners[task.id]
            initiative = initiatives[owner] if owner else None
            ahead = waits_for.get(task.phase_id or "", ())
            gates[task.id] = phase, gate_is_open(initiative, phase, ahead)
        return gates

    def _phase(self, task: Task) -> Phase | None:
        return self.uow.get_existing(PHASES, [task.phase_id])[0] if task.phase_id else None

    def _write(self, rows: dict[str, Row], wanted: dict[str, WaitingTask | Opening | None]) -> None:
        for kind, row_type in QUEUES:
            put = {key: row for key, row in wanted.items() if isinstance(row, row_type)}
            gone = [
                key
                for key, row in rows.items()
                if isinstance(row, row_type)
                and key not in put
                and (key in wanted or key in self.gone)
            ]
            self.uow.put_derived(kind, list(put.values()), gone)


def _blocking_state(task: Task) -> tuple[Any, ...]:
    """What of a task decides its own blockers and its parent's."""
    blocked = task.status is TaskStatus.BLOCKED
    return task.is_finished, blocked, task.phase_id, task.initiative_id, task.parent_task_id


def _gate_rules(initiative: Initiative) -> tuple[Any, ...]:
    return initiative.status is InitiativeStatus.ACTIVE, initiative.execution_mode


def _open_state(uow: "UnitOfWork", phase: Phase) -> tuple[Any, ...]:
    (initiative,) = uow.get(INITIATIVES, [phase.initiative_id])
    return phase.initiative_id, phase_is_open(phase, initiative)
