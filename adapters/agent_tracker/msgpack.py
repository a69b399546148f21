"""Values as msgpackr writes them: MessagePack, and records with field names stored elsewhere."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from herdbook.adapters import msgpack_reader
from herdbook.adapters.agent_tracker.errors import MalformedTracker

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP, _UNDEFINED, _DEFINITION = 0xFF, 0x00, 0x72
_FIRST_RECORD, _LAST_RECORD = 0x40, 0x7F


def decode(data: bytes, structures: Sequence[Sequence[str]] = ()) -> Any:
    """Decode exactly one value; raises MalformedTracker for none or for more than one."""
    try:
        return _MsgpackrReader(data, structures).read_single()
    except msgpack_reader.UnreadableValue as error:
        raise MalformedTracker(str(error)) from error


class _MsgpackrReader(msgpack_reader.MsgpackReader):
    def __init__(self, data: bytes, structures: Sequence[Sequence[str]]) -> None:
        super().__init__(data)
        self._records = {_FIRST_RECORD + at: list(names) for at, names in enumerate(structures)}

    def value(self, depth: int) -> Any:
        """Read the next value, which may be a record."""
        token = next(iter(self.data[self.at : self.at + 1]), None)
        if token not in self._records:
            return super().value(depth)
        self.refuse_deep(depth)
        self.take(1)
        return self._record(token, depth)

    def mapping(self, pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
        """A map, with its keys as text."""
        return {str(name): value for name, value in pairs}

    def extension(self, kind: int, body: bytes, depth: int) -> Any:
        """A timestamp, `undefined`, or a record with its own definition."""
        if kind == _TIMESTAMP:
            return _timestamp(body)
        if kind == _UNDEFINED and len(body) == 1:
            return None
        if kind == _DEFINITION and len(body) == 1:
            return self._define_record(body[0], depth)
        return super().extension(kind, body, depth)

    def _record(self, token: int, depth: int) -> dict[str, Any]:
        return {name: self.value(depth + 1) for name in self._records[token]}

    def _define_record(self, token: int, depth: int) -> dict[str, Any]:
        """Read a record that comes with its field names, which later records reuse."""
        names = self.value(depth + 1)
        if not _FIRST_RECORD <= token <= _LAST_RECORD or not are_field_names(names):
            raise MalformedTracker("a record in it has no field names")
        self._records[token] = names
        return self._record(token, depth)


def are_field_names(value: object) -> bool:
    """Whether a value is a list of field names."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _timestamp(body: bytes) -> datetime:
    """Decode a timestamp of 4, 8 or 12 bytes."""
    match len(body):
        case 4:
            seconds, nanoseconds = int.from_bytes(body, "big"), 0
        case 8:
            both = int.from_bytes(body, "big")
            seconds, nanoseconds = both & (1 << 34) - 1, both >> 34
        case 12:
            nanoseconds = int.from_bytes(body[:4], "big")
            seconds = int.from_bytes(body[4:], "big", signed=True)
        case _:
            raise MalformedTracker(f"no time has {len(body)} bytes")
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise MalformedTracker("a time in it is outside the years 1 to 9999") from error
