"""When a space changed: the ends of transactions with their times, which are its positions."""

from datetime import datetime
from typing import TypedDict

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry, Position
from herdbook.domain.rewind import NOT_KNOWN
from herdbook.ports.engine.dictionary import JOURNAL
from herdbook.ports.engine.paging import PAGE
from herdbook.ports.engine.query import above, find, up_to
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
        found = _transactions_until(uow, end.seq, limit)
    else:
        uow.journal.require(after)
        found = _transactions_after(uow, after, limit)
    return {
        "first": {"seq": first, "time": position_time(uow.session, first)},
        "last": {"seq": last, "time": position_time(uow.session, last)},
        "moments": found,
        "not_known": list(NOT_KNOWN),
    }


def _transactions_until(uow: UnitOfWork, end: int, limit: int) -> list[Transaction]:
    found: list[Transaction] = []
    tx = None
    query = find(JOURNAL, {"seq": up_to(end)}, descending=True, limit=min(PAGE, 4 * limit))
    while page := uow.select(query):
        for entry in page:
            if entry.tx != tx:
                if len(found) == limit:
                    return found[::-1]
                tx = entry.tx
                found.append(_transaction(entry))
            else:
                found[-1]["entries"] += 1
        query = query.next_page(page[-1])
    return found[::-1]


def _transactions_after(uow: UnitOfWork, after: int, limit: int) -> list[Transaction]:
    found: list[Transaction] = []
    tx = None
    query = find(JOURNAL, {"seq": above(after)}, limit=min(PAGE, 4 * limit))
    while page := uow.select(query):
        for entry in page:
            if entry.tx != tx:
                if len(found) == limit:
                    return found
                tx = entry.tx
                found.append(_transaction(entry))
            else:
                found[-1] = {**_transaction(entry), "entries": found[-1]["entries"] + 1}
        query = query.next_page(page[-1])
    return found


def _transaction(entry: JournalEntry) -> Transaction:
    return {
        "seq": entry.seq,
        "time": entry.time,
        "entries": 1,
        "who": entry.agent or entry.person,
    }
