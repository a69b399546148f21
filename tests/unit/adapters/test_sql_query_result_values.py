"""Values get from one process to the other as they are."""

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from herdbook.adapters.sql_query.result_values import decode_value, encode_value
from tests.cases import for_each

VALUES = [
    None,
    True,
    0,
    -(2**127),
    1.5,
    float("inf"),
    "",
    "牛 \U0001f404 \x00 \u2028 '\"\\",
    b"",
    b"\x00\xff",
    datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
    datetime(1, 1, 1),  # noqa: DTZ001 - without a zone, as DuckDB gives some
    date(9999, 12, 31),
    time(23, 59, 59, 999999),
    time(1, 2, tzinfo=UTC),
    timedelta(days=-5, seconds=1, microseconds=7),
    Decimal("-12.3400"),
    UUID("12345678-1234-5678-1234-567812345678"),
    [],
    [1, [None, "x"], {"a": b"y"}],
    (1, (2, "z")),
    {},
    {"kind": "bytes", "content": "AA=="},
    {1: "a", date(2026, 1, 1): [Decimal(1)], (1, 2): None},
]


@for_each("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    """Of the same type too, and whatever looks like the form in which it travels."""
    back = decode_value(json.loads(json.dumps(encode_value(value))))
    assert back == value
    assert type(back) is type(value)


def test_what_nobody_knows_becomes_text() -> None:
    """DuckDB may have types that this Herdbook has never heard of."""
    assert decode_value(encode_value(3 + 4j)) == "(3+4j)"


@for_each(
    "written",
    [{}, {"kind": "list"}, {"kind": "nothing", "content": 1}, {"kind": "date", "content": "x"}],
)
def test_what_was_never_sent_is_an_error(written: Any) -> None:
    """It makes nothing else of it."""
    with pytest.raises((LookupError, ValueError, TypeError)):
        decode_value(written)
