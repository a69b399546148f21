r"""The text below an item of a plan in Markdown, and how it is distinguished from plan syntax.

A line of text that looks like the beginning of an item is written with a backslash before it, which
is removed again on reading. Fenced code is left as it is.
"""

import re
from typing import Final, NamedTuple

from herdbook.domain.plan_text.inline import fits_on_line
from herdbook.domain.plan_text.tree import ITEM_KINDS

ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+\[(.?)\](?:[ \t]+(.*))?$")
HEADING: Final = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$")
DIVIDER: Final = re.compile(r"(?:-[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$")
_KEYS: Final = "|".join(sorted({"after", *(name for kind in ITEM_KINDS for name in kind.fields)}))
ATTRIBUTE: Final = re.compile(rf"({_KEYS}|(?i:after)):(?:[ \t]+(.*))?$")
_FENCE: Final = re.compile(r"[ \t]*(?:(`{3,})[^`]*|(~{3,}).*)$")
_ESCAPED_LINE: Final = re.compile(r"([ \t]*)(\\+)(.*)$")
_TAB: Final = 4


class Fence(NamedTuple):
    """A fenced code block that was opened and not closed yet."""

    mark: str
    line: int

    def ends_with(self, line: str) -> bool:
        """Whether this line closes the block."""
        mark = line.strip(" \t")
        return len(mark) >= len(self.mark) and set(mark) == {self.mark[0]}


def opening_fence(line: str, number: int) -> Fence | None:
    """The code block that this line opens, or None."""
    found = _FENCE.match(line)
    return Fence(found[1] or found[2], number) if found else None


def indent_width(line: str) -> int:
    """How many columns a line is indented; a tab leads to the next multiple of four."""
    columns = 0
    for character in line:
        if character == " ":
            columns += 1
        elif character == "\t":
            columns += _TAB - columns % _TAB
        else:
            break
    return columns


def outdent(line: str, columns: int) -> str:
    """The line without its first `columns` columns of white space, as far as it has them."""
    at = 0
    for position, character in enumerate(line):
        if at >= columns or character not in " \t":
            return " " * (at - columns) + line[position:]
        at += 1 if character == " " else _TAB - at % _TAB
    return ""


def _looks_like_syntax(line: str, *, first: bool, outermost: bool) -> bool:
    """Whether a line of text would be parsed as something else.

    Attributes come before all text; headings and dividers are not indented.
    """
    if ITEM.match(line.lstrip(" \t")) or (first and ATTRIBUTE.match(line)):
        return True
    return outermost and bool(HEADING.match(line) or DIVIDER.match(line))


def read_text_line(line: str, *, first: bool, outermost: bool) -> str:
    """A line of text with its escaping backslash removed."""
    found = _ESCAPED_LINE.match(line)
    if found and _looks_like_syntax(found[1] + found[3], first=first, outermost=outermost):
        return found[1] + found[2][1:] + found[3]
    return line


def text_lines(text: str, *, outermost: bool) -> list[str]:
    """The lines in which a text is written below its item; only for one that `can_be_written`."""
    lines: list[str] = []
    fence: Fence | None = None
    for line in text.split("\n"):
        if fence is not None:
            fence = None if fence.ends_with(line) else fence
            lines.append(line)
            continue
        fence = opening_fence(line, 0)
        bare = line.lstrip(" \t")
        white = line[: len(line) - len(bare)]
        unguarded = white + bare.lstrip("\\")
        guard = _looks_like_syntax(unguarded, first=not lines, outermost=outermost)
        lines.append(f"{white}\\{bare}" if guard else line)
    return lines


def can_be_written(text: str) -> bool:
    """Whether a text can be written below its item.

    It must have no white space at its ends or at the ends of its lines, and no unclosed code block.
    """
    fence: Fence | None = None
    lines = text.split("\n")
    for line in lines:
        if line != line.rstrip() or (line and not fits_on_line(line.strip(" \t"))):
            return False
        if fence is not None:
            fence = None if fence.ends_with(line) else fence
        else:
            fence = opening_fence(line, 0)
    return fence is None and bool(lines[0]) and lines[0] == lines[0].lstrip() and bool(lines[-1])
