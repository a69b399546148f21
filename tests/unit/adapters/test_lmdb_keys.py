"""Values as keys sort as the values do, at the ends of their ranges too."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import example, given
from hypothesis import strategies as st

from herdbook.adapters.lmdb.keys import _integer, _moment

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
moments = st.datetimes(timezones=st.just(UTC))


@given(moments, moments)
@example(FIRST, LAST)
@example(datetime(2262, 4, 11, 23, 47, 16, 854_775, tzinfo=UTC), datetime(2262, 4, 12, tzinfo=UTC))
@example(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC))
def test_every_moment_there_is_has_a_key_in_order(one: datetime, other: datetime) -> None:
    """From the year 1 to the year 9999, whatever other clocks can hold."""
    assert len(_moment(one)) == 8
    assert (_moment(one) < _moment(other)) == (one < other)
    assert (_moment(one) == _moment(other)) == (one == other)


def test_a_moment_of_another_zone_at_the_end_of_time_has_a_key() -> None:
    """It lies beyond what UTC can write down, and sorts there."""
    west, east = timezone(timedelta(hours=-12)), timezone(timedelta(hours=14))
    assert _moment(LAST) < _moment(datetime.max.replace(tzinfo=west))
    assert _moment(datetime.min.replace(tzinfo=east)) < _moment(FIRST)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
@example(-(2**63), 2**63 - 1)
def test_integers_sort_as_they_do(one: int, other: int) -> None:
    """All that the stores can hold."""
    assert (_integer(one) < _integer(other)) == (one < other)
