"""How far the plan is, and when the rest may be done: `progress`."""

from datetime import datetime
from typing import TypedDict

from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import PhaseStatus
from herdbook.domain.plan.progress import ProgressPoint
from herdbook.entrypoints.context import AppContext
from herdbook.ports.engine.dictionary import INITIATIVES
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan.progress import PlanProgress, measure_progress


class PointAnswer(TypedDict):
    """How many tasks there were at a moment, and how many of them were completed."""

    at: datetime
    done: int
    total: int


class PhaseProgressAnswer(TypedDict):
    """How many tasks of a phase, or without one, are completed."""

    id: str | None
    name: str | None
    status: PhaseStatus | None
    initiative_id: str | None
    initiative: str | None
    done: int
    total: int


class ForecastAnswer(TypedDict):
    """When the rest is done with a chance of 50 % (`likely`) and of 90 % (`late`)."""

    likely: datetime
    late: datetime


class ProgressAnswer(TypedDict):
    """How far the plan is; `forecast` is null if nobody can say."""

    now: PointAnswer
    phases: list[PhaseProgressAnswer]
    completed: dict[str, int | None]
    forecast: ForecastAnswer | None
    history: list[PointAnswer]


def progress(
    app: AppContext, *, initiative: str | None, at: Position | None = None
) -> ProgressAnswer:
    """How far each phase is, what was completed lately, and when the rest may be done."""

    def measure(uow: UnitOfWork) -> tuple[PlanProgress, dict[str, str]]:
        key = crud.key_of(uow, INITIATIVES, initiative) if initiative else None
        measured = measure_progress(uow, initiative_id=key)
        owners = {each.phase.initiative_id for each in measured.phases if each.phase}
        goals = uow.get_existing(INITIATIVES, sorted(owners))
        return measured, {goal.id: goal.name for goal in goals}

    found, names = app.read(Area.WORK, measure, at=at)
    return {
        "now": _point(found.now),
        "phases": [
            {
                "id": each.phase.id if each.phase else None,
                "name": each.phase.name if each.phase else None,
                "status": each.phase.status if each.phase else None,
                "initiative_id": each.phase.initiative_id if each.phase else None,
                "initiative": names[each.phase.initiative_id] if each.phase else None,
                "done": each.done,
                "total": each.total,
            }
            for each in found.phases
        ],
        "completed": found.completed,
        "forecast": (
            {"likely": found.forecast.likely, "late": found.forecast.late}
            if found.forecast
            else None
        ),
        "history": [_point(each) for each in found.history],
    }


def _point(point: ProgressPoint) -> PointAnswer:
    return {"at": point.at, "done": point.done, "total": point.total}
