"""The board: initiatives, their phases and tasks by state, who holds what, and what takes longest.

It is read in one transaction. What it loads is bounded, however large the plan is: everything else
is counted.
"""

from datetime import datetime
from typing import NamedTuple

from herdbook.domain.plan import graph as rules
from herdbook.domain.plan.graph import Item
from herdbook.domain.plan.model import Initiative, InitiativeStatus, Phase, Task, TaskStatus
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import schedule
from herdbook.services.plan.board_lanes import LaneBuilder, UnphasedTasks
from herdbook.services.plan.board_model import BoardState, Lanes, gate_blockers

LIMIT = 10
"""How many tasks of one state are shown of one phase."""
MAX_INITIATIVES = 20
"""How many initiatives are shown."""
MAX_PHASES = 50
"""How many phases are shown of one initiative."""
PATH_BUDGET = 2_000
"""Among how many unfinished tasks, over the whole board, critical paths are looked for."""
_LEFT = tuple(status for status in TaskStatus if status is not TaskStatus.COMPLETED)
_OPEN = (InitiativeStatus.ACTIVE, InitiativeStatus.PENDING_REVIEW)


class BoardPhase(NamedTuple):
    """A phase and its tasks, or the tasks without one."""

    phase: Phase | None
    waits_for: tuple[Phase, ...]
    lanes: Lanes


class BoardInitiative(NamedTuple):
    """An initiative, or what belongs to none.

    `critical_path` is None where there are too many tasks to look for one, and empty where nothing
    waits for anything.
    """

    initiative: Initiative | None
    stages: tuple[BoardPhase, ...]
    more_stages: int
    critical_path: tuple[Task, ...] | None


class Board(NamedTuple):
    """How the plan of a space stands at one moment.

    Of `unseen` tasks without a phase nothing is told but that they are there, because there are too
    many of them; `closed` counts initiatives that are completed or archived.
    """

    now: datetime
    seq: int
    goals: tuple[BoardInitiative, ...]
    more_goals: int
    closed: int
    unseen: int


def last_change(uow: UnitOfWork) -> int:
    """The number of the last change; a board can differ only where this one does."""
    return uow.journal.last()


def board(uow: UnitOfWork, *, initiative_id: str | None = None, limit: int = LIMIT) -> Board:
    """The board of a space, or of one initiative; NotFound if there is no such one."""
    initiatives, more = _initiatives(uow, initiative_id)
    dealer = LaneBuilder(uow, limit)
    loose, unseen = dealer.tasks_without_phase()
    goals = []
    budget = PATH_BUDGET
    for initiative in initiatives:
        goal, budget = _initiative_part(dealer, initiative, loose, budget)
        goals.append(goal)
    if initiative_id is None and None in loose:
        goals.append(_part_without_initiative(dealer, loose, budget))
    closed = 0
    if initiative_id is None:
        others = [status for status in InitiativeStatus if status not in _OPEN]
        closed = uow.count(find(INITIATIVES, {"status": any_of(others)}))
    return Board(uow.now, last_change(uow), tuple(goals), more, closed, unseen)


def _initiatives(uow: UnitOfWork, initiative_id: str | None) -> tuple[list[Initiative], int]:
    if initiative_id is not None:
        return [uow.initiatives.get(initiative_id)], 0
    query = find(INITIATIVES, {"status": any_of(_OPEN)}, limit=MAX_INITIATIVES)
    found = uow.select(query)
    return found, uow.count(query._replace(limit=None)) - len(found)


def _initiative_part(
    dealer: LaneBuilder, initiative: Initiative, loose: UnphasedTasks, budget: int
) -> tuple[BoardInitiative, int]:
    """An initiative's part of the board, and how many tasks may still be looked at for paths."""
    uow = dealer.uow
    query = find(PHASES, {"initiative_id": initiative.id}, limit=MAX_PHASES)
    phases = uow.select(query)
    ahead = {phase.id: uow.phases.dependencies(phase.id) for phase in phases}
    phases = _in_order(phases, ahead)
    more = uow.count(query._replace(limit=None)) - len(phases)
    own = loose.get(initiative.id, {})
    sizes = [dealer.size(phase.id) for phase in phases]
    left = _unfinished(own)
    unfinished = sum(total - done for total, done in sizes) + len(left)
    path: list[Task] | None = None
    if not more and unfinished <= budget:
        left += [task for phase in phases for task in _unfinished_in(uow, phase.id)]
        path = schedule.longest_chain(uow, left)
        budget -= unfinished
    marked = [task.id for task in path or ()]
    stages = []
    for phase, size in zip(phases, sizes, strict=True):
        closed = gate_blockers(initiative, phase, ahead[phase.id])
        lanes = dealer.of_phase(phase, size, closed, marked)
        stages.append(BoardPhase(phase, tuple(ahead[phase.id]), lanes))
    if own:
        stages.append(
            BoardPhase(None, (), dealer.of_tasks(own, gate_blockers(initiative, None, ()), marked))
        )
    return BoardInitiative(initiative, tuple(stages), more, _chain(path)), budget


def _in_order(phases: list[Phase], ahead: dict[str, list[Phase]]) -> list[Phase]:
    """Phases behind those they wait for, older ones first where free to choose."""
    known = {phase.id: phase for phase in phases}
    items = [Item(id=each.id, rank=0, order=0, created_at=each.created_at) for each in phases]
    edges = {key: [each.id for each in others] for key, others in ahead.items()}
    return [known[key] for key in rules.order(items, edges)]


def _part_without_initiative(
    dealer: LaneBuilder, loose: UnphasedTasks, budget: int
) -> BoardInitiative:
    """The part of the board for tasks without an initiative."""
    own = loose[None]
    unfinished = _unfinished(own)
    fits = len(unfinished) <= budget
    path = schedule.longest_chain(dealer.uow, unfinished) if fits else None
    lanes = dealer.of_tasks(own, (), [task.id for task in path or ()])
    return BoardInitiative(None, (BoardPhase(None, (), lanes),), 0, _chain(path))


def _unfinished_in(uow: UnitOfWork, phase_id: str) -> list[Task]:
    return uow.select(find(TASKS, {"phase_id": phase_id, "status": any_of(_LEFT)}))


def _unfinished(tasks: dict[BoardState, list[Task]]) -> list[Task]:
    return [task for state in tasks for task in tasks[state] if state is not BoardState.COMPLETED]


def _chain(path: list[Task] | None) -> tuple[Task, ...] | None:
    """A path that is worth marking: one task alone is no chain."""
    if path is None:
        return None
    return tuple(path) if len(path) > 1 else ()
