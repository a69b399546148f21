"""A board with only the tasks that carry a label."""

from itertools import islice

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Task
from herdbook.domain.values import LABELS
from herdbook.ports.engine.dictionary import OPENINGS, TASKS
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.board import LIMIT, Board, BoardInitiative, BoardPhase, board
from herdbook.services.plan.board_lanes import LaneBuilder
from herdbook.services.plan.board_model import BoardState, Lanes, gate_blockers, state_of

MOST_SCANNED = 100_000
"""How many tasks of a phase are looked at for a label."""


def board_with_label(
    uow: UnitOfWork, label: str, *, initiative_id: str | None = None, limit: int = LIMIT
) -> Board:
    """The board of a space or of one initiative, with only the tasks that carry a label.

    Phases without such a task are left out, and the totals count what is shown. Raises InvalidValue
    for what is no label.
    """
    if len(LABELS.check("label", label)) != 1:
        raise InvalidValue("label", "must be one label")
    whole = board(uow, initiative_id=initiative_id, limit=limit)
    dealer = LaneBuilder(uow, limit)
    goals = [_filter_initiative(dealer, goal, label) for goal in whole.goals]
    kept = tuple(goal for goal in goals if goal.stages)
    totals = dict.fromkeys(BoardState, 0)
    for goal in kept:
        for stage in goal.stages:
            for state, lane in stage.lanes.items():
                totals[state] += lane.total
    return whole._replace(goals=kept, totals=totals, unseen=0)


def _filter_initiative(dealer: LaneBuilder, goal: BoardInitiative, label: str) -> BoardInitiative:
    stages = [_filter_phase(dealer, goal, stage, label) for stage in goal.stages]
    kept = tuple(stage for stage in stages if stage.lanes)
    return goal._replace(stages=kept, critical_path=())


def _filter_phase(
    dealer: LaneBuilder, goal: BoardInitiative, stage: BoardPhase, label: str
) -> BoardPhase:
    tasks = _labelled_tasks(dealer.uow, goal, stage, label)
    openings = dealer.uow.get(OPENINGS, [task.id for task in tasks])
    by_state: dict[BoardState, list[Task]] = {}
    for task, opening in zip(tasks, openings, strict=True):
        by_state.setdefault(state_of(task, opening), []).append(task)
    closed = gate_blockers(goal.initiative, stage.phase, stage.waits_for)
    lanes: Lanes = dealer.of_tasks(by_state, closed) if tasks else {}
    return stage._replace(lanes=lanes)


def _labelled_tasks(
    uow: UnitOfWork, goal: BoardInitiative, stage: BoardPhase, label: str
) -> list[Task]:
    phase_id = None if stage.phase is None else stage.phase.id
    owner = None if goal.initiative is None else goal.initiative.id
    query = find(TASKS, {"phase_id": phase_id}, limit=PAGE)
    return [
        task
        for task in islice(select_all(uow.session, query), MOST_SCANNED)
        if label in (task.labels or ()) and (phase_id or task.initiative_id == owner)
    ]
