"""Read all records of an agent-tracker's database, in its current layout and in its first."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import Any

from herdbook.adapters.agent_tracker import lz4, msgpack
from herdbook.adapters.agent_tracker.errors import NO_WORD_LIST, MalformedTracker
from herdbook.adapters.agent_tracker.pages import PageReader, TreeEntry, newest_meta
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
    """All records of the database at this path; the file is only read.

    `dictionary` is the word list that lmdb-js compresses long values with. A value that cannot be
    decoded is listed in `failures`. Raises InvalidValue if the file is no such database or is
    damaged, and StoreUnavailable if it cannot be read.
    """
    try:
        data = _copy(path / _DATA_FILE if path.is_dir() else path)
        return _contents(PageReader(data), dictionary)
    except StoreUnavailable:
        raise
    except OSError as error:
        raise StoreUnavailable(str(path), error.strerror or str(error)) from error
    except MalformedTracker as error:
        raise InvalidValue(
            _FIELD, f"{path} cannot be read: {error}. Nothing was changed; keep the file as it is"
        ) from error


def _copy(file: Path) -> bytes:
    """The file's bytes of one moment: its writer takes no lock of ours and may go on meanwhile."""
    for _ in range(ATTEMPTS):
        found = file.stat()
        if not S_ISREG(found.st_mode):
            raise InvalidValue(_FIELD, f"{file} is no file")
        if found.st_size > LARGEST_FILE:
            raise InvalidValue(_FIELD, f"{file} has more than {LARGEST_FILE} bytes")
        with file.open("rb") as opened:
            data = opened.read(LARGEST_FILE)
            opened.seek(0)
            again = opened.read(_meta_size(data))
        if again and data.startswith(again):
            return data
        if not data:
            raise InvalidValue(_FIELD, f"{file} is empty")
    raise StoreUnavailable(str(file), "it is being written all the time; try again")


def _meta_size(data: bytes) -> int:
    """The size of the part of the file that every commit changes: the meta pages."""
    try:
        return _METAS * newest_meta(data).page_size
    except MalformedTracker:
        return len(data)


def _contents(pages: PageReader, dictionary: bytes | None) -> TrackerContents:
    top = list(pages.entries(pages.meta.root))
    found = list(_read_records(None, (each for each in top if each.root is None), dictionary))
    for entry in top:
        kind = DATABASES.get(entry.key.rstrip(b"\0"))
        if entry.root is not None and kind is not None:
            found += _read_records(kind, pages.entries(entry.root), dictionary)
    return TrackerContents(
        tuple(each for each in found if isinstance(each, TrackerRecord)),
        tuple(each for each in found if isinstance(each, TrackerReadFailure)),
    )


def _read_records(
    kind: TrackedKind | None, entries: Iterable[TreeEntry], dictionary: bytes | None
) -> Iterator[TrackerRecord | TrackerReadFailure]:
    """The records of a named database, or with `kind` None those of the first layout's top level.

    In the first layout, one tree has records of all kinds, distinguished by prefixes of their keys.
    """
    every = list(entries)
    structures = _structures(every, dictionary)
    for entry in every:
        if entry.key.startswith(_SYMBOL):
            continue
        own, key = _kind_and_key(kind, entry.key)
        if own is None:
            continue
        try:
            fields = _value(entry, structures, dictionary)
            if not isinstance(fields, dict):
                raise MalformedTracker("it is no record")  # noqa: TRY301 - one of several reasons
        except MalformedTracker as error:
            yield TrackerReadFailure(own, key, str(error))
        else:
            yield TrackerRecord(own, key, fields)


def _kind_and_key(kind: TrackedKind | None, key: bytes) -> tuple[TrackedKind | None, str]:
    """The kind of a record, and its key without the prefix of the first layout."""
    text = key.rstrip(b"\0").decode(errors="backslashreplace")
    prefix, colon, rest = text.partition(":")
    if colon and prefix in set(TrackedKind) and kind in (None, prefix):
        return TrackedKind(prefix), rest
    return kind, text


def _structures(entries: Iterable[TreeEntry], dictionary: bytes | None) -> list[list[str]]:
    """The field names of a database's records; without them, its records cannot be decoded."""
    for entry in entries:
        if entry.key.startswith(_SYMBOL + b"structures"):
            try:
                found = _value(entry, (), dictionary)
            except MalformedTracker:
                return []
            if isinstance(found, list) and all(msgpack.are_field_names(each) for each in found):
                return found
    return []


def _value(entry: TreeEntry, structures: Sequence[Sequence[str]], dictionary: bytes | None) -> Any:
    if entry.reason:
        raise MalformedTracker(entry.reason)
    return msgpack.decode(_decompress(entry.value, dictionary), structures)


def _decompress(value: bytes, dictionary: bytes | None) -> bytes:
    """The bytes of a value, decompressed if it is a long one."""
    match value[:1]:
        case b"\xfe":
            head, size = 4, int.from_bytes(value[1:4], "big")
        case b"\xff" if len(value) > 8:  # noqa: PLR2004 - alone, the byte is the number -1
            head, size = 8, int.from_bytes(value[2:8], "big")
        case _:
            return value
    if size > LARGEST_VALUE:
        raise MalformedTracker(f"it claims {size} bytes")
    try:
        return lz4.decompress(value[head:], size, _align(dictionary))
    except lz4.NeedsDictionary as error:
        if dictionary is not None:
            raise
        raise MalformedTracker(NO_WORD_LIST) from error


def _align(dictionary: bytes | None) -> bytes:
    """The part of a dictionary that lmdb-js uses: whole words of eight bytes."""
    return b"" if dictionary is None else dictionary[: len(dictionary) // 8 * 8]
