"""Agents of this host, their logs, and the journal: operations that are more than a use case."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

from herdbook.adapters.system.processes import process_start
from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.serialize import row_to_data
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.agents import agent_lifecycle, introduction, logs
from herdbook.services.agents.halts import note_if_unknown
from herdbook.services.journal import watch

SHOWN = 100
"""How many of the last entries are shown by default."""


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
) -> Agent:
    """Register an agent in this worktree; with its pid, `find_crashed` can tell when it crashed."""
    process: dict[str, Any] = {}
    if pid is not None:
        process = {
            "host": app.workspace.host,
            "pid": pid,
            "process_started_at": process_start(pid),
        }
    agent: Agent = app.run(
        Area.WORK,
        agent_lifecycle.register,
        name,
        provider=provider,
        model=model,
        mode=mode,
        session_id=session or app.identity.session,
        prompt=prompt,
        **process,
    )
    _tell_record(app, agent, provider, model, mode)
    return agent


def _tell_record(
    app: AppContext, agent: Agent, provider: str | None, model: str | None, mode: str | None
) -> None:
    from herdbook.entrypoints.hooks.registration import spool_registration  # noqa: PLC0415

    spool_registration(app, agent, provider=provider, model=model, mode=mode)


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


def find_crashed(app: AppContext) -> list[Agent]:
    """Mark agents of this host whose processes are gone as crashed, and release their tasks."""
    return app.run(Area.WORK, agent_lifecycle.find_crashed, app.workspace.host, process_start)


def waiting(app: AppContext) -> Annotated[list[dict[str, Any]], list[Agent]]:
    """The agents that wait for a person, each with its questions and its task."""
    found = app.read(Area.WORK, lambda uow: uow.agents.waiting_with_context())
    return [
        {
            **row_to_data(each.agent),
            "task_name": each.task_name,
            "phase_name": each.phase_name,
            "initiative_name": each.initiative_name,
        }
        for each in found
    ]


def log(
    app: AppContext,
    *,
    agent: str | None,
    agents: Sequence[str] | None,
    follow: bool,
    after: str | None,
    limit: int | None,
) -> Iterator[LogChunk]:
    """The log of an agent, chunk by chunk, or of several or all, one after the other.

    A removed agent's log is found too. Only one log can be followed or begun after a chunk.
    """
    named = [*([] if agent is None else [agent]), *(agents or [])]
    if len(named) != 1 and (follow or after is not None):
        name = "follow" if follow else "after"
        raise InvalidValue(name, "is for one agent's log; name one agent")
    if not named:
        named = app.read(Area.WORK, lambda uow: list(uow.log_chunks.agent_ids()))
    for each in named:
        for chunk in _read_log(app, each, follow=follow, after=after, limit=limit):
            yield chunk
            limit = None if limit is None else limit - 1
        if limit == 0:
            return


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


def journal(
    app: AppContext, *, since: int | None, follow: bool, limit: int | None
) -> Iterator[JournalEntry]:
    """The journal after a number, or its last page: up to its end or `limit`, or followed."""
    place = app.workspace.locate(Area.WORK)
    if not follow and not app.workspace.store_exists(place):
        return
    if not follow and limit is None:
        limit = SHOWN
    with app.open(Area.WORK, create=follow) as store:
        space = app.workspace.space(Area.WORK)
        if since is None:
            last = read(store, space, lambda uow: uow.journal.last())
            since = max(0, last - (SHOWN if limit is None else limit))
        entries = watch.follow_journal(
            store, space, since, stop=watch.never if follow else lambda: True
        )
        yield from islice(entries, limit)


def since(app: AppContext, *, seq: int, limit: int) -> list[JournalEntry]:
    """A page of the journal, after a number."""
    if limit < 1:
        raise InvalidValue("limit", f"must be 1 or more, is {limit}")
    found: list[JournalEntry] = app.read(Area.WORK, lambda uow: uow.journal.since(seq, limit=limit))
    return found


def row_history(app: AppContext, *, id: str) -> list[JournalEntry]:  # noqa: A002 - the parameter's name
    """The journal of one row, in order; NotFound if there never was one."""
    prefix = id.partition("_")[0]
    kind = next((each for each in DICTIONARY if each.prefix and each.prefix == prefix), None)
    if kind is None or kind.area is None or not kind.journalled:
        known = ", ".join(each.prefix for each in DICTIONARY if each.prefix and each.journalled)
        raise InvalidValue("id", f"must begin with the prefix of a kind of rows: {known}")

    def find_entries(uow: UnitOfWork) -> list[JournalEntry]:
        return uow.journal.of_row(kind, id) or uow.journal.of_row(kind, crud.key_of(uow, kind, id))

    return app.read(kind.area, find_entries)


def follow(app: AppContext, *, since: int | None) -> Iterator[JournalEntry]:
    """Follow the journal from now on, or from a number on."""
    if since is None:
        since = app.read(Area.WORK, lambda uow: uow.journal.last())
    return journal(app, since=since, follow=True, limit=None)
