"""Lines of a text and places in them, as editors count them.

Editors end a line at a line feed, a carriage return or both. They count the places in a line in
units of an encoding that they agree on. Here a place is a line and so many characters of it.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from itertools import accumulate
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)")
_TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0x80, 0x800, 0x10000


class Encoding(StrEnum):
    """How an editor counts the places in a line."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Point(NamedTuple):
    """A place between two characters: a line and a column, both counted from 0, in characters."""

    line: int
    column: int


def split(text: str) -> list[str]:
    """The lines of a text with what ends them; the last one has no end, and may be empty."""
    lines = _LINE.findall(text)
    lines.append(text[sum(map(len, lines)) :])
    return lines


def content(line: str) -> str:
    """A line without what ends it."""
    return line.rstrip("\r\n")


def units(text: str, encoding: Encoding) -> int:
    """How long a text is in an encoding; half a surrogate pair counts as what it would take."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    return sum(_size(character, encoding) for character in text)


def point(lines: Sequence[str], line: int, character: int, encoding: Encoding) -> Point:
    """The place an editor means; what lies behind the end of a line or of the text is that end.

    A place inside a character is the one before it.
    """
    if line < 0 or character < 0:
        return Point(max(line, 0), 0) if line < len(lines) else _end(lines)
    if line >= len(lines):
        return _end(lines)
    text = content(lines[line])
    if encoding is Encoding.UTF32 or text.isascii():
        return Point(line, min(character, len(text)))
    sizes = accumulate(_size(each, encoding) for each in text)
    return Point(line, sum(1 for reached in sizes if reached <= character))


def numbered(lines: Sequence[str], number: int) -> int:
    """Where the line with a number stands, as git counts: from 1, by line feeds alone.

    Behind the last line it is the last one.
    """
    # A text that ends with a line feed has an empty line behind it, which git does not count.
    last = len(lines) - 2 if len(lines) > 1 and not lines[-1] else len(lines) - 1
    left = number - 1
    for index in range(last):
        if left <= 0:
            return index
        left -= lines[index].endswith("\n")
    return last


def _end(lines: Sequence[str]) -> Point:
    return Point(len(lines) - 1, len(content(lines[-1])))


def _size(character: str, encoding: Encoding) -> int:
    code = ord(character)
    if encoding is Encoding.UTF16:
        return 1 if code < _FOUR_BYTES else 2
    if code < _TWO_BYTES:
        return 1
    if code < _THREE_BYTES:
        return 2
    return 3 if code < _FOUR_BYTES else 4
