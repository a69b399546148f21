"""What a lock file says: which processes hold the lock, since when.

The file is a few lines of text at fixed places, each after a checksum, so that a line is written
with one `pwrite` and a reader never takes a half-written line for a whole one. A line that cannot
be read counts as empty. Nothing here is synced to disk: it outlives `kill -9`, and after a loss of
power the worst is an older line.
"""

import json
import os
import re
import sys
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from errno import ENOSPC
from functools import lru_cache
from pathlib import Path
from time import time
from typing import ClassVar, NamedTuple


class Line(NamedTuple):
    """The offset of a line in the file and its size in bytes."""

    start: int
    size: int


class Holder(NamedTuple):
    """A process that holds the lock: since when, where it can be woken, and what it is doing."""

    pid: int
    command: str
    since: datetime
    wakeup_address: str | None
    doing: str

    def describe(self) -> str:
        """The holder as error messages name it."""
        return f"process {self.pid} ({self.command}){self.doing and f', which {self.doing}'}"


class LockFile:
    """The lines of an open lock file.

    Which lines a process may write follows from the lock it holds. One line is for the process that
    writes, and `readers` has a slot for each that reads. An engine may add lines of its own.
    """

    writer: ClassVar = Line(0, 512)
    readers: ClassVar = Line(4096, 256 * 64)
    slot: ClassVar = 256

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def preallocate(self) -> None:
        """Allocate the disk space of every line, so that writing one later needs none."""
        size = os.fstat(self._descriptor).st_size
        lacking = self.readers.start + self.readers.size - size
        if lacking > 0 and os.pwrite(self._descriptor, b" " * lacking, size) < lacking:
            raise OSError(ENOSPC, os.strerror(ENOSPC))

    def sign(self, *, write: bool, wakeup_address: str | None = None, doing: str = "") -> None:
        """Record that this process holds the lock now, and remove the names of dead holders."""
        outdated = self.readers if write else self.writer
        if outdated.size and self.read_bytes(outdated).strip():
            self.blank(outdated)
        pid = os.getpid()
        before, after = _signature(pid, sys.argv[0] if sys.argv else "", wakeup_address, doing)
        text = b"%b%d%b" % (before, time(), after)
        self._put(self.writer if write else self._reader_line(pid), text)

    def unsign(self, *, write: bool) -> None:
        """Remove the record that this process holds the lock."""
        if write:
            self.blank(self.writer)
            return
        line = self._reader_line(os.getpid())
        fields = self.read(line)
        if fields is not None and fields.get("pid") == os.getpid():
            self.blank(line)

    def holders(self) -> list[Holder]:
        """The recorded holders: those that are alive first, the longest holder first.

        Readers whose process ids share a slot overwrite each other, so some may be missing.
        """
        slots = range(self.readers.size // self.slot)
        lines = [self.writer, *map(self._reader_line, slots)]
        signed = [holder for line in lines if (holder := _holder(self.read(line)))]
        return sorted(signed, key=lambda each: (not is_alive(each.pid), each.since))

    def read_bytes(self, line: Line) -> bytes:
        """The bytes of a line."""
        return os.pread(self._descriptor, line.size, line.start)

    def blank(self, line: Line) -> None:
        """Clear a line."""
        os.pwrite(self._descriptor, b" " * line.size, line.start)

    def write(self, line: Line, fields: Mapping[str, object]) -> None:
        """Write a line. Raises ValueError if it does not fit."""
        self._put(line, json.dumps(fields, separators=(",", ":")).encode())

    def _put(self, line: Line, text: bytes) -> None:
        checked = b"%08x %s" % (zlib.crc32(text), text)
        if len(checked) >= line.size:
            raise ValueError(f"{len(checked)} bytes do not fit into a line of {line.size}")
        os.pwrite(self._descriptor, checked.ljust(line.size - 1) + b"\n", line.start)

    def read(self, line: Line) -> dict[str, object] | None:
        """The fields of a line; None if it is empty or not whole."""
        checksum, _, text = self.read_bytes(line).strip().partition(b" ")
        if not text or checksum != b"%08x" % zlib.crc32(text):
            return None
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):  # Herdbook has not written this
            return None
        return fields if isinstance(fields, dict) else None

    def _reader_line(self, number: int) -> Line:
        slots = self.readers.size // self.slot
        return Line(self.readers.start + self.slot * (number % slots), self.slot)


def holder_of(path: Path, kind: type[LockFile] = LockFile) -> Holder | None:
    """Who holds the lock according to its file; None if that cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # only for an error message, which then names nobody
        return None
    try:
        return next(iter(kind(descriptor).holders()), None)
    finally:
        os.close(descriptor)


def is_alive(pid: int) -> bool:
    """Whether a process with that id runs on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _holder(fields: dict[str, object] | None) -> Holder | None:
    match fields:
        case {
            "pid": int(pid),
            "command": str(command),
            "since": int(since),
            "bell": wakeup_address,
            **more,
        }:
            doing = more.get("doing", "")
            try:
                at = datetime.fromtimestamp(since, UTC)
            except (ValueError, OverflowError, OSError):
                return None
            if pid <= 0:
                return None
            return Holder(
                pid,
                plain_text(command),
                at,
                wakeup_address if isinstance(wakeup_address, str) else None,
                plain_text(doing, 40, " ") if isinstance(doing, str) else "",
            )
    return None


@lru_cache(maxsize=8)
def _signature(
    pid: int, program: str, wakeup_address: str | None, doing: str
) -> tuple[bytes, bytes]:
    """What a process writes before and after the time; the same in all of its transactions."""
    fields = {"pid": pid, "command": program_name(program), "since": "@", "bell": wakeup_address}
    text = json.dumps(fields | ({"doing": doing} if doing else {}), separators=(",", ":"))
    before, _, after = text.encode().partition(b'"@"')
    return before, after


def program_name(path: str) -> str:
    """The program's name alone: its arguments may hold secrets."""
    program = Path(path)
    name = program.parent.name if program.name == "__main__.py" else program.name
    plain = plain_text(name)
    return plain if plain not in {"", "-c"} else "python"


def plain_text(text: str, most: int = 24, more: str = "") -> str:
    """A text that is safe in a line and in a message: a lock file may come from anywhere."""
    return re.sub(rf"[^A-Za-z0-9._{more}-]", "?", text)[:most]
