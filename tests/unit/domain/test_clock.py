"""The laws of the journal's clock."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from herdbook.domain.clock import Stamp, merge, tick
from herdbook.domain.errors import InvalidValue
from tests.cases import for_each

UTC_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_COUNTER = 99_999_999
END_OF_TIME = datetime.max.replace(tzinfo=UTC)

NODES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=1, max_size=64)
COUNTERS = st.integers(0, LAST_COUNTER)
ALL_TIME = st.datetimes(timezones=st.just(UTC))
# A few moments only, so that clocks stand still and step back often.
MOMENTS = st.integers(0, 3).map(lambda n: UTC_EPOCH + timedelta(microseconds=n))
CLOSE = st.builds(Stamp, MOMENTS, st.integers(0, 3), st.sampled_from(["a", "b", "ab", "_"]))
STAMPS = CLOSE | st.builds(Stamp, ALL_TIME, COUNTERS, NODES)


@given(STAMPS)
@example(Stamp(datetime.min.replace(tzinfo=UTC), 0, "n"))
@example(Stamp(END_OF_TIME, LAST_COUNTER, "_"))
def test_a_stamp_is_read_back_as_it_was_written(stamp: Stamp) -> None:
    """Parsing the text of a stamp gives an equal stamp."""
    assert Stamp.parse(str(stamp)) == stamp


@given(STAMPS, STAMPS)
def test_texts_sort_as_stamps_do(one: Stamp, other: Stamp) -> None:
    """Comparing two texts answers as comparing the two stamps."""
    assert (str(one) < str(other)) == (one < other)


def test_the_text_has_fixed_width_before_the_node() -> None:
    """Years and counters are padded with zeros."""
    stamp = Stamp(datetime(26, 1, 2, 3, 4, 5, 6, tzinfo=UTC), 7, "node")
    assert str(stamp) == "0026-01-02T03:04:05.000006Z_00000007_node"


@given(STAMPS, st.data())
def test_only_what_str_writes_is_read(stamp: Stamp, data: st.DataObject) -> None:
    """A text with one character changed is refused, or is itself what `str` gives for a stamp."""
    text = str(stamp)
    at = data.draw(st.integers(0, len(text) - 1))
    changed = (
        text[:at] + data.draw(st.sampled_from("0123456789٣-TZ_+ \n") | st.just("")) + text[at + 1 :]
    )
    try:
        read = Stamp.parse(changed)
    except InvalidValue:
        return
    assert str(read) == changed


@for_each(
    "text",
    [
        "",
        "2026-11-16T01:02:03.000004Z_00000007_",
        "2026-11-16T01:02:03.000004Z_00000007_n\n",
        "2026-11-16T01:02:03.000004Z_00000007_n\x00",
        "2026-11-16T01:02:03.000004Z_0000007_n",
        "2026-11-16T01:02:03.000004Z_0000000\u0667_n",
        "2026-11-16T01:02:03.000004+00:00_00000007_n",
        "2026-11-16T01:02:03.004Z_00000007_n",
        "2026-02-30T01:02:03.000004Z_00000007_n",
        "2026-11-16T24:00:00.000000Z_00000007_n",
        "0000-11-16T01:02:03.000004Z_00000007_n",
        " 2026-11-16T01:02:03.000004Z_00000007_n",
    ],
)
def test_a_text_that_is_no_stamp_is_refused(text: str) -> None:
    """Bad text raises InvalidValue, never another error."""
    with pytest.raises(InvalidValue):
        Stamp.parse(text)


@given(st.lists(MOMENTS, min_size=2))
def test_ticks_rise_even_when_the_wall_clock_steps_back(moments: list[datetime]) -> None:
    """Each tick of a node is greater than the one before."""
    last: Stamp | None = None
    stamps = [last := tick(last, now, "n") for now in moments]
    assert all(earlier < later for earlier, later in pairwise(stamps))


@given(STAMPS.filter(lambda stamp: stamp.wall < END_OF_TIME), ALL_TIME, NODES)
@example(Stamp(UTC_EPOCH, LAST_COUNTER, "n"), UTC_EPOCH, "a")
@example(Stamp(UTC_EPOCH, 0, "z"), UTC_EPOCH, "a")
def test_a_tick_is_greater_than_any_last_stamp(last: Stamp, now: datetime, node: str) -> None:
    """A tick follows `last` whoever made it and however full its counter is."""
    assert tick(last, now, node) > last


@given(STAMPS, MOMENTS | ALL_TIME)
def test_the_counter_starts_again_when_the_wall_advances(last: Stamp, now: datetime) -> None:
    """A tick at a later moment than the last carries that moment and the counter 0."""
    assume(now > last.wall)
    assert tick(last, now, "n") == Stamp(now, 0, "n")


@given(CLOSE, MOMENTS)
def test_the_counter_rises_by_one_when_the_wall_does_not(last: Stamp, now: datetime) -> None:
    """A tick at the same or an earlier moment keeps the wall and counts on."""
    now = min(now, last.wall)
    assert tick(last, now, "n") == Stamp(last.wall, last.counter + 1, "n")


@given(st.none() | CLOSE, CLOSE, MOMENTS)
def test_a_merge_is_greater_than_both(local: Stamp | None, remote: Stamp, now: datetime) -> None:
    """What a node stamps after it has seen another comes after its own and the other's stamps."""
    merged = merge(local, remote, now, "n")
    assert merged > remote
    assert local is None or merged > local


