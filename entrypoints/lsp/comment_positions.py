"""The positions of comments in a text while it is edited.

A mark is at a line and moves with it, and a line moves with the first of its characters that is
left. Lines of which nothing is left count as changed if as many others replace them. A mark whose
line is removed moves to the line that follows, and remembers the text of its line. When an edit
inserts that text again, as undo does, the mark moves back to it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from herdbook.entrypoints.lsp.line_matching import common_prefix_length, match_lines
from herdbook.entrypoints.lsp.positions import Point, content, split_lines


class Spot(NamedTuple):
    """The new index of a line; for a removed line, that of the line that follows it."""

    line: int
    removed: bool = False


class Mark(NamedTuple):
    """The line of a comment, and the text of that line when it was removed."""

    line: int
    removed: bool = False
    removed_text: str = ""


class LineEdit(NamedTuple):
    """An edit: `taken` lines from `first` on became `lines`; `spots` has their new indices."""

    first: int
    taken: int
    lines: tuple[str, ...]
    spots: tuple[Spot, ...]


def edit_range(lines: Sequence[str], start: Point, end: Point, text: str) -> LineEdit:
    """The edit that replaces the text between two points."""
    start, end, text = _minimize_edit(lines, min(start, end), max(start, end), text)
    tail = lines[end.line][end.column :]
    joins = _completes_line_break(lines, start, text or tail)
    first = start.line - joins
    before = "".join(lines[first : start.line])
    head = before + lines[start.line][: start.column]
    new = split_lines(head + text + tail)
    if end.line < len(lines) - 1:
        new.pop()
    starts = list(accumulate(map(len, new[:-1]), initial=0))
    of_head = first + bisect_right(starts, len(before)) - 1
    of_tail = first + bisect_right(starts, len(head) + len(text)) - 1
    spots = [Spot(first)] * joins
    if start.line == end.line:
        stays = start.column > 0 or end.column >= max(len(content(lines[end.line])), 1)
        spots.append(Spot(of_head if stays else of_tail))
    else:
        spots += _block_spots(lines, start, end, (first, new), (of_head, of_tail))
    return LineEdit(first, end.line - first + 1, tuple(new), tuple(spots))


def replace_text(old: Sequence[str], new: Sequence[str]) -> LineEdit:
    """The edit that replaces a whole text with another."""
    found = _pair_lines([content(each) for each in old], new)
    return LineEdit(0, len(old), tuple(new), tuple(_spots(found, 0, len(new) - 1)))


def apply_edit(lines: Sequence[str], change: LineEdit) -> list[str]:
    """The lines after an edit."""
    return [*lines[: change.first], *change.lines, *lines[change.first + change.taken :]]


def move_mark(mark: Mark, lines: Sequence[str], change: LineEdit) -> Mark:
    """The mark after an edit; `lines` are those before the edit."""
    end = change.first + change.taken
    if mark.removed and mark.removed_text.strip() and change.first <= mark.line <= end:
        restored = _find_removed_line(mark, change)
        if restored is not None:
            return Mark(restored)
    if mark.line < change.first:
        return mark
    if mark.line >= end:
        return mark._replace(line=mark.line - change.taken + len(change.lines))
    spot = change.spots[mark.line - change.first]
    line = min(spot.line, len(lines) - change.taken + len(change.lines) - 1)
    if spot.removed and not mark.removed:
        return Mark(line, removed=True, removed_text=content(lines[mark.line]))
    return mark._replace(line=line)


def _find_removed_line(mark: Mark, change: LineEdit) -> int | None:
    """The nearest line that an edit inserted and that has the text of the removed one."""
    old_lines = {spot.line for spot in change.spots if not spot.removed}
    places = [
        place
        for place, line in enumerate(change.lines, change.first)
        if place not in old_lines and content(line) == mark.removed_text
    ]
    return min(places, key=lambda place: abs(place - mark.line), default=None)


def _completes_line_break(lines: Sequence[str], start: Point, follows: str) -> bool:
    """Whether a line feed comes right after the carriage return that ended the line before."""
    at_beginning = start.line > 0 and start.column == 0 and follows.startswith("\n")
    return at_beginning and lines[start.line - 1].endswith("\r")


def _block_spots(
    lines: Sequence[str],
    start: Point,
    end: Point,
    chunk: tuple[int, Sequence[str]],
    ends: tuple[int, int],
) -> list[Spot]:
    """The new indices of the lines of an edit that spans several lines.

    The first line stays if something is left of it, and so does the last one. Of those between, and
    of these two if nothing is left of them, the lines stay that equal a new line, and those that
    are replaced by as many others.
    """
    first, new = chunk
    of_head, of_tail = ends
    last = content(lines[end.line])
    head_stays = start.column > 0
    tail_stays = end.column < max(len(last), 1)
    low = of_head + (head_stays or first < start.line)
    high = of_tail + (not tail_stays)
    old = [content(each) for each in lines[start.line : end.line + 1]]
    inner = old[head_stays : len(old) - tail_stays]
    found = _pair_lines(inner, new[low - first : max(low, high) - first])
    spots = _spots(found, low, of_tail if tail_stays else low + len(new))
    return [*[Spot(of_head)] * head_stays, *spots, *[Spot(of_tail)] * tail_stays]


def _pair_lines(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """The index of each line among the new ones; equally many in between are paired as changed."""
    found = match_lines(old, [content(each) for each in new])
    begin, before = 0, -1
    for index, place in enumerate([*found, len(new)]):
        if place is not None:
            if index - begin == place - before - 1:
                found[begin:index] = range(before + 1, place)
            begin, before = index + 1, place
    return found


def _spots(found: Sequence[int | None], first: int, last: int) -> list[Spot]:
    """The pairs as spots, counted from `first`; the line after a removed one is at most `last`."""
    spots = []
    follows = first
    for place in found:
        if place is not None:
            follows = first + place + 1
            spots.append(Spot(first + place))
        else:
            spots.append(Spot(min(follows, last), removed=True))
    return spots


def _minimize_edit(
    lines: Sequence[str], start: Point, end: Point, text: str
) -> tuple[Point, Point, str]:
    """The same edit without the text that it does not change, at the start of a line if possible.

    Programs that compare texts report the first difference: the removal of a line looks as if it
    began after the prefix that this line and the next one share.
    """
    old = _text_between(lines, start, end)
    same = common_prefix_length(old, text)
    start, old, text = _forward(lines, start, same), old[same:], text[same:]
    same = common_prefix_length(old[::-1], text[::-1])
    end = _backward(lines, end, same)
    old, text = old[: len(old) - same], text[: len(text) - same]
    block, prefix = old or text, lines[start.line][: start.column]
    slides = not (old and text) and "\n" in block and prefix and block.endswith(prefix)
    if not slides or start.column >= len(content(lines[start.line])):
        return start, end, text
    width = len(prefix)
    if text:
        return Point(start.line, 0), Point(start.line, 0), prefix + text[:-width]
    return Point(start.line, 0), Point(end.line, end.column - width), ""


def _text_between(lines: Sequence[str], start: Point, end: Point) -> str:
    if start.line == end.line:
        return lines[start.line][start.column : end.column]
    parts = (
        lines[start.line][start.column :],
        *lines[start.line + 1 : end.line],
        lines[end.line][: end.column],
    )
    return "".join(parts)


def _forward(lines: Sequence[str], point: Point, count: int) -> Point:
    line, column = point
    while line < len(lines) - 1 and column + count >= len(lines[line]):
        count -= len(lines[line]) - column
        line, column = line + 1, 0
    return Point(line, column + count)


def _backward(lines: Sequence[str], point: Point, count: int) -> Point:
    line, column = point
    while count > column:
        count -= column
        line -= 1
        column = len(lines[line])
    return Point(line, column - count)
