"""Where bars stand in a lane, and which times are left out."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.plan.lanes import (
    LEAST_GAP,
    LaneMark,
    LaneSpan,
    LaneState,
    MarkKind,
    find_tracks,
    idle_gaps,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def minute(number: float) -> datetime:
    return NOON + timedelta(minutes=number)


def span(task: str, since: float, until: float | None, claimed: float | None = None) -> LaneSpan:
    begin = since if claimed is None else claimed
    end = None if until is None else minute(until)
    return LaneSpan(task, "a", None, LaneState.HELD, minute(since), end, minute(begin))


lengths = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20) | st.none()), max_size=30)


@given(drawn=lengths)
def test_no_two_bars_share_a_place(drawn: list[tuple[int, int | None]]) -> None:
    """In one track a bar begins where the one before has ended, and there is no spare track."""
    spans = sorted(
        (
            span(f"{number}", since, None if length is None else since + length)
            for number, (since, length) in enumerate(drawn)
        ),
        key=lambda each: each.since,
    )
    tracks, count = find_tracks(spans)
    assert set(tracks) == set(range(count))
    for track in range(count):
        own = [each for each, at in zip(spans, tracks, strict=True) if at == track]
        for earlier, later in zip(own, own[1:], strict=False):  # noqa: RUF007 - the last has none
            assert earlier.until is not None
            assert earlier.until <= later.since


def test_the_parts_of_a_claim_stay_in_one_track() -> None:
    """Also where another claim ends in between."""
    spans = [span("x", 0, 5), span("y", 1, 3), span("x", 5, 9, 0), span("z", 6, 8)]
    assert find_tracks(spans) == ([0, 1, 0, 1], 2)


def test_long_times_without_anything_are_gaps() -> None:
    """Short ones are none, a question breaks them, and what comes after now is not idle."""
    begin, end, now = minute(0), minute(240), minute(180)
    spans = [span("x", 30, 40), span("y", 45, None, 45)]
    assert idle_gaps(spans, [], begin, end, now) == [(begin, minute(30))]
    closed = [span("x", 30, 40), span("y", 45, 60)]
    assert idle_gaps(closed, [], begin, end, now) == [
        (begin, minute(30)),
        (minute(60), now),
    ]
    asked = LaneMark(MarkKind.ASKED, minute(120), "a", None, None, "x", "?")
    assert idle_gaps(closed, [asked], begin, end, now)[1:] == [
        (minute(60), minute(120)),
        (minute(120), now),
    ]
    short = begin + LEAST_GAP
    assert idle_gaps([], [], begin, short, short) == []
