"""What a query comes back with, and how it is refused."""

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import frozen

from herdbook.domain.errors import InvalidValue

Row = tuple[Any, ...]

ONE_QUERY = "must be one query that only reads (SELECT, WITH, VALUES or TABLE)"


@frozen
class Answer:
    """The rows of a query; `cut` when there were more than were asked for.

    Times are in UTC, and what is kept as JSON is decoded.
    """

    columns: tuple[str, ...]
    rows: list[Row]
    cut: bool = False


def answer_of(
    columns: Iterable[str], fetched: Sequence[Row], documents: Iterable[int], limit: int
) -> Answer:
    """The answer in fetched rows, one more than the limit if there are more."""
    places = frozenset(documents)
    rows = [
        tuple(_value(each, document=at in places) for at, each in enumerate(row))
        for row in fetched[:limit]
    ]
    return Answer(tuple(columns), rows, cut=len(fetched) > limit)


def refused(reason: str) -> InvalidValue:
    """The error of a query that is not let through, or that the engine cannot make sense of."""
    return InvalidValue("sql", reason)


def too_slow(patience: float) -> InvalidValue:
    """The error of a query that was stopped: it would keep others from the store."""
    return refused(f"was stopped after {patience:g} s; ask for less")


def first_line(error: Exception) -> str:
    """What an engine says first; the rest quotes the query."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _value(value: Any, *, document: bool) -> Any:
    if document and isinstance(value, str):
        return json.loads(value)
    match value:
        case datetime():
            # Every store keeps UTC; DuckDB does so without saying it.
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        case dict():
            return {key: _value(each, document=False) for key, each in value.items()}
        case list():
            return [_value(each, document=False) for each in value]
    return value
