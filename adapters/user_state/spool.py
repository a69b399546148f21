"""The spool: files to which hooks append events, one line of JSON each, until a flush stores them.

`hook.py` and the OpenCode plugin append to `events.jsonl`, each line in one write. A flush renames
that file, reads it, and confirms after the store has committed. A hook that had the file open may
still write to it, so it is kept and read again until it has been quiet for a while, and made
read-only before it is removed. A process killed at any instant loses nothing: the next reading
gives the same events with the same ids again, and the flush drops those it has stored.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.adapters.user_state.dirs import make_private, state_folder, write_private
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.retention import ASIDE_FILE_BYTES, ASIDE_FILES

EVENTS, ASIDE, FLUSH_SIZE = "events.jsonl", "aside.jsonl", "flush-size"
ASIDE_DROPPED = "aside-dropped"
"""The file that counts the lines of `aside.jsonl` that are no longer kept."""
USUAL_FLUSH_SIZE = 1 << 20
"""The size that hooks know without being told."""
QUIET_SECONDS = 60.0
"""After how many seconds without a write nobody is expected to write to a renamed file."""
_FIELDS = {"id": str, "at": int, "event": str, "cwd": str, "env": dict, "raw": object}


class SpooledEvent(NamedTuple):
    """The event of a hook: its payload, time (microseconds since 1970), folder and environment."""

    id: str
    at: int
    event: str
    cwd: str
    env: dict[str, str]
    raw: Any


class RejectedLine(NamedTuple):
    """A line that is no event, its position, and the reason."""

    place: str
    line: str
    reason: str


class SpoolBacklog(NamedTuple):
    """The bytes in the spool, and since when (seconds since 1970; None if it is empty)."""

    size: int
    since: float | None


class _Part(NamedTuple):
    """The range that was read of one file, and whether the file may be removed after it."""

    path: Path
    begin: int
    end: int
    quiet: bool


class SpoolBatch:
    """The result of one reading: events in the order they were written, and rejected lines."""

    def __init__(self, spool: Path, files: list[Path], now: float) -> None:
        self._spool = spool
        self._parts: list[_Part] = []
        self.events: list[SpooledEvent] = []
        self.aside: list[RejectedLine] = []
        for path in files:
            self._read(path, now)

    def __iter__(self) -> Iterator[SpooledEvent]:
        return iter(self.events)

    def _read(self, path: Path, now: float) -> None:
        begin = _confirmed_offset(path)
        try:
            with path.open("rb") as file:
                file.seek(begin)
                data = file.read()
                quiet = (
                    path.name != EVENTS
                    and now - max(_taken_at(path), _modified_at(file)) > QUIET_SECONDS
                )
        except FileNotFoundError:
            return  # another flush has confirmed it
        # A line without a newline may be still being written, unless the file is quiet.
        end = len(data) if quiet else data.rfind(b"\n") + 1
        at = begin
        for line in data[:end].split(b"\n"):
            if line.strip():
                self._parse_line(f"{path.name}:{at}", line)
            at += len(line) + 1
        self._parts.append(_Part(path, begin, begin + end, quiet))

    def _parse_line(self, place: str, line: bytes) -> None:
        try:
            self.events.append(parse_line(line))
        except ValueError as error:
            text = line.decode("utf-8", "backslashreplace")
            self.aside.append(RejectedLine(place, text, str(error)))

    def confirm(self) -> None:
        """Release what was read after the store has it; rejected lines go to `aside.jsonl`.

        Raises StoreUnavailable if the spool cannot be written.
        """
        try:
            if self.aside:
                lines = [json.dumps(each._asdict()) for each in self.aside]
                _rotate_aside(self._spool)
                _append(self._spool / ASIDE, "".join(f"\n{line}\n" for line in lines).encode())
            for part in self._parts:
                if part.path.name != EVENTS:
                    self._release_file(part)
        except OSError as error:
            raise _unavailable(self._spool, error) from error

    def _release_file(self, part: _Part) -> None:
        if not part.quiet:
            if part.end > part.begin:
                _write_offset(part.path, part.end)
            return
        try:
            with part.path.open("rb") as file:
                # First made read-only, then compared: a hook checks the mode after its write, so
                # its line is either seen here, or the hook sees the mode and writes it once more
                # elsewhere.
                os.fchmod(file.fileno(), 0o400)
                if os.fstat(file.fileno()).st_size != part.end:
                    return
            part.path.unlink(missing_ok=True)
        except FileNotFoundError:
            pass  # another flush was quicker
        _mark(part.path).unlink(missing_ok=True)


def folder() -> Path:
    """The folder of the spool; `hook.py` computes the same path by itself."""
    return state_folder() / "spool"


def take_batch() -> SpoolBatch:
    """Read all events so far for a flush; they stay in the spool until they are confirmed."""
    spool = folder()
    now = time.time()
    name = f"taken-{int(now * 1_000_000):017}-{os.urandom(4).hex()}.jsonl"
    try:
        if (spool / EVENTS).exists():
            (spool / EVENTS).rename(spool / name)
    except FileNotFoundError:
        pass  # another flush was quicker
    except OSError as error:
        raise _unavailable(spool, error) from error
    return _read_batch(spool, now)


def read_buffered() -> SpoolBatch:
    """Read the spool and leave it as it is; the result must not be confirmed."""
    return _read_batch(folder(), time.time())


def backlog() -> SpoolBacklog:
    """The size and age of what waits to be flushed, without reading it."""
    size, since = 0, None
    for path in _files(folder()):
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        rest = status.st_size - _confirmed_offset(path)
        if rest > 0:
            size += rest
            # A file is not older than its first line; the name of a renamed one has its last time.
            begun = min(status.st_mtime, _taken_at(path) or status.st_mtime)
            since = begun if since is None else min(begun, since)
    return SpoolBacklog(size, since)


def set_flush_size(size: int) -> None:
    """Leave the size at which hooks start a flush beside the spool, where they look for it."""
    path = folder() / FLUSH_SIZE
    try:
        known = path.read_text() if path.exists() else str(USUAL_FLUSH_SIZE)
        if known == str(size):
            return
        write_private(path, str(size))
    except OSError:  # a full disk: hooks go by the size they know
        return


def _rotate_aside(spool: Path) -> None:
    """Keep a full `aside.jsonl` as an earlier one; the lines of the oldest that goes are counted.

    A killed rotation may count lines that are still there, and never loses one uncounted.
    """
    try:
        if (spool / ASIDE).stat().st_size < ASIDE_FILE_BYTES:
            return
    except FileNotFoundError:
        return
    earlier = _earlier_aside(spool)
    for path in earlier[: len(earlier) - ASIDE_FILES + 1]:
        gone = sum(1 for line in path.read_bytes().split(b"\n") if line.strip())
        write_private(spool / ASIDE_DROPPED, str(dropped_lines() + gone))
        path.unlink(missing_ok=True)
    name = f"aside-{int(time.time() * 1_000_000):017}-{os.urandom(4).hex()}.jsonl"
    (spool / ASIDE).rename(spool / name)


def _earlier_aside(spool: Path) -> list[Path]:
    return sorted(spool.glob("aside-*.jsonl"))


def dropped_lines() -> int:
    """How many lines that were set aside are no longer kept."""
    try:
        text = (folder() / ASIDE_DROPPED).read_text()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise _unavailable(folder(), error) from error
    return int(text) if text.isdecimal() else 0


def aside_size() -> int:
    """How many bytes of lines that were set aside are kept."""
    paths = [*_earlier_aside(folder()), folder() / ASIDE]
    return sum(path.stat().st_size for path in paths if path.exists())


def read_rejected() -> list[RejectedLine]:
    """The rejected lines that are kept, each once, also if a killed flush was repeated."""
    lines: list[bytes] = []
    try:
        for path in (*_earlier_aside(folder()), folder() / ASIDE):
            if path.exists():
                lines += path.read_bytes().split(b"\n")
    except OSError as error:
        raise _unavailable(folder(), error) from error
    found: dict[RejectedLine, None] = {}
    for line in lines:
        if line.strip():
            try:
                each = RejectedLine(**json.loads(line))
            except (ValueError, TypeError):
                each = RejectedLine(ASIDE, line.decode("utf-8", "backslashreplace"), "was cut off")
            found[each] = None
    return list(found)


def _read_batch(spool: Path, now: float) -> SpoolBatch:
    try:
        return SpoolBatch(spool, _files(spool), now)
    except OSError as error:
        raise _unavailable(spool, error) from error


def event_files() -> list[Path]:
    """The files with events, oldest first; a flush may rename or remove them."""
    return _files(folder())


def _files(spool: Path) -> list[Path]:
    """The files with events, oldest first."""
    return [*sorted(spool.glob("taken-*.jsonl")), *spool.glob(EVENTS)]


def parse_line(line: bytes) -> SpooledEvent:
    """The event of a line; raises ValueError for one that is none."""
    try:
        fields = json.loads(line)
    except json.JSONDecodeError as error:
        whole = line.rstrip().endswith(b"}")
        raise ValueError(f"is not JSON: {error}" if whole else "was cut off") from error
    except UnicodeDecodeError as error:
        raise ValueError("is not text in UTF-8") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error
    if not isinstance(fields, dict) or fields.keys() != _FIELDS.keys():
        raise ValueError("does not have the fields of an event")
    for name, kind in _FIELDS.items():
        if not isinstance(fields[name], kind):
            raise ValueError(f"{name} is not of its kind")  # noqa: TRY004 - of the line, not of ours
    if not fields["id"] or not all(isinstance(each, str) for each in fields["env"].values()):
        raise ValueError("id or env is not of its kind")
    return SpooledEvent(**fields)


def _taken_at(path: Path) -> float:
    """The time at which a file was renamed, from its name; 0 for `events.jsonl`."""
    digits = path.name.split("-")[1] if path.name.startswith("taken-") else ""
    return int(digits) / 1_000_000 if digits.isdecimal() else 0.0


def _modified_at(file: Any) -> float:
    return os.fstat(file.fileno()).st_mtime


def _mark(path: Path) -> Path:
    return path.with_suffix(".confirmed")


def _confirmed_offset(path: Path) -> int:
    """The offset up to which the store has a file; 0 for an unreadable mark, which costs time."""
    try:
        text = _mark(path).read_text()
    except FileNotFoundError:
        return 0
    return int(text) if text.isdecimal() else 0


def _write_offset(path: Path, end: int) -> None:
    write_private(_mark(path), str(end))


def _append(path: Path, data: bytes) -> None:
    make_private(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def _unavailable(spool: Path, error: OSError) -> StoreUnavailable:
    reason = f"{error.strerror}. What the hooks left there is safe and will be read again"
    return StoreUnavailable(str(spool), reason)
