"""How far a plan is, and when the rest may be done."""

from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.plan.progress import (
    LEAST,
    Forecast,
    ProgressPoint,
    TaskCountChange,
    burn_up,
    forecast,
)

NOW = datetime(2026, 1, 10, 12, tzinfo=UTC)
CHANGES = st.lists(
    st.tuples(st.integers(0, 100_000), st.integers(-3, 3), st.integers(-3, 3)), max_size=30
)


@given(CHANGES, st.integers(2, 40))
def test_every_point_is_the_present_without_what_came_after_it(
    changes: list[tuple[int, int, int]], points: int
) -> None:
    history = sorted(
        (TaskCountChange(NOW - timedelta(seconds=ago), *both) for ago, *both in changes),
        key=lambda change: change.at,
        reverse=True,
    )
    now = ProgressPoint(NOW, 50, 200)
    since = NOW - timedelta(seconds=100_000)
    found = burn_up(now, history, since, points)
    assert len(found) == points
    assert found[-1] == now
    assert found == sorted(found, key=lambda point: point.at)
    for point in found[:-1]:
        later = [change for change in history if change.at > point.at]
        assert point.done == 50 - sum(change.done for change in later)
        assert point.total == 200 - sum(change.total for change in later)


def times(gaps: list[float], until: datetime = NOW) -> list[datetime]:
    """Moments with these seconds between them, the last of which is `until`."""
    back = [0.0, *accumulate(reversed(gaps))]
    return [until - timedelta(seconds=ago) for ago in back]


def test_nobody_can_say_after_a_few_tasks() -> None:
    assert forecast(5, times([60.0] * (LEAST - 2)), NOW) is None
    assert forecast(5, times([60.0] * (LEAST - 1)), NOW) is not None


def test_a_finished_plan_is_done_now() -> None:
    assert forecast(0, times([60.0] * 20), NOW) == Forecast(NOW, NOW)


def test_a_steady_pace_goes_on() -> None:
    for left in (1, 10, 400):
        hence = NOW + timedelta(minutes=left)
        assert forecast(left, times([60.0] * 50), NOW) == Forecast(hence, hence)


def test_a_plan_at_rest_moves_away() -> None:
    """The longer nothing is completed, the later is the rest."""
    done = times([60.0] * 50)
    soon, late = (forecast(20, done, NOW + timedelta(hours=hours)) for hours in (0, 24))
    assert soon is not None
    assert late is not None
    assert late.late - (NOW + timedelta(hours=24)) > soon.late - NOW


def test_a_plan_without_end_has_no_forecast() -> None:
    assert forecast(10**9, times([1e8] * 20), NOW) is None


def test_nine_of_ten_plans_are_done_by_the_late_moment() -> None:
    """Plans at a random pace, of which the last part is hidden from the forecast."""
    chance = Random(7)
    plans, early, late = 300, 0, 0
    for _ in range(plans):
        seen = [chance.expovariate(1 / 600) for _ in range(40)]
        rest = [chance.expovariate(1 / 600) for _ in range(30)]
        found = forecast(30, times(seen), NOW)
        assert found is not None
        end = NOW + timedelta(seconds=sum(rest))
        early += end <= found.likely
        late += end <= found.late
    assert 0.4 < early / plans < 0.6
    assert 0.84 < late / plans < 0.96


def test_the_same_plan_has_the_same_forecast() -> None:
    done = times([30.0, 90.0] * 20)
    assert forecast(33, done, NOW) == forecast(33, done[::-1], NOW)