@given(st.none() | CLOSE, CLOSE, MOMENTS)
def test_the_wall_is_the_largest_that_was_seen(
    local: Stamp | None, remote: Stamp, now: datetime
) -> None:
    """A stamp is never ahead of, nor behind, the largest of its inputs' walls and now."""
    seen = [now, remote.wall] + ([local.wall] if local else [])
    assert merge(local, remote, now, "n").wall == max(seen)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.sampled_from("abc"), MOMENTS)))
def test_no_two_stamps_are_equal(
    program: list[tuple[str, str | None, datetime]],
) -> None:
    """However nodes tick and hear of one another, every stamp they make is made once."""
    last: dict[str, Stamp] = {}
    made: list[Stamp] = []
    for node, heard, now in program:
        remote = last.get(heard) if heard else None
        if remote is None:
            last[node] = tick(last.get(node), now, node)
        else:
            last[node] = merge(last.get(node), remote, now, node)
        made.append(last[node])
    assert len(set(made)) == len(made)


@given(CLOSE, CLOSE, MOMENTS)
def test_a_stamp_carries_the_node_that_made_it(local: Stamp, remote: Stamp, now: datetime) -> None:
    """It is the node that ticks, not the one that ticked last, nor the one heard of."""
    assert merge(local, remote, now, "me").node == "me"


@given(st.none() | CLOSE, MOMENTS, st.timedeltas(timedelta(minutes=1), timedelta(days=36_500)))
def test_a_foreign_stamp_far_ahead_of_the_wall_is_refused(
    local: Stamp | None, now: datetime, ahead: timedelta
) -> None:
    """Up to a minute it is taken; beyond, it would move this node's clock for good."""
    remote = Stamp(now + ahead, 0, "other")
    if ahead == timedelta(minutes=1):
        assert merge(local, remote, now, "n") > remote
        return
    with pytest.raises(InvalidValue, match="ahead of this machine's clock"):
        merge(local, remote, now, "n")


def test_a_full_counter_runs_ahead_by_a_microsecond() -> None:
    """After the last counter of a moment comes the next moment, so that the journal goes on."""
    full = Stamp(UTC_EPOCH, LAST_COUNTER, "n")
    assert tick(full, UTC_EPOCH, "n") == Stamp(UTC_EPOCH + timedelta(microseconds=1), 0, "n")


def test_after_the_last_stamp_of_all_time_there_is_none() -> None:
    """The end of the calendar is refused as a value, not as an overflow."""
    with pytest.raises(InvalidValue):
        tick(Stamp(END_OF_TIME, LAST_COUNTER, "n"), UTC_EPOCH, "n")


@pytest.mark.parametrize("last", [None, Stamp(UTC_EPOCH, 0, "n")], ids=["first", "next"])
def test_a_time_without_a_zone_is_refused(last: Stamp | None) -> None:
    """A naive datetime never becomes a stamp."""
    with pytest.raises(InvalidValue):
        tick(last, UTC_EPOCH.replace(tzinfo=None), "n")


@given(ALL_TIME, st.timedeltas(timedelta(hours=-23), timedelta(hours=23)))
def test_one_moment_is_one_stamp_in_every_zone(moment: datetime, offset: timedelta) -> None:
    """A moment told in another time zone gives the same stamp and the same text."""
    try:
        elsewhere = moment.astimezone(timezone(offset))
    except OverflowError:
        return
    assert str(Stamp(elsewhere, 0, "n")) == str(Stamp(moment, 0, "n"))


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
    ],
    ids=["before the start", "after the end"],
)
def test_a_moment_outside_the_calendar_in_utc_is_refused(moment: datetime) -> None:
    """A local time whose moment in UTC has no year of four digits is refused as a value."""
    with pytest.raises(InvalidValue):
        Stamp(moment, 0, "n")


@pytest.mark.parametrize("counter", [-1, LAST_COUNTER + 1])
def test_a_counter_the_text_cannot_hold_is_refused(counter: int) -> None:
    """Counters have at most eight digits and no sign."""
    with pytest.raises(InvalidValue):
        Stamp(UTC_EPOCH, counter, "n")


@for_each("node", ["", "n" * 65, "é", "a\nb", "a\x00"])
def test_a_node_that_would_not_sort_everywhere_is_refused(node: str) -> None:
    """Nodes are short printable ASCII, which every engine orders by its bytes."""
    with pytest.raises(InvalidValue):
        Stamp(UTC_EPOCH, 0, node)
