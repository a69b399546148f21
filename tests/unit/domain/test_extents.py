"""Extents: what a new value shares with an old one is found, and every byte comes back."""

import random
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from herdbook.ports.checkpoint_storage.extents import (
    Extent,
    ExtentIndex,
    Part,
    SharedRange,
    append_extents,
    difference,
    read_extents,
)
from tests.cases import for_each

LARGE = 200_000
STATE = random.Random(7).randbytes(LARGE)
few = st.lists(st.sampled_from([b"a", b"b", b"\0" * 300, bytes(range(256))]), max_size=12)


def join_extents(extents: Iterable[Extent]) -> list[Extent]:
    """The same bytes in as few extents as possible."""
    found: list[Extent] = []
    for each in extents:
        if each[2]:
            append_extents(found, [each])
    return found


def _rebuilt(old: bytes, parts: list[Part]) -> bytes:
    return b"".join(
        part if isinstance(part, bytes) else old[part.start : part.start + part.size]
        for part in parts
    )


def _fresh(parts: list[Part]) -> int:
    return sum(len(part) for part in parts if isinstance(part, bytes))


@given(few, few, few)
def test_the_parts_of_a_difference_make_the_new_value(
    one: list[bytes], other: list[bytes], end: list[bytes]
) -> None:
    """Whatever both have in common, in whatever order, not a byte is lost or made up."""
    old, new = b"".join([*one, *other, *end]), b"".join([*other, *one, *end])
    for before, after in [(old, new), (new, old), (old, b""), (b"", new), (old, old)]:
        assert _rebuilt(before, difference(before, after)) == after


@for_each(
    ("new", "most"),
    [
        (STATE, 0),
        (STATE[:90_000] + b"x" * 1_000 + STATE[91_000:], 1_000),
        (STATE[:90_000] + b"x" * 1_000 + STATE[90_000:], 1_000),
        (STATE[:90_000] + STATE[95_000:], 0),
        (STATE + b"x" * 1_000, 1_000),
        (b"x" + STATE[1:] + b"x" * 1_000, 1_100),
        (b"".join(STATE[n : n + 9_990] + b"x" * 10 for n in range(0, LARGE, 10_000)), 2_000),
    ],
    ids=["same", "changed", "inserted", "taken out", "appended", "both ends", "twenty places"],
)
def test_a_small_change_of_a_large_value_is_small(new: bytes, most: int) -> None:
    """Little more is new than what was changed."""
    parts = difference(STATE, new)
    assert _rebuilt(STATE, parts) == new
    assert _fresh(parts) <= most


def test_what_has_nothing_in_common_is_all_new() -> None:
    """Another value is one part."""
    other = random.Random(8).randbytes(LARGE)
    assert difference(STATE, other) == [other]


def test_what_changed_all_over_is_still_whole() -> None:
    """Beyond a number of differences the rest is simply new."""
    new = b"".join(STATE[n : n + 390] + b"x" * 10 for n in range(0, LARGE, 400))
    parts = difference(STATE, new)
    assert _rebuilt(STATE, parts) == new
    assert sum(isinstance(part, SharedRange) for part in parts) < 300


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(0, 30), st.integers(0, 30))
def test_a_cut_is_the_same_bytes(sizes: list[int], start: int, size: int) -> None:
    """Extents can be cut anywhere, and joined where they touch."""
    pieces = {"a": bytes(range(100)), "b": bytes(range(100, 200))}
    extents: list[Extent] = [("ab"[n % 2], 10 * n, each) for n, each in enumerate(sizes)]
    whole = read_extents(extents, pieces)
    start, size = min(start, len(whole)), min(size, max(0, len(whole) - start))
    cut = list(ExtentIndex(join_extents(extents)).cut(start, size))
    assert read_extents(cut, pieces) == whole[start : start + size]
    assert read_extents(join_extents(extents), pieces) == whole


def test_extents_that_touch_are_one() -> None:
    """A stretch that goes on where the last one ended costs no extent of its own."""
    touching: list[Extent] = [("a", 0, 5), ("a", 5, 5), ("b", 10, 1), ("a", 0, 0), ("a", 11, 2)]
    assert join_extents(touching) == [("a", 0, 10), ("b", 10, 1), ("a", 11, 2)]
