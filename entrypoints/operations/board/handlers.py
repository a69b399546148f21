"""The plan as a board and as a graph: `board` and `plan`."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NotRequired, TypedDict

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import (
    ExecutionMode,
    InitiativeStatus,
    PhaseStatus,
    Priority,
    TaskStatus,
)
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.entrypoints.operations.past_answer import PastAnswer, past_note
from herdbook.ports.engine.dictionary import INITIATIVES
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan import board as boards
from herdbook.services.plan.board import BoardInitiative, BoardPhase
from herdbook.services.plan.board_model import Card

CRASH_INTERVAL = 10.0
"""Seconds between two looks whether the processes of agents on this host are still there."""


MOST_SHOWN = 1_000
"""How many tasks of one phase and state may be asked for."""


class NamedRow(TypedDict):
    """A row by its id and name."""

    id: str
    name: str


class NamedPhase(NamedRow):
    """A phase by its id and name, and its status."""

    status: PhaseStatus


class CardAnswer(TypedDict):
    """A task on the board: who holds it, for how long, and what it waits for."""

    id: str
    name: str
    status: TaskStatus
    priority: Priority
    critical: bool
    agent_id: str | None
    agent: str | None
    waits_for_you: bool
    for_review: bool
    lease_until: str | None
    lease_seconds: float | None
    waits_for: list[dict[str, Any]]
    waits_for_more: int


class LaneAnswer(TypedDict):
    """The tasks of a phase in one state: how many, and the first of them."""

    total: int
    shown: list[CardAnswer]


class PhaseAnswer(TypedDict):
    """A phase on the board, or the tasks without one; `tasks` by state."""

    id: str | None
    name: str | None
    status: PhaseStatus | None
    waits_for: list[NamedPhase]
    tasks: dict[str, LaneAnswer]


class InitiativeAnswer(TypedDict):
    """An initiative on the board, or the tasks without one."""

    id: str | None
    name: str | None
    status: InitiativeStatus | None
    execution_mode: ExecutionMode | None
    phases: list[PhaseAnswer]
    more_phases: int
    critical_path: list[NamedRow] | None


class BoardAnswer(TypedDict):
    """The plan by state as of one entry of the journal; `tasks` counts all of them by state."""

    seq: int
    now: str
    tasks: dict[str, int]
    initiatives: list[InitiativeAnswer]
    more_initiatives: int
    closed_initiatives: int
    unseen_tasks: int
    as_of: NotRequired[PastAnswer]


def board(
    app: AppContext,
    *,
    initiative: str | None,
    label: str | None = None,
    limit: int = boards.LIMIT,
    watch: bool,
    at: Position | None = None,
) -> BoardAnswer | Iterator[BoardAnswer]:
    """The plan by state; with `watch`, now and again after every change."""
    if not 0 < limit <= MOST_SHOWN:
        raise InvalidValue("limit", f"must be from 1 to {MOST_SHOWN}")
    if at is not None:
        if watch:
            raise InvalidValue("watch", "cannot be combined with at")
        return app.read(Area.WORK, _board, initiative, label, limit, at=at)
    from herdbook.entrypoints.liveness import update_if_outdated  # noqa: PLC0415 - `plan` needs none

    update_if_outdated(app)
    if watch:
        return _watch(app, initiative, label, limit)
    answer: BoardAnswer = app.read(Area.WORK, _board, initiative, label, limit)
    return answer


def _watch(
    app: AppContext, initiative: str | None, label: str | None, limit: int
) -> Iterator[BoardAnswer]:
    import gc  # noqa: PLC0415
    import time  # noqa: PLC0415

    from herdbook.entrypoints.operations.agents.handlers import find_crashed  # noqa: PLC0415
    from herdbook.ports.engine.wakeups import LOOK  # noqa: PLC0415
    from herdbook.ports.unit_of_work.run import read  # noqa: PLC0415
    from herdbook.services.journal.feed import Waiter  # noqa: PLC0415

    gc.enable()  # unlike other commands, this one keeps running
    place, space = app.workspace.locate(Area.WORK), app.workspace.space(Area.WORK)
    if not app.workspace.store_exists(place):
        yield app.read(Area.WORK, _board, initiative, label, limit)
        while not app.workspace.store_exists(place):
            time.sleep(LOOK)  # nobody can ring for a store that is not there yet
    seen, looked = None, 0.0
    with app.open(Area.WORK) as store, Waiter(store, space) as waiter:
        while True:
            if time.monotonic() - looked >= CRASH_INTERVAL:
                find_crashed(app)
                looked = time.monotonic()
            if seen != read(store, space, boards.last_change):
                answer = read(store, space, _board, initiative, label, limit)
                seen = answer["seq"]
                yield answer
            waiter.wait()


def _board(uow: UnitOfWork, initiative: str | None, label: str | None, limit: int) -> BoardAnswer:
    key = crud.key_of(uow, INITIATIVES, initiative) if initiative else None
    if label is None:
        found = boards.board(uow, initiative_id=key, limit=limit)
    else:
        from herdbook.services.plan.board_filter import board_with_label  # noqa: PLC0415 - rare

        found = board_with_label(uow, label, initiative_id=key, limit=limit)
    return {
        "seq": found.seq,
        "now": found.now.isoformat(),
        "tasks": {str(state): count for state, count in found.totals.items()},
        "initiatives": [_initiative_data(each, found.now) for each in found.goals],
        "more_initiatives": found.more_goals,
        "closed_initiatives": found.closed,
        "unseen_tasks": found.unseen,
        **past_note(uow),
    }


def _initiative_data(goal: BoardInitiative, now: datetime) -> InitiativeAnswer:
    path = goal.critical_path
    marked = frozenset(task.id for task in path or ())
    return answer_from(
        InitiativeAnswer,
        goal.initiative,
        phases=[_phase_data(each, marked, now) for each in goal.stages],
        more_phases=goal.more_stages,
        critical_path=None if path is None else [answer_from(NamedRow, each) for each in path],
    )


def _phase_data(stage: BoardPhase, marked: frozenset[str], now: datetime) -> PhaseAnswer:
    return answer_from(
        PhaseAnswer,
        stage.phase,
        waits_for=[answer_from(NamedPhase, each) for each in stage.waits_for],
        tasks={
            state: {
                "total": lane.total,
                "shown": [_card_data(card, marked, now) for card in lane.cards],
            }
            for state, lane in stage.lanes.items()
            if lane.total
        },
    )


def _card_data(card: Card, marked: frozenset[str], now: datetime) -> CardAnswer:
    task, holder, until = card.task, card.holder, card.lease_until
    return {
        "id": task.id,
        "name": task.name,
        "status": task.status,
        "priority": task.priority,
        "critical": task.id in marked,
        "agent_id": holder.id if holder else None,
        "agent": holder.name if holder else None,
        "waits_for_you": card.waits_for_you,
        "for_review": card.for_review,
        "lease_until": until.isoformat() if until else None,
        "lease_seconds": (until - now).total_seconds() if until else None,
        "waits_for": [each._asdict() for each in card.waits_for],
        "waits_for_more": card.more,
    }
