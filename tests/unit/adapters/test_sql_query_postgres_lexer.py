"""How the words of a query in Postgres' SQL are told from comments and quoted text."""

import pytest

from herdbook.adapters.sql_query.postgres_lexer import single_statement
from herdbook.domain.errors import InvalidValue
from tests.cases import for_each

HARMLESS = [
    "SELECT 1",
    "SELECT ';' , 'it''s; pg_read_file' FROM tasks",
    "SELECT E'\\'; pg_read_file' FROM tasks",
    'SELECT 1 AS "a;b""c;"',
    "SELECT $$; pg_read_file $$ || $a$ $$ ; $a$",
    "SELECT 1 /* ; /* ; */ pg_read_file ; */ + 2",
    "SELECT 1 -- ; pg_read_file\n + 2",
    "SELECT a$b$c FROM tasks",
    "SELECT 1$$;$$",
    "SELECT name AS pg_read, lower(name) AS lo FROM tasks",
    "SELECT B'01', X'ff', N'x;', 1e5, 1.5::int, '{a}'::text[] FROM tasks",
    "SELECT $$unfinished ; pg_read_file",
    "SELECT /* unfinished ; pg_read_file",
    "SELECT ä, \U0001f404 FROM tasks",
    "SELECT pg_catalog.lower(t.name), pg_typeof(1), pg_size_pretty (1::bigint) FROM tasks t",
    "SELECT t.id FROM work.tasks t JOIN work.agents USING (space) WHERE t.id IN (SELECT 'x')",
    "SELECT a.b FROM (VALUES (1)) a(b) WHERE a.b = ANY (ARRAY[1]) AND (a.b) IN (1, 2)",
    "SELECT 1.5 (2)",
]


@for_each("sql", HARMLESS)
def test_quoted_text_and_comments_are_no_words(sql: str) -> None:
    """What is quoted or commented out ends no statement and calls nothing."""
    assert single_statement(sql) == sql


@for_each("behind", ["", " ", ";", "\n-- the end", "/* ; */ ; -- ;"])
def test_an_end_and_what_is_no_statement_after_it_are_left_out(behind: str) -> None:
    """Only the query itself is passed on."""
    assert single_statement(f"SELECT ';' ;{behind}") == "SELECT ';' "


@for_each(
    "sql",
    [
        "SELECT 1; SELECT 2",
        ";; SELECT 1",
        "SELECT ''';'; SELECT 2",
        "SELECT E'\\\\'; SELECT 2",
        "SELECT '\\'; SELECT 2",
        "SELECT $a$ $b$ $a$; SELECT 2",
        "SELECT 1 /* /* */ ; */ ; SELECT 2",
        "SELECT 1 --\n; SELECT 2",
        "SELECT 1 --\r; SELECT 2",
        'SELECT """"; SELECT 2',
        "SELECT 1;'x'",
        "SELECT 1;1",
        "SELECT 1;$$x$$",
    ],
)
def test_a_second_statement_is_refused(sql: str) -> None:
    """Anything said after an end is a second statement."""
    with pytest.raises(InvalidValue, match="sql: has more than one statement"):
        single_statement(sql)


@for_each(
    "sql",
    [
        "SELECT pg_read_file('x')",
        "SELECT PG_READ_FILE ('x')",
        "SELECT pg_catalog.pg_read_file('x')",
        'SELECT "pg_read_file"(1)',
        "SELECT/**/pg_ls_dir/**/('x')",
        "SELECT 'a'pg_sleep, lo_get(1)",
        "SELECT (lo_get(1))",
        "SELECT * FROM public.dblink_connect('x')",
        "SELECT database_to_xml_and_xmlschema(true, true, '')",
        "SELECT pg_try_advisory_xact_lock(1)",
        "SELECT * FROM pg_stat_get_activity(NULL)",
        'SELECT * FROM "pg_show_all_settings" /* x */ ()',
        "SELECT current_setting('data_directory')",
        "SELECT public.read_it('x')",
        'SELECT * FROM "Some Schema" . "read it" (1)',
        "SELECT work.peek()",
        "SELECT db.public.peek()",
    ],
)
def test_functions_that_reach_out_are_refused(sql: str) -> None:
    """Quoted, in capitals or with a schema, their names are known."""
    with pytest.raises(InvalidValue, match="sql: may not use"):
        single_statement(sql)


@pytest.mark.parametrize("sql", ['SELECT U&"d\\0061ta"', "SELECT u&'d\\0061ta'"])
def test_names_spelt_by_numbers_are_refused(sql: str) -> None:
    """What could spell any name without its letters is not let through."""
    with pytest.raises(InvalidValue, match="may not write names or text as U&"):
        single_statement(sql)
