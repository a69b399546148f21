"""Reads all rows of a query or a kind page by page, and the type of progress callbacks."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, any_of, find
from herdbook.ports.unit_of_work.changes import RowReader

E = TypeVar("E")
V = TypeVar("V")

PAGE = 1_000
HEAVY = 50
"""The page size for rows that contain bytes: each may be large."""

Progress = Callable[[str, int, int], None]
"""Called with a space, how many rows are done, and how many there are in all."""


def select_all(reader: RowReader, query: Query[E]) -> Iterator[E]:
    """All rows of a query with a limit, fetched page by page as they are consumed."""
    while page := reader.select(query):
        yield from page
        query = query.next_page(page[-1])


def select_pages(reader: RowReader, kind: Kind[E], limit: int = PAGE) -> Iterator[list[E]]:
    """All rows of a kind in the order of their keys, in pages that are never empty."""
    limit = min(limit, HEAVY) if kind.bytes_fields else limit
    query = find(kind, limit=limit)
    while page := reader.select(query):
        yield page
        if len(page) < limit:
            return
        query = query.next_page(page[-1])


def rows_with(reader: RowReader, kind: Kind[E], field: str, values: Iterable[Any]) -> Iterator[E]:
    """All rows with one of these values in a field, in queries of limited size."""
    for some in chunks(dict.fromkeys(values), PAGE):
        yield from select_all(reader, find(kind, {field: any_of(some)}, limit=PAGE))


def chunks(values: Iterable[V], size: int) -> Iterator[list[V]]:
    """The values in lists of this size; the last one may be shorter."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some


def no_progress(_space: str, _done: int, _total: int) -> None:
    """A progress callback that does nothing."""
