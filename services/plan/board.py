"""The board: initiatives, phases, their tasks by state with holders, and critical paths.

It is read in one transaction. The number of rows it loads is bounded for any size of plan: all
others are only counted.
"""

from datetime import datetime
from typing import NamedTuple

from herdbook.domain.plan import graph as rules
from herdbook.domain.plan.graph import Item
from herdbook.domain.plan.model import (
    OPEN_INITIATIVES,
    UNFINISHED,
    Initiative,
    InitiativeStatus,
    Phase,
    Task,
)
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import schedule
from herdbook.services.plan.board_lanes import LaneBuilder, UnphasedTasks, UnphasedTotals
from herdbook.services.plan.board_model import BoardState, Lanes, gate_blockers

LIMIT = 10
"""How many tasks of one state are shown of one phase."""
MAX_INITIATIVES = 20
"""How many initiatives are shown."""
MAX_PHASES = 50
"""How many phases are shown of one initiative."""
PATH_BUDGET = 2_000
"""How many unfinished tasks, over the whole board, critical paths are computed for."""


class BoardPhase(NamedTuple):
    """A phase and the lanes of its tasks; without a phase, those of the tasks that have none."""

    phase: Phase | None
    waits_for: tuple[Phase, ...]
    lanes: Lanes


class BoardInitiative(NamedTuple):
    """The part of the board for an initiative, or for all that belongs to none.

    `critical_path` is None if there are too many tasks to compute one, and empty if no task waits
    for another.
    """

    initiative: Initiative | None
    stages: tuple[BoardPhase, ...]
    more_stages: int
    critical_path: tuple[Task, ...] | None


class Board(NamedTuple):
    """The state of a space's plan at one moment.

    `unseen` counts tasks without a phase that are too many to be shown; `closed` counts
    initiatives that are completed or archived. `totals` counts all tasks by state, shown or not.
    """

    now: datetime
    seq: int
    totals: dict[BoardState, int]
    goals: tuple[BoardInitiative, ...]
    more_goals: int
    closed: int
    unseen: int


def last_change(uow: UnitOfWork) -> int:
    """The number of the last journal entry; the board is unchanged while this is."""
    return uow.journal.last()


def board(uow: UnitOfWork, *, initiative_id: str | None = None, limit: int = LIMIT) -> Board:
    """The board of a space, or of one initiative; raises NotFound if that does not exist."""
    initiatives, more = _initiatives(uow, initiative_id)
    dealer = LaneBuilder(uow, limit)
    loose, unseen = dealer.tasks_without_phase()
    counts = dealer.totals_without_phase() if unseen else {}
    goals = []
    budget = PATH_BUDGET
    for initiative in initiatives:
        goal, budget = _initiative_part(dealer, initiative, loose, counts, budget)
        goals.append(goal)
    if initiative_id is None and (None in loose or None in counts):
        goals.append(_part_without_initiative(dealer, loose, counts, budget))
    closed = 0
    if initiative_id is None:
        others = [status for status in InitiativeStatus if status not in OPEN_INITIATIVES]
        closed = uow.count(find(INITIATIVES, {"status": any_of(others)}))
    totals = dealer.totals() if initiative_id is None else _totals_of(dealer, goals[0])
    return Board(uow.now, last_change(uow), totals, tuple(goals), more, closed, unseen)


def _totals_of(dealer: LaneBuilder, goal: BoardInitiative) -> dict[BoardState, int]:
    """How many tasks of an initiative are in each state, in phases that are not shown too."""
    totals = dict.fromkeys(BoardState, 0)
    shown = {stage.phase.id for stage in goal.stages if stage.phase is not None}
    counted = [{state: lane.total for state, lane in each.lanes.items()} for each in goal.stages]
    if goal.more_stages and goal.initiative is not None:
        others = dealer.uow.phases.of_initiative(goal.initiative.id)
        counted += [dealer.totals(phase_id=each.id) for each in others if each.id not in shown]
    for counts in counted:
        for state, count in counts.items():
            totals[state] += count
    return totals


