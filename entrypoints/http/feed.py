"""The changes of all served spaces as server-sent events, each journal read once for everybody.

One connection carries any number of spaces. The id of an event is the position of its reader in
each of them, so a browser that comes back with `Last-Event-ID` gets what it missed, from the
journal itself. Every reader has a short queue; one that does not keep up is told `reset` and
disconnected, and may come back the same way. Writers never wait for anybody here.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from anyio import to_thread

from herdbook.adapters.user_state.spool_tail import LiveSpool
from herdbook.domain.errors import HerdbookError, JournalPruned
from herdbook.domain.record.pulses import Pulse
from herdbook.entrypoints.http.feed_reader import (
    FeedReader,
    QueuedEvent,
    encode_data,
    event,
    format_positions,
    parse_positions,
)
from herdbook.entrypoints.http.metrics import Metrics
from herdbook.entrypoints.http.served_folders import ServedFolders, ServedSpace
from herdbook.entrypoints.http.space_feed import SpaceFeed
from herdbook.entrypoints.operations.error_table import describe_error
from herdbook.services.record.pulses import publish_pulses

REPLACED_WAIT = 0.02
"""Seconds between two looks whether the end of a replaced journal has been noticed."""


class FeedHub:
    """All readers and the spaces they follow; its methods run on the event loop."""

    def __init__(self, folders: ServedFolders, metrics: Metrics) -> None:
        self._folders = folders
        self._metrics = metrics
        self._spaces: dict[str, SpaceFeed] = {}
        self._readers: set[FeedReader] = set()
        self._loop: asyncio.AbstractEventLoop
        self._pulses_over: threading.Event | None = None
        self._is_over = False

    async def follow(
        self, reader: FeedReader, spaces: list[ServedSpace], since: str
    ) -> AsyncIterator[bytes]:
        """The events for one reader: what it missed, then what happens, until it leaves."""
        self._loop = asyncio.get_running_loop()
        known = parse_positions(since)
        followed = [self._space(each) for each in spaces]
        self._add(reader)
        try:
            for each in followed:
                last = each.seq if each.is_running else await to_thread.run_sync(each.last)
                reader.positions[each.key] = known.get(each.key, last)
            reader.sent = dict(reader.positions)
            yield b"retry: 1000\n" + self._greeting(reader, followed)
            for each in followed:
                async for missed in self._catch_up(reader, each):
                    yield missed
            while not self._is_over and (data := await reader.next_bytes()) is not None:
                yield data
        except HerdbookError as error:
            yield event("trouble", encode_data(describe_error(error)))
        finally:
            self._remove(reader)
            for each in followed:
                each.readers.discard(reader)
                if not each.readers:
                    each.stop()

    def _greeting(self, reader: FeedReader, followed: list[SpaceFeed]) -> bytes:
        spaces = [
            {**each.space._asdict(), "key": each.key, "seq": reader.positions[each.key]}
            for each in followed
        ]
        return event("spaces", encode_data(spaces), format_positions(reader.sent))

    def _space(self, space: ServedSpace) -> SpaceFeed:
        found = self._spaces.get(space.space)
        if found is None or not Path(found.space.folder).is_dir():
            found = SpaceFeed(self._folders, space, self._publish_from_thread)
            self._spaces[space.space] = found
        return found

    async def _catch_up(self, reader: FeedReader, space: SpaceFeed) -> AsyncIterator[bytes]:
        """The entries that a reader missed; then it belongs to those who are told of new ones.

        Between the last look at the journal and that there is no other turn of the event loop.
        Where others are told and it has what they have, nothing is read.
        """
        while not (space.is_running and reader.positions[space.key] == space.seq):
            seq = reader.positions[space.key]
            try:
                page, last = await to_thread.run_sync(space.read, seq)
            except JournalPruned as error:
                last = await to_thread.run_sync(space.last)
                reader.positions[space.key] = last
                reset = space.reset("pruned", last, error.first)
                yield reader.describe_sent("reset", encode_data(reset), space.key, last)
                continue
            if page:
                reader.positions[space.key] = seq = page[-1].seq
                text = encode_data(space.describe(page))
                yield reader.describe_sent("journal", text, space.key, seq)
            elif seq > last:
                reader.positions[space.key] = last
                reset = space.reset("unknown", last)
                yield reader.describe_sent("reset", encode_data(reset), space.key, last)
            elif not space.is_running or seq >= space.seq:
                space.start(seq)
                break
            else:  # another store has taken its place, which the thread is about to notice
                await asyncio.sleep(REPLACED_WAIT)
        space.readers.add(reader)

    def _publish_from_thread(
        self, space: SpaceFeed, is_meant: Callable[[], bool], seq: int, kind: str, data: Any
    ) -> None:
        text = encode_data(data)

        def publish() -> None:
            if is_meant():
                self._publish(space, seq, kind, data, text)

        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(publish)

    def _publish(self, space: SpaceFeed, seq: int, kind: str, data: Any, text: str) -> None:
        is_reset = kind == "reset"
        space.seq = seq if is_reset else max(seq, space.seq)
        for reader in space.readers:
            seen, own = reader.positions[space.key], text
            if kind == "journal" and data["entries"][0]["seq"] <= seen:
                rest = [each for each in data["entries"] if each["seq"] > seen]
                if not rest:
                    continue
                own = encode_data({**data, "entries": rest})
            reader.positions[space.key] = told = seq if is_reset else max(seq, seen)
            self._put(reader, QueuedEvent(kind, own, space.key, told))

    def _put(self, reader: FeedReader, queued: QueuedEvent) -> None:
        if not reader.put(queued):
            self._metrics.overflows += 1

    def _add(self, reader: FeedReader) -> None:
        """Count a reader; the first one starts the reading of what hooks tell."""
        self._readers.add(reader)
        if self._pulses_over is None:
            self._pulses_over = threading.Event()
            arguments = LiveSpool(), self._publish_pulses, self._pulses_over
            threading.Thread(
                target=publish_pulses, args=arguments, name="herdbook-pulses", daemon=True
            ).start()

    def _remove(self, reader: FeedReader) -> None:
        self._readers.discard(reader)
        if not self._readers and self._pulses_over is not None:
            self._pulses_over.set()
            self._pulses_over = None

    def _publish_pulses(self, pulses: Sequence[Pulse]) -> None:
        """Tell all readers what agents do, from the thread that reads the spool."""
        told = [{**each._asdict(), "space": self._folders.find_space(each.cwd)} for each in pulses]
        queued = QueuedEvent("pulse", encode_data(told))

        def publish() -> None:
            for reader in self._readers:
                self._put(reader, queued)

        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(publish)

    def count_readers(self, browser: str | None = None) -> int:
        """How many connections there are, in all or of one browser."""
        return sum(browser in (None, each.browser) for each in list(self._readers))

    def most_behind(self) -> int:
        """How many entries of a journal its readers have not been told of, where it is most.

        It reads the stores: for a thread other than that of the event loop.
        """
        behind = [0]
        for each in list(self._spaces.values()):
            if each.is_running:
                with suppress(HerdbookError):
                    told = each.seq  # before the last entry, which may come in between
                    behind.append(max(0, each.last() - told))
        return max(behind)

    def most_queued(self) -> int:
        """How many events wait for the reader that is slowest."""
        return max((each.queue_length for each in list(self._readers)), default=0)

    def end(self) -> None:
        """Disconnect all readers, because the server ends."""
        self._is_over = True
        for reader in self._readers:
            reader.end()
