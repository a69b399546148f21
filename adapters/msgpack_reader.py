"""MessagePack reader that constructs plain values only, and leaves extensions to subclasses.

It is our own because of what its subclasses need: msgpackr's records, which no MessagePack library
reads, and previews in which every depth, extension and run of bytes is under control. See
docs/adr/0032-libraries-and-own-code.md.
"""

from collections.abc import Callable
from struct import unpack
from typing import Any

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
            raise UnreadableValue(f"{len(self.data) - self.at} bytes are left after the value")
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
        return self._read_sized(token, depth)

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

    def _read_sized(self, token: int, depth: int) -> Any:
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
