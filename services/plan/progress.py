"""How far a plan is: each phase, what was completed when, and when the rest may be done.

The history comes from the journal. A task that was moved counts where it is now.
"""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from herdbook.domain.journal import Cause, JournalEntry, Op
from herdbook.domain.plan.model import PhaseStatus, TaskStatus
from herdbook.domain.plan.progress import (
    Forecast,
    ProgressPoint,
    TaskCountChange,
    burn_up,
    forecast,
)
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.plan_order import rows_in_order

POINTS = 25
"""How many moments the history is shown at."""
WINDOW = timedelta(days=28)
MAX_ENTRIES = 50_000
"""How far the journal is read back at most: so long, and so many entries."""
BROUGHT = frozenset({Cause.REVERT, Cause.MERGE, Cause.UPGRADE})
"""Why a task may become completed without anybody completing it then."""
SPANS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)}


class PhaseProgress(NamedTuple):
    """How many tasks of a phase, or without one, are completed."""

    id: str | None
    name: str | None
    status: PhaseStatus | None
    initiative_id: str | None
    initiative: str | None
    done: int
    total: int


class PlanProgress(NamedTuple):
    """How far a plan is, and how it came there.

    `completed` has how many tasks were completed in the last hour, day and week, or None where the
    journal does not reach back so far. `forecast` is None if nobody can say. For both, a task
    counts once, when it was completed last, and not at all if it came completed or was reopened.
    """

    now: ProgressPoint
    phases: tuple[PhaseProgress, ...]
    completed: dict[str, int | None]
    forecast: Forecast | None
    history: tuple[ProgressPoint, ...]


def measure_progress(uow: UnitOfWork, *, initiative_id: str | None = None) -> PlanProgress:
    """The progress of the whole plan or of an initiative.

    Raises NotFound if the initiative does not exist.
    """
    scope = _CountedTasks(uow, initiative_id)
    counts = scope.count()
    now = ProgressPoint(
        uow.now, sum(each.done for each in counts), sum(each.total for each in counts)
    )
    entries, begin = scope.read_entries()
    changes = [each for each in map(_count_change, entries) if each is not None]
    finished = _completion_times(entries)
    completed = {
        name: sum(at > uow.now - span for at in finished) if begin <= uow.now - span else None
        for name, span in SPANS.items()
    }
    first = min((each.at for each in changes), default=uow.now)
    return PlanProgress(
        now,
        counts,
        completed,
        forecast(now.total - now.done, finished, uow.now),
        tuple(burn_up(now, changes, first, POINTS if changes else 1)),
    )


class _CountedTasks:
    """The tasks of a space or of an initiative."""

    def __init__(self, uow: UnitOfWork, initiative_id: str | None) -> None:
        self._uow = uow
        self._initiative_id = initiative_id
        if initiative_id is None:
            self._phases = list(rows_in_order(uow, PHASES, page=PAGE))
        else:
            uow.initiatives.get(initiative_id)
            self._phases = uow.phases.of_initiative(initiative_id)
        self._phase_ids = {phase.id for phase in self._phases}

    def count(self) -> tuple[PhaseProgress, ...]:
        """The phases in the order of the plan, then the tasks without a phase, if there are any."""
        owners = sorted({phase.initiative_id for phase in self._phases})
        goals = {goal.id: goal.name for goal in self._uow.get_existing(INITIATIVES, owners)}
        found = [
            PhaseProgress(
                phase.id,
                phase.name,
                phase.status,
                phase.initiative_id,
                goals[phase.initiative_id],
                *self._count_with(phase_id=phase.id),
            )
            for phase in self._phases
        ]
        loose = PhaseProgress(None, None, None, None, None, *self._count_without_phase())
        return (*found, loose) if loose.total else tuple(found)

    def _count_with(self, **where: str | None) -> tuple[int, int]:
        done = self._uow.count(find(TASKS, {**where, "status": TaskStatus.COMPLETED}))
        return done, self._uow.count(find(TASKS, where))

    def _count_without_phase(self) -> tuple[int, int]:
        if self._initiative_id is None:
            return self._count_with(phase_id=None)
        tasks = select_all(
            self._uow, find(TASKS, {"initiative_id": self._initiative_id}, limit=PAGE)
        )
        loose = [task for task in tasks if task.phase_id is None]
        return sum(task.is_finished for task in loose), len(loose)

    def read_entries(self) -> tuple[list[JournalEntry], datetime]:
        """The entries of the last weeks, the newest first, and since when all of them are there."""
        begin = self._uow.now - WINDOW
        found = self._uow.journal.newest_since(begin, {TASKS.name}, most=MAX_ENTRIES)
        return self._in_scope(found.entries), found.known_since

    def _in_scope(self, entries: list[JournalEntry]) -> list[JournalEntry]:
        """The entries about tasks of the scope."""
        if self._initiative_id is None:
            return entries
        keys = list(dict.fromkeys(entry.key for entry in entries))
        # Of a row that is gone nothing counts, as if it had never been added.
        inside = {
            row.id
            for row in self._uow.get(TASKS, keys)
            if row is not None and self._has(row.phase_id, row.initiative_id)
        }
        return [entry for entry in entries if entry.key in inside]

    def _has(self, phase_id: str | None, initiative_id: str | None) -> bool:
        if phase_id is not None:
            return phase_id in self._phase_ids
        return initiative_id == self._initiative_id


def _count_change(entry: JournalEntry) -> TaskCountChange | None:
    """What an entry about a task changed in the numbers; None if nothing."""
    total = {Op.ADD: 1, Op.REMOVE: -1}.get(entry.op, 0)
    done = _done_change(entry)
    return TaskCountChange(entry.time, total, done) if total or done else None


def _completion_times(entries: list[JournalEntry]) -> list[datetime]:
    """When the tasks that are completed now, or were when removed, were completed last.

    `entries` are about tasks, the newest first.
    """
    found: list[datetime] = []
    done: dict[str, bool] = {}
    for entry in entries:
        change = _done_change(entry) if entry.op is Op.SAVE else 0
        if change and done.setdefault(entry.key, change > 0) and _is_completion(entry, change):
            found.append(entry.time)
            done[entry.key] = False  # those before it do not count
    return found


def _is_completion(entry: JournalEntry, change: int) -> bool:
    """Whether somebody completed the task here and then."""
    return change > 0 and entry.origin is None and entry.cause not in BROUGHT


def _done_change(entry: JournalEntry) -> int:
    return _is_done(entry.after or {}) - _is_done(entry.before or {})


def _is_done(values: dict[str, Any]) -> bool:
    return values.get("status") == TaskStatus.COMPLETED
