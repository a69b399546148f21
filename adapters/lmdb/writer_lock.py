"""The lock of the one writer, and how the last writer left the data file.

LMDB has a lock of its own for writers, but whoever waits in it cannot be called off, and nobody can
tell who holds it. So writers wait in ours, in turn and with a limit; LMDB's is then always free.

Whoever lets go of the lock writes into the lock file what the system says of the data file. Who
comes next can tell by that, without reading it, whether the file is as a Herdbook process left it.
"""

import os
from collections.abc import Callable
from enum import Enum
from functools import cache
from pathlib import Path
from typing import ClassVar

from herdbook.adapters.lmdb.files import WRITER_LOCK, WRITER_TURN
from herdbook.adapters.locks.file_lock import FileLock
from herdbook.adapters.locks.lock_file import Line, LockFile
from herdbook.adapters.system_errors import translate_os_error

PREPARING = "prepares it"
"""What a holder says it does that makes or verifies the file: it may not be whole."""


class Trust(Enum):
    """What is known of a data file before anybody has read it."""

    AS_LEFT = "it is as a Herdbook process left it"
    IN_USE = "a Herdbook process, which found it whole, is writing in it"
    UNCLEAN = "it was left in the midst of a write, changed, or the machine was started since"
    FOREIGN = "no Herdbook process has left it here"


class WriterLockFile(LockFile):
    """The lines of the lock file; nobody holds this lock for reading."""

    left: ClassVar = Line(512, 512)
    readers: ClassVar = Line(1024, 0)

    def note_left(self, data: os.stat_result) -> None:
        """Write down how the data file is left; for the holder of the lock."""
        os.pwrite(self._descriptor, _left_line(data), self.left.start)

    def is_as_left(self, data: os.stat_result) -> bool:
        """Whether the data file is as its last writer left it, since the machine was started."""
        return self.read_bytes(self.left) == _left_line(data)

    def judge(self, data: os.stat_result) -> Trust:
        """How the data file compares with the line about it.

        For one who holds the lock: to others it looks as if a writer that is at work had died.
        """
        line, now = self.read_bytes(self.left), _left_line(data)
        if line == now:
            return Trust.AS_LEFT
        same_file = line.split()[1:3] == now.split()[1:3]
        return Trust.UNCLEAN if same_file else Trust.FOREIGN

    def unsign(self, *, write: bool) -> None:
        """Leave the name of the last holder: to write it anew takes longer than to compare it."""


WriterLock = FileLock[WriterLockFile]


def writer_lock(folder: Path, before_opening: Callable[[], object] | None = None) -> WriterLock:
    """The lock of the store in a folder."""
    return FileLock(
        folder,
        turn=folder / WRITER_TURN,
        lock=folder / WRITER_LOCK,
        kind=WriterLockFile,
        keep_open=True,
        before_opening=before_opening,
    )


def judge_file(data: Path, lock: WriterLock) -> Trust:
    """What is known of a data file, without taking the lock or making anything.

    A writer may be at work, come or go meanwhile: it has found the file whole before it signed,
    and leaves a new line when it has done.
    """
    trust = Trust.FOREIGN
    for _ in range(3):
        try:
            descriptor = os.open(data.with_name(WRITER_LOCK), os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return Trust.FOREIGN
        except OSError as error:
            raise translate_os_error(error, str(data.parent)) from error
        try:
            file = WriterLockFile(descriptor)
            trust = file.judge(data.stat())
            if trust is Trust.AS_LEFT:
                return trust
            if lock.is_held():
                holders = file.holders()
                return Trust.IN_USE if holders and not holders[0].doing else trust
        finally:
            os.close(descriptor)
    return trust


def _left_line(data: os.stat_result) -> bytes:
    words = (data.st_dev, data.st_ino, data.st_size, data.st_mtime_ns, data.st_ctime_ns)
    line = b"%b %d %d %d %d %d" % (_boot(), *words)
    return line.ljust(WriterLockFile.left.room - 1) + b"\n"


@cache
def _boot() -> bytes:
    """Which start of the machine this is, where the system tells."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip() or b"-"
    except OSError:
        return b"-"
