"""Why setups are ranked as they are, how certain that is, and what would change it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import cycle, islice
from math import sqrt

from attrs import evolve, frozen

from herdbook.domain.grading import Grade
from herdbook.domain.record.intervals import Interval
from herdbook.domain.record.merit import Merit, average_of, merit_of
from herdbook.domain.record.observations import Observation, Setup
from herdbook.domain.record.setup_advice import (
    ENOUGH,
    Advice,
    TrackRecord,
    Verdict,
    errors_apart,
)

MOST_COMMITS = 1_000
"""How many more commits are tried before the answer is that no number of them is enough."""

_FIRST = f"{ENOUGH} commits each of two setups"


class AdviceEffect(StrEnum):
    """What more commits would do: allow a comparison, show a difference, or end the lead."""

    COMPARE = "compare"
    SEPARATE = "separate"
    CATCH_UP = "catch_up"


@frozen
class Needed:
    """So many more commits of a setup; without a setup, of one that has none yet."""

    setup: Setup | None
    commits: int


@frozen(kw_only=True)
class AdviceReasons:
    """The reasons for an order of setups, as sentences and as the numbers in them.

    `lead` is the difference in merit between the first setup and its `rival`, with an interval for
    all pairs together; None without two setups to compare. `needed` is empty where no number of
    commits up to `MOST_COMMITS` is enough.
    """

    why: str
    certainty: str
    change: str
    rival: Setup | None
    lead: Interval | None
    effect: AdviceEffect
    needed: tuple[Needed, ...]


class _Pair:
    """The first setup and its rival, with what they would be after more commits."""

    def __init__(self, advice: Advice, first: Setup, rival: Setup, seen: list[Observation]) -> None:
        self.average = average_of(seen)
        self.apart = errors_apart(sum(each.enough for each in advice.ranked))
        by_setup: dict[Setup, list[Observation]] = defaultdict(list)
        for each in seen:
            by_setup[each.setup].append(each)
        self.first, self.rival = by_setup[first], by_setup[rival]

    def lead(self, first: Sequence[Observation], rival: Sequence[Observation]) -> Interval:
        """How far the first is ahead, with the interval that decides whether that is chance."""
        ahead, behind = self._merit(first), self._merit(rival)
        gap = ahead.value - behind.value
        reach = self.apart * sqrt(ahead.uncertainty**2 + behind.uncertainty**2)
        return Interval(gap - reach, gap, gap + reach)

    def _merit(self, observations: Sequence[Observation]) -> Merit:
        return merit_of(observations, self.average)

    def commits_to_separate(self) -> tuple[int, int] | None:
        """How many more commits like the earlier ones, of each, would show the difference.

        Those of the setup with fewer commits alone, if these can do it.
        """
        fewer_is_first = len(self.first) < len(self.rival)

        def alone(count: int) -> bool:
            first = _repeat(self.first, count if fewer_is_first else 0)
            return self.lead(first, _repeat(self.rival, 0 if fewer_is_first else count)).low > 0

        def both(count: int) -> bool:
            return self.lead(_repeat(self.first, count), _repeat(self.rival, count)).low > 0

        if count := _fewest(alone):
            return (count, 0) if fewer_is_first else (0, count)
        count = _fewest(both)
        return None if count is None else (count, count)

    def commits_to_catch_up(self) -> int | None:
        """How many more excellent commits of the rival would end the lead of the first."""
        last = self.rival[-1]
        best = Observation(setup=last.setup, at=last.at, grade=float(Grade.EXCELLENT))
        return _fewest(lambda count: self.lead(self.first, [*self.rival, *[best] * count]).low <= 0)


def explain(advice: Advice, observations: Iterable[Observation]) -> AdviceReasons:
    """Explain advice by the observations that it was made from."""
    if advice.verdict is Verdict.TOO_LITTLE_DATA:
        return _explain_too_little(advice)
    equal = advice.verdict is Verdict.EQUAL
    first = advice.ranked[0]
    wanted = advice.leaders[1] if equal else advice.ranked[1].setup
    rival = next(each for each in advice.ranked if each.setup == wanted)
    pair = _Pair(advice, first.setup, rival.setup, list(observations))
    lead = pair.lead(pair.first, pair.rival)
    chance = "can" if equal else "does not"
    reasons = AdviceReasons(
        why=_compare(first, rival),
        certainty=(
            f"it is {lead.estimate:.2f} ahead in merit, with 95% confidence {lead.low:.2f} to "
            f"{lead.high:.2f}: chance alone {chance} explain that"
        ),
        change="",
        rival=rival.setup,
        lead=lead,
        effect=AdviceEffect.SEPARATE if equal else AdviceEffect.CATCH_UP,
        needed=(),
    )
    return _separate(reasons, first, pair) if equal else _catch_up(reasons, first, pair)


def _separate(reasons: AdviceReasons, first: TrackRecord, pair: _Pair) -> AdviceReasons:
    counts = pair.commits_to_separate()
    if counts is None:
        change = f"{MOST_COMMITS} more commits of each would not show which is better"
        return evolve(reasons, change=change)
    pairs = zip((first.setup, reasons.rival), counts, strict=True)
    needed = tuple(Needed(setup, count) for setup, count in pairs if count)
    what = f"{counts[0]} more commits of each of the two" if all(counts) else _list_needed(needed)
    change = f"about {what}, like those before, would show which is better"
    return evolve(reasons, change=change, needed=needed)


def _catch_up(reasons: AdviceReasons, first: TrackRecord, pair: _Pair) -> AdviceReasons:
    count = pair.commits_to_catch_up()
    if count is None:
        change = f"not even {MOST_COMMITS} excellent commits of {reasons.rival} would end that lead"
        return evolve(reasons, change=change)
    needed = (Needed(reasons.rival, count),)
    best = f"{_list_needed(needed)}, excellent and without a bug,"
    return evolve(reasons, change=f"{best} would end the lead of {first.setup}", needed=needed)


def _explain_too_little(advice: Advice) -> AdviceReasons:
    """Name the setups that are nearest to enough, and how much they lack."""
    nearest = sorted(advice.ranked, key=lambda each: -each.observations)[:2]
    needed = [Needed(each.setup, ENOUGH - each.observations) for each in nearest if not each.enough]
    needed += [Needed(None, ENOUGH)] if len(nearest) == 1 else []
    return AdviceReasons(
        why="setups with so few commits are listed and not compared",
        certainty="an order of so few would be chance",
        change=f"{_list_needed(needed) or _FIRST} would make a comparison possible",
        rival=None,
        lead=None,
        effect=AdviceEffect.COMPARE,
        needed=tuple(needed),
    )


def _compare(first: TrackRecord, rival: TrackRecord) -> str:
    """What the two differ in: grades and bugs, and how many commits tell it."""
    parts = []
    if first.mean_grade is not None and rival.mean_grade is not None:
        parts.append(
            f"mean grade {first.mean_grade.estimate:.1f} against {rival.mean_grade.estimate:.1f} "
            f"({first.grades} and {rival.grades} graded commits)"
        )
    parts.append(
        f"bugs in {first.bug_rate.estimate:.0%} against {rival.bug_rate.estimate:.0%} "
        f"({first.observations} and {rival.observations} commits)"
    )
    return f"{first.setup} is ranked before {rival.setup}: {', '.join(parts)}"


def _list_needed(needed: Iterable[Needed]) -> str:
    return " and ".join(
        f"{each.commits} commits of another setup"
        if each.setup is None
        else f"{each.commits} more commit{'s' if each.commits > 1 else ''} of {each.setup}"
        for each in needed
    )


def _repeat(observations: Sequence[Observation], count: int) -> list[Observation]:
    """Observations and so many more like them."""
    return [*observations, *islice(cycle(observations), count)]


def _fewest(is_enough: Callable[[int], bool]) -> int | None:
    """The smallest number of commits that is enough, by doubling and halving; None if none is."""
    high = 1
    while not is_enough(high):
        if high >= MOST_COMMITS:
            return None
        high = min(2 * high, MOST_COMMITS)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