def _initiatives(uow: UnitOfWork, initiative_id: str | None) -> tuple[list[Initiative], int]:
    if initiative_id is not None:
        return [uow.initiatives.get(initiative_id)], 0
    query = find(INITIATIVES, {"status": any_of(OPEN_INITIATIVES)}, limit=MAX_INITIATIVES)
    found = uow.select(query)
    return found, uow.count(query._replace(limit=None)) - len(found)


def _initiative_part(
    dealer: LaneBuilder,
    initiative: Initiative,
    loose: UnphasedTasks,
    counts: UnphasedTotals,
    budget: int,
) -> tuple[BoardInitiative, int]:
    """An initiative's part of the board, and what is left of the budget for critical paths.

    The `counts` are of tasks without a phase where not all of them were read: then no critical path
    is looked for.
    """
    uow = dealer.uow
    query = find(PHASES, {"initiative_id": initiative.id}, limit=MAX_PHASES)
    phases = uow.select(query)
    ahead = {phase.id: uow.phases.dependencies(phase.id) for phase in phases}
    phases = _in_order(phases, ahead)
    more = uow.count(query._replace(limit=None)) - len(phases)
    own, totals = loose.get(initiative.id, {}), counts.get(initiative.id)
    in_phases = [dealer.totals(phase_id=phase.id) for phase in phases]
    left = _tasks_left(own)
    done = sum(each[BoardState.COMPLETED] for each in in_phases)
    unfinished = sum(sum(each.values()) for each in in_phases) - done + len(left)
    path: list[Task] | None = None
    if not more and unfinished <= budget and totals is None:
        left += [task for phase in phases for task in _unfinished_in(uow, phase.id)]
        path = schedule.longest_chain(uow, left)
        budget -= unfinished
    marked = [task.id for task in path or ()]
    stages = []
    for phase, each in zip(phases, in_phases, strict=True):
        closed = gate_blockers(initiative, phase, ahead[phase.id])
        lanes = dealer.of_phase(phase, each, closed, marked)
        stages.append(BoardPhase(phase, tuple(ahead[phase.id]), lanes))
    if own or totals:
        closed = gate_blockers(initiative, None, ())
        stages.append(BoardPhase(None, (), dealer.of_tasks(own, closed, marked, totals)))
    return BoardInitiative(initiative, tuple(stages), more, _chain(path)), budget


def _in_order(phases: list[Phase], ahead: dict[str, list[Phase]]) -> list[Phase]:
    """Phases in the order of their dependencies; independent ones by age, oldest first."""
    known = {phase.id: phase for phase in phases}
    items = [Item(id=each.id, rank=0, order=0, created_at=each.created_at) for each in phases]
    edges = {key: [each.id for each in others] for key, others in ahead.items()}
    return [known[key] for key in rules.topological_order(items, edges)]


def _part_without_initiative(
    dealer: LaneBuilder, loose: UnphasedTasks, counts: UnphasedTotals, budget: int
) -> BoardInitiative:
    """The part of the board for tasks without an initiative."""
    own, totals = loose.get(None, {}), counts.get(None)
    unfinished = _tasks_left(own)
    fits = len(unfinished) <= budget and totals is None
    path = schedule.longest_chain(dealer.uow, unfinished) if fits else None
    lanes = dealer.of_tasks(own, (), [task.id for task in path or ()], totals)
    return BoardInitiative(None, (BoardPhase(None, (), lanes),), 0, _chain(path))


def _unfinished_in(uow: UnitOfWork, phase_id: str) -> list[Task]:
    return uow.select(find(TASKS, {"phase_id": phase_id, "status": any_of(UNFINISHED)}))


def _tasks_left(tasks: dict[BoardState, list[Task]]) -> list[Task]:
    return [task for state in tasks for task in tasks[state] if state is not BoardState.COMPLETED]


def _chain(path: list[Task] | None) -> tuple[Task, ...] | None:
    """The path to mark: empty for a single task, which is no chain."""
    if path is None:
        return None
    return tuple(path) if len(path) > 1 else ()
