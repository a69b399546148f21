"""What rows must keep that come from another store, many kinds at once and as they are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from herdbook.domain.errors import AlreadyExists, InvalidValue
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.query import Query
from herdbook.ports.unit_of_work.changes import Reads
from herdbook.ports.unit_of_work.cycles import KINDS, refuse_cycles
from herdbook.ports.unit_of_work.integrity import check_references, check_uniques

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")
Arrivals = Mapping[Kind[Any], Sequence[Any]]
"""Rows that come together, by their kinds."""


class _Together:
    """A space as if the rows that arrive were in it."""

    def __init__(self, read: Reads, rows: Arrivals) -> None:
        self._read = read
        self._rows = {
            kind.name: {kind.key_of(row): row for row in each} for kind, each in rows.items()
        }

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        """Rows by key, those that arrive first."""
        known = self._rows.get(kind.name, {})
        rest = [key for key in keys if key not in known]
        fetched = self._read.get(kind, rest)
        found = dict(zip(rest, fetched, strict=True))
        return [known[key] if key in known else found[key] for key in keys]

    def select(self, query: Query[E]) -> list[E]:
        """The answer of what is there already."""
        return self._read.select(query)


def check_adopted(uow: "UnitOfWork", dictionary: Dictionary, rows: Arrivals) -> None:
    """Refuse rows that are there already, refer to nothing, clash or close a cycle."""
    together = _Together(uow, rows)
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
    refuse_cycles(uow, [(None, row) for kind in rows if kind in KINDS for row in rows[kind]])
