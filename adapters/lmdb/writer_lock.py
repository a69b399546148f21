"""The lock of the one writer, and a record of how the last writer left the data file.

LMDB has its own lock for writers, but a process that waits for it cannot be interrupted, and nobody
can find out who holds it. So writers wait for ours, in turn and with a limit; LMDB's is then always
free.

A process that releases the lock records in the lock file which data file it left, and when. The
next one can tell from that, without reading the data file, whether something else has changed it
since. The times of files go in steps of some milliseconds, so a change right after a write is not
noticed.
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
"""What a holder that creates or verifies the file is doing: the file may not be whole."""


class FileCondition(Enum):
    """What is known about a data file before anybody has read it."""

    AS_LEFT = "it is as a Herdbook process left it"
    IN_USE = "a Herdbook process, which found it whole, is writing in it"
    UNCLEAN = "it was left in the midst of a write, changed, or the machine was started since"
    FOREIGN = "no Herdbook process has left it here"


class WriterLockFile(LockFile):
    """The lines of the lock file; nobody holds this lock for reading.

    The line about the data file begins with a letter that says whether the file was left or a
    writer has begun. Then come the boot id of the machine, the file's identity, and the time when
    it was left.
    """

    left: ClassVar = Line(512, 512)
    readers: ClassVar = Line(1024, 0)

    def record_begin(self) -> None:
        """Record that a writer has begun; only for the holder of the lock."""
        os.pwrite(self._descriptor, _BEGUN, self.left.start)

    def record_left(self, identity: tuple[int, int], at: int) -> bytes:
        """Record that a file is left at a time, in nanoseconds; only for the holder of the lock.

        Returns the line as written.
        """
        line = (b"%b %b %d %d %d" % (_LEFT, _boot_id(), *identity, at)).ljust(self.left.size)
        os.pwrite(self._descriptor, line, self.left.start)
        return line

    def read_lines(self) -> bytes:
        """The whole file, to compare whether somebody else has written in it since."""
        return os.pread(self._descriptor, self.left.start + self.left.size, 0)

    def read_left_line(self) -> "LeftLine":
        """The recorded state of the data file."""
        return LeftLine.parse(self.read_bytes(self.left))

    def unsign(self, *, write: bool) -> None:
        """Keep the name of the last holder: writing it again takes longer than comparing it."""


class LeftLine(NamedTuple):
    """How a data file was left: which one, when, and whether a writer has begun since."""

    is_left: bool
    is_of_this_start: bool
    identity: tuple[int, int] | None
    at: int

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """Decode a line; one that cannot be decoded is about no file."""
        match line.split():
            case [flag, boot, device, inode, at] if all(map(bytes.isdigit, (device, inode, at))):
                return cls(flag == _LEFT, boot == _boot_id(), (int(device), int(inode)), int(at))
        return cls(is_left=False, is_of_this_start=False, identity=None, at=0)

    def judge(self, data: os.stat_result) -> FileCondition:
        """Compare a data file with the line; for the holder of the lock.

        To others, a writer that is at work looks like one that has died.
        """
        if self.identity != (data.st_dev, data.st_ino):
            return FileCondition.FOREIGN
        unchanged = max(data.st_mtime_ns, data.st_ctime_ns) <= self.at
        return (
            FileCondition.AS_LEFT if unchanged and self.is_of_this_start else FileCondition.UNCLEAN
        )


WriterLock = FileLock[WriterLockFile]


def writer_lock(folder: Path, before_opening: Callable[[], object] | None = None) -> WriterLock:
    """The writer's lock of the store in a folder."""
    return FileLock(
        folder,
        turn=folder / WRITER_TURN,
        lock=folder / WRITER_LOCK,
        kind=WriterLockFile,
        keep_open=True,
        before_opening=before_opening,
    )


def judge_file(data: Path, lock: WriterLock) -> FileCondition:
    """What is known about a data file, without taking the lock or creating anything.

    A writer may be at work, start or finish meanwhile: it has found the file whole before it
    signed, and writes a new line when it is done.
    """
    trust = FileCondition.FOREIGN
    for _ in range(3):
        try:
            descriptor = os.open(data.with_name(WRITER_LOCK), os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return FileCondition.FOREIGN
        except OSError as error:
            raise translate_os_error(error, str(data.parent)) from error
        try:
            file = WriterLockFile(descriptor)
            trust = file.read_left_line().judge(data.stat())
            if trust is FileCondition.AS_LEFT:
                return trust
            if lock.is_held():
                holders = file.holders()
                return FileCondition.IN_USE if holders and not holders[0].doing else trust
        finally:
            os.close(descriptor)
    return trust


@cache
def _boot_id() -> bytes:
    """The boot id of the machine, where the system provides one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip() or b"-"
    except OSError:
        return b"-"
