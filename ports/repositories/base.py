"""The base class of the named repositories."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import select_all
from herdbook.ports.engine.query import Query, find

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")

PAGE = 1_000


class Repository(Generic[E]):
    """The rows of one kind in the space of a unit of work."""

    def __init__(self, uow: "UnitOfWork", kind: Kind[E]) -> None:
        self.uow = uow
        self.kind = kind

    def get(self, key: Any) -> E:
        """The row with this key; raises NotFound if there is none."""
        return self.uow.get_existing(self.kind, [key])[0]

    def find(self, key: Any) -> E | None:
        """The row with this key, or None."""
        return self.uow.get(self.kind, [key])[0]

    def get_many(self, keys: Iterable[Any]) -> list[E]:
        """The rows with these keys, in that order; raises NotFound for the first missing one."""
        return self.uow.get_existing(self.kind, list(keys))

    def add(self, row: E) -> E:
        """Add a row; return it with its id, its times and its version."""
        return self.uow.add(self.kind, [row])[0]

    def add_all(self, rows: Sequence[E]) -> list[E]:
        """Add rows, all or none."""
        return self.uow.add(self.kind, rows)

    def save(self, row: E) -> E:
        """Save a changed row; raises StaleWrite if it was saved since it was read."""
        return self.uow.save(self.kind, [row])[0]

    def save_all(self, rows: Sequence[E]) -> list[E]:
        """Save rows, all or none."""
        return self.uow.save(self.kind, rows)

    def remove(self, key: Any) -> None:
        """Remove a row and everything that depends on it; raises NotFound if there is none."""
        self.uow.remove(self.kind, [key])

    def remove_all(self, keys: Sequence[Any]) -> None:
        """Remove rows and everything that depends on them."""
        self.uow.remove(self.kind, keys)

    def page(self, *, limit: int = PAGE, after: E | None = None) -> list[E]:
        """All rows by key, a page at a time."""
        return self.uow.select(find(self.kind, limit=limit, after=after))

    def select(self, query: Query[E]) -> list[E]:
        """The rows of a query over this kind."""
        return self.uow.select(query)

    def first(self, query: Query[E]) -> E | None:
        """The first row of a query, or None."""
        return next(iter(self.uow.select(query)), None)

    def select_all(self, query: Query[E]) -> Iterator[E]:
        """All rows of a query with a limit, fetched page by page as they are consumed."""
        return select_all(self.uow, query)
