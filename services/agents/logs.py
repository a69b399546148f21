"""The logs of agents: appended in chunks, kept after the agent is removed, read in pages."""

from datetime import timedelta
from typing import Final

from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import InvalidValue
from herdbook.ports.engine.dictionary import LOG_CHUNKS
from herdbook.ports.engine.query import Query, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

PAGE = 100
"""How many chunks one page holds by default."""
_LATER: Final = timedelta(microseconds=1)


def append(
    uow: UnitOfWork, agent_id: str, content: str, session_number: int | None = None
) -> LogChunk:
    """Append a chunk to an agent's log, under the name the agent has now.

    It belongs to the agent's last session, or to the given one: any that has a log, or the next.
    Within a session, a chunk is always later than the one before, even if the machine's clock was
    set back in between, so that a follower of the log misses none.

    Raises InvalidValue for a session that is neither.
    """
    agent = uow.agents.get(agent_id)
    last_session = uow.log_chunks.session_count(agent_id)
    number = max(last_session, 1) if session_number is None else session_number
    last = uow.log_chunks.first(_last_first(agent_id, number))
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
    """A page of an agent's log, in the order of sessions; also of an agent that was removed."""
    last = None if after is None else uow.log_chunks.get(after)
    return uow.log_chunks.of_agent(agent_id, limit=limit, after=last)


def remove(uow: UnitOfWork, agent_id: str) -> dict[str, int]:
    """Remove an agent's log; returns how many chunks it had."""
    return {"removed": uow.log_chunks.remove_of_agent(uow.agents.get(agent_id).id)}


def _last_first(agent_id: str, session_number: int) -> Query[LogChunk]:
    where = {"agent_id": agent_id, "session_number": session_number}
    return find(LOG_CHUNKS, where, descending=True, limit=1)
