r"""The text under an item of a plan in Markdown, and what keeps it apart from the plan.

A line of text that looks like the beginning of an item is written with a backslash before it, and
loses it again when it is read. Fenced code is left as it is.
"""

import re
from typing import Final, NamedTuple

from herdbook.domain.plan_text.inline import is_even
from herdbook.domain.plan_text.tree import SORTS

ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]+\[(.?)\](?:[ \t]+(.*))?$")
HEADING: Final = re.compile(r"(#{1,6})(?:[ \t]+(.*))?$")
DIVIDER: Final = re.compile(r"(?:-[ \t]*){3,}$|(?:\*[ \t]*){3,}$|(?:_[ \t]*){3,}$")
_KEYS: Final = "|".join(sorted({"after", *(name for sort in SORTS for name in sort.fields)}))
ATTRIBUTE: Final = re.compile(rf"({_KEYS}|(?i:after)):(?:[ \t]+(.*))?$")
_FENCE: Final = re.compile(r"[ \t]*(?:(`{3,})[^`]*|(~{3,}).*)$")
_GUARDED: Final = re.compile(r"([ \t]*)(\\+)(.*)$")
_TAB: Final = 4


class Fence(NamedTuple):
    """A block of code that was begun and not ended."""

    mark: str
    line: int

    def ends_with(self, line: str) -> bool:
        """Whether this line ends it."""
        mark = line.strip(" \t")
        return len(mark) >= len(self.mark) and set(mark) == {self.mark[0]}


def fence_of(line: str, number: int) -> Fence | None:
    """The block of code that this line begins."""
    found = _FENCE.match(line)
    return Fence(found[1] or found[2], number) if found else None


def indent_of(line: str) -> int:
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


def outdented(line: str, columns: int) -> str:
    """The line without its first columns of white space, as far as it has them."""
    at = 0
    for position, character in enumerate(line):
        if at >= columns or character not in " \t":
            return " " * (at - columns) + line[position:]
        at += 1 if character == " " else _TAB - at % _TAB
    return ""


def _begins_something(line: str, *, first: bool, outermost: bool) -> bool:
    """Whether a line of text would be read as something else.

    Attributes stand before all text, headings and dividers are not indented.
    """
    if ITEM.match(line.lstrip(" \t")) or (first and ATTRIBUTE.match(line)):
        return True
    return outermost and bool(HEADING.match(line) or DIVIDER.match(line))


def read_text_line(line: str, *, first: bool, outermost: bool) -> str:
    """A line of text as it is meant."""
    found = _GUARDED.match(line)
    if found and _begins_something(found[1] + found[3], first=first, outermost=outermost):
        return found[1] + found[2][1:] + found[3]
    return line


def written_text(text: str, *, outermost: bool) -> list[str]:
    """The lines in which a text is written under its item; only for one that can be."""
    lines: list[str] = []
    fence: Fence | None = None
    for line in text.split("\n"):
        if fence is not None:
            fence = None if fence.ends_with(line) else fence
            lines.append(line)
            continue
        fence = fence_of(line, 0)
        bare = line.lstrip(" \t")
        white = line[: len(line) - len(bare)]
        unguarded = white + bare.lstrip("\\")
        guard = _begins_something(unguarded, first=not lines, outermost=outermost)
        lines.append(f"{white}\\{bare}" if guard else line)
    return lines


def can_be_written(text: str) -> bool:
    """Whether a text can stand under its item: no loose ends, no code that is not ended."""
    fence: Fence | None = None
    lines = text.split("\n")
    for line in lines:
        if line != line.rstrip() or (line and not is_even(line.strip(" \t"))):
            return False
        if fence is not None:
            fence = None if fence.ends_with(line) else fence
        else:
            fence = fence_of(line, 0)
    return fence is None and bool(lines[0]) and lines[0] == lines[0].lstrip() and bool(lines[-1])
