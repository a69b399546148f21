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
    """Where a line starts in the file, and how many bytes it may have."""

    start: int
    room: int


class Holder(NamedTuple):
    """A process that holds the lock, since when, where it can be woken, and what it is doing."""

    pid: int
    command: str
    since: datetime
    bell: str | None
    doing: str

    def described(self) -> str:
        """As a sentence names it."""
        return f"process {self.pid} ({self.command}){self.doing and f', which {self.doing}'}"


class LockFile:
    """The lines of an open lock file. Who may write which follows from the lock held on it.

    One line is for the process that writes, and `readers` has a seat for each that reads. An engine
    may add lines of its own.
    """

    writer: ClassVar = Line(0, 512)
    readers: ClassVar = Line(4096, 256 * 64)
    seat: ClassVar = 256

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def make_room(self) -> None:
        """Give every line its place on the disk, so that writing one later needs none."""
        size = os.fstat(self._descriptor).st_size
        lacking = self.readers.start + self.readers.room - size
        if lacking > 0 and os.pwrite(self._descriptor, b" " * lacking, size) < lacking:
            raise OSError(ENOSPC, os.strerror(ENOSPC))

    def sign(self, *, write: bool, bell: str | None = None, doing: str = "") -> None:
        """Say that this process holds the lock now, and strike out those that died with it."""
        outdated = self.readers if write else self.writer
        if outdated.room and self.read_bytes(outdated).strip():
            self.blank(outdated)
        pid = os.getpid()
        before, after = _signature(pid, sys.argv[0] if sys.argv else "", bell, doing)
        text = b"%b%d%b" % (before, time(), after)
        self._put(self.writer if write else self._own_seat(pid), text)

    def unsign(self, *, write: bool) -> None:
        """Say that this process holds it no longer."""
        if write:
            self.blank(self.writer)
            return
        line = self._own_seat(os.getpid())
        fields = self.read(line)
        if fields is not None and fields.get("pid") == os.getpid():
            self.blank(line)

    def holders(self) -> list[Holder]:
        """Who is written there as holding it: first those that are alive, the longest holder first.

        Readers whose numbers share a seat write over each other, so some may be missing.
        """
        seats = range(self.readers.room // self.seat)
        lines = [self.writer, *map(self._own_seat, seats)]
        signed = [holder for line in lines if (holder := _holder(self.read(line)))]
        return sorted(signed, key=lambda each: (not is_alive(each.pid), each.since))

    def read_bytes(self, line: Line) -> bytes:
        """A line as it stands there."""
        return os.pread(self._descriptor, line.room, line.start)

    def blank(self, line: Line) -> None:
        """Empty a line."""
        os.pwrite(self._descriptor, b" " * line.room, line.start)

    def write(self, line: Line, fields: Mapping[str, object]) -> None:
        """Write a line; ValueError if it does not fit."""
        self._put(line, json.dumps(fields, separators=(",", ":")).encode())

    def _put(self, line: Line, text: bytes) -> None:
        checked = b"%08x %s" % (zlib.crc32(text), text)
        if len(checked) >= line.room:
            raise ValueError(f"{len(checked)} bytes do not fit into a line of {line.room}")
        os.pwrite(self._descriptor, checked.ljust(line.room - 1) + b"\n", line.start)

    def read(self, line: Line) -> dict[str, object] | None:
        """What a line says; None if it is empty or not whole."""
        checksum, _, text = self.read_bytes(line).strip().partition(b" ")
        if not text or checksum != b"%08x" % zlib.crc32(text):
            return None
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):  # somebody wrote it who is not us
            return None
        return fields if isinstance(fields, dict) else None

    def _own_seat(self, number: int) -> Line:
        seats = self.readers.room // self.seat
        return Line(self.readers.start + self.seat * (number % seats), self.seat)


def holder_of(path: Path, kind: type[LockFile] = LockFile) -> Holder | None:
    """Who holds the lock whose file this is, as far as it says; None where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # it is for a sentence only, which then names nobody
        return None
    try:
        return next(iter(kind(descriptor).holders()), None)
    finally:
        os.close(descriptor)


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs here."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _holder(fields: dict[str, object] | None) -> Holder | None:
    match fields:
        case {"pid": int(pid), "command": str(command), "since": int(since), "bell": bell, **more}:
            doing = more.get("doing", "")
            try:
                at = datetime.fromtimestamp(since, UTC)
            except (ValueError, OverflowError, OSError):
                return None
            if pid <= 0:
                return None
            return Holder(
                pid,
                _plain(command),
                at,
                bell if isinstance(bell, str) else None,
                _plain(doing, 40, " ") if isinstance(doing, str) else "",
            )
    return None


@lru_cache(maxsize=8)
def _signature(pid: int, program: str, bell: str | None, doing: str) -> tuple[bytes, bytes]:
    """What a process writes before and after the time; the same in all of its transactions."""
    fields = {"pid": pid, "command": _command(program), "since": "@", "bell": bell}
    text = json.dumps(fields | ({"doing": doing} if doing else {}), separators=(",", ":"))
    before, _, after = text.encode().partition(b'"@"')
    return before, after


def _command(path: str) -> str:
    """The program's name alone: its arguments may hold what nobody else should read."""
    program = Path(path)
    name = program.parent.name if program.name == "__main__.py" else program.name
    plain = _plain(name)
    return plain if plain not in {"", "-c"} else "python"


def _plain(text: str, most: int = 24, more: str = "") -> str:
    """A text that can stand in a line and in a sentence: a lock file may come from anywhere."""
    return re.sub(rf"[^A-Za-z0-9._{more}-]", "?", text)[:most]
