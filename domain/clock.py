"""A clock for the journal that never runs backwards, even when the machine's clock does.

A hybrid logical clock: wall time where it advances, a counter where it does not, and the id of the
node that ticked, so that any two stamps compare and no two stamps are equal.
"""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, Self

from herdbook.domain.errors import InvalidValue

FARTHEST_AHEAD: Final = timedelta(minutes=1)
"""How far a stamp from another node may be ahead of this machine's clock."""
_LAST_COUNTER: Final = 99_999_999
_NODE_LENGTH: Final = 64
# Hours end at 23: newer Pythons parse 24:00 as the next day, which would not round-trip.
_TEXT: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):\d\d:\d\d\.\d{6})Z_(\d{8})_(.+)", re.ASCII
)


def _to_utc(moment: datetime) -> datetime:
    """Convert a time to UTC; raises InvalidValue for one without a time zone."""
    if moment.tzinfo is UTC:
        return moment
    if moment.utcoffset() is None:
        raise InvalidValue("wall", "a time without a time zone is no moment")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidValue("wall", "is outside the years 1 to 9999 in UTC") from error


@lru_cache(maxsize=256)
def _format_wall(wall: datetime) -> str:
    """A time in 26 characters; cached, because the stamps of a transaction share theirs."""
    return wall.isoformat(timespec="microseconds")[:26]


class _StampFields(NamedTuple):
    wall: datetime
    counter: int
    node: str


class Stamp(_StampFields):
    """When a change was made: ordered by wall time, then counter, then node."""

    __slots__ = ()

    def __new__(cls, wall: datetime, counter: int, node: str) -> Self:
        """Raise InvalidValue for values that the text form could not carry in order."""
        if not 0 <= counter <= _LAST_COUNTER:
            raise InvalidValue("counter", f"must lie between 0 and {_LAST_COUNTER}")
        if not (0 < len(node) <= _NODE_LENGTH and node.isascii() and node.isprintable()):
            raise InvalidValue("node", f"must be 1 to {_NODE_LENGTH} printable ASCII characters")
        return super().__new__(cls, _to_utc(wall), counter, node)

    def __str__(self) -> str:
        """Format the stamp so that texts sort as stamps do."""
        return f"{_format_wall(self.wall)}Z_{self.counter:08d}_{self.node}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse exactly what `str` produces; raises InvalidValue for anything else."""
        match = _TEXT.fullmatch(text)
        if match is None:
            raise InvalidValue("stamp", f"{text!r} is not a stamp")
        wall, counter, node = match.groups()
        try:
            moment = datetime.fromisoformat(wall).replace(tzinfo=UTC)
        except ValueError as error:
            raise InvalidValue("stamp", f"{text!r} names no moment") from error
        return cls(moment, int(counter), node)


def tick(last: Stamp | None, now: datetime, node: str) -> Stamp:
    """The next stamp of `node`: greater than `last`, whatever `now` says.

    Raises InvalidValue when no later stamp exists, in the year 9999.
    """
    if last is None:
        return Stamp(now, 0, node)
    now = _to_utc(now)
    if now > last.wall:
        return Stamp(now, 0, node)
    if last.counter < _LAST_COUNTER:
        return Stamp(last.wall, last.counter + 1, node)
    # A full counter runs a microsecond ahead of the clock instead of stopping the journal for good.
    try:
        return Stamp(last.wall + timedelta(microseconds=1), 0, node)
    except OverflowError as error:
        raise InvalidValue("wall", f"no stamp comes after {last}") from error


def is_ahead(stamp: Stamp | None, now: datetime) -> bool:
    """Whether a stamp is farther ahead of this machine's clock than another node's may be."""
    return stamp is not None and stamp.wall - _to_utc(now) > FARTHEST_AHEAD


def merge(local: Stamp | None, remote: Stamp, now: datetime, node: str) -> Stamp:
    """The next stamp of `node` after it has seen `remote`: greater than both.

    Raises InvalidValue for a `remote` more than a minute ahead of `now`: one machine with a wrong
    clock would move the clocks of all others for good.
    """
    if is_ahead(remote, now):
        ahead = f"{remote} is more than {FARTHEST_AHEAD.seconds} s ahead of this machine's clock"
        raise InvalidValue("stamp", f"{ahead}; set the clock that is wrong and try again")
    return tick(remote if local is None else max(local, remote), now, node)
