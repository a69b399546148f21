"""Read all records of an agent-tracker's database, in its present layout and in its first."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any

from herdbook.adapters.agent_tracker import lz4, msgpack
from herdbook.adapters.agent_tracker.errors import Unreadable
from herdbook.adapters.agent_tracker.pages import Entry, Pages, newest
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.ports.world.agent_tracker import (
    TrackedKind,
    TrackerContents,
    TrackerReadFailure,
    TrackerRecord,
)

LARGEST_FILE = 1 << 30
LARGEST_VALUE = 64 << 20
ATTEMPTS = 100

DATABASES = {
    b"agents": TrackedKind.AGENT,
    b"commits": TrackedKind.COMMIT,
    b"communication": TrackedKind.COMMUNICATION,
    b"retrospectives": TrackedKind.RETROSPECTIVE,
    b"activities": TrackedKind.ACTIVITY,
}
_FIELD = "agent-tracker database"
_DATA_FILE = "data.mdb"
_SYMBOL = b"\x02"
_METAS = 2


def read(path: Path, dictionary: bytes | None = None) -> TrackerContents:
    """All that the database at this path tells; the file is only looked at.

    `dictionary` is the word list that lmdb-js compresses long values with. A value that cannot be
    read is among the untold. InvalidValue if the file is no such database or is damaged,
    StoreUnavailable if it cannot be looked at.
    """
    try:
        data = _copy(path / _DATA_FILE if path.is_dir() else path)
        return _contents(Pages(data), dictionary)
    except StoreUnavailable:
        raise
    except OSError as error:
        raise StoreUnavailable(str(path), error.strerror or str(error)) from error
    except Unreadable as error:
        raise InvalidValue(
            _FIELD, f"{path} cannot be read: {error}. Nothing was changed; keep the file as it is"
        ) from error


def _copy(file: Path) -> bytes:
    """The file's bytes of one moment: its writer knows nothing of us and may go on meanwhile."""
    for _ in range(ATTEMPTS):
        found = file.stat()
        if not S_ISREG(found.st_mode):
            raise InvalidValue(_FIELD, f"{file} is no file")
        if found.st_size > LARGEST_FILE:
            raise InvalidValue(_FIELD, f"{file} has more than {LARGEST_FILE} bytes")
        with file.open("rb") as opened:
            data = opened.read(LARGEST_FILE)
            opened.seek(0)
            again = opened.read(_front(data))
        if again and data.startswith(again):
            return data
        if not data:
            raise InvalidValue(_FIELD, f"{file} is empty")
    raise StoreUnavailable(str(file), "it is being written all the time; try again")


def _front(data: bytes) -> int:
    """How long the part of the file is in which every commit shows."""
    try:
        return _METAS * newest(data).page_size
    except Unreadable:
        return len(data)


def _contents(pages: Pages, dictionary: bytes | None) -> TrackerContents:
    top = list(pages.entries(pages.meta.root))
    told = list(_told(None, (each for each in top if each.root is None), dictionary))
    for entry in top:
        kind = DATABASES.get(entry.key.rstrip(b"\0"))
        if entry.root is not None and kind is not None:
            told += _told(kind, pages.entries(entry.root), dictionary)
    return TrackerContents(
        tuple(each for each in told if isinstance(each, TrackerRecord)),
        tuple(each for each in told if isinstance(each, TrackerReadFailure)),
    )


def _told(
    kind: TrackedKind | None, entries: Iterable[Entry], dictionary: bytes | None
) -> Iterator[TrackerRecord | TrackerReadFailure]:
    """The records of a database; at the top of the first layout, of all kinds by their prefixes."""
    every = list(entries)
    structures = _structures(every, dictionary)
    for entry in every:
        if entry.key.startswith(_SYMBOL):
            continue
        own, key = _named(kind, entry.key)
        if own is None:
            continue
        try:
            fields = _value(entry, structures, dictionary)
            if not isinstance(fields, dict):
                raise Unreadable("it is no record")  # noqa: TRY301 - one more thing it can be
        except Unreadable as error:
            yield TrackerReadFailure(own, key, str(error))
        else:
            yield TrackerRecord(own, key, fields)


def _named(kind: TrackedKind | None, key: bytes) -> tuple[TrackedKind | None, str]:
    """Of which kind a record is, and its key without the prefix of the first layout."""
    text = key.rstrip(b"\0").decode(errors="backslashreplace")
    prefix, colon, rest = text.partition(":")
    if colon and prefix in set(TrackedKind) and kind in (None, prefix):
        return TrackedKind(prefix), rest
    return kind, text


def _structures(entries: Iterable[Entry], dictionary: bytes | None) -> list[list[str]]:
    """The field names of a database's records; without them, its records cannot be told."""
    for entry in entries:
        if entry.key.startswith(_SYMBOL + b"structures"):
            try:
                found = _value(entry, (), dictionary)
            except Unreadable:
                return []
            if isinstance(found, list) and all(msgpack.is_names(each) for each in found):
                return found
    return []


def _value(entry: Entry, structures: Sequence[Sequence[str]], dictionary: bytes | None) -> Any:
    if entry.reason:
        raise Unreadable(entry.reason)
    return msgpack.decode(_plain(entry.value, dictionary), structures)


def _plain(value: bytes, dictionary: bytes | None) -> bytes:
    """The value's own bytes, where long ones are compressed."""
    match value[:1]:
        case b"\xfe":
            head, size = 4, int.from_bytes(value[1:4], "big")
        case b"\xff" if len(value) > 8:  # noqa: PLR2004 - alone, the byte is the number -1
            head, size = 8, int.from_bytes(value[2:8], "big")
        case _:
            return value
    if size > LARGEST_VALUE:
        raise Unreadable(f"it claims {size} bytes")
    try:
        return lz4.decompress(value[head:], size, _aligned(dictionary))
    except lz4.NeedsDictionary as error:
        if dictionary is not None:
            raise
        raise Unreadable(
            "it is compressed with the word list of the npm package lmdb, which was not found; "
            "name the package's file dict/dict.txt"
        ) from error


def _aligned(dictionary: bytes | None) -> bytes:
    """The part of a dictionary that lmdb-js uses: whole words of eight bytes."""
    return b"" if dictionary is None else dictionary[: len(dictionary) // 8 * 8]
