"""Checks rows that come from another store, of many kinds at once and as they are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from herdbook.domain.errors import AlreadyExists, InvalidValue
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.query import Query
from herdbook.ports.unit_of_work.changes import RowReader
from herdbook.ports.unit_of_work.cycles import (
    EDGE_KINDS,
    refuse_cycles,
    refuse_own_ancestors,
)
from herdbook.ports.unit_of_work.integrity import check_references, check_uniques

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")
Arrivals = Mapping[Kind[Any], Sequence[Any]]
"""Rows that come together, by their kinds."""


class _ReaderWithArrivals:
    """A space as if the arriving rows were already in it."""

    def __init__(self, reader: RowReader, rows: Arrivals) -> None:
        self._reader = reader
        self._rows = {
            kind.name: {kind.key_of(row): row for row in each} for kind, each in rows.items()
        }

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """Rows by key, arriving ones first."""
        known = self._rows.get(kind.name, {})
        rest = [key for key in keys if key not in known]
        fetched = self._reader.get(kind, rest)
        found = dict(zip(rest, fetched, strict=True))
        return [known[key] if key in known else found[key] for key in keys]

    def select(self, query: Query[E]) -> list[E]:
        """The rows of a query over what is stored already."""
        return self._reader.select(query)


def check_verbatim_rows(uow: "UnitOfWork", dictionary: Dictionary, rows: Arrivals) -> None:
    """Check rows of several kinds that are inserted as they are.

    Raises InvalidValue for a projection, AlreadyExists for a key or unique that is taken,
    UnknownReference for a reference that names no row, and CycleRefused for a cycle.
    """
    together = _ReaderWithArrivals(uow, rows)
    for kind, each in rows.items():
        if kind.derived or kind.area is None:
            raise InvalidValue(kind.title, "follows from other rows and does not come with them")
        seen: set[Any] = set()
        keys = [kind.key_of(row) for row in each]
        for key, there in zip(keys, uow.get(kind, keys), strict=True):
            if there is not None or key in seen:
                raise AlreadyExists(kind.title, str(key))
            seen.add(key)
        nothing = [None] * len(each)
        check_references(together, dictionary, kind, each, nothing)
        check_uniques(uow, kind, each, nothing)
        refuse_own_ancestors(uow, kind, [(None, row) for row in each])
    refuse_cycles(uow, [(None, row) for kind in rows if kind in EDGE_KINDS for row in rows[kind]])
