"""Claim a task, renew its lease, complete, fail or release it."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, TypeVar, cast

from herdbook.domain.errors import NotFound
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.claims import Claim
from herdbook.domain.plan.model import Phase, Task
from herdbook.domain.plan.readiness import Opening
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.call_use_case import agent_id, find_agent_id
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan import claims

R = TypeVar("R")


class ClaimAnswer(TypedDict):
    """A claimed task, its fence, the end of its lease, and the summaries it builds on by task."""

    task: Task
    fence: int
    lease_until: datetime
    summaries: dict[str, str | None]


def claim(
    app: AppContext,
    *,
    agent: str | None,
    initiative: str | None,
    phase: str | None,
    ttl: timedelta,
) -> ClaimAnswer:
    """Claim the most urgent ready task for an agent; NotFound, which says why, if none is ready."""
    from herdbook.services.agents.halts import note_if_unknown  # noqa: PLC0415 - others need none

    halts = app.halts()
    # Asked before the transaction: nobody waits for it while another store is read.
    note_if_unknown(halts, agent_name(app, agent))

    def take(uow: UnitOfWork) -> Claim | str:
        initiative_id = crud.key_of(uow, INITIATIVES, initiative) if initiative else None
        phase_id = crud.key_of(uow, PHASES, phase) if phase else None
        claimed = claims.claim(
            uow,
            agent_id(app, uow, agent),
            halts=halts,
            initiative_id=initiative_id,
            phase_id=phase_id,
            ttl=ttl,
        )
        if claimed is not None:
            return claimed
        from herdbook.services.plan.wait_reasons import describe_wait  # noqa: PLC0415

        # Returned, not raised: this transaction may have blocked tasks taken over too often.
        return describe_wait(uow, initiative_id=initiative_id, phase_id=phase_id)

    claimed = app.run(Area.WORK, take)
    if isinstance(claimed, str):
        raise NotFound("task", "", claimed)
    return {
        "task": claimed.task,
        "fence": claimed.fence,
        "lease_until": cast("datetime", claimed.opening.lease_until),
        "summaries": claimed.summaries,
    }


def agent_name(app: AppContext, agent: str | None) -> str:
    """The name of an agent, which is its key in the record."""
    known = app.identity.agent_name
    if known is not None and app.identity.is_verified and agent in (None, known):
        return known
    name: str = app.read(Area.WORK, lambda uow: uow.agents.get(agent_id(app, uow, agent)).name)
    return name


def heartbeat(
    app: AppContext, *, task: str | None, fence: int | None, ttl: timedelta, agent: str | None
) -> Opening:
    """Renew the lease of a claimed task."""
    return _write_claimed(app, task, fence, agent, claims.heartbeat, ttl=ttl)


def complete(
    app: AppContext, *, task: str | None, fence: int | None, summary: str | None, agent: str | None
) -> Task:
    """Complete a claimed task, or approve one under review."""
    done = _write_claimed(app, task, fence, agent, claims.complete, summary=summary)
    if done.phase_id is not None and done.is_finished:
        _note_merge_base(app, done.phase_id)
    return done


def set_phase(
    app: AppContext,
    *,
    id: str,  # noqa: A002 - the parameter's name
    clear: str | None,
    entity: str,
    values: Mapping[str, Any],
) -> Phase:
    """Change fields of a phase; one that is handed in or completed so gets its merge base."""
    from herdbook.entrypoints.operations.crud import handlers  # noqa: PLC0415 - others need none

    phase: Phase = handlers.set_(app, id=id, clear=clear, entity=entity, values=values)
    if "status" not in values or phase.merge_base is not None:
        return phase
    _note_merge_base(app, phase.id)
    noted: Phase = app.read(Area.WORK, lambda uow: uow.phases.get(phase.id))
    return noted


def _note_merge_base(app: AppContext, phase_id: str) -> None:
    """Note the merge base of a phase that is finished, as this worktree has it."""
    from herdbook.services.plan.phases import finished_phase  # noqa: PLC0415 - others need none

    finished = app.read(Area.WORK, finished_phase, phase_id)
    if finished is not None:
        # Git is asked after the transaction, so that nobody waits for it.
        from herdbook.entrypoints.operations.plan import merge_base  # noqa: PLC0415 - starts git

        merge_base.note_merge_base(app, finished)


def fail(app: AppContext, *, task: str | None, fence: int | None, agent: str | None) -> Task:
    """Return a claimed task as failed, which counts as an attempt."""
    return _write_claimed(app, task, fence, agent, claims.fail)


def release(app: AppContext, *, task: str | None, fence: int | None, agent: str | None) -> Task:
    """Return a claimed task without an attempt."""
    return _write_claimed(app, task, fence, agent, claims.release)


def _write_claimed(
    app: AppContext,
    task: str | None,
    fence: int | None,
    agent: str | None,
    use_case: Callable[..., R],
    **more: Any,
) -> R:
    """Call a use case on a task, by default on the only one that the acting agent holds.

    The holder need not give the fence.
    """

    def inside(uow: UnitOfWork) -> R:
        acting = find_agent_id(app, uow, agent)
        if task is None:
            row = claims.own_task(uow, acting or agent_id(app, uow, agent))
        else:
            row = crud.find_row(uow, TASKS, task)
        own = claims.own_fence(uow, row.id, acting) if fence is None else fence
        return use_case(uow, row.id, own, **more)

    return app.run(Area.WORK, inside)
