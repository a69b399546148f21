"""Claim a task, renew its lease, complete, fail or release it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict, TypeVar

from herdbook.domain.agents.model import Agent
from herdbook.domain.errors import InvalidValue, StaleFence
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.claims import Claim, Fence
from herdbook.domain.plan.model import Phase, ReviewComment, Task
from herdbook.domain.plan.readiness import Opening
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.call_use_case import agent_id, find_agent_id
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, PHASES, TASKS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan import claims

R = TypeVar("R")


class ClaimAnswer(TypedDict):
    """A claimed task, its fence, the end of its lease, and the summaries it builds on by task.

    If nothing could be claimed, all is None but the `reason`.
    """

    task: Task | None
    fence: int | None
    lease_until: datetime | None
    summaries: dict[str, str | None]
    reason: str | None


def claim(
    app: AppContext,
    *,
    task: str | None,
    agent: str | None,
    initiative: str | None,
    phase: str | None,
    ttl: timedelta,
) -> ClaimAnswer:
    """Claim the named task or the most urgent ready one; the answer says why if none is ready.

    Raises TaskNotClaimable, with the reason, for a named task that is not to be had.
    """
    from herdbook.services.agents.halts import note_if_unknown  # noqa: PLC0415 - others need none

    halts = app.halts()
    # Asked before the transaction: nobody waits for it while another store is read.
    note_if_unknown(halts, agent_name(app, agent))
    changed: list[Agent | None] = []

    def take(uow: UnitOfWork) -> Claim | str:
        initiative_id = crud.key_of(uow, INITIATIVES, initiative) if initiative else None
        phase_id = crud.key_of(uow, PHASES, phase) if phase else None
        task_id = crud.key_of(uow, TASKS, task) if task else None

        def claim_first() -> Claim | None:
            return claims.claim(
                uow,
                acting,
                halts=halts,
                initiative_id=initiative_id,
                phase_id=phase_id,
                task_id=task_id,
                ttl=ttl,
                activity=_LazyActivity(),
            )

        acting = agent_id(app, uow, agent)
        if task_id is not None:
            _find_crashed(app, uow)
        claimed = claim_first()
        if claimed is None and _find_crashed(app, uow):
            claimed = claim_first()
        if claimed is not None:
            changed[:] = [*uow.get(AGENTS, [acting, claimed.taken_from or acting])]
            return claimed
        from herdbook.services.plan.wait_reasons import describe_wait  # noqa: PLC0415

        # Returned, not raised: this transaction may have blocked tasks taken over too often.
        return describe_wait(uow, initiative_id=initiative_id, phase_id=phase_id)

    claimed = app.run(Area.WORK, take)
    if isinstance(claimed, str):
        none: ClaimAnswer = dict.fromkeys(ClaimAnswer.__annotations__)  # type: ignore[assignment]
        return {**none, "summaries": {}, "reason": claimed}
    app.on_lease(ttl)
    _tell_hooks(app, claimed, *changed)
    return {
        "task": claimed.task,
        "fence": claimed.fence,
        "lease_until": claimed.opening.lease_until,
        "summaries": claimed.summaries,
        "reason": None,
    }


def add_task(
    app: AppContext, *, after: Sequence[str] | None, entity: str, values: Mapping[str, Any]
) -> Task:
    """Add a task, and what it depends on."""

    def inside(uow: UnitOfWork) -> Task:
        from herdbook.services.plan import dependencies  # noqa: PLC0415 - others need none

        others = [crud.key_of(uow, TASKS, each) for each in after or ()]
        task = crud.add(uow, TASKS, values)
        return dependencies.add_task_dependencies(uow, task.id, others) if others else task

    del entity  # tasks, as the table says
    return app.run(Area.WORK, inside)


def add_comment(
    app: AppContext, *, at: str | None, entity: str, values: Mapping[str, Any]
) -> ReviewComment:
    """Add a comment at a line, given as `at` or by its fields; InvalidValue if neither says where.

    A line counts as added unless it is said otherwise.
    """
    import re  # noqa: PLC0415 - others need none

    from herdbook.entrypoints.operations.crud import handlers  # noqa: PLC0415

    placed = {"line_type": "added", **values}
    if at is not None:
        place = re.fullmatch(r"(.+):([0-9]+)(?:-([0-9]+))?", at, re.DOTALL)
        if place is None:
            raise InvalidValue("at", f"{at!r} is no place; write it as src/a.py:7 or src/a.py:7-9")
        placed |= {"file_path": place[1], "line_number": int(place[2])}
        placed |= {} if place[3] is None else {"last_line": int(place[3])}
    if not {"file_path", "line_number"} <= placed.keys():
        raise InvalidValue("at", "is needed, such as src/a.py:7")
    comment: ReviewComment = handlers.add(app, entity=entity, values=placed)
    return comment


class _LazyActivity:
    """The activity of agents, which only a claim that meets an expired lease looks up."""

    def last_seen(self, agent: Agent) -> datetime | None:
        from herdbook.adapters.user_state.activity import SpoolActivity  # noqa: PLC0415

        return SpoolActivity().last_seen(agent)


def _find_crashed(app: AppContext, uow: UnitOfWork) -> list[Agent]:
    """Mark the crashed agents of this host; for a claim that found nothing else."""
    from herdbook.adapters.system.processes import process_start  # noqa: PLC0415
    from herdbook.services.agents.agent_lifecycle import find_crashed  # noqa: PLC0415

    return find_crashed(uow, app.workspace.host, process_start)


def _tell_hooks(
    app: AppContext, claimed: Claim, claimer: Agent | None, loser: Agent | None
) -> None:
    """Let the hook of an agent whose lease was taken over tell it so at its next tool."""
    from herdbook.adapters.user_state import lost_leases  # noqa: PLC0415 - others need none

    try:
        if claimer is not None:
            lost_leases.forget_lost(claimer)
        if loser is not None and claimer is not None and loser.id != claimer.id:
            error = StaleFence(
                claimed.task.id, None, claimed.fence, claimer.name, claimed.task.updated_at
            )
            lost_leases.note_lost(loser, str(error))
    except OSError as error:
        app.warn(f"it could not be noted for the hooks who holds the task: {error.strerror}")


def agent_name(app: AppContext, agent: str | None) -> str:
    """The name of an agent, which is its key in the record."""
    known = app.identity.agent_name
    if known is not None and app.identity.is_verified and agent in (None, known):
        return known
    name: str = app.read(Area.WORK, lambda uow: uow.agents.get(agent_id(app, uow, agent)).name)
    return name


def heartbeat(
    app: AppContext, *, task: str | None, fence: Fence | None, ttl: timedelta, agent: str | None
) -> Opening:
    """Renew the lease of a claimed task."""
    renewed = _write_claimed(app, task, fence, agent, claims.heartbeat, ttl=ttl)
    app.on_lease(ttl)
    return renewed


def complete(
    app: AppContext,
    *,
    task: str | None,
    fence: Fence | None,
    summary: str | None,
    agent: str | None,
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


def fail(app: AppContext, *, task: str | None, fence: Fence | None, agent: str | None) -> Task:
    """Return a claimed task as failed, which counts as an attempt."""
    return _write_claimed(app, task, fence, agent, claims.fail)


def release(app: AppContext, *, task: str | None, fence: Fence | None, agent: str | None) -> Task:
    """Return a claimed task without an attempt."""
    return _write_claimed(app, task, fence, agent, claims.release)


def _write_claimed(
    app: AppContext,
    task: str | None,
    fence: Fence | None,
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
