"""The result of a query."""

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import frozen

from herdbook.adapters.sql_query.result_values import plain_value

Row = tuple[Any, ...]


@frozen
class Answer:
    """The rows of a query; `cut` if there were more than the limit.

    Times are in UTC, and stored JSON is decoded.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    cut: bool = False


def make_answer(
    columns: Iterable[str], fetched: Sequence[Row], documents: Iterable[int], limit: int
) -> Answer:
    """The answer from fetched rows, which are one more than the limit if there are more."""
    places = frozenset(documents)
    rows = [
        tuple(plain_value(each, document=at in places) for at, each in enumerate(row))
        for row in fetched[:limit]
    ]
    return Answer(tuple(columns), rows, cut=len(fetched) > limit)
