"""Statements that DuckDB parses once: the same answers, and a bounded number of them."""

from collections.abc import Iterator

import duckdb
import pytest

from herdbook.adapters.duckdb import parsed_statements
from herdbook.adapters.duckdb.parsed_statements import execute


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> dict[str, duckdb.Statement]:
    """The statements of this test, of which three are kept."""
    kept: dict[str, duckdb.Statement] = {}
    monkeypatch.setattr(parsed_statements, "_PARSED", kept)
    monkeypatch.setattr(parsed_statements, "_MOST", 3)
    return kept


@pytest.fixture
def cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:", config={"threads": 1}) as opened:
        yield opened


def test_each_execution_has_its_own_parameters(
    parsed: dict[str, duckdb.Statement], cursor: duckdb.DuckDBPyConnection
) -> None:
    """A statement is parsed once and answers for what it is given."""
    sql = "SELECT ? + 1"
    assert [execute(cursor, sql, [n]).fetchall() for n in (1, 5)] == [[(2,)], [(6,)]]
    assert list(parsed) == [sql]


def test_a_statement_outlives_the_instance_that_parsed_it(
    parsed: dict[str, duckdb.Statement], cursor: duckdb.DuckDBPyConnection
) -> None:
    """Another instance executes it on tables of its own."""
    cursor.execute("CREATE TABLE rows AS SELECT 7 AS seven")
    with duckdb.connect(":memory:", config={"threads": 1}) as first:
        first.execute("CREATE TABLE rows AS SELECT 1 AS one, 2 AS two")
        assert execute(first, "SELECT * FROM rows").fetchall() == [(1, 2)]
    assert execute(cursor, "SELECT * FROM rows").fetchall() == [(7,)]
    assert len(parsed) == 1


def test_no_more_statements_are_kept_than_allowed(
    parsed: dict[str, duckdb.Statement], cursor: duckdb.DuckDBPyConnection
) -> None:
    """Texts with numbers in them would fill the memory of a server."""
    for number in range(10):
        assert execute(cursor, f"SELECT {number}").fetchall() == [(number,)]
        assert len(parsed) <= 3


def test_a_text_that_is_no_statement_is_not_kept(
    parsed: dict[str, duckdb.Statement], cursor: duckdb.DuckDBPyConnection
) -> None:
    """It raises DuckDB's error, each time."""
    for _ in range(2):
        with pytest.raises(duckdb.ParserException):
            execute(cursor, "SELEC 1")
    assert parsed == {}
