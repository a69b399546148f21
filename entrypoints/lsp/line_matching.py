"""Matches the lines of two texts, in little more than linear time.

These lines match: the common prefix and suffix of the texts; lines that occur once in each text,
as far as they are in the same order; and equal lines right before and after any of these.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence


def common_prefix_length(one: Sequence[object], other: Sequence[object]) -> int:
    """The length of the common prefix of two sequences."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def match_lines(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """The index of each old line in the new text; None for lines that are not in it."""
    found: list[int | None] = [None] * len(old)
    low = common_prefix_length(old, new)
    high = common_prefix_length(old[low:][::-1], new[low:][::-1])
    found[:low] = range(low)
    found[len(old) - high :] = range(len(new) - high, len(new))
    _mark_unique(old, new, found, (low, high))
    _extend_matches(old, new, found, 1)
    _extend_matches(old, new, found, -1)
    return found


def _mark_unique(
    old: Sequence[str], new: Sequence[str], found: list[int | None], outside: tuple[int, int]
) -> None:
    low, high = outside
    inner_old, inner_new = old[low : len(old) - high], new[low : len(new) - high]
    often = Counter(inner_old), Counter(inner_new)
    places = {line: index for index, line in enumerate(inner_new, low) if often[1][line] == 1}
    pairs = [
        (index, places[line])
        for index, line in enumerate(inner_old, low)
        if often[0][line] == 1 and line in places
    ]
    for index, place in _longest_increasing(pairs):
        found[index] = place


def _longest_increasing(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence of pairs whose second numbers rise; the first ones rise already."""
    ends: list[int] = []
    chains: list[tuple[tuple[int, int], int | None]] = []
    at_end: list[int] = []
    for pair in pairs:
        depth = bisect_left(ends, pair[1])
        chains.append((pair, at_end[depth - 1] if depth else None))
        ends[depth : depth + 1] = [pair[1]]
        at_end[depth : depth + 1] = [len(chains) - 1]
    chosen = []
    link = at_end[-1] if at_end else None
    while link is not None:
        pair, link = chains[link]
        chosen.append(pair)
    return chosen[::-1]


def _extend_matches(
    old: Sequence[str], new: Sequence[str], found: list[int | None], step: int
) -> None:
    taken = set(found)
    for index in range(len(old))[::step]:
        before = found[index - step] if 0 <= index - step < len(old) else None
        if found[index] is None and before is not None:
            place = before + step
            if 0 <= place < len(new) and place not in taken and new[place] == old[index]:
                found[index] = place
                taken.add(place)
