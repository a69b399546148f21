"""Large values that change little: where their bytes lie, and what of a new one is new.

A value's bytes lie in extents, stretches of pieces that were written once. A new value is compared
with an older one whose extents are known: what both have in common stays where it lies, and only
the rest is written. So a value never hangs on a chain of others: its extents lead straight to
pieces.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

SHORTEST = 1_024
"""Less than this in common is not worth an extent, which costs time whenever it is read."""
STEP, MOST = 2_048, 65_536
"""How many bytes are compared first, and at most at a time: larger copies cost page faults."""
FIRST = 256
"""Bytes that differ somewhere are halved down to this, and then compared as numbers."""
ANCHOR = 32
REACHES = (0, 64, 512, 4_096, 32_768)
"""How far behind a difference in the old bytes to look for where both agree again."""
WINDOW = 1 << 17
"""How far to look for that in the new bytes."""
PATIENCE = 256
"""How many differences to follow; from there on everything but the common end is new."""


Extent = tuple[str, int, int]
"""A stretch of a piece: its name, where it starts, and its size."""


class Kept(NamedTuple):
    """Part of a difference: these bytes of the old value are in the new one too."""

    start: int
    size: int


Part = Kept | bytes


def _same_before(one: bytes, other: bytes) -> int:
    """How many bytes of two values of one size agree before the first that does not."""
    skipped = 0
    while (half := len(one) // 2) >= FIRST:
        if one[:half] == other[:half]:
            one, other, skipped = one[half:], other[half:], skipped + half
        else:
            one, other = one[:half], other[:half]
    # As numbers both are looked at in one go: the highest bit in which they differ tells the byte.
    bits = (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_length()
    return skipped + len(one) - (bits + 7) // 8


def _same_behind(one: bytes, other: bytes) -> int:
    """How many bytes of two values of one size agree behind the last that does not."""
    skipped = 0
    while (half := len(one) // 2) >= FIRST:
        if one[-half:] == other[-half:]:
            one, other, skipped = one[:-half], other[:-half], skipped + half
        else:
            one, other = one[-half:], other[-half:]
    bits = (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).bit_length()
    return skipped + len(one) - (bits + 7) // 8


def _beginning(old: bytes, at: int, new: bytes, other: int, most: int) -> int:
    """How many bytes two values have in common from two places on, at most so many."""
    known, step = 0, STEP
    while known < most:
        step = min(step, most - known)
        part = old[at + known : at + known + step]
        if not new.startswith(part, other + known):
            return known + _same_before(part, new[other + known : other + known + step])
        known, step = known + step, min(step * 4, MOST)
    return known


def _ending(old: bytes, new: bytes) -> int:
    """How many bytes two values have in common at their ends."""
    size, length = len(old), len(new)
    most, known, step = min(size, length), 0, STEP
    while known < most:
        step = min(step, most - known)
        part = old[size - known - step : size - known]
        if not new.endswith(part, 0, length - known):
            rest = new[length - known - step : length - known]
            return known + _same_behind(part, rest)
        known, step = known + step, min(step * 4, MOST)
    return known


def difference(old: bytes, new: bytes) -> list[Part]:
    """The new bytes as what they share with the old ones, in order, and what is new."""
    parts: list[Part] = []
    size, length = len(old), len(new)
    end = _ending(old, new)
    if end < SHORTEST:
        end = 0
    size, length = size - end, length - end
    at = other = fresh = 0
    for _ in range(PATIENCE):
        common = _beginning(old, at, new, other, min(size - at, length - other))
        if common >= SHORTEST:
            if fresh < other:
                parts.append(new[fresh:other])
            parts.append(Kept(at, common))
            fresh = other + common
        if min(size - at, length - other) - common < SHORTEST:
            break  # what is left has nothing in common that would be worth it
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
        if each[2]:
            follow(found, [each])
    return found


def follow(extents: list[Extent], more: list[Extent]) -> None:
    """Put extents behind others; where the two meet in one piece they become one."""
    if extents and more:
        piece, start, size = extents[-1]
        other, begin, length = more[0]
        if piece == other and start + size == begin:
            extents[-1] = piece, start, size + length
            more = more[1:]
    extents += more


class Stretch:
    """Extents that can be cut anywhere."""

    def __init__(self, extents: Sequence[Extent]) -> None:
        self.extents = extents
        self._starts = [0, *accumulate([size for _, _, size in extents])]

    def cut(self, start: int, size: int) -> list[Extent]:
        """The extents of some of the bytes."""
        if size <= 0:
            return []
        first = bisect_right(self._starts, start) - 1
        last = bisect_left(self._starts, start + size) - 1
        found = list(self.extents[first : last + 1])
        if beyond := self._starts[last + 1] - start - size:
            piece, begin, length = found[-1]
            found[-1] = piece, begin, length - beyond
        if skipped := start - self._starts[first]:
            piece, begin, length = found[0]
            found[0] = piece, begin + skipped, length - skipped
        return found


def bytes_of(extents: Iterable[Extent], pieces: Mapping[str, bytes]) -> bytes:
    """The bytes that lie in extents."""
    return b"".join([pieces[name][start : start + size] for name, start, size in extents])
