"""Deltas of large values: where their bytes are stored, and which bytes of a new value are new.

A value's bytes are stored in extents, ranges of pieces that were written once. A new value is
compared with an older one whose extents are known: what both have in common stays where it is, and
only the rest is written. So a value never depends on a chain of others: its extents refer directly
to pieces.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

MIN_SHARED = 1_024
"""Less than this in common is not worth an extent, which costs time on every read."""
STEP, MOST = 2_048, 65_536
"""How many bytes are compared first, and at most at a time: larger copies cost page faults."""
FIRST = 256
"""Bytes that differ somewhere are halved down to this size, and then compared as integers."""
ANCHOR = 32
LOOKAHEADS = (0, 64, 512, 4_096, 32_768)
"""How far after a difference in the old bytes to look for where both agree again."""
WINDOW = 1 << 17
"""How far to look for that in the new bytes."""
MAX_DIFFERENCES = 256
"""How many differences to follow; after that everything but the common end is new."""


Extent = tuple[str, int, int]
"""A range of a piece: the piece's name, the start, and the size."""


class SharedRange(NamedTuple):
    """Part of a difference: these bytes of the old value are in the new one too."""

    start: int
    size: int


Part = SharedRange | bytes


def _equal_prefix(one: bytes, other: bytes) -> int:
    """How many bytes of two values of equal size agree before the first difference."""
    skipped = 0
    while (half := len(one) // 2) >= FIRST:
        if one[:half] == other[:half]:
            one, other, skipped = one[half:], other[half:], skipped + half
        else:
            one, other = one[:half], other[:half]
    # As integers both are compared in one go: the highest differing bit gives the byte.
    bits = (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_length()
    return skipped + len(one) - (bits + 7) // 8


def _equal_suffix(one: bytes, other: bytes) -> int:
    """How many bytes of two values of equal size agree after the last difference."""
    skipped = 0
    while (half := len(one) // 2) >= FIRST:
        if one[-half:] == other[-half:]:
            one, other, skipped = one[:-half], other[:-half], skipped + half
        else:
            one, other = one[-half:], other[-half:]
    bits = (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).bit_length()
    return skipped + len(one) - (bits + 7) // 8


def _common_prefix(old: bytes, at: int, new: bytes, other: int, most: int) -> int:
    """How many bytes two values have in common from two offsets on, at most `most`."""
    known, step = 0, STEP
    while known < most:
        step = min(step, most - known)
        part = old[at + known : at + known + step]
        if not new.startswith(part, other + known):
            return known + _equal_prefix(part, new[other + known : other + known + step])
        known, step = known + step, min(step * 4, MOST)
    return known


def _common_suffix(old: bytes, new: bytes) -> int:
    """How many bytes two values have in common at their ends."""
    size, length = len(old), len(new)
    most, known, step = min(size, length), 0, STEP
    while known < most:
        step = min(step, most - known)
        part = old[size - known - step : size - known]
        if not new.endswith(part, 0, length - known):
            rest = new[length - known - step : length - known]
            return known + _equal_suffix(part, rest)
        known, step = known + step, min(step * 4, MOST)
    return known


def difference(old: bytes, new: bytes) -> list[Part]:
    """The new bytes as ranges shared with the old ones, in order, and literal new bytes."""
    parts: list[Part] = []
    size, length = len(old), len(new)
    end = _common_suffix(old, new)
    if end < MIN_SHARED:
        end = 0
    size, length = size - end, length - end
    at = other = fresh = 0
    for _ in range(MAX_DIFFERENCES):
        common = _common_prefix(old, at, new, other, min(size - at, length - other))
        if common >= MIN_SHARED:
            if fresh < other:
                parts.append(new[fresh:other])
            parts.append(SharedRange(at, common))
            fresh = other + common
        if min(size - at, length - other) - common < MIN_SHARED:
            break  # the rest is too short to share anything worth an extent
        found = _resynchronise(old, new, (at + common, other + common), (size, length))
        if found is None:
            break
        at, other = found
    if fresh < length:
        parts.append(new[fresh:length])
    if end:
        parts.append(SharedRange(size, end))
    return parts


def _resynchronise(
    old: bytes, new: bytes, places: tuple[int, int], ends: tuple[int, int]
) -> tuple[int, int] | None:
    """The next offsets after a difference at which both values agree again, or None."""
    at, other = places
    for reach in LOOKAHEADS:
        anchor = old[at + reach : min(at + reach + ANCHOR, ends[0])]
        if len(anchor) < ANCHOR:
            return None
        found = new.find(anchor, other, min(other + WINDOW, ends[1]))
        if found >= 0:
            return at + reach, found
    return None


def append_extents(extents: list[Extent], more: list[Extent]) -> None:
    """Append extents to others; where the two meet in one piece they become one."""
    if extents and more:
        piece, start, size = extents[-1]
        other, begin, length = more[0]
        if piece == other and start + size == begin:
            extents[-1] = piece, start, size + length
            more = more[1:]
    extents += more


class ExtentIndex:
    """Extents that can be sliced at any offset."""

    def __init__(self, extents: Sequence[Extent]) -> None:
        self.extents = extents
        self._starts = [0, *accumulate([size for _, _, size in extents])]

    def cut(self, start: int, size: int) -> list[Extent]:
        """The extents of a range of the bytes."""
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


def read_extents(extents: Iterable[Extent], pieces: Mapping[str, bytes]) -> bytes:
    """The bytes of extents."""
    return b"".join([pieces[name][start : start + size] for name, start, size in extents])
