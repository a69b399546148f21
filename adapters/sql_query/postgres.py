"""Queries a Postgres server, in a read-only transaction that is rolled back.

The server parses the query before anything runs, and the locks of the transaction show which tables
it names, however it names them; after the last row they show what else was read, and an answer that
took more than the tables of the store is withheld. Tables with secrets are read first, without
their secrets, and the query gets those rows instead.

What remains is what the role may do by the server's own rights: a function that some extension
brought, or a superuser's, can still reach past the tables if `postgres_lexer` does not know its
name. Give people who should not see secrets a role that may not.
"""

from contextlib import closing
from typing import Any

import psycopg
from psycopg import generators, pq, sql

from herdbook.adapters.postgres.begin import Mode, begin, milliseconds
from herdbook.adapters.postgres.bounded_connection import BoundedConnection
from herdbook.adapters.postgres.connection_pool import ConnectionPool
from herdbook.adapters.postgres.dialect import POSTGRES
from herdbook.adapters.postgres.errors import translate_error
from herdbook.adapters.sql.dialect import quote_name
from herdbook.adapters.sql_query.postgres_lexer import single_statement
from herdbook.adapters.sql_query.redaction import redacted_columns
from herdbook.adapters.sql_query.refusal import ONE_QUERY, query_error, timeout_error
from herdbook.adapters.sql_query.result import Answer, make_answer
from herdbook.adapters.sql_query.sandbox import Deadline
from herdbook.domain.errors import HerdbookError
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.store import Store

_JSON = 114
_CATALOGS = {
    *("pg_class", "pg_namespace", "pg_attribute", "pg_attrdef", "pg_type", "pg_index"),
    *("pg_constraint", "pg_collation", "pg_description", "pg_tables", "pg_indexes", "pg_views"),
    *("pg_am", "pg_tablespace", "pg_depend", "pg_sequence"),
}
_NO_QUERY = {"42601", "0A000", "25006"}
_SERVERS_OWN = {"08", "40", "53", "55", "57", "58"}
_DAMAGED = {"XX001", "XX002"}
# An index or a TOAST table counts as its table.
_READ = """
SELECT DISTINCT space.nspname, main.relname FROM pg_lock_status() held
JOIN pg_class given ON given.oid = held.relation
LEFT JOIN pg_index ON indexrelid = given.oid
LEFT JOIN pg_class owner ON owner.reltoastrelid = coalesce(indrelid, given.oid)
JOIN pg_class main ON main.oid = coalesce(owner.oid, indrelid, given.oid)
JOIN pg_namespace space ON space.oid = main.relnamespace
WHERE held.pid = pg_backend_pid() AND held.locktype = 'relation'
"""


def query_server(store: Store, url: str, query: str, *, deadline: Deadline, limit: int) -> Answer:
    """Answer a query on the server of a store, in its own SQL.

    The store was opened before, so its schema is known to be ours to use. A query whose connection
    breaks is not repeated: it may be the reason.
    """
    patience = deadline.patience
    query = single_statement(query)
    connections = ConnectionPool(url, patience=patience)
    # Closing the connection without a COMMIT rolls the transaction back.
    with closing(connections.connect()) as connection:
        reading = _ServerQuery(connection, store.dictionary, connections.schema)
        try:
            return reading.answer(query, patience, limit)
        except psycopg.errors.QueryCanceled as error:
            raise timeout_error(patience) from error
        except psycopg.Error as error:
            # Not even as its cause: the server's message may quote what the query read.
            raise _server_error(error, connections.place, patience) from None


