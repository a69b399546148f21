"""Backups as files: compressed lines, written under another name until they are whole.

Every file is private to the user, in a private folder for each space. A backup that was killed
leaves a hidden file, which the next one removes; the older backups are never touched by it.
"""

import fcntl
import gzip
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from herdbook.adapters.system.os_errors import translate_os_errors
from herdbook.adapters.user_state.dirs import data_folder, make_private
from herdbook.domain.errors import BackupDamaged, NotFound, StoreFull, StoreUnavailable
from herdbook.ports.world.backup_files import Lines

SUFFIX = ".jsonl.gz"
LONGEST_LINE = 2**30
"""The most bytes that one row may take: the largest that a store keeps, as text."""
_LEVEL = 1
"""Little compression: writers of some engines wait while a space is read."""
_LOCK = ".lock"
_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z-\d+\.(copy|segment)")


def automatic_folder() -> Path:
    """The folder of the backups that are made without being asked for."""
    return data_folder() / "backups"


def space_folder(parent: Path, space: str, node: str) -> Path:
    """The folder for the backups of a space of one incarnation of a store."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", space)[:60]
    return parent / f"{plain}-{sha256(f'{node} {space}'.encode()).hexdigest()[:12]}"


def list_folders(parent: Path) -> list[Path]:
    """The folders of spaces in a folder of backups, or the folder itself if it is one."""
    with translate_os_errors(str(parent)):
        if BackupFolder(parent).names():
            return [parent]
        inside = sorted(parent.iterdir()) if parent.is_dir() else []
        return [each for each in inside if BackupFolder(each).names()]


class BackupFolder:
    """The backups of one space, in a folder of their own; implements `BackupFiles`."""

    def __init__(
        self, folder: Path, *, most_bytes: int | None = None, most_seconds: float | None = None
    ) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        self._most_seconds = most_seconds

    def names(self) -> list[str]:
        if not self.folder.is_dir():
            return []
        found = [each.removesuffix(SUFFIX) for each in os.listdir(self.folder)]  # noqa: PTH208
        return sorted(name for name in found if _NAME.fullmatch(name))

    def place(self, name: str) -> str:
        return str(self._path(name)) if name else str(self.folder)

    def size(self, name: str) -> int:
        return self._path(name).stat().st_size

    def read(self, name: str) -> Iterator[bytes]:
        return read_file(self._path(name))

    def write(self, name: str, lines: Lines, verify: Callable[[Iterator[bytes]], None]) -> None:
        path = self._path(name)
        fresh = path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
        with translate_os_errors(str(self.folder)):
            make_private(self.folder)
            try:
                self._write_lines(fresh, lines)
                verify(read_file(fresh))
                fresh.rename(path)
            except BaseException:
                fresh.unlink(missing_ok=True)
                raise
            _sync_folder(self.folder)

    def _write_lines(self, path: Path, lines: Lines) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        begun = time.monotonic()
        with os.fdopen(os.open(path, flags, 0o600), "wb") as raw:
            with gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as file:
                for line in lines:
                    file.write(line + b"\n")
                    self._require_room(raw.tell())
                    self._require_time(time.monotonic() - begun)
            self._require_room(raw.tell())
            raw.flush()
            os.fsync(raw.fileno())

    def _require_room(self, size: int) -> None:
        if self._most_bytes is not None and size > self._most_bytes:
            raise StoreFull(
                str(self.folder), f"a copy would be larger than {self._most_bytes} bytes"
            )

    def _require_time(self, seconds: float) -> None:
        if self._most_seconds is not None and seconds > self._most_seconds:
            reason = (
                f"the space could not be read within {self._most_seconds:g} s, and its writers "
                "wait meanwhile; `herdbook backup` copies it when nobody is at work"
            )
            raise StoreUnavailable(str(self.folder), reason)

    def remove(self, name: str) -> None:
        with translate_os_errors(str(self.folder)):
            self._path(name).unlink(missing_ok=True)

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Whether this process alone writes here, for as long as the block runs.

        Who has the lock removes what a killed backup has left.
        """
        with translate_os_errors(str(self.folder)):
            make_private(self.folder)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(self.folder / _LOCK, flags, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            for left in self.folder.glob(f".*{SUFFIX}.*"):
                left.unlink(missing_ok=True)
            yield True
        finally:
            os.close(descriptor)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{SUFFIX}"


def name_of(path: Path) -> str | None:
    """The name of a backup by its path; None if it is not named like one."""
    name = path.name.removesuffix(SUFFIX)
    return name if _NAME.fullmatch(name) and path.name != name else None


def read_file(path: Path) -> Iterator[bytes]:
    """The lines of a file; raises BackupDamaged, and NotFound if there is none."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise NotFound("backup", str(path)) from None
    with translate_os_errors(str(path)), os.fdopen(descriptor, "rb") as raw:
        if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            raise BackupDamaged(str(path), "it is no file")
        try:
            with gzip.GzipFile(fileobj=raw) as file:
                while line := file.readline(LONGEST_LINE + 1):
                    if not line.endswith(b"\n"):
                        long = len(line) > LONGEST_LINE
                        reason = "a line in it is too long" if long else "it ends within a line"
                        raise BackupDamaged(str(path), reason)
                    yield line[:-1]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BackupDamaged(str(path), f"it cannot be unpacked: {error}") from error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
