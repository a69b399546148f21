"""Follow the journal or an agent's log, or repeat a query until it has an answer.

These functions take the store and not a unit of work: each look is a transaction of its own that
has ended before its results are yielded. Between two looks they wait for a commit in the space, or
do what the caller does to wait.
"""

from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from typing import TypeVar

from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry
from herdbook.ports.engine.dictionary import LOG_CHUNKS
from herdbook.ports.engine.query import between, find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.journal.feed import PAGE, Feed, Waiter
from herdbook.services.journal.follower_cursor import FollowerCursor

R = TypeVar("R")

Stop = Callable[[], bool]
Wait = Callable[[], object]
LogPositions = dict[int, LogChunk]
"""For sessions of one agent, by number: the chunk up to which the log was read, or its last one."""


def never() -> bool:
    """Never stop."""
    return False


def follow_journal(
    store: Store,
    space: str,
    since: int = 0,
    *,
    stop: Stop = never,
    wait: Wait | None = None,
    limit: int = PAGE,
    cursor: FollowerCursor | None = None,
) -> Iterator[JournalEntry]:
    """Yield every entry of the journal after this number, in order, each once, as they are written.

    When `stop` returns true, the entries written until then are yielded, and it ends. After an
    error, a caller can go on from the number of the last entry. Raises JournalPruned if the next
    entry was folded, and InvalidValue if another journal has taken the place of this one.
    """
    end: int | None = None
    with Feed(store, space, since, limit=limit, cursor=cursor) as feed:
        while end is None or since < end:
            stopping = stop()
            page = feed.take(look=stopping)
            if feed.is_replaced:
                raise replaced_error(since, feed.last)
            if stopping and end is None:
                end = feed.last
            for entry in page:
                if end is not None and entry.seq > end:
                    return
                since = entry.seq
                yield entry
            if not page and end is None:
                (wait or feed.wait)()


def replaced_error(since: int, last: int) -> InvalidValue:
    """The error for whoever follows a journal from a position that means nothing any more."""
    reason = (
        f"#{since} is no position in this journal, which ends at #{last}: if it was one, an "
        "earlier copy of the store, or another one, has taken its place. Read again what you show, "
        f"and go on after #{last}"
    )
    return InvalidValue("since", reason)


def follow_holding(
    store: Store, space: str, since: int, cursor: FollowerCursor, *, stop: Stop = never
) -> Generator[JournalEntry]:
    """Yield entries as `follow_journal` does, and hold the journal by a cursor until the end."""
    try:
        yield from follow_journal(store, space, since, stop=stop, cursor=cursor)
    finally:
        cursor.release()


def follow_log(
    store: Store,
    space: str,
    agent_id: str,
    after: str | None = None,
    *,
    stop: Stop = never,
    wait: Wait | None = None,
    limit: int = PAGE,
) -> Iterator[LogChunk]:
    """Yield every chunk of an agent's log after this one, each once, in order within its session.

    Chunks that are appended to an earlier session after a later one has begun are yielded as well.
    When `stop` returns true, the chunks appended until then are yielded, and it ends.
    """
    seen: LogPositions = {} if after is None else read(store, space, _positions_at, agent_id, after)
    ends: LogPositions | None = None
    with Waiter(store, space) as waiter:
        while True:
            stopping = stop() and ends is None
            page, lasts = read(store, space, _new_chunks, agent_id, seen, limit, stopping=stopping)
            ends = lasts if stopping else ends
            for chunk in page:
                number = chunk.session_number
                seen[number] = chunk
                if ends is None or (
                    number in ends and _position_key(chunk) <= _position_key(ends[number])
                ):
                    yield chunk
            if ends is not None and (not page or _have_reached(seen, ends)):
                return
            if not page:
                (wait or waiter.wait)()


def wait_until(
    store: Store,
    space: str,
    question: Callable[..., R | None],
    *args: object,
    stop: Stop = never,
    wait: Wait | None = None,
) -> R | None:
    """Repeat a query until its answer is not None; None if `stop` returned true before that."""
    with Waiter(store, space) as waiter:
        while True:
            stopping = stop()
            answer = read(store, space, question, *args)
            if answer is not None or stopping:
                return answer
            (wait or waiter.wait)()


def _new_chunks(
    uow: UnitOfWork, agent_id: str, seen: LogPositions, limit: int, *, stopping: bool
) -> tuple[list[LogChunk], LogPositions]:
    """The new chunks of each session, and, when stopping, the last chunk of each session."""
    newest = max(seen, default=None)
    page: list[LogChunk] = []
    for number in sorted(seen):
        if number != newest:
            where = {"agent_id": agent_id, "session_number": number}
            page += uow.log_chunks.select(find(LOG_CHUNKS, where, limit=limit, after=seen[number]))
    last = None if newest is None else seen[newest]
    page += uow.log_chunks.of_agent(agent_id, limit=limit, after=last)
    return page, _last_positions(uow, agent_id) if stopping else {}


def _positions_at(uow: UnitOfWork, agent_id: str, chunk_id: str) -> LogPositions:
    """The positions of a reader who has read up to this chunk."""
    chunk = uow.log_chunks.get(chunk_id)
    if chunk.agent_id != agent_id:
        raise InvalidValue("after", f"{chunk_id!r} is no piece of the log of agent {agent_id!r}")
    return {**_last_positions(uow, agent_id, chunk.session_number), chunk.session_number: chunk}


def _last_positions(uow: UnitOfWork, agent_id: str, before: int | None = None) -> LogPositions:
    """The last chunk of each session, or of each session before the given one."""
    ends: LogPositions = {}
    where: dict[str, object] = {"agent_id": agent_id}
    while True:
        if before is not None:
            where["session_number"] = between(None, before)
        last = uow.log_chunks.first(find(LOG_CHUNKS, where, descending=True, limit=1))
        if last is None:
            return ends
        before = last.session_number
        ends[before] = last


def _position_key(chunk: LogChunk) -> tuple[datetime, str]:
    return chunk.created_at, chunk.id


def _have_reached(seen: LogPositions, ends: LogPositions) -> bool:
    return all(
        number in seen and _position_key(seen[number]) >= _position_key(ends[number])
        for number in ends
    )
