"""MessagePack reader that constructs plain values only, and cuts maps without decoding values."""

from collections.abc import Callable, Iterator
from struct import unpack
from typing import Any, NamedTuple

MAX_DEPTH = 100
_NUMBERS = {
    0xCA: (4, ">f"),
    0xCB: (8, ">d"),
    0xCC: (1, ">B"),
    0xCD: (2, ">H"),
    0xCE: (4, ">I"),
    0xCF: (8, ">Q"),
    0xD0: (1, ">b"),
    0xD1: (2, ">h"),
    0xD2: (4, ">i"),
    0xD3: (8, ">q"),
}
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_WIDTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4} | {
    0xDC: 2,
    0xDD: 4,
    0xDE: 2,
    0xDF: 4,
}
"""The width in bytes of the size field after each of these first bytes."""
_ARRAYS, _MAPS, _EXTENSIONS = (0xDC, 0xDD), (0xDE, 0xDF), (0xC7, 0xC8, 0xC9)


class UnreadableValue(ValueError):
    """A value cannot be read; the message says why."""


class MsgpackReader:
    """Reads one value after another; subclasses decide what maps and extensions become."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes; raises UnreadableValue if there are fewer."""
        if count > len(self.data) - self.at:
            raise UnreadableValue(f"{count} bytes should follow, and {len(self.data) - self.at} do")
        self.at += count
        return self.data[self.at - count : self.at]

    def read_single(self) -> Any:
        """Read one value; raises UnreadableValue if bytes are left after it."""
        value = self.value(0)
        if self.at != len(self.data):
            raise UnreadableValue(f"{len(self.data) - self.at} bytes are left behind the value")
        return value

    def value(self, depth: int) -> Any:
        """Read the next value, nested `depth` levels deep."""
        self.refuse_deep(depth)
        token = self._number(1)
        if token in _CONSTANTS:
            return _CONSTANTS[token]
        if token in _NUMBERS:
            size, form = _NUMBERS[token]
            return unpack(form, self.take(size))[0]
        if token < 0x80:  # noqa: PLR2004 - as the format has it
            return token
        if token >= 0xE0:  # noqa: PLR2004
            return token - 0x100
        return self._sized(token, depth)

    def refuse_deep(self, depth: int) -> None:
        """Raise UnreadableValue for a value that is nested too deeply."""
        if depth > MAX_DEPTH:
            raise UnreadableValue(f"it is nested deeper than {MAX_DEPTH} levels")

    def mapping(self, pairs: list[tuple[Any, Any]]) -> Any:
        """The value of a map."""
        return dict(pairs)

    def extension(self, kind: int, body: bytes, depth: int) -> Any:  # noqa: ARG002 - for subclasses
        """The value of an extension; raises UnreadableValue unless a subclass knows the kind."""
        raise UnreadableValue(f"it holds a value of the kind {kind:#x}, which is not understood")

    def _number(self, width: int) -> int:
        return int.from_bytes(self.take(width), "big")

    def _sized(self, token: int, depth: int) -> Any:
        kinds: list[tuple[int, int, Callable[[int, int], Any]]] = [
            (0x80, 0x8F, self._map),
            (0x90, 0x9F, self._array),
            (0xA0, 0xBF, self._text),
        ]
        for first, last, read in kinds:
            if first <= token <= last:
                return read(token - first, depth)
        wide: list[tuple[int, int, Callable[[int, int], Any]]] = [
            (0xC4, 0xC6, self._bytes),
            (0xC7, 0xC9, self._extension),
            (0xD9, 0xDB, self._text),
            (0xDC, 0xDD, self._array),
            (0xDE, 0xDF, self._map),
        ]
        for first, last, read in wide:
            if first <= token <= last:
                return read(self._number(_WIDTHS[token]), depth)
        if 0xD4 <= token <= 0xD8:  # noqa: PLR2004
            return self._extension(1 << (token - 0xD4), depth)
        raise UnreadableValue(f"nothing begins with the byte {token:#x}")

    def _text(self, size: int, _: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise UnreadableValue("a text in it is not Unicode") from error

    def _bytes(self, size: int, _: int) -> bytes:
        return self.take(size)

    def _array(self, size: int, depth: int) -> list[Any]:
        self._check_fits(size)
        return [self.value(depth + 1) for _ in range(size)]

    def _map(self, size: int, depth: int) -> Any:
        self._check_fits(size)
        return self.mapping([(self.value(depth + 1), self.value(depth + 1)) for _ in range(size)])

    def _check_fits(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise UnreadableValue(
                f"{size} values should follow in {len(self.data) - self.at} bytes"
            )

    def _extension(self, size: int, depth: int) -> Any:
        kind = self._number(1)
        return self.extension(kind, self.take(size), depth)


class _Shape(NamedTuple):
    """What follows a first byte: a number of bytes, of values, and of each per counted item."""

    bytes: int = 0
    values: int = 0
    width: int = 0
    bytes_each: int = 0
    values_each: int = 0


def _shape(token: int) -> _Shape | None:
    if token in _WIDTHS:
        values = 1 if token in _ARRAYS else 2 if token in _MAPS else 0
        return _Shape(int(token in _EXTENSIONS), 0, _WIDTHS[token], int(not values), values)
    if token in _NUMBERS:
        return _Shape(_NUMBERS[token][0])
    ranges = [
        (0x00, 0x7F, _Shape()),
        (0x80, 0x8F, _Shape(values=2 * (token & 0x0F))),
        (0x90, 0x9F, _Shape(values=token & 0x0F)),
        (0xA0, 0xBF, _Shape(token & 0x1F)),
        (0xD4, 0xD8, _Shape(1 + (1 << max(0, token - 0xD4)))),
        (0xE0, 0xFF, _Shape()),
    ]
    if token in _CONSTANTS:
        return _Shape()
    return next((shape for first, last, shape in ranges if first <= token <= last), None)


_SHAPES = [_shape(token) for token in range(256)]


def end_of(data: bytes, at: int) -> int:
    """The offset after the value that begins at `at`; the value is skipped, not decoded."""
    left, size = 1, len(data)
    while left:
        if at >= size:
            raise UnreadableValue("it is cut off")
        shape = _SHAPES[data[at]]
        if shape is None:
            raise UnreadableValue(f"nothing begins with the byte {data[at]:#x}")
        skipped, values, width, bytes_each, values_each = shape
        at += 1
        if width:
            count = int.from_bytes(data[at : at + width], "big")
            skipped += width + count * bytes_each
            values += count * values_each
        at += skipped
        left += values - 1
    if at > size:
        raise UnreadableValue("it is cut off")
    return at


def split_map(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The undecoded keys and values of a map; raises UnreadableValue for anything else."""
    token = data[0] if data else 0
    width = _WIDTHS[token] if token in _MAPS else 0
    if width:
        count = int.from_bytes(data[1 : 1 + width], "big")
    elif 0x80 <= token <= 0x8F:  # noqa: PLR2004
        count = token & 0x0F
    else:
        raise UnreadableValue("it is no map")
    at = 1 + width
    for _ in range(count):
        middle = end_of(data, at)
        end = end_of(data, middle)
        yield data[at:middle], data[middle:end]
        at = end
    if at != len(data):
        raise UnreadableValue(f"{len(data) - at} bytes are left behind the value")


def join_map(entries: list[tuple[bytes, bytes]]) -> bytes:
    """The bytes of a map of encoded keys and values; the inverse of `split_map`."""
    count = len(entries)
    if count < 0x10:  # noqa: PLR2004
        head = bytes([0x80 | count])
    elif count < 1 << 16:
        head = b"\xde" + count.to_bytes(2, "big")
    else:
        head = b"\xdf" + count.to_bytes(4, "big")
    return head + b"".join(part for entry in entries for part in entry)
