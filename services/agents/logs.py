"""The logs of agents: appended in chunks, kept after the agent is removed, read in pages."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.ports.engine.dictionary import AGENTS, LOG_CHUNKS
from herdbook.ports.engine.query import Query, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.agents import log_bounds

PAGE = 100
"""How many chunks one page holds by default."""
_LATER: Final = timedelta(microseconds=1)


def append(
    uow: UnitOfWork, agent_id: str, content: str, session_number: int | None = None
) -> LogChunk:
    """Append a chunk to an agent's log, under the name the agent has now.

    It belongs to the agent's session, which its return begins, or to the given one: any that has a
    log, or the next. Within a session, a chunk is always later than the one before, even if
    the machine's clock was set back in between, so that a follower of the log misses none. What is
    more than `domain.retention` keeps goes, the oldest first.

    Raises InvalidValue for a session that is neither.
    """
    agent = uow.agents.get(agent_id)
    last_session = uow.log_chunks.session_count(agent_id)
    number = session_number
    if number is None:  # a log may have been removed, and its sessions begin again
        number = max(last_session, min(agent.log_session, last_session + 1), 1)
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
        offset=0 if last is None else log_bounds.end_of(last),
    )
    uow.insert_verbatim({LOG_CHUNKS: [chunk]})
    log_bounds.trim(uow, chunk)
    return chunk


def read(
    uow: UnitOfWork, agent_id: str, *, limit: int = PAGE, after: str | None = None
) -> list[LogChunk]:
    """A page of an agent's log, in the order of sessions; also of an agent that was removed."""
    last = None if after is None else uow.log_chunks.get(after)
    return uow.log_chunks.of_agent(agent_id, limit=limit, after=last)


def read_last(uow: UnitOfWork, agent_id: str, count: int) -> list[LogChunk]:
    """The last chunks of an agent's log, in the order of sessions."""
    query = find(LOG_CHUNKS, {"agent_id": agent_id}, descending=True, limit=count)
    return uow.select(query)[::-1]


def count(uow: UnitOfWork, agents: Sequence[str]) -> int:
    """How many chunks the logs of some agents have together."""
    ids = {find_log(uow, each) for each in agents}
    return sum(uow.count(find(LOG_CHUNKS, {"agent_id": each})) for each in ids)


def remove(uow: UnitOfWork, agent_id: str) -> dict[str, int]:
    """Remove the log that `find_log` finds; returns how many chunks it had."""
    return {"removed": uow.log_chunks.remove_of_agent(find_log(uow, agent_id))}


class LogSummary(NamedTuple):
    """Whose log there is, how many sessions it has, and whether the agent was removed since."""

    agent_id: str
    agent_name: str
    sessions: int
    removed: bool


def summarize_logs(uow: UnitOfWork, agents: Sequence[str] = ()) -> list[LogSummary]:
    """The logs of these agents, named as `find_log` takes them, or all logs there are."""
    ids = dict.fromkeys(find_log(uow, each) for each in agents) or uow.log_chunks.agent_ids()
    return [_summarize(uow, agent_id) for agent_id in ids]


def find_log(uow: UnitOfWork, agent_id: str) -> str:
    """The id of the agent whose log is meant, by its name, its id or a unique prefix of that.

    If there is no such agent, it is one that was removed and whose log is kept: the name is then
    the last that the log tells. Raises NotFound if no log is meant, InvalidValue if several are.
    """
    if _has_log(uow, agent_id):
        return agent_id
    try:
        return crud.key_of(uow, AGENTS, agent_id)
    except NotFound:
        summaries = (_summarize(uow, each) for each in uow.log_chunks.agent_ids())
        found = [each.agent_id for each in summaries if each.removed and _is_named(each, agent_id)]
    if not found:
        raise NotFound("log", agent_id, "`herdbook log sessions` lists the logs that are kept")
    if len(found) > 1:
        ids = ", ".join(found[: crud.MANY])
        raise InvalidValue("agent", f"{agent_id!r} could be any of {ids}; name it by its id")
    return found[0]


def _has_log(uow: UnitOfWork, text: str) -> bool:
    try:
        return uow.log_chunks.last(text) is not None
    except InvalidValue:
        return False


def _summarize(uow: UnitOfWork, agent_id: str) -> LogSummary:
    agent, last = uow.agents.find(agent_id), uow.log_chunks.last(agent_id)
    named = agent.name if agent is not None else last.agent_name if last is not None else ""
    return LogSummary(agent_id, named, last.session_number if last else 0, agent is None)


def _is_named(summary: LogSummary, text: str) -> bool:
    prefix = f"{AGENTS.prefix}_"
    rest = text.removeprefix(prefix)
    is_prefix = len(rest) >= crud.SHORTEST_PREFIX and summary.agent_id.startswith(prefix + rest)
    return is_prefix or summary.agent_name == text


def _last_first(agent_id: str, session_number: int) -> Query[LogChunk]:
    where = {"agent_id": agent_id, "session_number": session_number}
    return find(LOG_CHUNKS, where, descending=True, limit=1)
