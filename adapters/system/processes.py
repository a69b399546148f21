"""The start time of a process: from /proc if there is one, else from `ps`."""

import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from herdbook.domain.errors import StoreUnavailable

_ENDED_STATES: Final = ("Z", "X", "x")
"""The states of a process that has ended but was not waited for yet."""
_START_FIELD: Final = 19
"""The index of the start time in the kernel's fields, counted from the state."""


def process_start(pid: int, /, *, platform: str = sys.platform) -> datetime | None:
    """The start time of the process with this number; None if there is none or it has ended."""
    if pid < 1:
        return None  # to the system, lower numbers stand for process groups or for all processes
    return _from_proc(pid) if platform == "linux" else _from_ps(pid)


def _from_proc(pid: int) -> datetime | None:
    try:
        text = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError as error:
        raise StoreUnavailable(f"/proc/{pid}/stat", error.strerror or "it was refused") from error
    since_boot = parse_start_ticks(text)
    if since_boot is None:
        return None
    return _boot_time() + timedelta(seconds=since_boot / os.sysconf("SC_CLK_TCK"))


def parse_start_ticks(text: str) -> int | None:
    """The ticks from boot to start in the stat file of a process; None if it has ended."""
    # The name of the process is in parentheses and may contain anything, also parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in _ENDED_STATES else int(fields[_START_FIELD])


def _boot_time() -> datetime:
    for line in _read("/proc/stat").splitlines():
        name, _, value = line.partition(" ")
        if name == "btime":
            return datetime.fromtimestamp(int(value), UTC)
    raise StoreUnavailable("/proc/stat", "it does not say when the machine was started")


def _read(path: str) -> str:
    with open(path, "rb") as file:  # noqa: PTH123 - importing pathlib costs more than the answer
        return file.read().decode("utf-8", "replace")


def _from_ps(pid: int) -> datetime | None:
    import subprocess  # noqa: PLC0415 - only without /proc

    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    try:
        ended = subprocess.run(  # noqa: S603 - a list of arguments, and the last one is a number
            ["ps", "-o", "stat=,lstart=", "-p", str(pid)],  # noqa: S607 - wherever PATH has it
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise StoreUnavailable("ps", f"it could not be started ({error.strerror})") from error
    return parse_ps_start(ended.stdout.decode("utf-8", "replace"))


def parse_ps_start(text: str) -> datetime | None:
    """The start time in the output of `ps`; None if it is empty or the process has ended."""
    state, *lstart = text.split()[:6] or [""]
    if not state or state.startswith(_ENDED_STATES):
        return None
    try:
        return datetime.strptime(" ".join(lstart), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError as error:
        raise StoreUnavailable("ps", f"it said {text.strip()!r}, which names no time") from error
