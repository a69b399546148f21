"""Whose turn it is to write in a folder, among processes.

LMDB's own lock keeps writers apart, but it waits for ever and names nobody. So a writer first takes
this one, a `flock` on a file beside the data, in which stands who has it. It ends with its process,
however that ends.
"""

import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from herdbook.domain.errors import StoreBusy, StoreUnavailable

TURN = "writer.lock"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_25, 0.008
_ROOM = 512
_open_turns: set[int] = set()


@contextmanager
def turn(folder: Path, patience: float, deadline: float) -> Iterator[None]:
    """Have the right to write in a folder; StoreBusy names who keeps it from us for too long."""
    pid, pause = os.getpid(), _FIRST_PAUSE
    descriptor = _queue(folder)
    try:
        while not _try(descriptor):
            if time.monotonic() > deadline:
                raise StoreBusy(str(folder), patience, *_holder(descriptor))
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        # That it cannot be written, on a full disk, must not keep anybody from trying.
        with suppress(OSError):
            os.pwrite(descriptor, _signature(), 0)
        yield
    finally:
        if os.getpid() == pid:
            # Unlocked, not only closed: a child that was forked meanwhile has it open as well.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            _open_turns.discard(descriptor)
            os.close(descriptor)


def forget_inherited() -> None:
    """In a forked child: have no part in the parent's turn, lest it outlive the parent."""
    while _open_turns:
        os.close(_open_turns.pop())


def _queue(folder: Path) -> int:
    try:
        descriptor = os.open(folder / TURN, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreUnavailable(str(folder), f"{TURN}: {error.strerror}") from error
    _open_turns.add(descriptor)
    return descriptor


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _signature() -> bytes:
    program = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in {"", "-c"} else "python"
    since = datetime.now(UTC).isoformat(timespec="seconds")
    told = {"pid": os.getpid(), "program": program[:60], "since": since}
    # Padded, so that it covers whatever the one before has written.
    return json.dumps(told).encode().ljust(_ROOM)


def _holder(descriptor: int) -> tuple[str | None, datetime | None]:
    try:
        told = json.loads(os.pread(descriptor, _ROOM, 0))
        return f"process {told['pid']} ({told['program']})", datetime.fromisoformat(told["since"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, None
