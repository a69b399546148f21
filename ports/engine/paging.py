"""Everything of a kind, a page at a time, and how far that has come."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, find
from herdbook.ports.unit_of_work.changes import Reads

E = TypeVar("E")

PAGE = 1_000
HEAVY = 50
"""How many rows with bytes in them make a page: each may be large."""

Progress = Callable[[str, int, int], None]
"""Told of a space how many rows are done, and how many there are in all."""


def every(read: Reads, query: Query[E]) -> Iterator[E]:
    """The whole answer to a query with a limit, fetched page by page as it is used up."""
    while page := read.select(query):
        yield from page
        query = query.following(page[-1])


def pages(read: Reads, kind: Kind[E], limit: int = PAGE) -> Iterator[list[E]]:
    """All rows of a kind in the order of their keys, in pages that are never empty."""
    limit = min(limit, HEAVY) if kind.raw else limit
    query = find(kind, limit=limit)
    while page := read.select(query):
        yield page
        if len(page) < limit:
            return
        query = query.following(page[-1])


def silent(_space: str, _done: int, _total: int) -> None:
    """The progress nobody wants to hear of."""
