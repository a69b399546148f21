"""The engines without us: the same work, done with ready-made values through the bare driver.

A raw side learns what one unit of work sends to the engine, statement by statement or put by put,
and repeats just that in other spaces of a store of its own, which were set up alike.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import duckdb
import lmdb
import psycopg

from herdbook.adapters.duckdb.store import DuckDBSession
from herdbook.adapters.lmdb.keys import encode_values, lookup_tag, prefix_end, row_prefix
from herdbook.adapters.postgres.address import read_address
from herdbook.adapters.postgres.bounded_connection import BoundedConnection
from herdbook.ports.engine.dictionary import JOURNAL, MESSAGES
from herdbook.ports.engine.store import Store

Work = Callable[[], object]
FOUND_BY = ("recipient_id", "status", "created_at")
PAGE = 1_000


class Reading(Protocol):
    """Reads of the bare driver, in one transaction."""

    def get(self, key: str) -> Any: ...

    def find(self, recipient: str) -> Any: ...

    def since(self, seq: int) -> Any: ...


class Raw(Protocol):
    """A raw side; open only between `begin` and `end`, when our store there is closed."""

    def learn(self, store: Store, space: str, work: Work) -> None: ...

    def begin(self) -> None: ...

    def repeat(self, space: str) -> None: ...

    def reading(self, space: str) -> Any: ...

    def end(self) -> None: ...


class RawLmdb:
    """Puts and deletes in an LMDB environment."""

    def __init__(self, url: str) -> None:
        self._folder = urlsplit(url).path
        self._puts: list[tuple[str, bytes, bytes]] = []
        self._deletes: list[tuple[str, bytes]] = []

    def learn(self, store: Any, space: str, work: Work) -> None:
        before = self._dump(store, space)
        work()
        after = self._dump(store, space)
        self._puts = [(*at, after[at]) for at in after if before.get(at) != after[at]]
        self._deletes = [at for at in before if at not in after]

    @staticmethod
    def _dump(store: Any, space: str) -> dict[tuple[str, bytes], bytes]:
        env = store._env
        with env.transaction(write=False) as txn:
            number = txn.get(space.encode(), db=env.databases["spaces"])
            return {
                (name, key[4:]): value
                for name in ("rows", "lookups")
                for key, value in _from(txn.cursor(db=env.databases[name]), number)
            }

    def begin(self) -> None:
        self._env = lmdb.open(self._folder, map_size=8 * 2**30, max_dbs=8, max_readers=2_048)
        self._databases = {
            name: self._env.open_db(name.encode()) for name in ("spaces", "rows", "lookups")
        }
        with self._env.begin() as txn:
            cursor = txn.cursor(db=self._databases["spaces"])
            self._numbers = {bytes(name).decode(): bytes(number) for name, number in cursor}

    def repeat(self, space: str) -> None:
        number, databases = self._numbers[space], self._databases
        with self._env.begin(write=True) as txn:
            for name, key in self._deletes:
                txn.delete(number + key, db=databases[name])
            for name, key, value in self._puts:
                txn.put(number + key, value, db=databases[name])

    @contextmanager
    def reading(self, space: str) -> Iterator[Reading]:
        with self._env.begin() as txn:
            yield _LmdbReading(txn, self._databases, self._numbers[space])

    def end(self) -> None:
        self._env.close()


def _from(cursor: Any, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    if cursor.set_range(prefix):
        for key, value in cursor.iternext():
            if not key.startswith(prefix):
                return
            yield key, value


class _LmdbReading:
    def __init__(self, txn: Any, databases: dict[str, Any], number: bytes) -> None:
        self._txn = txn
        self._databases = databases
        self._messages = row_prefix(MESSAGES.name, number)
        self._journal = row_prefix(JOURNAL.name, number)
        self._lookup = number + lookup_tag(MESSAGES.name, FOUND_BY)

    def get(self, key: str) -> Any:
        value = self._txn.get(self._messages + key.encode() + b"\0", db=self._databases["rows"])
        return json.loads(value[4:])

    def find(self, recipient: str) -> Any:
        prefix = self._lookup + encode_values(MESSAGES, FOUND_BY[:2], (recipient, "pending"))
        rows = self._databases["rows"]
        cursor = self._txn.cursor(db=self._databases["lookups"])
        return [
            json.loads(self._txn.get(self._messages + key, db=rows)[4:])
            for _, key in _from(cursor, prefix)
        ]

    def since(self, seq: int) -> Any:
        start = self._journal + encode_values(JOURNAL, ("seq",), (seq + 1,))
        end = prefix_end(self._journal)
        cursor = self._txn.cursor(db=self._databases["rows"])
        found: list[Any] = []
        cursor.set_range(start)
        for key, value in cursor.iternext():
            if key >= end or len(found) == PAGE:
                break
            found.append(json.loads(value[4:]))
        return found


Statement = tuple[str, list[Any]]


class RawPostgres:
    """Statements over one psycopg connection."""

    def __init__(self, url: str) -> None:
        address = read_address(url)
        self._url, self._schema = address.driver, address.schema
        self._statements: list[Statement] = []
        self._prepared: dict[str, str] = {}
        self._learnt_in = ""

    def learn(self, store: Any, space: str, work: Work) -> None:
        schema = store._within.strip('"')
        statements: list[Statement] = []
        execute = psycopg.Cursor.execute

        def recording(cursor: Any, query: Any, parameters: Any = None, **options: Any) -> Any:
            text = query.decode() if isinstance(query, bytes) else query
            statements.append((text.replace(schema, self._schema), list(parameters or [])))
            return execute(cursor, query, parameters, **options)

        run_script = BoundedConnection.run_script

        def recording_script(connection: Any, text: bytes) -> Any:
            statements.append((text.decode().replace(schema, self._schema), []))
            for sql, name in connection.sql_statements.items():
                self._prepared[name] = sql.replace(schema, self._schema)
            return run_script(connection, text)

        psycopg.Cursor.execute = recording  # type: ignore[method-assign]
        BoundedConnection.run_script = recording_script  # type: ignore[method-assign]
        try:
            work()
        finally:
            psycopg.Cursor.execute = execute  # type: ignore[method-assign]
            BoundedConnection.run_script = run_script  # type: ignore[method-assign]
        self._statements, self._learnt_in = statements, space

    def begin(self) -> None:
        self._connection = psycopg.connect(
            self._url, autocommit=True, options="-c TimeZone=UTC -c client_min_messages=warning"
        )
        self._cursor = self._connection.cursor()
        for name, sql in self._prepared.items():
            self._cursor.execute(f"PREPARE {name}(text) AS {sql}".encode())

    def repeat(self, space: str) -> None:
        for sql, parameters in self._statements:
            given = [space if each == self._learnt_in else each for each in parameters]
            text = sql.replace(f"'{self._learnt_in}'", f"'{space}'")
            self._cursor.execute(text.encode(), given or None)
            while True:
                if self._cursor.description:
                    self._cursor.fetchall()
                if not self._cursor.nextset():
                    break

    @contextmanager
    def reading(self, space: str) -> Iterator[Reading]:
        def fetch(sql: str, parameters: list[Any]) -> list[Any]:
            self._cursor.execute(sql.encode(), parameters)
            return self._cursor.fetchall()

        self._cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield _SqlReading(fetch, f'"{self._schema}"', "%s", space)
        self._cursor.execute("COMMIT")

    def end(self) -> None:
        self._connection.close()


class _SqlReading:
    def __init__(
        self, fetch: Callable[[str, list[Any]], Any], within: str, mark: str, space: str
    ) -> None:
        self._fetch = fetch
        self._space = space
        columns = {
            kind: ", ".join(f'"{name}"' for name in kind.columns) for kind in (MESSAGES, JOURNAL)
        }
        messages = f"SELECT {columns[MESSAGES]} FROM {within}.messages WHERE space = {mark}"
        self._get = f"{messages} AND id = {mark}"
        self._find = (
            f"{messages} AND recipient_id = {mark} AND status = {mark} ORDER BY created_at, id"
        )
        self._since = (
            f"SELECT {columns[JOURNAL]} FROM {within}.journal WHERE space = {mark} "
            f"AND seq > {mark} ORDER BY seq LIMIT {PAGE}"
        )

    def get(self, key: str) -> Any:
        return self._fetch(self._get, [self._space, key])

    def find(self, recipient: str) -> Any:
        return self._fetch(self._find, [self._space, recipient, "pending"])

    def since(self, seq: int) -> Any:
        return self._fetch(self._since, [self._space, seq])


class RawDuckDB:
    """Statements on a DuckDB file that stays attached, as a lingering one does."""

    def __init__(self, url: str) -> None:
        self._path = Path(urlsplit(url).path)
        self._statements: list[Statement] = []
        self._learnt_in = ""

    def learn(self, _: Store, space: str, work: Work) -> None:
        statements: list[Statement] = [("BEGIN", [])]
        run = DuckDBSession._run

        def recording(session: Any, sql: str, parameters: Any = None) -> Any:
            statements.append((sql, list(parameters or [])))
            return run(session, sql, parameters)

        DuckDBSession._run = recording  # type: ignore[method-assign]
        try:
            work()
        finally:
            DuckDBSession._run = run  # type: ignore[method-assign]
        self._statements, self._learnt_in = [*statements, ("COMMIT", [])], space

    def begin(self) -> None:
        config = {"threads": 1, "async_threads": 0}
        self._connection = duckdb.connect(":memory:", config=config)  # type: ignore[arg-type]
        self._connection.execute(f"ATTACH '{self._path}' AS herdbook (TYPE duckdb)")

    def repeat(self, space: str) -> None:
        for sql, parameters in self._statements:
            self._fetch(sql, [space if each == self._learnt_in else each for each in parameters])

    def _fetch(self, sql: str, parameters: list[Any]) -> list[Any]:
        return self._connection.execute(sql, parameters or None).fetchall()

    @contextmanager
    def reading(self, space: str) -> Iterator[Reading]:
        self._connection.execute("BEGIN")
        yield _SqlReading(self._fetch, "herdbook.main", "?", space)
        self._connection.execute("COMMIT")

    def end(self) -> None:
        self._connection.close()
