"""Brokers of DuckDB files in processes of their own."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from herdbook.adapters import open_store
from herdbook.adapters.duckdb.broker import turns, wire
from herdbook.adapters.duckdb.broker.client import dictionary_mark
from herdbook.adapters.duckdb.broker.start import start_broker
from herdbook.ports.engine.dictionary import DICTIONARY
from tests.contract.children import PROCESSES, Child

THROUGH_BROKERS = bool(os.environ.get("HERDBOOK_TEST_BROKER"))
"""Whether every test of DuckDB reaches its store through a broker."""


def serve(url: str, ready: threading.Event, silence: float) -> None:
    """Be the broker of a file, which is made if there is none, until SIGTERM.

    `silence` is after how many seconds a silent writer gives way.
    """
    turns.WRITER_SILENCE = silence
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    with open_store(url) as store, start_broker(store):
        ready.set()
        end.wait()


def hello(path: Path) -> list[object]:
    """What a client of ours says first."""
    status = path.stat()
    identity = [status.st_dev, status.st_ino]
    return ["hello", wire.PROTOCOL, str(path), identity, dictionary_mark(DICTIONARY), "test"]


class Brokers:
    """Starts brokers, and ends them all when it is closed; at most a dozen run at a time."""

    def __init__(self) -> None:
        self._running: list[Child] = []

    def start(self, url: str, silence: float = turns.WRITER_SILENCE) -> Child:
        """Start the broker of a file and wait until it serves."""
        ready = PROCESSES.Event()
        child = Child(serve, url, ready, silence)
        self._running.append(child)
        assert ready.wait(60), "the broker did not start"
        if len(self._running) > 12:
            self._end(self._running.pop(0))
        return child

    def close(self) -> None:
        """End them all."""
        while self._running:
            self._end(self._running.pop())

    @staticmethod
    def _end(child: Child) -> None:
        child.kill()
        child.wait()


@contextmanager
def brokers() -> Iterator[Brokers]:
    """Brokers that end with the block."""
    started = Brokers()
    try:
        yield started
    finally:
        started.close()
