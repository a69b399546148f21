"""The DuckDB store: sessions over an attached file."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import duckdb

from herdbook.adapters.duckdb.broker.client import BrokerClient
from herdbook.adapters.duckdb.dialect import DUCKDB
from herdbook.adapters.duckdb.errors import refuse_foreign_rows, translate_error, translate_errors
from herdbook.adapters.duckdb.file_access import Attachment, SharedFile
from herdbook.adapters.duckdb.parsed_statements import execute
from herdbook.adapters.duckdb.read_rows import ReadRows
from herdbook.adapters.duckdb.schema import Description, read_description
from herdbook.adapters.sql.layout import catalogue_json, migration_statements, upgrade_heads
from herdbook.adapters.sql.session import SqlSession, Tables
from herdbook.adapters.sql.statements import Names, Parameters, SqlTable
from herdbook.adapters.stores.base_store import BaseStore, refuse_newer
from herdbook.adapters.stores.file_node import file_node
from herdbook.adapters.system.os_errors import translate_os_errors
from herdbook.adapters.wakeups.wakeups import SocketWakeups
from herdbook.domain.errors import (
    AlreadyExists,
    StoreDamaged,
    StoreUnavailable,
)
from herdbook.domain.journal import Head
from herdbook.domain.location.areas import area_of
from herdbook.domain.location.resolve import file_url
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.query import Query
from herdbook.ports.engine.store import Session
from herdbook.ports.engine.wakeups import Wakeups
from herdbook.ports.world.system import Clock, Ids

E = TypeVar("E")

WITHIN = f"{Attachment.catalog}.main"


class DuckDBSession(SqlSession):
    """A transaction on an attached DuckDB file."""

    def __init__(
        self,
        attachment: Attachment,
        tables: Tables,
        space: str,
        now: datetime,
        place: str,
        *,
        write: bool,
    ) -> None:
        super().__init__(self._run, tables, space)
        self.now = now
        self._attachment = attachment
        self._place = place
        self._writes = write
        self._failed = False
        self._note = ""
        self._read = ReadRows(tables)

    def _run(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]:
        # After an error DuckDB would treat a COMMIT as a rollback without reporting it.
        failed, self._failed = self._failed, True
        try:
            rows = execute(self._attachment.cursor, sql, parameters).fetchall()
        except duckdb.Error as error:
            raise translate_error(error, self._place) from error
        self._failed = failed
        return rows

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        with refuse_foreign_rows(kind, self._place):
            rows = super().get(kind, keys)
        if self._writes:
            missing = [key for key, row in zip(keys, rows, strict=True) if row is None]
            self._read.add_free(kind, missing)
        return rows

    def select(self, query: Query[E]) -> list[E]:
        with refuse_foreign_rows(query.kind, self._place):
            return super().select(query)

    def _entities(self, table: SqlTable[E], fetched: Sequence[Sequence[Any]]) -> list[E]:
        if self._writes:
            self._read.add(table.kind, fetched)
        return super()._entities(table, fetched)

    @cached_property
    def head(self) -> Head | None:
        return self.get(HEADS, ["head"])[0]

    def insert(self, kind: Kind[E], rows: Sequence[E]) -> None:
        """Look for the keys, then insert: nobody else writes meanwhile.

        ON CONFLICT would do the same, but takes DuckDB twice as long.
        """
        if not rows:
            return
        table, keys = self._tables[kind], [kind.key_of(row) for row in rows]
        if len(set(keys)) < len(keys) or not self._are_free(kind, keys):
            raise AlreadyExists(kind.title, str(self._first_duplicate(kind, keys)))
        if len(rows) == 1:
            self._execute(table.append_one, [self._space, *table.values(rows[0])])
        else:
            self._execute(table.append_many, [self._space, *self._lists(table, rows)])
        self._read.forget(kind, keys)
        self._remember(rows)

    def _are_free(self, kind: Kind[Any], keys: Sequence[Any]) -> bool:
        """Whether there are no rows under keys yet."""
        if self._read.are_free(kind, keys):
            return True
        table = self._tables[kind]
        if len(keys) == 1:
            return not self._execute(table.find_key, [self._space, keys[0]])
        return not self._execute(table.find_keys, [self._space, keys])

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        super().replace(kind, rows)
        self._read.add(kind, map(self._tables[kind].values, rows))
        self._remember(rows)

    def _changed_columns(self, kind: Kind[Any], rows: Iterable[tuple[Any, Parameters]]) -> Names:
        return self._read.changed_columns(kind, rows)

    def _remember(self, rows: Sequence[Any]) -> None:
        if rows and isinstance(rows[0], Head):
            self._note = f"{rows[0].clock} {self._space}"

    def commit(self) -> None:
        if self._failed:
            raise StoreUnavailable(self._place, "a statement of this transaction had failed")
        with translate_errors(self._place):
            if self._note:
                self._attachment.make_log()
            execute(self._attachment.cursor, "COMMIT")
        if self._note:
            self._attachment.acknowledge(self._note)


class DuckDBStore(BaseStore):
    """Spaces of rows in a DuckDB file that any number of processes share."""

    def __init__(
        self,
        path: Path,
        *,
        dictionary: Dictionary,
        clock: Clock,
        ids: Ids,
        patience: float,
        create: bool,
    ) -> None:
        self.dictionary = dictionary
        self.ids = ids
        self.patience = patience
        self._clock = clock
        self._tables = Tables(DUCKDB, WITHIN)
        self._new_uuid = uuid4().hex
        self._file = SharedFile(path, patience=patience, check=self.check)
        self._place = str(self._file.real_path)
        self._broker = BrokerClient(self._file.real_path, dictionary, self._tables)
        self.url = file_url("duckdb", self._place)
        try:
            if create and not self._file.real_path.exists() and self._file.create(self._fill):
                # What was made a moment ago need not be read: that takes longer than making it.
                self.uuid, self.schema_version = self._new_uuid, dictionary.version
            else:
                described = self._broker.describe() or self._open_description()
                self.uuid, self.schema_version = described
            with translate_os_errors(self._place):
                self.node = file_node(self.uuid, self._file.real_path.stat().st_ino)
        except BaseException:
            self.close()
            raise

    @cached_property
    def wakeups(self) -> Wakeups:
        return SocketWakeups(self.uuid, self.node)

    @property
    def file_path(self) -> Path:
        """The file, with its links resolved."""
        return self._file.real_path

    def check(self, attachment: Attachment) -> None:
        """After a crash: refuse a file whose log has lost a commit that was acknowledged."""
        clock, _, space = (attachment.recovered or "").partition(" ")
        heads = self._tables[HEADS].name
        sql = f"SELECT max(clock) FROM {heads} WHERE space = ?"
        with translate_errors(self._place):
            row = attachment.cursor.execute(sql, [space]).fetchone()
        if row is None or row[0] is None or row[0] < clock:
            raise StoreDamaged(self._place, "its write-ahead log has lost its end")

    def _fill(self, attachment: Attachment) -> None:
        cursor = attachment.cursor
        cursor.execute(
            f"CREATE TABLE {WITHIN}.store (uuid VARCHAR NOT NULL, schema_version BIGINT NOT NULL, "
            "catalogue VARCHAR NOT NULL)"
        )
        for step in migration_statements(self.dictionary, {}, DUCKDB, WITHIN):
            execute(cursor, step)
        cursor.execute(
            f"INSERT INTO {WITHIN}.store VALUES (?, ?, ?)",
            [self._new_uuid, self.dictionary.version, catalogue_json(self.dictionary)],
        )

    def _open_description(self) -> tuple[str, int]:
        with self._file.attach(write=False) as attachment:
            described = self._read_description(attachment)
        uuid, version = described.uuid, described.schema_version
        if version < self.dictionary.version:
            with self._file.attach(write=True) as attachment:
                version = self._upgrade(attachment)
        refuse_newer(self._place, version, self.dictionary)
        return uuid, version

    def _read_description(self, attachment: Attachment) -> Description:
        return read_description(attachment.cursor, self.dictionary, DUCKDB, self._place)

    def _upgrade(self, attachment: Attachment) -> int:
        """Bring the tables up to the dictionary; a process that comes later finds it done.

        If it is killed halfway, it is repeated from the start: every step can be.
        """
        described = self._read_description(attachment)
        if described.schema_version >= self.dictionary.version:
            return described.schema_version
        with translate_errors(self._place):
            cursor = attachment.cursor
            cursor.execute("BEGIN")
            for step in migration_statements(self.dictionary, described.catalogue, DUCKDB, WITHIN):
                cursor.execute(step)
            cursor.execute("COMMIT")
            attachment.checkpoint()
            cursor.execute("BEGIN")
            cursor.execute(upgrade_heads(self.dictionary, WITHIN))
            cursor.execute(
                f"UPDATE {WITHIN}.store SET schema_version = ?, catalogue = ?",
                [self.dictionary.version, catalogue_json(self.dictionary)],
            )
            cursor.execute("COMMIT")
        return self.dictionary.version

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[Session]:
        area_of(space)
        brokered = self._broker.begin(space, write=write, patience=self.patience, clock=self._clock)
        if brokered is not None:
            try:
                yield brokered
            finally:
                brokered.close()
            return
        with self._file.attach(write=write, in_turn=self._broker.was_lost) as attachment:
            with translate_errors(self._place):
                execute(attachment.cursor, "BEGIN")
            session = DuckDBSession(
                attachment, self._tables, space, self._clock(), self._place, write=write
            )
            if write and session.head is None:
                # There is no head yet that says which versions may write in this space.
                with translate_errors(self._place):
                    asked = execute(attachment.cursor, f"SELECT schema_version FROM {WITHIN}.store")
                    ((version,),) = asked.fetchall()
                refuse_newer(self._place, version, self.dictionary)
            yield session

    def spaces(self) -> list[str]:
        brokered = self._broker.spaces(self.patience)
        if brokered is not None:
            return brokered
        with self._file.attach(write=False) as attachment, translate_errors(self._place):
            sql = f"SELECT space FROM {self._tables[HEADS].name} ORDER BY space"
            return [space for (space,) in attachment.cursor.execute(sql).fetchall()]

    def close(self) -> None:
        super().close()
        self._broker.close()
        self._file.close()