class _ServerQuery:
    """One transaction on the server that answers one query."""

    def __init__(self, connection: BoundedConnection, dictionary: Dictionary, schema: str) -> None:
        self._connection = connection
        self._schema = schema
        self._kinds = dictionary.kinds

    def answer(self, query: str, patience: float, limit: int) -> Answer:
        """Parse the query, check what it names, run it over redacted tables, check what it read."""
        self._begin(patience)
        self._parse(query)
        named = self._tables_read()
        secret = [kind for name in sorted(named) if (kind := self._kinds[name]).secrets]
        self._connection.execute("ROLLBACK TO asked")
        parts = [self._redacted_table_sql(kind) for kind in secret]
        self._connection.execute("ROLLBACK TO asked")
        cursor = self._connection.cursor()
        within = f"WITH {', '.join(parts)} " if parts else ""
        statement = (
            f"DECLARE answer NO SCROLL CURSOR FOR {within}SELECT * FROM (\n{query}\n) AS answer"
        )
        self._run_single(statement)
        self._refuse_secret_tables()
        fetched = cursor.execute(f"FETCH {limit + 1:d} FROM answer").fetchall()
        described = cursor.description or []
        self._refuse_secret_tables()
        documents = [at for at, each in enumerate(described) if each.type_code == _JSON]
        return make_answer((each.name for each in described), fetched, documents, limit)

    def _begin(self, patience: float) -> None:
        settings = {
            # The server's own names come first, and temporary objects last.
            "search_path": f"{quote_name(self._schema)}, pg_temp",
            "standard_conforming_strings": "on",
            "statement_timeout": str(milliseconds(patience)),
            "TimeZone": "UTC",
            "DateStyle": "ISO, YMD",
            "bytea_output": "hex",
        }
        each = ", ".join(
            f"pg_catalog.set_config('{name}', '{value}', true)" for name, value in settings.items()
        )
        begin(self._connection, Mode.READ, patience, f"SELECT {each}; SAVEPOINT asked")

    def _parse(self, query: str) -> None:
        """Let the server parse the query without running it; its error message quotes the query."""
        server = self._connection.pgconn
        server.send_prepare(b"", query.encode())
        result = self._result()
        if result.status == pq.ExecStatus.FATAL_ERROR:
            text = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"it is not understood"
            raise query_error(text.decode(errors="replace"))
        server.send_describe_prepared(b"")
        if self._result().nparams:
            raise query_error("has parameters, to which nobody gives values")

    def _run_single(self, statement: str) -> None:
        """Run text that the server accepts only as a single statement."""
        self._connection.pgconn.send_query_params(statement.encode(), None)
        result = self._result()
        if result.status == pq.ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)

    def _result(self) -> pq.abc.PGresult:
        """The result of what was sent, waited for as in any other call."""
        server = self._connection.pgconn
        results: list[pq.abc.PGresult] = self._connection.wait(generators.execute(server))
        return results[-1]

    def _tables_read(self) -> set[str]:
        """The store's tables that this transaction has named or read.

        Raises InvalidValue if it has read anything else.
        """
        found = set()
        for schema, name in self._connection.execute(_READ).fetchall():
            if schema == self._schema and name in self._kinds:
                found.add(name)
            elif schema != "information_schema" and (
                schema != "pg_catalog" or name not in _CATALOGS
            ):
                raise query_error(f"reads {schema}.{name}, which is no table of this store")
        return found

    def _refuse_secret_tables(self) -> None:
        for name in sorted(self._tables_read()):
            if self._kinds[name].secrets:
                raise query_error(f"must call the table {name} by its name alone: it holds secrets")

    def _redacted_table_sql(self, kind: Kind[Any]) -> str:
        """A table as a part of a query that holds its rows, with stars for its secrets."""
        ((rows,),) = self._connection.execute(
            f"SELECT coalesce(json_agg(each), '[]')::text FROM (SELECT {redacted_columns(kind)} "
            f"FROM {quote_name(self._schema)}.{quote_name(kind.name)}) AS each"
        ).fetchall()
        types = {"space": "id"} | {n: each.type_name for n, each in kind.columns.items()}
        layout = ", ".join(f"{quote_name(n)} {POSTGRES.types[each]}" for n, each in types.items())
        text = sql.Literal(rows).as_string(self._connection)
        rows_of_text = f"SELECT * FROM json_to_recordset({text}) AS each({layout})"
        return f"{quote_name(kind.name)} AS ({rows_of_text})"


def _server_error(error: psycopg.Error, place: str, patience: float) -> HerdbookError:
    """The error of a running query, without the server's message: that may quote what it read."""
    code = error.sqlstate or ""
    if code in _NO_QUERY:
        return query_error(ONE_QUERY)
    if code[:2] in _SERVERS_OWN or code in _DAMAGED:
        return translate_error(error, place, patience)
    if code:
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in type(error).__name__)
        return query_error(f"cannot be answered: {words.strip()} ({code})")
    if isinstance(error, psycopg.DataError):
        return query_error("has a value in its answer that Python does not know; cast it to text")
    return translate_error(error, place, patience)
