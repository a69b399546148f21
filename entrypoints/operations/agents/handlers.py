"""Agents of this host and their logs: operations that are more than a use case."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from herdbook.adapters.system.processes import process_start
from herdbook.domain.agents.model import Agent, AgentMode, WaitingAgent
from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.record.model import Account
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.call_use_case import agent_id, find_agent_id
from herdbook.ports.engine.dictionary import ACCOUNTS, AGENTS, INITIATIVES, TASKS
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.agents import accounts, agent_lifecycle, introduction, logs
from herdbook.services.agents.halts import note_if_unknown
from herdbook.services.journal import watch


def register(
    app: AppContext,
    *,
    name: str | None,
    provider: str | None,
    model: str | None,
    mode: str | None,
    session: str | None,
    pid: int | None,
    prompt: str | None,
    task: str | None,
    initiative: str | None,
    account: str | None,
    output_file_path: str | None,
) -> Agent:
    """Register an agent in this worktree; with its pid, `find_crashed` can tell when it crashed."""
    app.identity.registers = name
    account_id = find_account(app, account)
    provider = provider or (None if session else app.identity.provider)

    def inside(uow: UnitOfWork) -> Agent:
        return agent_lifecycle.register(
            uow,
            name,
            provider=provider,
            model=model,
            mode=None if mode is None else AgentMode(mode),
            session_id=session or app.identity.session,
            prompt=prompt,
            task_id=None if task is None else crud.key_of(uow, TASKS, task),
            initiative_id=None if initiative is None else crud.key_of(uow, INITIATIVES, initiative),
            account_id=account_id,
            output_file_path=output_file_path,
            **_process(app, pid),
        )

    registered = app.run(Area.WORK, inside)
    _tell_record(app, registered, provider, model, mode)
    return registered


def _tell_record(
    app: AppContext, agent: Agent, provider: str | None, model: str | None, mode: str | None
) -> None:
    from herdbook.entrypoints.hooks.registration import spool_registration  # noqa: PLC0415

    spool_registration(app, agent, provider=provider, model=model, mode=mode)


def _process(app: AppContext, pid: int | None) -> dict[str, Any]:
    """The fields of a process on this host; none without a pid."""
    if pid is None:
        return {}
    return {"host": app.workspace.host, "pid": pid, "process_started_at": process_start(pid)}


def introduce(
    app: AppContext,
    *,
    name: str,
    provider: str | None,
    model: str | None,
    mode: str | None,
    session: str | None,
    pid: int,
    prompt: str | None,
) -> Agent:
    """Register an agent unless it is halted; one whose process is gone may register again."""
    app.identity.registers = name
    halts = app.halts()
    # Asked before the transaction, so that nobody waits for it while another store is read.
    note_if_unknown(halts, name)
    agent: Agent = app.run(
        Area.WORK,
        introduction.introduce,
        name,
        halts=halts,
        host=app.workspace.host,
        started_at_of=process_start,
        provider=provider,
        model=model,
        mode=mode,
        session_id=session or app.identity.session,
        prompt=prompt,
        pid=pid,
    )
    _tell_record(app, agent, provider, model, mode)
    return agent


def resume(app: AppContext, *, name: str | None, session: str | None, pid: int | None) -> Agent:
    """Let an agent go on, in another process or session if that is given."""

    def inside(uow: UnitOfWork) -> Agent:
        chosen = crud.key_of(uow, AGENTS, name) if name else agent_id(app, uow, None)
        return agent_lifecycle.resume(uow, chosen, session_id=session, **_process(app, pid))

    return app.run(Area.WORK, inside)


def find_account(app: AppContext, account: str | None) -> str | None:
    """The id of an account of the record; NotFound if there is none."""
    if account is None:
        return None
    return app.read(Area.RECORD, crud.key_of, ACCOUNTS, account)


def take_account(app: AppContext, *, provider: str, agent: str | None) -> Account | None:
    """Take the next account in turn, and note it on the agent that runs on it."""
    chosen = app.read(Area.WORK, lambda uow: find_agent_id(app, uow, agent))
    account = app.run(Area.RECORD, accounts.take, provider)
    if account is not None and chosen is not None:
        app.run(Area.WORK, crud.change, AGENTS, chosen, {"account_id": account.id})
    return account


def find_crashed(app: AppContext) -> list[Agent]:
    """Mark agents of this host whose processes are gone as crashed, and release their tasks."""
    return app.run(Area.WORK, agent_lifecycle.find_crashed, app.workspace.host, process_start)


def waiting(app: AppContext, *, at: Position | None = None) -> list[WaitingAgent]:
    """The agents that wait for a person, each with its questions and what it is at."""
    return app.read(Area.WORK, lambda uow: uow.agents.waiting_with_context(), at=at)


def log(
    app: AppContext,
    *,
    agent: str | None,
    agents: Sequence[str] | None,
    follow: bool,
    after: str | None,
    limit: int | None,
    last: int | None = None,
) -> Iterator[LogChunk]:
    """The log of an agent, chunk by chunk, or of several or all, one after the other.

    A removed agent's log is found too. Only one log can be followed or begun after a chunk.
    """
    if last is not None and (last < 1 or follow or after is not None or limit is not None):
        raise InvalidValue("last", "is at least 1, and goes without --follow, --after and --limit")
    named = [*([] if agent is None else [agent]), *(agents or [])]
    if len(named) != 1 and (follow or after is not None):
        name = "follow" if follow else "after"
        raise InvalidValue(name, "is for one agent's log; name one agent")
    if not named:
        named = app.read(Area.WORK, lambda uow: list(uow.log_chunks.agent_ids()))
    if last is not None:
        yield from _read_ends(app, named, last)
        return
    left = limit
    for each in named:
        for chunk in _read_log(app, each, follow=follow, after=after, limit=left):
            yield chunk
            left = None if left is None else left - 1
        if left == 0:
            break
    if app.is_command and left == 0 and limit is not None and not follow:
        total = app.read(Area.WORK, logs.count, named)
        if total > limit:
            app.warn(f"{limit} of {total} pieces; --limit sets how many are shown")


def _read_ends(app: AppContext, named: Sequence[str], last: int) -> Iterator[LogChunk]:
    for each in named:
        found = app.read(Area.WORK, logs.find_log, each)
        yield from app.read(Area.WORK, logs.read_last, found, last)


def _read_log(
    app: AppContext, agent: str, *, follow: bool, after: str | None, limit: int | None
) -> Iterator[LogChunk]:
    agent_id = app.read(Area.WORK, logs.find_log, agent)
    if follow:
        with app.open(Area.WORK) as store:
            chunks = watch.follow_log(store, app.workspace.space(Area.WORK), agent_id, after)
            yield from islice(chunks, limit)
        return
    while limit is None or limit > 0:
        size = min(PAGE, limit or PAGE)
        page = app.read(Area.WORK, logs.read, agent_id, limit=size, after=after)
        yield from page
        if len(page) < size:
            return
        after, limit = page[-1].id, None if limit is None else limit - size
