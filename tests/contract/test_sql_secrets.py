"""No query shows a secret: not in an answer, not in an error, however it asks for it."""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from attrs import frozen

from herdbook.adapters import open_store
from herdbook.adapters.sql_query import ask
from herdbook.adapters.stores.urls import path_of
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.record.model import Account
from herdbook.domain.secret import Secret
from herdbook.entrypoints.cli.tabular import as_csv, as_json, as_table
from herdbook.ports.engine.dictionary import ACCOUNTS
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from tests.contract import raw
from tests.contract.space import work_in

TEXT = "S3CR3T"
LONG = TEXT * 1_000
"""Long enough to be kept apart from its row."""
SPACE = "record/vault"

on_duckdb_sql = pytest.mark.parametrize("engine", ["memory", "lmdb", "duckdb"], indirect=True)
on_duckdb = pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
on_postgres = pytest.mark.parametrize("engine", ["postgres"], indirect=True)


@frozen
class Vault:
    """A store with accounts that hold secrets."""

    url: str
    store: Store

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of an answer, asked by the URL as a command does."""
        return ask(self.store if self.url == "memory://" else self.url, sql).rows

    def outcome(self, sql: str) -> str:
        """All that anybody could get to see of a query: its answer, or its error with causes."""
        try:
            answer = ask(self.store, sql)
        except HerdbookError as error:
            return "".join(traceback.format_exception(error))
        return "\n".join([repr(answer), as_table(answer), as_csv(answer), as_json(answer)])


@pytest.fixture(scope="module")
def vault(engine: str, new_url: Callable[[str], str]) -> Iterator[Vault]:
    url = new_url(engine)
    with open_store(url) as store:
        with work_in(store, SPACE) as uow:
            uow.accounts.add(Account(id="one", email="a", config=Secret(f"{TEXT}-1")))
            uow.accounts.add(Account(id="two", email="b", credentials=Secret(f"{LONG}-2")))
            for number in range(20):
                uow.accounts.add(Account(email=f"m{number}", config=Secret(f"{TEXT}-1")))
            uow.commit()
        if engine == "postgres":
            with raw.postgres(url) as server:
                server.execute("ANALYZE accounts")
        yield Vault(url, store)


def test_the_store_itself_still_has_them(vault: Vault) -> None:
    """What is hidden is there: without that, the tests below would show nothing."""
    with vault.store.transaction(SPACE, write=False) as session:
        rows = session.select(find(ACCOUNTS))
    revealed = {each.reveal() for row in rows for each in (row.config, row.credentials) if each}
    assert revealed == {f"{TEXT}-1", f"{LONG}-2"}


def test_a_secret_reads_as_stars_and_nothing_as_nothing(vault: Vault) -> None:
    """A secret is `***`, whatever it is; a field that holds none is empty."""
    sql = "SELECT id, config, credentials FROM accounts WHERE id IN ('one', 'two') ORDER BY id"
    assert vault.ask(sql) == [("one", "***", None), ("two", None, "***")]


def test_the_journal_tells_no_secret(vault: Vault) -> None:
    """The entries about an account hold stars as well."""
    after = vault.ask("SELECT after FROM journal WHERE entity = 'accounts' ORDER BY seq LIMIT 1")
    assert after[0][0]["config"] == "***"


ANYWHERE = [
    "SELECT * FROM accounts",
    "TABLE accounts",
    'SELECT * FROM "accounts"',
    "SELECT * FROM ACCOUNTS",
    "SELECT * FROM /* herdbook. */ accounts -- herdbook.accounts",
    "SELECT a FROM accounts a",
    "SELECT accounts FROM accounts",
    "SELECT a.* FROM accounts AS a(space, config, id)",
    "SELECT row(a.*) FROM accounts a",
    "SELECT config || credentials, length(config), substr(config, 1, 3) FROM accounts",
    "SELECT md5(config), ascii(config) FROM accounts",
    "SELECT max(config), min(credentials), string_agg(config, ',') FROM accounts",
    "SELECT count(*) FROM accounts WHERE config LIKE 'S3%'",
    "SELECT CAST(config AS integer) FROM accounts",
    "SELECT CAST(credentials AS date) FROM accounts",
    "SELECT 1 / (length(config) - length(config)) FROM accounts",
    "SELECT x.config FROM (SELECT * FROM accounts) x JOIN accounts y ON x.config = y.config",
    "WITH a AS (SELECT * FROM accounts) SELECT * FROM a UNION SELECT * FROM accounts",
    "WITH accounts AS (SELECT * FROM accounts) SELECT * FROM accounts",
    (
        "WITH RECURSIVE a AS (SELECT config FROM accounts UNION SELECT config || 'x' FROM a "
        "WHERE length(config) < 5) SELECT * FROM a"
    ),
    "SELECT (SELECT config FROM accounts WHERE id = 'one'), id FROM accounts",
    "SELECT id FROM accounts ORDER BY config, credentials",
    "EXPLAIN ANALYZE SELECT * FROM accounts WHERE config = 'S3CR3' || 'T-1'",
    "SELECT * FROM main.accounts",
    "SELECT * FROM herdbook.accounts",
    "SELECT * FROM herdbook.main.accounts",
    'SELECT * FROM "herdbook" . "main" . "accounts"',
    "SELECT * FROM public.accounts",
    "SELECT * FROM query_table('accounts')",
    "SELECT * FROM query('SELECT * FROM accounts')",
    "SELECT nothing FROM accounts",
    "SELECT * FROM journal",
    "SELECT * FROM operations",
]


def test_no_query_shows_a_secret(vault: Vault) -> None:
    """Whatever is asked, neither the answer nor the error nor its cause holds the text."""
    for sql in ANYWHERE:
        assert TEXT not in vault.outcome(sql).replace(sql, ""), sql


def test_a_secret_cannot_be_guessed_at(vault: Vault) -> None:
    """A condition compares the stars and not what is behind them."""
    assert vault.ask("SELECT count(*) FROM accounts WHERE config LIKE 'S3%'") == [(0,)]
    assert vault.ask(f"SELECT count(*) FROM accounts WHERE config = '{TEXT}-1'") == [(0,)]
    assert vault.ask("SELECT DISTINCT length(config) FROM accounts WHERE id = 'one'") == [(3,)]


IN_DUCKDB = [
    "FROM accounts",
    "SELECT COLUMNS(*) FROM accounts",
    "SELECT to_json(a) FROM accounts a",
    "SELECT struct_pack(*COLUMNS(*)) FROM accounts",
    "SELECT unnest(a) FROM accounts a",
    "SELECT stats(config) FROM accounts",
    "SUMMARIZE accounts",
    "DESCRIBE accounts",
    "SELECT * FROM pragma_storage_info('accounts')",
    "SELECT * FROM pragma_storage_info('herdbook.main.accounts')",
    "SELECT * FROM duckdb_views()",
    "SELECT * FROM duckdb_table_sample('accounts')",
    "SELECT * FROM seq_scan('accounts')",
    "PIVOT accounts ON config USING count(*)",
    "SELECT * FROM accounts AT (VERSION => 1)",
    "SELECT * FROM accounts TABLESAMPLE 100%",
    "SELECT error(config) FROM accounts",
    "SELECT config::INTEGER, config::JSON FROM accounts",
    "SELECT rowid FROM accounts",
    "SELECT getvariable('a'), current_setting('temp_directory')",
]


@on_duckdb_sql
def test_duckdbs_own_ways_show_no_secret(vault: Vault) -> None:
    """Statistics, samples, structs and errors of DuckDB know the stars alone."""
    for sql in IN_DUCKDB:
        assert TEXT not in vault.outcome(sql), sql


@on_duckdb
def test_the_file_is_not_read_past_the_tables(vault: Vault) -> None:
    """The path of the store itself opens nothing, by any function, name or relative way."""
    path = str(path_of(vault.url))
    quoted = '"' + path.replace('"', '""') + '"'
    for sql in (
        f"SELECT * FROM read_duckdb('{path}', table_name = 'accounts')",
        f"SELECT * FROM read_blob('{path}')",
        f"SELECT * FROM read_text('{path}.lock')",
        f"FROM '{path}'",
        f"FROM {quoted}.accounts",
        f"FROM {quoted}",
        f"DESCRIBE '{path}'",
        f"SUMMARIZE {quoted}",
        f"ATTACH '{path}' AS again",
        f"WITH {quoted} AS (SELECT 1) FROM {quoted}",
        f"SELECT * FROM (WITH {quoted} AS (SELECT 1) SELECT 1), {quoted}",
        f"SELECT (FROM '{path}' LIMIT 1)",
        f"COPY FROM DATABASE '{path}' TO memory",
    ):
        with pytest.raises(InvalidValue):
            vault.ask(sql)
        assert TEXT not in vault.outcome(sql), sql


IN_POSTGRES = [
    "TABLE {schema}.accounts",
    'SELECT config FROM "{schema}"."accounts"',
    "SELECT config FROM {schema} /**/ . /**/ accounts",
    'SELECT config FROM U&"{schema}".accounts',
    "SELECT config FROM ONLY {schema}.accounts",
    "SELECT a.config, b.config FROM accounts a, {schema}.accounts b",
    "WITH accounts AS (SELECT * FROM {schema}.accounts) SELECT * FROM accounts",
    "SELECT row_to_json(accounts) FROM accounts",
    "SELECT to_jsonb(a) FROM accounts a",
    "SELECT a::text FROM accounts a",
    "SELECT json_agg(a), array_agg(a) FROM accounts a",
    "SELECT (a).config FROM accounts a",
    "SELECT (NULL::{schema}.accounts).config",
    "SELECT query_to_xml('SELECT * FROM {schema}.accounts', true, true, '')",
    "SELECT * FROM accounts, query_to_xml('SELECT * FROM {schema}.accounts', true, true, '')",
    "SELECT table_to_xml('{schema}.accounts', true, true, '')",
    "SELECT schema_to_xml('{schema}', true, true, '')",
    "SELECT \"query_to_xml\"('SELECT * FROM {schema}.accounts', true, true, '')",
    "SELECT * FROM ts_stat('SELECT to_tsvector(config) FROM {schema}.accounts')",
    "SELECT * FROM pg_stats WHERE tablename = 'accounts'",
    "SELECT * FROM pg_statistic",
    "SELECT most_common_vals FROM pg_catalog.pg_stats",
    "SELECT pg_read_binary_file(pg_relation_filepath('{schema}.accounts'))",
    "SELECT encode(pg_read_binary_file(pg_relation_filepath('accounts')), 'escape')",
    "SELECT ('x' || config)::int FROM {schema}.accounts",
    "SELECT ctid, xmin FROM {schema}.accounts",
    "SELECT config FROM accounts TABLESAMPLE SYSTEM (100)",
    "SELECT config FROM accounts FOR SHARE",
    "SELECT * FROM {schema}.accounts WHERE CASE WHEN config LIKE 'S%' THEN 1 / 0 ELSE 1 END = 1",
    "SELECT * FROM pg_prepared_statements",
    "SELECT * FROM pg_cursors",
    "SELECT * FROM pg_stat_activity",
]


@on_postgres
def test_postgres_own_ways_show_no_secret(vault: Vault) -> None:
    """Neither the schema's name nor statistics nor functions that run SQL show one, to a superuser.

    What the store's tables are called in full is no secret, so every query knows it.
    """
    schema = vault.url.rpartition("schema=")[2]
    for query in IN_POSTGRES:
        sql = query.replace("{schema}", schema)
        assert TEXT not in vault.outcome(sql), sql


@on_postgres
def test_reading_past_the_stars_is_noticed_afterwards(vault: Vault) -> None:
    """A function nobody knows of that reads the table is found out by the locks it left."""
    schema = vault.url.rpartition("schema=")[2]
    with raw.postgres(vault.url) as server:
        server.execute(
            f"CREATE FUNCTION {schema}.peek() RETURNS text LANGUAGE sql "
            f"AS 'SELECT string_agg(config, '','') FROM {schema}.accounts'"
        )
        assert TEXT in str(server.execute("SELECT peek()").fetchall())
    for sql in ("SELECT peek()", "SELECT peek(), email FROM accounts", "SELECT peek()::int"):
        with pytest.raises(InvalidValue) as refusal:
            vault.ask(sql)
        assert "secrets" in str(refusal.value) or "22P02" in str(refusal.value)
        assert TEXT not in vault.outcome(sql)
