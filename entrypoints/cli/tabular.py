"""Results of SQL queries as a table, CSV or JSON."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from herdbook.adapters.sql_query import Answer
from herdbook.entrypoints.cli.text import columns, plain, width
from herdbook.ports.engine.codec import format_time

_NUMBERS = (int, float, Decimal)
_LONGEST_NUMBER = 300


def as_table(answer: Answer) -> str:
    """Aligned plain text, numbers to the right; nothing in a cell breaks a line or is cut."""
    heads = [plain(name) for name in answer.columns]
    rows = [[plain(_text(value)) for value in row] for row in answer.rows]
    widths = [max(map(width, column)) for column in zip(heads, *rows, strict=True)]
    numbers = [
        all(isinstance(v, _NUMBERS) and not isinstance(v, bool) for v in column if v is not None)
        for column in zip(*answer.rows, strict=True)
    ] or [False] * len(heads)
    cells = [
        [
            " " * (places - width(cell)) + cell if is_number else cell
            for cell, places, is_number in zip(row, widths, numbers, strict=True)
        ]
        for row in rows
    ]
    return columns(heads, [["-" * places for places in widths], *cells]) + "\n"


def as_csv(answer: Answer) -> str:
    """CSV with a header line; NULL is an empty field."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(number_duplicates(answer.columns))
    writer.writerows([_text(value) for value in row] for row in answer.rows)
    return written.getvalue()


def as_json(answer: Answer) -> str:
    """A list with an object for each row; a repeated name gets a number."""
    names = number_duplicates(answer.columns)
    rows = [dict(zip(names, map(to_json_value, row), strict=True)) for row in answer.rows]
    return json.dumps(rows, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def number_duplicates(names: Iterable[str]) -> list[str]:
    """The names of columns; a repeated one gets a number."""
    found: list[str] = []
    for name in names:
        number, free = 1, name
        while free in found:
            number += 1
            free = f"{name}_{number}"
        found.append(free)
    return found


def to_json_value(value: Any) -> Any:
    """A value as JSON data."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _not_finite(value)
        case Decimal():
            return _number(value)
        case dict():
            return {_text(key): to_json_value(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [to_json_value(each) for each in value]
        case _:
            return _text(value)


def _number(value: Decimal) -> int | float | str:
    """A number if readers of JSON get the same one, else its digits as text."""
    if not value.is_finite():
        return _not_finite(float(value))
    if value.adjusted() < _LONGEST_NUMBER and value == value.to_integral_value():
        return int(value)
    near = float(value)
    return near if Decimal(repr(near)) == value else str(value)


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _text(value: Any) -> str:
    """A value of any type as text."""
    words = next((words for types, words in _WORDS if isinstance(value, types)), str)
    return words(value)


def _structure(value: Any) -> str:
    return json.dumps(to_json_value(value), ensure_ascii=False, allow_nan=False)


# The first match counts: a bool is an int too, and a datetime is a date.
_WORDS: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (type(None), lambda _: ""),
    (str, str),
    (bool, lambda value: "true" if value else "false"),
    (float, lambda value: str(value) if math.isfinite(value) else _not_finite(value)),
    (Decimal, lambda value: str(_number(value))),
    (datetime, lambda value: format_time(value if value.tzinfo else value.replace(tzinfo=UTC))),
    ((date, time), lambda value: value.isoformat()),
    (timedelta, lambda value: f"{value.total_seconds():g} s"),
    ((bytes, bytearray, memoryview), lambda value: f"\\x{bytes(value).hex()}"),
    ((dict, list, tuple, set, frozenset), _structure),
)
