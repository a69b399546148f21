"""Values as msgpackr writes them: MessagePack, and records whose field names stand elsewhere."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from struct import unpack
from typing import Any

from herdbook.adapters.agent_tracker.damage import Unreadable

DEEPEST = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP, _UNDEFINED, _DEFINITION = 0xFF, 0x00, 0x72
_FIRST_RECORD, _LAST_RECORD = 0x40, 0x7F
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_WIDTHS = {"f": 4, "d": 8, "B": 1, "H": 2, "I": 4, "Q": 8, "b": 1, "h": 2, "i": 4, "q": 8}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def decode(data: bytes, structures: Sequence[Sequence[str]] = ()) -> Any:
    """The value these bytes stand for; Unreadable if they stand for none, or for more than one."""
    reader = _Reader(data, structures)
    value = reader.value(0)
    if reader.at != len(data):
        raise Unreadable(f"{len(data) - reader.at} bytes are left behind the value")
    return value


class _Reader:
    def __init__(self, data: bytes, structures: Sequence[Sequence[str]]) -> None:
        self._data = data
        self.at = 0
        self._records = {_FIRST_RECORD + at: list(names) for at, names in enumerate(structures)}

    def _take(self, count: int) -> bytes:
        if count > len(self._data) - self.at:
            raise Unreadable(f"{count} bytes should follow, and {len(self._data) - self.at} do")
        self.at += count
        return self._data[self.at - count : self.at]

    def _number(self, width: int) -> int:
        return int.from_bytes(self._take(width), "big")

    def value(self, depth: int) -> Any:
        """The next value."""
        if depth > DEEPEST:
            raise Unreadable(f"it is nested deeper than {DEEPEST} levels")
        token = self._number(1)
        if token in _CONSTANTS:
            return _CONSTANTS[token]
        if token in _NUMBERS:
            form = _NUMBERS[token]
            return unpack(form, self._take(_WIDTHS[form[1]]))[0]
        if token in self._records:
            return self._record(token, depth)
        if token < 0x80:  # noqa: PLR2004 - as the format has it
            return token
        if token >= 0xE0:  # noqa: PLR2004
            return token - 0x100
        return self._sized(token, depth)

    def _sized(self, token: int, depth: int) -> Any:
        kinds: list[tuple[int, int, Callable[[int, int], Any]]] = [
            (0x80, 0x8F, self._map),
            (0x90, 0x9F, self._array),
            (0xA0, 0xBF, self._text),
        ]
        for first, last, read in kinds:
            if first <= token <= last:
                return read(token - first, depth)
        wide: dict[int, tuple[int, Callable[[int, int], Any]]] = {
            0xC4: (1, self._bytes),
            0xC5: (2, self._bytes),
            0xC6: (4, self._bytes),
            0xC7: (1, self._extension),
            0xC8: (2, self._extension),
            0xC9: (4, self._extension),
            0xD9: (1, self._text),
            0xDA: (2, self._text),
            0xDB: (4, self._text),
            0xDC: (2, self._array),
            0xDD: (4, self._array),
            0xDE: (2, self._map),
            0xDF: (4, self._map),
        }
        if token in wide:
            width, read = wide[token]
            return read(self._number(width), depth)
        if 0xD4 <= token <= 0xD8:  # noqa: PLR2004
            return self._extension(1 << (token - 0xD4), depth)
        raise Unreadable(f"nothing begins with the byte {token:#x}")

    def _text(self, size: int, _: int) -> str:
        try:
            return self._take(size).decode()
        except UnicodeDecodeError as error:
            raise Unreadable("a text in it is not Unicode") from error

    def _bytes(self, size: int, _: int) -> bytes:
        return self._take(size)

    def _array(self, size: int, depth: int) -> list[Any]:
        self._fits(size)
        return [self.value(depth + 1) for _ in range(size)]

    def _map(self, size: int, depth: int) -> dict[str, Any]:
        self._fits(size)
        pairs = [(self.value(depth + 1), self.value(depth + 1)) for _ in range(size)]
        return {str(name): value for name, value in pairs}

    def _fits(self, size: int) -> None:
        if size > len(self._data) - self.at:
            raise Unreadable(f"{size} values should follow in {len(self._data) - self.at} bytes")

    def _record(self, token: int, depth: int) -> dict[str, Any]:
        return {name: self.value(depth + 1) for name in self._records[token]}

    def _extension(self, size: int, depth: int) -> Any:
        kind = self._number(1)
        body = self._take(size)
        if kind == _TIMESTAMP:
            return _moment(body)
        if kind == _UNDEFINED and size == 1:
            return None
        if kind == _DEFINITION and size == 1:
            return self._defined(body[0], depth)
        raise Unreadable(f"it holds a value of the kind {kind:#x}, which is not understood")

    def _defined(self, token: int, depth: int) -> dict[str, Any]:
        """A record that brings its field names along, for itself and for those behind it."""
        names = self.value(depth + 1)
        if not _FIRST_RECORD <= token <= _LAST_RECORD or not is_names(names):
            raise Unreadable("a record in it has no field names")
        self._records[token] = names
        return self._record(token, depth)


def is_names(value: object) -> bool:
    """Whether this can be the field names of a record."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _moment(body: bytes) -> datetime:
    """A point in time in one of its three widths."""
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
            raise Unreadable(f"no time has {len(body)} bytes")
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise Unreadable("a time in it lies outside the years 1 to 9999") from error
