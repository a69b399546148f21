"""Which lines of a text stand in another one, found in time that hardly grows faster than they do.

The lines that both begin and end with are the same; so are those that each text has once, as far
as they stand in one order; and so are the equal ones right before and behind any of these.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence


def alike(one: Sequence[object], other: Sequence[object]) -> int:
    """With how many equal members both begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def matched(old: Sequence[str], new: Sequence[str]) -> list[int | None]:
    """For each line where it stands in the other text, None where it does not."""
    found: list[int | None] = [None] * len(old)
    low = alike(old, new)
    high = alike(old[low:][::-1], new[low:][::-1])
    found[:low] = range(low)
    found[len(old) - high :] = range(len(new) - high, len(new))
    _mark_unique(old, new, found, (low, high))
    _spread(old, new, found, 1)
    _spread(old, new, found, -1)
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
    for index, place in _rising(pairs):
        found[index] = place


def _rising(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """As many pairs as can stand in one order; the first numbers rise already."""
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


def _spread(old: Sequence[str], new: Sequence[str], found: list[int | None], step: int) -> None:
    taken = set(found)
    for index in range(len(old))[::step]:
        before = found[index - step] if 0 <= index - step < len(old) else None
        if found[index] is None and before is not None:
            place = before + step
            if 0 <= place < len(new) and place not in taken and new[place] == old[index]:
                found[index] = place
                taken.add(place)
