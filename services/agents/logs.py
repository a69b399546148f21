"""What agents print: appended in pieces, kept beyond the agent's life, read in pages."""

from datetime import timedelta
from typing import Final

from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import InvalidValue
from herdbook.ports.engine.dictionary import LOG_CHUNKS
from herdbook.ports.engine.query import Query, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

PAGE = 100
"""How many pieces one answer holds unless more are asked for."""
_LATER: Final = timedelta(microseconds=1)


def append(
    uow: UnitOfWork, agent_id: str, content: str, session_number: int | None = None
) -> LogChunk:
    """Add a piece to an agent's log, under the name it has now.

    It belongs to the agent's last session, or to the one given: any that has a log, or the next.
    Within a session a piece is always later than the one before, even where the machine's clock
    was set back in between, so that whoever follows the log misses none.
    """
    agent = uow.agents.get(agent_id)
    last_session = uow.log_chunks.session_count(agent_id)
    number = max(last_session, 1) if session_number is None else session_number
    last = uow.log_chunks.first(_backwards(agent_id, number))
    if last is None and number != last_session + 1:
        reason = f"agent {agent_id!r} has no session {number}; its next one is {last_session + 1}"
        raise InvalidValue("session_number", reason)
    at = uow.now if last is None else max(uow.now, last.created_at + _LATER)
    chunk = LogChunk(
        id=uow.new_id(LOG_CHUNKS),
        agent_id=agent_id,
        agent_name=agent.name,
        session_number=number,
        content=content,
        created_at=at,
    )
    uow.insert_verbatim({LOG_CHUNKS: [chunk]})
    return chunk


def read(
    uow: UnitOfWork, agent_id: str, *, limit: int = PAGE, after: str | None = None
) -> list[LogChunk]:
    """An agent's log, session by session and in order, a page at a time; also of one long gone."""
    last = None if after is None else uow.log_chunks.get(after)
    return uow.log_chunks.of_agent(agent_id, limit=limit, after=last)


def remove(uow: UnitOfWork, agent_id: str) -> dict[str, int]:
    """Remove an agent's log; says how many pieces it had."""
    return {"removed": uow.log_chunks.remove_of_agent(uow.agents.get(agent_id).id)}


def _backwards(agent_id: str, session_number: int) -> Query[LogChunk]:
    where = {"agent_id": agent_id, "session_number": session_number}
    return find(LOG_CHUNKS, where, descending=True, limit=1)
