"""Tasks from hand to hand: `claim`, `heartbeat`, `done`, `fail`, `release`."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypedDict, TypeVar, cast

from herdbook.domain.errors import AgentHalted, HerdbookError, InvalidValue, NotFound
from herdbook.domain.grading import is_halted
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.claims import Claim
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.domain.plan.readiness import Opening
from herdbook.entrypoints.bootstrap import Here
from herdbook.entrypoints.operations.call_use_case import agent_id
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan import claims

R = TypeVar("R")


class ClaimAnswer(TypedDict):
    """A claimed task, the number and the end of its lease, and what it builds on by task id."""

    task: Task
    fence: int
    lease_until: datetime
    summaries: dict[str, str | None]


def claim(
    here: Here,
    *,
    agent: str | None,
    initiative: str | None,
    phase: str | None,
    ttl: timedelta,
) -> ClaimAnswer:
    """Give the most urgent ready task to an agent; NotFound if there is nothing to do for it."""
    here = refuse_halted(here, agent_name(here, agent))

    def take(uow: UnitOfWork) -> Claim | None:
        return claims.claim(
            uow,
            agent_id(here, uow, agent),
            initiative_id=crud.key_of(uow, INITIATIVES, initiative) if initiative else None,
            phase_id=crud.key_of(uow, PHASES, phase) if phase else None,
            ttl=ttl,
        )

    held = here.run(Area.WORK, take)
    if held is None:
        raise NotFound("ready task", "for this agent")
    return {
        "task": held.task,
        "fence": held.fence,
        "lease_until": cast("datetime", held.opening.lease_until),
        "summaries": held.summaries,
    }


def refuse_halted(here: Here, name: str) -> Here:
    """Refuse what a halted agent may not do.

    Where the record is out of reach it may go on, with a warning; what is given back then lets the
    journal tell so.
    """
    try:
        standing = here.read(Area.RECORD, lambda uow: uow.standings.of_agent(name))
    except HerdbookError as error:
        here.warn(f"the record cannot be asked whether {name} is halted, so it may go on: {error}")
        return here.with_note("the record was out of reach, so nobody knows whether it is halted")
    if is_halted(standing.skill_points):
        raise AgentHalted(name, standing.skill_points)
    return here


def agent_name(here: Here, agent: str | None) -> str:
    """The name of an agent, as the record knows it."""
    name: str = here.read(Area.WORK, lambda uow: uow.agents.get(agent_id(here, uow, agent)).name)
    return name


def heartbeat(here: Here, *, task: str | None, fence: int | None, ttl: timedelta) -> Opening:
    """Keep a claimed task for longer."""
    return _held(here, task, fence, claims.heartbeat, ttl=ttl)


def done(here: Here, *, task: str | None, fence: int | None, summary: str | None) -> Task:
    """Hand in a claimed task, or let a reviewed one pass."""
    return _held(here, task, fence, claims.complete, summary=summary)


def fail(here: Here, *, task: str | None, fence: int | None) -> Task:
    """Give a claimed task back because it did not work out."""
    return _held(here, task, fence, claims.fail)


def release(here: Here, *, task: str | None, fence: int | None) -> Task:
    """Give a claimed task back untried."""
    return _held(here, task, fence, claims.release)


def _held(
    here: Here, task: str | None, fence: int | None, use_case: Callable[..., R], **more: Any
) -> R:
    def inside(uow: UnitOfWork) -> R:
        row = crud.find_row(uow, TASKS, task) if task is not None else _own(here, uow)
        return use_case(uow, row.id, _fence(here, uow, row, fence), **more)

    return here.run(Area.WORK, inside)


def _own(here: Here, uow: UnitOfWork) -> Task:
    """The task that the agent that acts holds, if that is one alone."""
    held = [
        each
        for each in uow.select(find(TASKS, {"assignee_id": agent_id(here, uow, None)}))
        if each.status is TaskStatus.IN_PROGRESS
    ]
    if not held:
        raise NotFound("task", "held by the agent that acts")
    if len(held) > 1:
        ids = ", ".join(task.id for task in held)
        raise InvalidValue("task", f"must be named: the agent that acts holds {ids}")
    return held[0]


def _fence(here: Here, uow: UnitOfWork, task: Task, fence: int | None) -> int:
    """The number of the claim: the one given, or that of the agent that acts, if it holds it."""
    if fence is not None:
        return fence
    agent = here.acting(uow)
    if agent is None or task.assignee_id != agent.id:
        reason = "must be given, as `claim` told it: this task is not held by the agent that acts"
        raise InvalidValue("fence", reason)
    return task.fence
