"""The lock of the one writer, and how the last writer left the data file.

LMDB has a lock of its own for writers, but whoever waits in it cannot be called off, and nobody can
tell who holds it. So writers wait in ours, in turn and with a limit; LMDB's is then always free.

Whoever lets go of the lock writes into the lock file which data file it left, and when. Who comes
next can tell by that, without reading the file, whether something else has changed it since. The
times of files go in steps of some milliseconds, so a change right behind a write is not seen.
"""

import os
from collections.abc import Callable
from enum import Enum
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

from herdbook.adapters.lmdb.files import WRITER_LOCK, WRITER_TURN
from herdbook.adapters.locks.file_lock import FileLock
from herdbook.adapters.locks.lock_file import Line, LockFile
from herdbook.adapters.system.os_errors import translate_os_error

_LEFT, _BEGUN = b"L", b"B"
PREPARING = "prepares it"
"""What a holder says it does that makes or verifies the file: it may not be whole."""


class Trust(Enum):
    """What is known of a data file before anybody has read it."""

    AS_LEFT = "it is as a Herdbook process left it"
    IN_USE = "a Herdbook process, which found it whole, is writing in it"
    UNCLEAN = "it was left in the midst of a write, changed, or the machine was started since"
    FOREIGN = "no Herdbook process has left it here"


class WriterLockFile(LockFile):
    """The lines of the lock file; nobody holds this lock for reading.

    The line about the data file begins with a letter, which says whether it was left, or a writer
    has begun with it. Then: which start of the machine it was, which file, and when it was left.
    """

    left: ClassVar = Line(512, 512)
    readers: ClassVar = Line(1024, 0)

    def note_begun(self) -> None:
        """Write down that a writer has begun; for the holder of the lock."""
        os.pwrite(self._descriptor, _BEGUN, self.left.start)

    def note_left(self, identity: tuple[int, int], at: int) -> bytes:
        """Write down that a file is left at a time, in nanoseconds; for the holder of the lock.

        Gives the line as it stands there then.
        """
        line = (b"%b %b %d %d %d" % (_LEFT, _boot(), *identity, at)).ljust(self.left.room)
        os.pwrite(self._descriptor, line, self.left.start)
        return line

    def read_lines(self) -> bytes:
        """All that stands in the file, to see whether somebody else has written in it since."""
        return os.pread(self._descriptor, self.left.start + self.left.room, 0)

    def read_left(self) -> "LeftLine":
        """What is written down about the data file."""
        return LeftLine.parse(self.read_bytes(self.left))

    def unsign(self, *, write: bool) -> None:
        """Leave the name of the last holder: to write it anew takes longer than to compare it."""


class LeftLine(NamedTuple):
    """How a data file was left: which one, when, and whether a writer has begun since."""

    is_left: bool
    is_of_this_start: bool
    identity: tuple[int, int] | None
    at: int

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """What a line says; one that cannot be read speaks of no file."""
        match line.split():
            case [flag, boot, device, inode, at] if all(map(bytes.isdigit, (device, inode, at))):
                return cls(flag == _LEFT, boot == _boot(), (int(device), int(inode)), int(at))
        return cls(is_left=False, is_of_this_start=False, identity=None, at=0)

    def judge(self, data: os.stat_result) -> Trust:
        """How a data file compares with the line; for the holder of the lock.

        To others it looks as if a writer that is at work had died.
        """
        if self.identity != (data.st_dev, data.st_ino):
            return Trust.FOREIGN
        unchanged = max(data.st_mtime_ns, data.st_ctime_ns) <= self.at
        return Trust.AS_LEFT if unchanged and self.is_of_this_start else Trust.UNCLEAN


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
            trust = file.read_left().judge(data.stat())
            if trust is Trust.AS_LEFT:
                return trust
            if lock.is_held():
                holders = file.holders()
                return Trust.IN_USE if holders and not holders[0].doing else trust
        finally:
            os.close(descriptor)
    return trust


@cache
def _boot() -> bytes:
    """Which start of the machine this is, where the system tells."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip() or b"-"
    except OSError:
        return b"-"
