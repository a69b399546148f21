"""How far a plan is, how it came there, and when the rest may be done."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from statistics import fmean, pvariance

from attrs import frozen

LEAST = 8
"""With fewer completed tasks than this, nobody can say when the rest is done."""
MOST = 100
"""How many of the last completed tasks tell how fast it goes."""
TRIALS = 500
EXACT = 50
"""Up to so many tasks are tried one by one; of more, only the sum is."""


@frozen
class TaskCountChange:
    """A moment at which tasks were added (or removed), or completed (or opened again)."""

    at: datetime
    total: int = 0
    done: int = 0


@frozen
class ProgressPoint:
    """How many tasks there were at a moment, and how many of them were completed."""

    at: datetime
    done: int
    total: int


@frozen
class Forecast:
    """The moments by which the rest is done with a chance of 50% and of 90%."""

    likely: datetime
    late: datetime


def burn_up(
    now: ProgressPoint, changes: Iterable[TaskCountChange], since: datetime, points: int
) -> list[ProgressPoint]:
    """The plan at evenly spaced moments from `since` to now, the last of which is `now` itself.

    `changes` are those since then, the newest first; they are taken back from the present.
    """
    step = (now.at - since) / max(1, points - 1)
    left = iter(changes)
    change = next(left, None)
    done, total = now.done, now.total
    found = [now]
    for number in range(1, points):
        at = max(since, now.at - number * step) if number < points - 1 else since
        while change is not None and change.at > at:
            done, total = done - change.done, total - change.total
            change = next(left, None)
        found.append(ProgressPoint(at, done, total))
    return found[::-1]


def forecast(left: int, completed_at: Sequence[datetime], now: datetime) -> Forecast | None:
    """When the tasks that are left may be done, if it goes on as it did; None if nobody can say.

    `completed_at` are the times of completed tasks, in any order. The times between two of them
    are drawn again and again, as are those that happened to be seen: the fewer there were, the
    wider is the answer. The time since the last one counts, so a plan at rest moves away. It knows
    nothing of the size of tasks, of who will be there, or of tasks that nobody thought of yet.
    """
    times = sorted(completed_at)[-MOST - 1 :]
    if len(times) < LEAST:
        return None
    if not left:
        return Forecast(now, now)
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    idle = (now - times[-1]).total_seconds()
    if idle > fmean(gaps):
        gaps.append(idle)
    chance = Random(left)  # noqa: S311 - the same plan has the same forecast
    sums = sorted(_draw_sum(gaps, left, chance) for _ in range(TRIALS))
    likely, late = (sums[int(TRIALS * share)] for share in (0.5, 0.9))
    try:
        return Forecast(now + timedelta(seconds=likely), now + timedelta(seconds=late))
    except OverflowError:
        return None


def _draw_sum(gaps: Sequence[float], number: int, chance: Random) -> float:
    """How long so many tasks take, of times that might as well have been seen."""
    seen = chance.choices(gaps, k=len(gaps))
    if number <= EXACT:
        return sum(chance.choices(seen, k=number))
    mean = fmean(seen)
    spread = (number * pvariance(seen, mean)) ** 0.5
    return max(0.0, chance.gauss(number * mean, spread))
