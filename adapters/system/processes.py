"""When a process was started: from /proc where there is one, else from `ps`."""

import os
import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from herdbook.domain.errors import StoreUnavailable

_ENDED_STATES: Final = ("Z", "X", "x")
"""The states of a process that has ended: nobody has asked how yet."""
_START_FIELD: Final = 19
"""Where the kernel says when it began, counted from its state on."""


def process_start(pid: int, /, *, platform: str = sys.platform) -> datetime | None:
    """When the process with this number was started; None if there is none or it has ended."""
    if pid < 1:
        return None  # to the system, numbers below that stand for groups or for anybody
    return _from_proc(pid) if platform == "linux" else _from_ps(pid)


def _from_proc(pid: int) -> datetime | None:
    try:
        said = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError as error:
        raise StoreUnavailable(f"/proc/{pid}/stat", error.strerror or "it was refused") from error
    since_boot = parse_start_ticks(said)
    if since_boot is None:
        return None
    return _boot_time() + timedelta(seconds=since_boot / os.sysconf("SC_CLK_TCK"))


def parse_start_ticks(said: str) -> int | None:
    """The ticks from boot to start in what /proc says of a process; None of one that has ended."""
    # Its name stands in brackets and may hold anything, brackets and spaces too.
    fields = said.rpartition(")")[2].split()
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
    import subprocess  # noqa: PLC0415 - only where no file tells

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


def parse_ps_start(said: str) -> datetime | None:
    """The time in what `ps` says of a process; None where it says nothing or that it has ended."""
    state, *lstart = said.split()[:6] or [""]
    if not state or state.startswith(_ENDED_STATES):
        return None
    try:
        return datetime.strptime(" ".join(lstart), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    except ValueError as error:
        raise StoreUnavailable("ps", f"it said {said.strip()!r}, which names no time") from error
