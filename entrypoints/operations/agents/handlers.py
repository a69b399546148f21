"""Agents on this host, their logs, and the journal: what needs more than one use case."""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

from herdbook.adapters.system.processes import process_start
from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.bootstrap import Here
from herdbook.entrypoints.operations.serialize import row_to_data
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.agents import agent_lifecycle, logs
from herdbook.services.journal import watch

SHOWN = 100
"""How many of the last entries are shown to who asks for no others."""


def register(
    here: Here,
    *,
    name: str | None,
    provider: str,
    model: str | None,
    mode: str,
    session: str | None,
    pid: int | None,
    prompt: str | None,
) -> Agent:
    """Let an agent come to work in this worktree; with its pid it can be told when it crashed."""
    process: dict[str, Any] = {}
    if pid is not None:
        process = {"host": here.host, "pid": pid, "process_started_at": process_start(pid)}
    return here.run(
        Area.WORK,
        agent_lifecycle.register,
        name,
        provider=provider,
        model=model,
        mode=mode,
        session_id=session or here.variables.get("HERDBOOK_SESSION") or None,
        prompt=prompt,
        **process,
    )


def crashed(here: Here) -> list[Agent]:
    """Find the agents of this host whose processes are gone; what they held is free again."""
    return here.run(Area.WORK, agent_lifecycle.find_crashed, here.host, process_start)


def waiting(here: Here) -> Annotated[list[dict[str, Any]], list[Agent]]:
    """The agents that wait for a person, each with what it asks and what it is at."""
    found = here.read(Area.WORK, lambda uow: uow.agents.waiting_with_context())
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
    here: Here, *, agent: str, follow: bool, after: str | None, limit: int | None
) -> Iterator[LogChunk]:
    """An agent's log, piece by piece; also of an agent that is gone, by its whole id."""
    agent_id = here.read(Area.WORK, _known_id, agent)
    if follow:
        with here.opened(Area.WORK) as store:
            pieces = watch.follow_log(store, here.space(Area.WORK), agent_id, after)
            yield from islice(pieces, limit)
        return
    while limit is None or limit > 0:
        size = min(PAGE, limit or PAGE)
        page = here.read(Area.WORK, logs.read, agent_id, limit=size, after=after)
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
    here: Here, *, since: int | None, follow: bool, limit: int | None
) -> Iterator[JournalEntry]:
    """The journal after a number, or its last page: to its end or `limit`, or on and on."""
    place = here.place(Area.WORK)
    if not follow and not here.is_there(place):
        return
    if not follow and limit is None:
        limit = SHOWN
    with here.opened(Area.WORK, create=follow) as store:
        space = here.space(Area.WORK)
        if since is None:
            last = read(store, space, lambda uow: uow.journal.last())
            since = max(0, last - (SHOWN if limit is None else limit))
        entries = watch.follow_journal(
            store, space, since, stop=watch.never if follow else lambda: True
        )
        yield from islice(entries, limit)


def since(here: Here, *, seq: int, limit: int) -> list[JournalEntry]:
    """A page of the journal, behind a number."""
    if limit < 1:
        raise InvalidValue("limit", f"must be 1 or more, is {limit}")
    found: list[JournalEntry] = here.read(
        Area.WORK, lambda uow: uow.journal.since(seq, limit=limit)
    )
    return found


def follow(here: Here, *, since: int | None) -> Iterator[JournalEntry]:
    """What changes from now on, or from a number on."""
    if since is None:
        since = here.read(Area.WORK, lambda uow: uow.journal.last())
    return journal(here, since=since, follow=True, limit=None)
