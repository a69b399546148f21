"""When a space changed: the ends of transactions with their times, which are its positions."""

from datetime import datetime
from typing import TypedDict

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry, Position
from herdbook.domain.rewind import NOT_KNOWN
from herdbook.ports.engine.dictionary import JOURNAL
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import Query, above, find, up_to
from herdbook.ports.unit_of_work.past import position_time, resolve_position
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

MOST = 1_000
"""How many moments can be asked for at once."""


class Moment(TypedDict):
    """A position of the journal: its last entry, 0 before the first one, and its time."""

    seq: int
    time: datetime


class Transaction(Moment):
    """The position after a transaction: how many entries it has, and who made it."""

    entries: int
    who: str | None


class Moments(TypedDict):
    """Some transactions, oldest first, and the first and the last position that can be read.

    `not_known` is what no journal tells of any of them.
    """

    first: Moment
    last: Moment
    moments: list[Transaction]
    not_known: list[str]


def list_moments(
    uow: UnitOfWork, *, until: Position | None = None, after: int | None = None, limit: int = 100
) -> Moments:
    """The last transactions `until` a position, by default now, or the next `after` a number.

    Raises InvalidValue if both are asked for or a number is out of reach, and JournalPruned for
    entries that were folded.
    """
    if not 0 < limit <= MOST:
        raise InvalidValue("limit", f"must be from 1 to {MOST}")
    if after is not None and until is not None:
        raise InvalidValue("after", "cannot be combined with until")
    first, last = uow.journal.pruned_to(), uow.journal.last()
    if after is None:
        asked = last if until is None else until
        end = resolve_position(uow.session, uow.space, asked, "until")
        query = find(JOURNAL, {"seq": up_to(end.seq)}, descending=True)
    else:
        uow.journal.require(after)
        query = find(JOURNAL, {"seq": above(after)})
    return {
        "first": {"seq": first, "time": position_time(uow.session, first)},
        "last": {"seq": last, "time": position_time(uow.session, last)},
        "moments": _transactions(uow, query, limit),
        "not_known": list(NOT_KNOWN),
    }


def _transactions(uow: UnitOfWork, query: Query[JournalEntry], limit: int) -> list[Transaction]:
    """The first transactions among the entries of a query, oldest first.

    The position after a transaction is that of its last entry, whichever of its entries come first.
    """
    found: list[list[JournalEntry]] = []
    for entry in select_all(uow, query._replace(limit=min(PAGE, 4 * limit))):
        if found and entry.tx == found[-1][0].tx:
            found[-1].append(entry)
        elif len(found) == limit:
            break
        else:
            found.append([entry])
    latest = (max(entries, key=lambda each: each.seq) for entries in found)
    told = [_transaction(*each) for each in zip(latest, map(len, found), strict=True)]
    return told[::-1] if query.descending else told


def _transaction(last: JournalEntry, entries: int) -> Transaction:
    who = last.agent or last.person
    return {"seq": last.seq, "time": last.time, "entries": entries, "who": who}
