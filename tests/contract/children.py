"""Work done in processes of their own: many at once, one that may crash, a fresh interpreter.

Children come from a fork server that has imported the drivers and opened nothing, so each of them
is as good as a new program and starts in milliseconds. What has to begin with a bare interpreter
goes through `program`.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from herdbook.adapters import open_store
from herdbook.ports.engine.store import Store

REPOSITORY = Path(__file__).parents[2]
LIMIT = 600.0
"""How many seconds a child may be silent before it counts as stuck; it decides nothing else."""

NOBODY = 65_534

PROCESSES: Any = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "herdbook.adapters.lmdb.store",
        "herdbook.adapters.duckdb.store",
        "herdbook.adapters.postgres.store",
        "tests.contract.workers",
    ]
)

Answer = Any
"""What a function returned in another process."""
Place = str | Store
"""How a worker comes to a store: by URL in a process of its own, or the one of this process."""


class Died(Exception):
    """A child ended without a word: a signal, or an exit nobody asked for."""

    def __init__(self, exitcode: int | None) -> None:
        name = signal.Signals(-exitcode).name if exitcode and exitcode < 0 else "no signal"
        super().__init__(f"the child died with {exitcode} ({name})")
        self.exitcode = exitcode


class Child:
    """A process that runs one function and tells what came of it."""

    def __init__(self, function: Callable[..., Any], *args: object) -> None:
        self._words, theirs = PROCESSES.Pipe(duplex=False)
        self._process = PROCESSES.Process(target=_tell, args=(theirs, function, args))
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Its number."""
        return int(self._process.pid)

    def result(self) -> Answer:
        """What the function returned; raises what it raised, or Died."""
        try:
            if not self._words.poll(LIMIT):
                self.kill()
                raise AssertionError(f"the child said nothing for {LIMIT:g} s")
            answer, error, trace = self._words.recv()
        except EOFError:
            raise Died(self.wait()) from None
        self.wait()
        if error is not None:
            error.add_note(trace)
            raise error
        return answer

    def kill(self) -> None:
        """End it as `kill -9` does."""
        self._process.kill()

    def wait(self) -> int | None:
        """Its exit code, once it has ended."""
        self._process.join(LIMIT)
        return self._process.exitcode  # type: ignore[no-any-return]


def _tell(words: Connection, function: Callable[..., Any], args: Sequence[Any]) -> None:
    try:
        told = function(*args), None, ""
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
        told = None, error, traceback.format_exc()
    words.send(told)


def apart(function: Callable[..., Any], *args: object) -> Answer:
    """Run a function in a process of its own; a crash is Died here and harms nobody."""
    return Child(function, *args).result()


def begun(place: Place, function: Callable[..., Any], *args: object) -> Callable[[], Any]:
    """Start a function on a store and give the way to wait for its result.

    By URL it has a process of its own, otherwise a thread of this one.
    """
    if isinstance(place, str):
        return Child(function, place, *args).result
    thread = ThreadPoolExecutor(1)
    future = thread.submit(function, place, *args)
    thread.shutdown(wait=False)
    return lambda: future.result(LIMIT)


def at_once(place: Place, function: Callable[..., Any], jobs: Sequence[Sequence[Any]]) -> list[Any]:
    """Run a function on a store for every job, all at the same time; what each returned."""
    running = [begun(place, function, *job) for job in jobs]
    return [wait() for wait in running]


def barrier(place: Place, parties: int) -> threading.Barrier:
    """A barrier for that many workers on a store."""
    made: threading.Barrier = (PROCESSES if isinstance(place, str) else threading).Barrier(parties)
    return made


def event(place: Place) -> threading.Event:
    """An event for workers on a store."""
    made: threading.Event = (PROCESSES if isinstance(place, str) else threading).Event()
    return made


@contextmanager
def opened(place: Place) -> Iterator[Store]:
    """The store, opened where it is named by URL."""
    if isinstance(place, str):
        with open_store(place, patience=LIMIT) as store:
            yield store
    else:
        yield place


def as_nobody(function: Callable[..., Any], *args: object) -> Answer:
    """Run a function without root's right to ignore the modes of files; only in a child."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    return function(*args)


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python anew with these arguments, where it finds what this process finds."""
    path = os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
