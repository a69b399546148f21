"""Lists that know how much there is besides what they hold."""

from typing import TypeVar

from herdbook.domain.errors import InvalidValue
from herdbook.ports.engine.query import Query
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")


class Listing(list[E]):
    """The first rows of a list, and how many there are in all.

    `total` is None where it is not known, and `more` says whether there is more than this. The
    `note` is what to say about an empty list.
    """

    def __init__(
        self,
        rows: list[E],
        total: int | None = None,
        *,
        more: bool = False,
        note: str = "",
    ) -> None:
        super().__init__(rows)
        self.total = total
        self.more = more or (total is not None and total > len(rows))
        self.note = note

    @property
    def footer(self) -> str:
        """How much is shown of how much; empty if that is everything."""
        if not self.more:
            return ""
        total = f"more than {len(self):,}" if self.total is None else f"{self.total:,}"
        return f"{len(self):,} of {total}; --limit sets how many are shown"


def require_limit(limit: int) -> None:
    """Raise InvalidValue for a limit below one."""
    if limit < 1:
        raise InvalidValue("limit", f"must be at least 1, is {limit}")


def list_page(uow: UnitOfWork, query: Query[E]) -> Listing[E]:
    """The rows of a page, and how many rows the query has on all pages.

    They are counted only if there can be more than these.
    """
    rows = uow.select(query)
    if query.after is None and (query.limit is None or len(rows) < query.limit):
        return Listing(rows, len(rows))
    return Listing(rows, uow.count(query._replace(limit=None, after=None)))
