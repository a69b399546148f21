"""Where remarks stand beside a text while it is edited.

A mark stands at a line and goes where its line goes, and a line goes where the first character that
is left of it goes. Where nothing is left of lines and as many others take their place, they have
changed. A mark whose line is removed stands at the line that follows, and knows it. It comes back
with its line, as it does when somebody takes the edit back.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from herdbook.entrypoints.lsp.line_matching import alike, matched
from herdbook.entrypoints.lsp.positions import Point, content, split


class Spot(NamedTuple):
    """Where a line stands now; of a removed one, where the line that follows it does."""

    line: int
    removed: bool = False


class Mark(NamedTuple):
    """A place in the margin, and what its line said when it was removed."""

    line: int
    removed: bool = False
    was: str = ""


class Edited(NamedTuple):
    """What an edit did: `taken` lines from `first` on became `lines`; where those stand now."""

    first: int
    taken: int
    lines: tuple[str, ...]
    spots: tuple[Spot, ...]


def edited(lines: Sequence[str], start: Point, end: Point, text: str) -> Edited:
    """Put a text in the place of what stands between two points."""
    start, end, text = _least(lines, min(start, end), max(start, end), text)
    tail = lines[end.line][end.column :]
    joins = _joins(lines, start, text or tail)
    first = start.line - joins
    before = "".join(lines[first : start.line])
    head = before + lines[start.line][: start.column]
    new = split(head + text + tail)
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
        spots += _block(lines, start, end, (first, new), (of_head, of_tail))
    return Edited(first, end.line - first + 1, tuple(new), tuple(spots))


def rewritten(old: Sequence[str], new: Sequence[str]) -> Edited:
    """What became of the lines when a whole text took the place of another."""
    found = _became([content(each) for each in old], new)
    return Edited(0, len(old), tuple(new), tuple(_spots(found, 0, len(new) - 1)))


def applied(lines: Sequence[str], change: Edited) -> list[str]:
    """The lines behind an edit."""
    return [*lines[: change.first], *change.lines, *lines[change.first + change.taken :]]


def moved(mark: Mark, lines: Sequence[str], change: Edited) -> Mark:
    """Where a mark stands behind an edit; `lines` are those before it."""
    behind = change.first + change.taken
    if mark.removed and mark.was.strip() and change.first <= mark.line <= behind:
        back = _found_again(mark, change)
        if back is not None:
            return Mark(back)
    if mark.line < change.first:
        return mark
    if mark.line >= behind:
        return mark._replace(line=mark.line - change.taken + len(change.lines))
    spot = change.spots[mark.line - change.first]
    line = min(spot.line, len(lines) - change.taken + len(change.lines) - 1)
    if spot.removed and not mark.removed:
        return Mark(line, removed=True, was=content(lines[mark.line]))
    return mark._replace(line=line)


def _found_again(mark: Mark, change: Edited) -> int | None:
    """The nearest line that an edit brought and that says what the removed one said."""
    kept = {spot.line for spot in change.spots if not spot.removed}
    places = [
        place
        for place, line in enumerate(change.lines, change.first)
        if place not in kept and content(line) == mark.was
    ]
    return min(places, key=lambda place: abs(place - mark.line), default=None)


def _joins(lines: Sequence[str], start: Point, follows: str) -> bool:
    """Whether a line feed comes to stand behind the carriage return that ended the line before."""
    at_beginning = start.line > 0 and start.column == 0 and follows.startswith("\n")
    return at_beginning and lines[start.line - 1].endswith("\r")


def _block(
    lines: Sequence[str],
    start: Point,
    end: Point,
    chunk: tuple[int, Sequence[str]],
    ends: tuple[int, int],
) -> list[Spot]:
    """Where the lines of an edit over several of them stand.

    The first one stays if something is left of it, and so does the last one. Of those between, and
    of these two where nothing is left of them, the ones stay that say what a new line says, and
    those in whose place as many others stand.
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
    found = _became(inner, new[low - first : max(low, high) - first])
    spots = _spots(found, low, of_tail if tail_stays else low + len(new))
    return [*[Spot(of_head)] * head_stays, *spots, *[Spot(of_tail)] * tail_stays]


def _became(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """Where lines are found in others; as many in the place of as many are the same, changed."""
    found = matched(old, [content(each) for each in new])
    begin, before = 0, -1
    for index, place in enumerate([*found, len(new)]):
        if place is not None:
            if index - begin == place - before - 1:
                found[begin:index] = range(before + 1, place)
            begin, before = index + 1, place
    return found


def _spots(found: Sequence[int | None], first: int, last: int) -> list[Spot]:
    """What was found, as spots from a line on; what follows a removed line is at most the last."""
    spots = []
    follows = first
    for place in found:
        if place is not None:
            follows = first + place + 1
            spots.append(Spot(first + place))
        else:
            spots.append(Spot(min(follows, last), removed=True))
    return spots


def _least(lines: Sequence[str], start: Point, end: Point, text: str) -> tuple[Point, Point, str]:
    """The same edit without what it leaves as it was, at the beginning of a line if it can be.

    Programs that compare texts find the first difference: that a line was taken out looks as if it
    had begun behind what that line and the next one begin with.
    """
    old = _between(lines, start, end)
    same = alike(old, text)
    start, old, text = _forward(lines, start, same), old[same:], text[same:]
    same = alike(old[::-1], text[::-1])
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


def _between(lines: Sequence[str], start: Point, end: Point) -> str:
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
