"""Agents of this host, their logs, and the journal: operations that are more than a use case."""

from collections.abc import Iterator
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
from herdbook.ports.engine.dictionary import AGENTS
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
    provider: str,
    model: str | None,
    mode: str,
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
    return app.run(
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


def introduce(
    app: AppContext,
    *,
    name: str,
    provider: str,
    model: str | None,
    mode: str,
    session: str | None,
    pid: int,
    prompt: str | None,
) -> Agent:
    """Register an agent unless it is halted; one whose process is gone may register again."""
    halts = app.halts()
    # Asked before the transaction, so that nobody waits for it while another store is read.
    note_if_unknown(halts, name)
    return app.run(
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
    app: AppContext, *, agent: str, follow: bool, after: str | None, limit: int | None
) -> Iterator[LogChunk]:
    """An agent's log, chunk by chunk; also of a removed agent, by its whole id."""
    agent_id = app.read(Area.WORK, _known_id, agent)
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


def _known_id(uow: UnitOfWork, text: str) -> str:
    agent = uow.agents.by_name(text) or uow.agents.find(text)
    if agent is None and logs.read(uow, text, limit=1):
        return text
    return agent.id if agent is not None else crud.key_of(uow, AGENTS, text)


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


def follow(app: AppContext, *, since: int | None) -> Iterator[JournalEntry]:
    """Follow the journal from now on, or from a number on."""
    if since is None:
        since = app.read(Area.WORK, lambda uow: uow.journal.last())
    return journal(app, since=since, follow=True, limit=None)
