"""The result of a query."""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from herdbook.adapters.sql_query.result_values import plain_value

Row = tuple[Any, ...]


@frozen
class Answer:
    """The rows of a query; `cut` when there were more than were asked for.

    Times are in UTC, and what is kept as JSON is decoded.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    cut: bool = False


def make_answer(
    columns: Iterable[str], fetched: Sequence[Row], documents: Iterable[int], limit: int
) -> Answer:
    """The answer in fetched rows, one more than the limit if there are more."""
    places = frozenset(documents)
    rows = [
        tuple(plain_value(each, document=at in places) for at, each in enumerate(row))
        for row in fetched[:limit]
    ]
    return Answer(tuple(columns), rows, cut=len(fetched) > limit)
