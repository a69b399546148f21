"""How an answer looks as a table, as CSV and as JSON."""

import csv
import io
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from herdbook.adapters.sql_query import Answer
from herdbook.entrypoints.cli.tabular import as_csv, as_json, as_table
from tests.cases import for_each

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
VALUES: list[tuple[Any, str, Any]] = [
    (None, "", None),
    (True, "true", True),
    (7, "7", 7),
    (2**63, "9223372036854775808", 2**63),
    (0.1, "0.1", 0.1),
    (float("nan"), "NaN", "NaN"),
    (float("inf"), "Infinity", "Infinity"),
    (float("-inf"), "-Infinity", "-Infinity"),
    (Decimal("1.50"), "1.5", 1.5),
    (Decimal(12), "12", 12),
    (Decimal("1E+3"), "1000", 1000),
    (Decimal("0.1000000000000000055511151231257827"), "0.1000000000000000055511151231257827",
     "0.1000000000000000055511151231257827"),
    (Decimal("1E+9999"), "1E+9999", "1E+9999"),
    (Decimal("NaN"), "NaN", "NaN"),
    ("ünï", "ünï", "ünï"),
    ("", "", ""),
    (AT, "2026-01-02T03:04:05.000006+00:00", "2026-01-02T03:04:05.000006+00:00"),
    (date(2026, 1, 2), "2026-01-02", "2026-01-02"),
    (time(3, 4), "03:04:00", "03:04:00"),
    (timedelta(minutes=1), "60 s", "60 s"),
    (b"\x00\xff", "\\x00ff", "\\x00ff"),
    (UUID(int=5), "00000000-0000-0000-0000-000000000005", "00000000-0000-0000-0000-000000000005"),
    ({"a": [1, None, AT]}, '{"a": [1, null, "2026-01-02T03:04:05.000006+00:00"]}',
     {"a": [1, None, "2026-01-02T03:04:05.000006+00:00"]}),
    ([Decimal(2), float("nan")], '[2, "NaN"]', [2, "NaN"]),
    (("x", 1), '["x", 1]', ["x", 1]),
]  # fmt: skip


@for_each(("value", "text", "plain"), VALUES, ids=[f"value {n}" for n in range(len(VALUES))])
def test_a_value_has_one_look_in_each(value: Any, text: str, plain: Any) -> None:
    """Every value has its text in tables and CSV and its like in JSON."""
    answer = Answer(("x",), [(value,)])
    assert list(csv.reader(io.StringIO(as_csv(answer)))) in ([["x"], [text]], [["x"], []])
    assert as_table(answer).splitlines()[2].strip() == text
    assert json.loads(as_json(answer)) == [{"x": plain}]


def test_a_table_is_aligned() -> None:
    """Columns stand below one another, numbers to the right, with no blanks at the ends."""
    answer = Answer(("name", "n"), [("cow", 5), ("牛牛", None), ("e\u0301", 1234)])
    assert as_table(answer) == "name  n\n----  ----\ncow      5\n牛牛\ne\u0301     1234\n"


def test_nothing_in_a_cell_moves_the_cursor() -> None:
    """Line ends, tabs, escapes and turns of the writing are shown as what they are."""
    answer = Answer(("a\nb",), [("x\ty\r\n\x1b[2J\u202e\x00\u00a0z",)])
    assert as_table(answer) == ("a\\nb\n" + "-" * 27 + "\nx\\ty\\r\\n\\x1b[2J\\u202e\\x00\u00a0z\n")


def test_long_cells_are_not_cut() -> None:
    """A table holds the whole text."""
    assert "x" * 10_000 in as_table(Answer(("a",), [("x" * 10_000,)]))


def test_csv_reads_back() -> None:
    """Commas, quotes and line ends in a field come back from a reader."""
    odd = 'a,"b"\nc\r\nd'
    told = as_csv(Answer(("x,y", "z"), [(odd, None)]))
    assert list(csv.reader(io.StringIO(told, newline=""))) == [["x,y", "z"], [odd, ""]]


def test_names_that_come_twice_are_told_apart() -> None:
    """The second of a name gets a number, one that no other column has."""
    answer = Answer(("a", "a", "a_2", "a"), [(1, 2, 3, 4)])
    assert json.loads(as_json(answer)) == [{"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}]
    assert as_csv(answer).splitlines()[0] == "a,a_2,a_2_2,a_3"
    assert as_table(answer).splitlines()[0] == "a  a  a_2  a"


def test_an_answer_without_rows_has_its_names() -> None:
    """No rows leave the head of a table, a line of CSV and an empty list."""
    answer = Answer(("a", "b"), [])
    assert as_table(answer) == "a  b\n-  -\n"
    assert as_csv(answer) == "a,b\n"
    assert as_json(answer) == "[]\n"


def test_an_answer_without_columns_is_no_trouble() -> None:
    """Postgres has rows that hold nothing."""
    answer = Answer((), [()])
    assert as_table(answer) == "\n\n\n"
    assert json.loads(as_json(answer)) == [{}]
