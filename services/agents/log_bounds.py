"""Keeps the logs of agents within their bounds: the oldest parts go, the newest one never does."""

from collections.abc import Iterator
from typing import NamedTuple

from herdbook.domain.conversation import LogChunk
from herdbook.domain.retention import AGENT_LOG_SESSIONS, SESSION_LOG_BYTES, SPACE_LOG_BYTES
from herdbook.ports.engine.dictionary import LOG_CHUNKS
from herdbook.ports.engine.query import Query, between, find
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class SessionSize(NamedTuple):
    """The log of one session of an agent: its last part, and how many bytes are kept of it."""

    last: LogChunk
    bytes: int


def end_of(chunk: LogChunk) -> int:
    """How many bytes of its session were written up to the end of a part."""
    return chunk.offset + len(chunk.content.encode())


def trim(uow: UnitOfWork, newest: LogChunk) -> None:
    """Remove what a log has too much after this part was appended to it.

    Within its session that is looked at each time; the sessions of the agent and the whole space
    only when a session begins.
    """
    if newest.offset:
        _trim_session(uow, newest)
    else:
        _trim_sessions(uow, newest)


def session_sizes(uow: UnitOfWork) -> Iterator[SessionSize]:
    """The size of every session that has a log, with two queries for each."""
    for agent_id in uow.log_chunks.agent_ids():
        before: int | None = None
        while last := uow.log_chunks.first(_last_of(agent_id, before)):
            before = last.session_number
            yield SessionSize(last, _kept_bytes(uow, last))


def _last_of(agent_id: str, before: int | None) -> Query[LogChunk]:
    """The last part of an agent's log, or of its sessions before one."""
    where: dict[str, object] = {"agent_id": agent_id}
    if before is not None:
        where["session_number"] = between(None, before)
    return find(LOG_CHUNKS, where, descending=True, limit=1)


def _kept_bytes(uow: UnitOfWork, last: LogChunk) -> int:
    first = uow.log_chunks.first(_session(last, limit=1))
    return end_of(last) - (first.offset if first else 0)


def _session(chunk: LogChunk, limit: int) -> Query[LogChunk]:
    where = {"agent_id": chunk.agent_id, "session_number": chunk.session_number}
    return find(LOG_CHUNKS, where, limit=limit)


def _trim_session(uow: UnitOfWork, newest: LogChunk) -> None:
    """Remove the first parts of a session that is too large, down to three quarters."""
    if _kept_bytes(uow, newest) <= SESSION_LOG_BYTES:
        return
    begin = end_of(newest) - SESSION_LOG_BYTES * 3 // 4
    parts = uow.log_chunks.select_all(_session(newest, limit=PAGE))
    surplus = [each.id for each in parts if each.offset < begin and each.id != newest.id]
    uow.log_chunks.remove_all(surplus)


def _trim_sessions(uow: UnitOfWork, newest: LogChunk) -> None:
    """Remove the oldest sessions of an agent, then of the whole space, beyond their bounds."""
    oldest = newest.session_number - AGENT_LOG_SESSIONS + 1
    where = {"agent_id": newest.agent_id, "session_number": between(None, max(oldest, 0))}
    early = uow.log_chunks.select_all(find(LOG_CHUNKS, where, limit=PAGE))
    uow.log_chunks.remove_all([each.id for each in early])
    sizes = sorted(session_sizes(uow), key=lambda each: each.last.created_at)
    surplus = sum(each.bytes for each in sizes) - SPACE_LOG_BYTES
    for each in sizes:
        if surplus <= 0 or each.last.id == newest.id:
            return
        parts = uow.log_chunks.select_all(_session(each.last, limit=PAGE))
        uow.log_chunks.remove_all([part.id for part in parts])
        surplus -= each.bytes
