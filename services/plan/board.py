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
from herdbook.services.plan.board_lanes import Dealer, Loose
from herdbook.services.plan.board_model import Lanes, State, gate

LIMIT = 10
"""How many tasks of one state are shown of one phase."""
GOALS = 20
"""How many initiatives are shown."""
STAGES = 50
"""How many phases are shown of one initiative."""
CHAINED = 2_000
"""Among how many unfinished tasks, over the whole board, critical paths are looked for."""
_LEFT = tuple(status for status in TaskStatus if status is not TaskStatus.COMPLETED)
_OPEN = (InitiativeStatus.ACTIVE, InitiativeStatus.PENDING_REVIEW)


class Stage(NamedTuple):
    """A phase and its tasks, or the tasks without one."""

    phase: Phase | None
    waits_for: tuple[Phase, ...]
    lanes: Lanes


class Goal(NamedTuple):
    """An initiative, or what belongs to none.

    `critical_path` is None where there are too many tasks to look for one, and empty where nothing
    waits for anything.
    """

    initiative: Initiative | None
    stages: tuple[Stage, ...]
    more_stages: int
    critical_path: tuple[Task, ...] | None


class Board(NamedTuple):
    """How the plan of a space stands at one moment.

    Of `unseen` tasks without a phase nothing is told but that they are there, because there are too
    many of them; `closed` counts initiatives that are completed or archived.
    """

    now: datetime
    seq: int
    goals: tuple[Goal, ...]
    more_goals: int
    closed: int
    unseen: int


def head(uow: UnitOfWork) -> int:
    """The number of the last change; a board can differ only where this one does."""
    return uow.journal.last()


def board(uow: UnitOfWork, *, initiative_id: str | None = None, limit: int = LIMIT) -> Board:
    """The board of a space, or of one initiative; NotFound if there is no such one."""
    initiatives, more = _initiatives(uow, initiative_id)
    dealer = Dealer(uow, limit)
    loose, unseen = dealer.loose()
    goals = []
    budget = CHAINED
    for initiative in initiatives:
        goal, budget = _goal(dealer, initiative, loose, budget)
        goals.append(goal)
    if initiative_id is None and None in loose:
        goals.append(_homeless(dealer, loose, budget))
    closed = 0
    if initiative_id is None:
        others = [status for status in InitiativeStatus if status not in _OPEN]
        closed = uow.count(find(INITIATIVES, {"status": any_of(others)}))
    return Board(uow.now, head(uow), tuple(goals), more, closed, unseen)


def _initiatives(uow: UnitOfWork, initiative_id: str | None) -> tuple[list[Initiative], int]:
    if initiative_id is not None:
        return [uow.initiatives.get(initiative_id)], 0
    query = find(INITIATIVES, {"status": any_of(_OPEN)}, limit=GOALS)
    found = uow.select(query)
    return found, uow.count(query._replace(limit=None)) - len(found)


def _goal(dealer: Dealer, initiative: Initiative, loose: Loose, budget: int) -> tuple[Goal, int]:
    """An initiative's part of the board, and how many tasks may still be looked at for paths."""
    uow = dealer.uow
    query = find(PHASES, {"initiative_id": initiative.id}, limit=STAGES)
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
        left += [task for phase in phases for task in _left_in(uow, phase.id)]
        path = schedule.longest_chain(uow, left)
        budget -= unfinished
    marked = [task.id for task in path or ()]
    stages = []
    for phase, size in zip(phases, sizes, strict=True):
        closed = gate(initiative, phase, ahead[phase.id])
        lanes = dealer.of_phase(phase, size, closed, marked)
        stages.append(Stage(phase, tuple(ahead[phase.id]), lanes))
    if own:
        stages.append(Stage(None, (), dealer.of_tasks(own, gate(initiative, None, ()), marked)))
    return Goal(initiative, tuple(stages), more, _chain(path)), budget


def _in_order(phases: list[Phase], ahead: dict[str, list[Phase]]) -> list[Phase]:
    """Phases behind those they wait for, older ones first where free to choose."""
    known = {phase.id: phase for phase in phases}
    items = [Item(id=each.id, rank=0, order=0, created_at=each.created_at) for each in phases]
    edges = {key: [each.id for each in others] for key, others in ahead.items()}
    return [known[key] for key in rules.topological_order(items, edges)]


def _homeless(dealer: Dealer, loose: Loose, budget: int) -> Goal:
    """The part of the board for tasks without an initiative."""
    own = loose[None]
    unfinished = _unfinished(own)
    fits = len(unfinished) <= budget
    path = schedule.longest_chain(dealer.uow, unfinished) if fits else None
    lanes = dealer.of_tasks(own, (), [task.id for task in path or ()])
    return Goal(None, (Stage(None, (), lanes),), 0, _chain(path))


def _left_in(uow: UnitOfWork, phase_id: str) -> list[Task]:
    return uow.select(find(TASKS, {"phase_id": phase_id, "status": any_of(_LEFT)}))


def _unfinished(tasks: dict[State, list[Task]]) -> list[Task]:
    return [task for state in tasks for task in tasks[state] if state is not State.COMPLETED]


def _chain(path: list[Task] | None) -> tuple[Task, ...] | None:
    """A path that is worth marking: one task alone is no chain."""
    if path is None:
        return None
    return tuple(path) if len(path) > 1 else ()
