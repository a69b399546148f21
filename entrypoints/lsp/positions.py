"""Lines of a text and positions in them, as editors count them.

Editors end a line at a line feed, a carriage return or both. They count the positions in a line in
units of an agreed encoding. Here a position is a line and a number of characters.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from itertools import accumulate
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)")
_TWO_BYTES, _THREE_BYTES, _FOUR_BYTES = 0x80, 0x800, 0x10000


class Encoding(StrEnum):
    """The encoding in whose units an editor counts the positions in a line."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Point(NamedTuple):
    """A position between two characters: a line and a column, from 0, in characters."""

    line: int
    column: int


def split_lines(text: str) -> list[str]:
    """The lines of a text with their line ends; the last one has none, and may be empty."""
    lines = _LINE.findall(text)
    lines.append(text[sum(map(len, lines)) :])
    return lines


def content(line: str) -> str:
    """A line without its line end."""
    return line.rstrip("\r\n")


def units(text: str, encoding: Encoding) -> int:
    """The length of a text in units of an encoding; a lone surrogate counts as if encoded."""
    if encoding is Encoding.UTF32 or text.isascii():
        return len(text)
    return sum(_size(character, encoding) for character in text)


def point(lines: Sequence[str], line: int, character: int, encoding: Encoding) -> Point:
    """The position an editor means; one after the end of a line or of the text is that end.

    A position inside a character is the one before the character.
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


def line_index(lines: Sequence[str], number: int) -> int:
    """The index of the line with a number, as git counts: from 1, by line feeds alone.

    A number after the last line gives the last line.
    """
    # A text that ends with a line feed has an empty line after it, which git does not count.
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
