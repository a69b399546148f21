"""Events of the feed, and the short queue of each of its readers."""

import asyncio
import json
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

MOST_QUEUED = 256
HEARTBEAT = 15.0
FAREWELL = 5.0
"""Seconds in which a reader that did not keep up may still read that it is disconnected."""
Positions = dict[str, int]


def encode_data(data: Any) -> str:
    """The data of an event, on one line: JSON has no line breaks of its own."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)


def event(kind: str, text: str, id_: str | None = None) -> bytes:
    """One event as it is sent."""
    named = "" if id_ is None else f"id: {id_}\n"
    return f"event: {kind}\n{named}data: {text}\n\n".encode(errors="replace")


def format_positions(positions: Positions) -> str:
    """The id of an event: the number of the last entry that was sent, of each space."""
    return ",".join(f"{key}:{seq}" for key, seq in positions.items())


def parse_positions(text: str) -> Positions:
    """The positions in an id; whatever is none is left out."""
    pairs = (each.partition(":") for each in text.split(","))
    return {key: int(seq) for key, _, seq in pairs if seq.isdecimal() and len(seq) < 19}  # noqa: PLR2004 - int64


class QueuedEvent(NamedTuple):
    """An event that waits to be sent, and the position in its space that it leads to, if any."""

    kind: str
    text: str
    key: str = ""
    seq: int = 0


class FeedReader:
    """One connection: its position in each space, and what waits to be sent to it.

    `positions` are those of what it was given, `sent` those of what has left the queue.
    `browser` is the session of the browser that has it; None for a program.
    """

    def __init__(self, browser: str | None, disconnect: Callable[[], object]) -> None:
        self.browser = browser
        self.positions: Positions = {}
        self.sent: Positions = {}
        self.is_over = False
        self._queue: deque[QueuedEvent] = deque()
        self._news = asyncio.Event()
        self._disconnect = disconnect

    def put(self, queued: QueuedEvent) -> bool:
        """Queue an event; False if there was no room, and the reader is disconnected."""
        if self.is_over:
            return True
        has_room = len(self._queue) < MOST_QUEUED
        if not has_room:
            # Without an id: its position is the one of the last event that was sent.
            self._queue.clear()
            reset: dict[str, Any] = {"reason": "overflow", "spaces": [], "seq": None, "first": None}
            queued = QueuedEvent("reset", encode_data(reset))
            self.is_over = True
            asyncio.get_running_loop().call_later(FAREWELL, self._disconnect)
        self._queue.append(queued)
        self._news.set()
        return has_room

    @property
    def queue_length(self) -> int:
        """How many events wait to be sent."""
        return len(self._queue)

    def end(self) -> None:
        """Send what is queued, and nothing more."""
        self.is_over = True
        self._news.set()

    async def next_bytes(self) -> bytes | None:
        """What is to be sent next: a comment if there was nothing for a while, None at the end."""
        while not self._queue:
            if self.is_over:
                return None
            self._news.clear()
            try:
                async with asyncio.timeout(HEARTBEAT):
                    await self._news.wait()
            except TimeoutError:
                return b": nothing new\n\n"
        queued = self._queue.popleft()
        if not queued.key:
            return event(queued.kind, queued.text)
        return self.describe_sent(*queued)

    def describe_sent(self, kind: str, text: str, key: str, seq: int) -> bytes:
        """An event that is sent now; its id tells how far all that was sent has come."""
        self.sent[key] = seq
        return event(kind, text, format_positions(self.sent))
