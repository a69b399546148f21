"""What the lock file says: who holds the lock, what was last committed, how the file was left.

The file is a few lines of text at fixed places, each behind a checksum, so that it can be written
with one `pwrite` and no reader ever mistakes a half-written line for a whole one. A line that does
not read counts as empty. Nothing here is synced to disk: it outlives `kill -9`, and after a loss of
power the worst is an older line, which asks for less.
"""

import json
import logging
import os
import re
import sys
import zlib
from datetime import UTC, datetime
from pathlib import Path

from attrs import frozen

from herdbook.adapters.duckdb.bell import alive

_LOG = logging.getLogger(__name__)

_SEATS = 64
_SEAT = 256


@frozen
class _Line:
    start: int
    room: int


_WRITER = _Line(0, 512)
_SEAL = _Line(512, 512)
_NOTE = _Line(1024, 3072)
_READERS = _Line(4096, _SEAT * _SEATS)
_SIZE = _READERS.start + _READERS.room


@frozen
class Holder:
    """A process that holds the lock, since when, and where it can be rung."""

    pid: int
    command: str
    since: datetime
    bell: str | None

    def described(self) -> str:
        """As a sentence names it."""
        return f"process {self.pid} ({self.command})"


@frozen
class Seal:
    """How the database was left: a digest of its headers, and how long the file was."""

    head: str
    size: int


class LockFile:
    """The lines of one open lock file. Who may write which follows from the lock held on it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def make_room(self) -> None:
        """Give every line its place on the disk, so that writing one later needs none."""
        size = os.fstat(self._descriptor).st_size
        if size < _SIZE:
            os.pwrite(self._descriptor, b" " * (_SIZE - size), size)

    def sign(self, *, write: bool, bell: str | None) -> None:
        """Say that this process holds the lock now, and strike out those that died with it."""
        outdated = _READERS if write else _WRITER
        if self._bytes(outdated).strip():
            self._blank(outdated)
        fields = {
            "pid": os.getpid(),
            "command": _command(),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
            "bell": bell,
        }
        self._write(_WRITER if write else _seat(os.getpid()), fields)

    def unsign(self, *, write: bool) -> None:
        """Say that this process holds it no longer."""
        line = _WRITER if write else _seat(os.getpid())
        fields = self._read(line)
        if fields is not None and fields.get("pid") == os.getpid():
            self._blank(line)

    def holders(self) -> list[Holder]:
        """Who is written there as holding it: first those that are alive, the longest holder first.

        Readers whose numbers share a seat write over each other, so some may be missing.
        """
        lines = [_WRITER, *map(_seat, range(_SEATS))]
        signed = [holder for line in lines if (holder := _holder(self._read(line)))]
        return sorted(signed, key=lambda each: (not alive(each.pid), each.since))

    def acknowledge(self, note: str, database: os.stat_result) -> None:
        """Keep word of the last commit until the database file has been put down whole."""
        self._write(_NOTE, {"file": [database.st_dev, database.st_ino], "note": note})

    def acknowledged(self, database: os.stat_result) -> str | None:
        """The last commit a process spoke of that then died; None when all was put down whole."""
        fields = self._read(_NOTE)
        if fields is None or fields.get("file") != [database.st_dev, database.st_ino]:
            return None
        note = fields.get("note")
        return note if isinstance(note, str) else None

    def put_down(self, seal: Seal) -> None:
        """Say that the database file is whole by itself, as sealed; no commit is owed any more.

        What a rolled back change added to the file behind its headers may go again unasked.
        """
        before = self.seal()
        size = min(seal.size, before.size) if before and before.head == seal.head else seal.size
        self._write(_SEAL, {"head": seal.head, "size": size})
        if self._bytes(_NOTE).strip():
            self._blank(_NOTE)

    def seal(self) -> Seal | None:
        """How the database was left when it was last put down whole."""
        match self._read(_SEAL):
            case {"head": str(head), "size": int(size)}:
                return Seal(head, size)
        return None

    def _bytes(self, line: _Line) -> bytes:
        return os.pread(self._descriptor, line.room, line.start)

    def _blank(self, line: _Line) -> None:
        os.pwrite(self._descriptor, b" " * line.room, line.start)

    def _write(self, line: _Line, fields: dict[str, object]) -> None:
        text = json.dumps(fields, separators=(",", ":")).encode()
        checked = b"%08x %s" % (zlib.crc32(text), text)
        if len(checked) >= line.room:
            raise ValueError(f"{len(checked)} bytes do not fit into a line of {line.room}")
        os.pwrite(self._descriptor, checked.ljust(line.room - 1) + b"\n", line.start)

    def _read(self, line: _Line) -> dict[str, object] | None:
        checksum, _, text = self._bytes(line).strip().partition(b" ")
        if not text or checksum != b"%08x" % zlib.crc32(text):
            return None
        fields = json.loads(text)
        return fields if isinstance(fields, dict) else None


def holder_of(path: Path) -> Holder | None:
    """Who holds the lock whose file this is, as far as it tells."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        _LOG.debug("cannot read who holds %s: %s", path, error)
        return None
    try:
        return next(iter(LockFile(descriptor).holders()), None)
    finally:
        os.close(descriptor)


def _seat(number: int) -> _Line:
    return _Line(_READERS.start + _SEAT * (number % _SEATS), _SEAT)


def _holder(fields: dict[str, object] | None) -> Holder | None:
    match fields:
        case {"pid": int(pid), "command": str(command), "since": str(since), "bell": bell}:
            at = datetime.fromisoformat(since)
            return Holder(pid, command, at, bell if isinstance(bell, str) else None)
    return None


def _command() -> str:
    """The program's name alone: its arguments may hold what nobody else should read."""
    program = Path(sys.argv[0] if sys.argv else "")
    name = program.parent.name if program.name == "__main__.py" else program.name
    plain = re.sub(r"[^A-Za-z0-9._-]", "?", name)[:24]
    return plain if plain not in {"", "-c"} else "python"
