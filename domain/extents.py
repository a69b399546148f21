"""Large values that change little: where their bytes lie, and what of a new one is new.

A value's bytes lie in extents, stretches of pieces that were written once. A new value is compared
with an older one whose extents are known: what both have in common stays where it lies, and only
the rest is written. So a value never hangs on a chain of others: its extents lead straight to
pieces.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

SHORTEST = 1_024
"""Less than this in common is not worth an extent, which costs time whenever it is read."""
FIRST, MOST = 48, 65_536
"""How many bytes are compared first, and at most at a time: larger copies cost page faults."""
ANCHOR = 32
REACHES = (0, 64, 512, 4_096, 32_768)
"""How far behind a difference in the old bytes to look for where both agree again."""
WINDOW = 1 << 17
"""How far to look for that in the new bytes."""
PATIENCE = 256
"""How many differences to follow; from there on everything but the common end is new."""


Extent = tuple[str, int, int]
"""A stretch of a piece: its name, where it starts, and its size.

The piece that is being written has no name yet: it is empty.
"""


class Kept(NamedTuple):
    """Part of a difference: these bytes of the old value are in the new one too."""

    start: int
    size: int


Part = Kept | bytes


def _grown(most: int, same: Callable[[int, int], bool]) -> int:
    """How far two values agree, in steps that grow; `same` tells of so many bytes from a place."""
    known, step = 0, FIRST
    while known < most:
        step = min(step, most - known)
        if same(known, step):
            known, step = known + step, min(step * 4, MOST)
        elif step == 1:
            break
        else:
            # What is looked at next lies within these bytes, which are not all the same.
            most, step = known + step - 1, max(1, step // 2)
    return known


def difference(old: bytes, new: bytes) -> list[Part]:
    """The new bytes as what they share with the old ones, in order, and what is new."""
    parts: list[Part] = []
    size, length = len(old), len(new)
    most = min(size, length)
    end = _grown(
        most,
        lambda known, step: new.endswith(
            old[size - known - step : size - known], 0, length - known
        ),
    )
    if end < SHORTEST:
        end = 0
    size, length = size - end, length - end
    at = other = fresh = 0
    for _ in range(PATIENCE):
        common = _grown(
            min(size - at, length - other),
            lambda known, step, at=at, other=other: new.startswith(  # type: ignore[misc]
                old[at + known : at + known + step], other + known
            ),
        )
        if common >= SHORTEST:
            if fresh < other:
                parts.append(new[fresh:other])
            parts.append(Kept(at, common))
            fresh = other + common
        found = _again(old, new, (at + common, other + common), (size, length))
        if found is None:
            break
        at, other = found
    if fresh < length:
        parts.append(new[fresh:length])
    if end:
        parts.append(Kept(size, end))
    return parts


def _again(
    old: bytes, new: bytes, places: tuple[int, int], ends: tuple[int, int]
) -> tuple[int, int] | None:
    """The next places from which on both agree for a while, behind a difference."""
    at, other = places
    for reach in REACHES:
        anchor = old[at + reach : min(at + reach + ANCHOR, ends[0])]
        if len(anchor) < ANCHOR:
            return None
        found = new.find(anchor, other, min(other + WINDOW, ends[1]))
        if found >= 0:
            return at + reach, found
    return None


def joined(extents: Iterable[Extent]) -> list[Extent]:
    """The same bytes in as few extents as can be."""
    found: list[Extent] = []
    for each in extents:
        piece, start, size = each
        if found and found[-1][0] == piece and found[-1][1] + found[-1][2] == start:
            found[-1] = (piece, found[-1][1], found[-1][2] + size)
        elif size:
            found.append(each)
    return found


class Stretch:
    """Extents that can be cut anywhere."""

    def __init__(self, extents: Sequence[Extent]) -> None:
        self.extents = extents
        self._starts = [0, *accumulate(size for _, _, size in extents)]

    def cut(self, start: int, size: int) -> Iterator[Extent]:
        """The extents of some of the bytes."""
        number = bisect_right(self._starts, start) - 1
        while size > 0:
            piece, begin, length = self.extents[number]
            skipped = start - self._starts[number]
            taken = min(length - skipped, size)
            yield piece, begin + skipped, taken
            start, size, number = start + taken, size - taken, number + 1


def bytes_of(extents: Iterable[Extent], pieces: Mapping[str, bytes]) -> bytes:
    """The bytes that lie in extents."""
    return b"".join([pieces[name][start : start + size] for name, start, size in extents])
