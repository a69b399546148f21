"""When a process was started, asked about real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from herdbook.adapters.system.processes import parse_ps_start, parse_start_ticks, process_start
from herdbook.domain.errors import StoreUnavailable
from herdbook.ports.world.system import Processes
from tests.cases import for_each

WAITS = [sys.executable, "-c", "input()"]
Started = subprocess.Popen[bytes]


@pytest.fixture
def started() -> Iterator[Callable[[list[str]], Started]]:
    """Starts processes that are ended with the test."""
    with ExitStack() as stack:

        def start(command: list[str]) -> Started:
            process = subprocess.Popen(command, stdin=subprocess.PIPE)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


def test_a_running_process_was_started_when_the_system_says(
    started: Callable[[list[str]], Started],
) -> None:
    """Of our own process and of another one, as an independent program reads it."""
    ask: Processes = process_start
    for pid in (os.getpid(), started(WAITS).pid):
        at = ask(pid)
        assert at is not None
        assert at.tzinfo is UTC
        known = datetime.fromtimestamp(psutil.Process(pid).create_time(), UTC)
        assert abs(at - known) <= timedelta(seconds=1)


def test_asking_twice_gives_the_same_time(started: Callable[[list[str]], Started]) -> None:
    """It is what tells one process from the next of its number."""
    pid = started(WAITS).pid
    assert process_start(pid) == process_start(pid) is not None


def test_a_process_that_has_ended_is_none(started: Callable[[list[str]], Started]) -> None:
    """Killed, and its end noticed by its parent."""
    process = started(WAITS)
    assert process_start(process.pid) is not None
    process.kill()
    process.wait()
    assert process_start(process.pid) is None


def test_a_process_whose_end_nobody_has_noticed_is_none(
    started: Callable[[list[str]], Started],
) -> None:
    """The system still has its number, but it does nothing any more."""
    process = started(WAITS)
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE
    assert process_start(process.pid) is None


@for_each("pid", [0, -1, 2**31 - 1, 2**63])
def test_a_number_that_no_process_has_is_none(pid: int) -> None:
    """Neither what stands for a group nor what is beyond any number."""
    assert process_start(pid) is None


def test_a_process_may_have_any_name(tmp_path: Path) -> None:
    """Brackets, spaces and what looks like a state do not lead astray."""
    program = tmp_path / ") Z 1 (x"
    program.write_text("#!/bin/sh\necho ready\nread line\n")
    program.chmod(0o700)
    with subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        at = process_start(process.pid)
        assert at is not None
        known = datetime.fromtimestamp(psutil.Process(process.pid).create_time(), UTC)
        process.kill()
    assert abs(at - known) <= timedelta(seconds=1)


def test_what_proc_says_is_read_behind_the_name() -> None:
    """The ticks stand nineteen fields behind the state; who has ended has none."""
    fields = " ".join(str(number) for number in range(4, 53))
    assert parse_start_ticks(f"7 (a) b (c) S {fields}\n") == 22
    assert parse_start_ticks(f"7 (sh) Z {fields}\n") is None
    assert parse_start_ticks(f"7 (sh) X {fields}\n") is None


@for_each("state", ["S", "Ss+", "R+", "I"])
def test_what_ps_says_is_a_time_in_utc(state: str) -> None:
    """Whatever the process is at, and whether the day has one digit or two."""
    assert parse_ps_start(f"{state}   Mon Nov 16 05:04:12 2026    \n") == datetime(
        2026, 11, 16, 5, 4, 12, tzinfo=UTC
    )
    assert parse_ps_start(f"{state} Sun Feb  1 23:59:59 2026\n") == datetime(
        2026, 2, 1, 23, 59, 59, tzinfo=UTC
    )


def test_where_ps_says_nothing_there_is_no_process() -> None:
    """Nor where it says that the process has ended."""
    assert parse_ps_start("") is None
    assert parse_ps_start("\n") is None
    assert parse_ps_start("Z+  Mon Nov 16 05:04:12 2026\n") is None


def test_what_ps_says_in_another_way_is_an_error() -> None:
    """It is not taken for a process that is gone."""
    with pytest.raises(StoreUnavailable, match="names no time"):
        parse_ps_start("S    16. Nov. 2026 05:04\n")


def test_where_there_is_no_proc_ps_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For this process alone, in UTC and in plain English."""
    program = tmp_path / "ps"
    program.write_text(
        '#!/bin/sh\n[ "$* $TZ $LC_ALL" = "-o stat=,lstart= -p 4711 UTC C" ] || exit 2\n'
        'echo "Ss   Mon Nov 16 05:04:12 2026    "\n'
    )
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert process_start(4711, platform="darwin") == datetime(2026, 11, 16, 5, 4, 12, tzinfo=UTC)
    assert process_start(4712, platform="darwin") is None


def test_a_missing_ps_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who cannot look does not say that the process is gone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreUnavailable, match="ps"):
        process_start(os.getpid(), platform="darwin")


def test_ps_is_not_asked_about_what_is_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody's agent is the system itself, which some call process 0."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert process_start(0, platform="darwin") is None
    assert process_start(-1, platform="darwin") is None
