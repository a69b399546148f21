"""Runs queries in a restricted DuckDB, in a process that can be killed.

The process runs `sandbox_process`. It is kept for a while for the next query.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from herdbook.adapters.sql_query import frames
from herdbook.adapters.sql_query.refusal import TOO_MUCH_MEMORY, query_error, timeout_error
from herdbook.adapters.sql_query.result import Answer
from herdbook.adapters.sql_query.result_values import decode_value
from herdbook.adapters.system.extras import describe_missing
from herdbook.domain.errors import HerdbookError, StoreDamaged, StoreFull, StoreUnavailable

Tables = dict[str, dict[str, str]]
"""For each table the SQL by which the process creates, fills or reads it."""

NO_DUCKDB = f"SQL over it is answered by DuckDB: {describe_missing('duckdb', 'duckdb')}"

_COMMAND = (sys.executable, "-P", "-m", "herdbook.adapters.sql_query.sandbox_process")
_MOST_MEMORY = 4 * 2**30
_IDLE_SECONDS = 10.0
"""For how many seconds a process is kept for the next query."""


class Deadline:
    """The time limit of a query, from the call on: everything done for it counts."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self._end = monotonic() + patience

    @property
    def seconds_left(self) -> float:
        """The seconds that are left. Raises InvalidValue if there are none."""
        seconds = self._end - monotonic()
        if seconds <= 0:
            raise timeout_error(self.patience)
        return seconds


Feed = Callable[[list[str]], Iterator[tuple[str, dict[str, list[Any]]]]]
"""The rows of some tables, a part at a time: the table, and a list for each of its columns."""


def query_sandbox(
    sql: str,
    tables: Tables,
    *,
    place: str,
    deadline: Deadline,
    limit: int,
    paths: Sequence[Path] = (),
    feed: Feed | None = None,
) -> Answer:
    """Run one query over some tables: those of a database file at `paths`, or rows from `feed`.

    Raises InvalidValue if the query is refused, takes too long or needs too much memory, and
    StoreDamaged, StoreFull or StoreUnavailable if the file cannot be read.
    """
    request = {
        "sql": sql,
        "tables": tables,
        "paths": [str(path) for path in paths],
        "place": place,
        "limit": limit,
        "memory": memory_limit(),
    }
    with _process(deadline, place) as process:
        reply = process.exchange(request)
        if "rows" in reply and "columns" not in reply:
            for table, columns in feed(reply["rows"]) if feed else ():
                process.send({"table": table})
                process.send(columns)
                _ = deadline.seconds_left
            reply = process.exchange({})
    if "columns" not in reply:
        raise _error(reply, place)
    try:
        rows = [tuple(map(decode_value, row)) for row in reply["rows"]]
    except RecursionError as error:
        raise query_error("has a value in its answer that is nested too deep") from error
    return Answer(tuple(reply["columns"]), rows, cut=bool(reply["cut"]))


def start_process() -> None:
    """Start the process for a query that will be asked soon: starting it takes 0.2 s."""
    _IDLE.give_back(_IDLE.take() or _QueryProcess())


