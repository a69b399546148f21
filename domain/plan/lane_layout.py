"""Where spans stand in a lane, and which times can be left out of a drawing of lanes."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from herdbook.domain.plan.lanes import ClaimKey, LaneMark, LaneSpan

LEAST_SHARE = 12
"""A time in which nothing happens is left out if it is longer than this part of the window."""
LEAST_GAP = timedelta(minutes=2)


def find_tracks(spans: Sequence[LaneSpan]) -> tuple[list[int], int]:
    """The track of each span, from 0 on, and how many there are: no two claims stand in one place.

    The spans of one claim share a track. Spans are in the order of their begin.
    """
    ends = {span.claim: span.until for span in spans}  # the last of a claim is the one that counts
    tracks: dict[ClaimKey, int] = {}
    free: list[datetime | None] = []
    for span in spans:
        if span.claim in tracks:
            continue
        at = next((n for n, end in enumerate(free) if end is not None and end <= span.since), None)
        if at is None:
            at = len(free)
            free.append(None)
        free[at] = ends[span.claim]
        tracks[span.claim] = at
    return [tracks[span.claim] for span in spans], len(free)


def idle_gaps(
    spans: Iterable[LaneSpan],
    marks: Iterable[LaneMark],
    begin: datetime,
    end: datetime,
    now: datetime,
) -> list[tuple[datetime, datetime]]:
    """The long times of a window in which nobody held anything and nothing was asked.

    What lasts, lasts until `now`. What comes after it is no gap.
    """
    least = max(LEAST_GAP, (end - begin) / LEAST_SHARE)
    busy = sorted(
        [
            *((span.since, span.until or now) for span in spans),
            *((mark.at, mark.at) for mark in marks),
            (min(now, end), end),
        ]
    )
    gaps, reached = [], begin
    for since, until in busy:
        if since - reached > least:
            gaps.append((reached, min(since, end)))
        reached = max(reached, until)
    return gaps