def memory_limit() -> int:
    """How many bytes a query may use: half of the machine's memory, and at most 4 GiB."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return _MOST_MEMORY
    return min(_MOST_MEMORY, there // 2)


def _error(reply: dict[str, Any], place: str) -> HerdbookError:
    match reply:
        case {"refused": reason}:
            return query_error(str(reason))
        case {"damaged": reason}:
            return StoreDamaged(place, str(reason))
        case {"full": reason}:
            return StoreFull(place, str(reason))
        case {"missing": _}:
            return StoreUnavailable(place, NO_DUCKDB)
        case {"unavailable": reason}:
            return StoreUnavailable(place, str(reason))
    return StoreUnavailable(place, "the process that answers queries has not answered")


class _QueryProcess:
    """The other process, seen from this one."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this Python, and a module of ours
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )

    def send(self, message: dict[str, Any]) -> None:
        """Send it a message. Raises frames.Closed."""
        if self._process.stdin is None:
            raise frames.Closed
        frames.send(self._process.stdin.fileno(), json.dumps(message).encode())

    def exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send it a message and wait for its reply. Raises frames.Closed."""
        self.send(message)
        if self._process.stdout is None:
            raise frames.Closed
        reply = json.loads(frames.receive(self._process.stdout.fileno()))
        if not isinstance(reply, dict):
            raise frames.Closed
        return reply

    def kill(self) -> None:
        """Kill it now. May be called by any thread."""
        self._process.kill()

    def end(self) -> int:
        """Kill it and close its pipes; returns its exit code."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return self._process.wait()

    def is_running(self) -> bool:
        """Whether it can take another query."""
        return self._process.poll() is None

    def forget(self) -> None:
        """In a forked child: leave it alone, because it is the parent's."""
        self._process.returncode = 0


class _IdleProcess:
    """The process that waits for the next query, if there is one, for a while."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._process: _QueryProcess | None = None
        self._timer: threading.Timer | None = None
        self._is_hooked = False

    def take(self) -> _QueryProcess | None:
        """Take the idle process, for one user."""
        with self._mutex:
            process, self._process = self._process, None
            if self._timer is not None:
                self._timer.cancel()
        return process

    def give_back(self, process: _QueryProcess) -> None:
        """Keep a process for the next query."""
        with self._mutex:
            if not self._is_hooked:
                self._is_hooked = True
                atexit.register(self.end)
                os.register_at_fork(after_in_child=self._forget)
            surplus, self._process = self._process, process
            self._timer = threading.Timer(_IDLE_SECONDS, self.end)
            self._timer.daemon = True
            self._timer.start()
        if surplus is not None:
            surplus.end()

    def end(self) -> None:
        """End it: there was no query for a while, or this process ends."""
        process = self.take()
        if process is not None:
            process.end()

    def _forget(self) -> None:
        self._mutex = threading.Lock()
        self._timer = None
        if self._process is not None:
            self._process.forget()
        self._process = None


_IDLE = _IdleProcess()


@contextmanager
def _process(deadline: Deadline, place: str) -> Iterator[_QueryProcess]:
    """A process for one query, killed when its time has passed and kept if all went well."""
    _ = deadline.seconds_left  # if there are none, an idle process stays idle
    process = _take_idle(deadline) or _QueryProcess()
    is_well = False
    try:
        with _killed_at(deadline, process):
            yield process
        is_well = True
    except frames.Closed as error:
        _ = deadline.seconds_left  # raises if that was the reason
        raise _exit_error(process.end(), place) from error
    finally:
        if is_well and process.is_running():
            _IDLE.give_back(process)
        else:
            process.end()


def _take_idle(deadline: Deadline) -> _QueryProcess | None:
    """The idle process, if it still answers: it may have been killed meanwhile.

    Whether it has ended does not say so: a killed process ends with the last of its threads.
    """
    process = _IDLE.take()
    if process is None:
        return None
    try:
        with _killed_at(deadline, process):
            process.exchange({})
    except frames.Closed:
        process.end()
        return None
    except BaseException:
        process.end()
        raise
    return process


@contextmanager
def _killed_at(deadline: Deadline, process: _QueryProcess) -> Iterator[None]:
    """Kill a process if the block lasts longer than the time that is left."""
    timer = threading.Timer(deadline.seconds_left, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _exit_error(code: int, place: str) -> HerdbookError:
    """The error of a process that ended by itself: most of them ran out of memory."""
    if code in {-signal.SIGKILL, -signal.SIGABRT}:
        return query_error(TOO_MUCH_MEMORY)
    how = signal.strsignal(-code) if code < 0 else f"code {code}"
    reason = f"the process that answers queries has ended ({how}). Nothing was changed"
    return StoreUnavailable(place, reason)
