"""The Postgres store: sessions over pooled connections."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property, partial

from herdbook.adapters.postgres.begin import Mode, begin
from herdbook.adapters.postgres.connection_pool import ConnectionPool
from herdbook.adapters.postgres.dialect import POSTGRES
from herdbook.adapters.postgres.schema import describe, read_place
from herdbook.adapters.postgres.session import (
    PostgresSession,
    StatementRunner,
    lock_sql,
    moment_sql,
    read_moment_row,
)
from herdbook.adapters.postgres.wakeups import PostgresWakeups
from herdbook.adapters.sql.dialect import quote_name
from herdbook.adapters.sql.session import Tables
from herdbook.adapters.stores.base_store import BaseStore, refuse_newer
from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.journal import Head, JournalEntry
from herdbook.domain.location.areas import area_of
from herdbook.ports.engine.dictionary import HEADS, JOURNAL, new_head
from herdbook.ports.engine.kinds import Dictionary
from herdbook.ports.engine.node import derive_node
from herdbook.ports.engine.query import above, find
from herdbook.ports.engine.wakeups import Wakeups
from herdbook.ports.unit_of_work.run import retry
from herdbook.ports.world.system import Ids


class PostgresStore(BaseStore):
    """Spaces of rows in a schema of a Postgres database."""

    def __init__(
        self, url: str, *, dictionary: Dictionary, ids: Ids, patience: float, create: bool
    ) -> None:
        self.dictionary = dictionary
        self.ids = ids
        self.patience = patience
        self._connections: ConnectionPool | None = ConnectionPool(url, patience=patience)
        self.url = self._connections.place
        self._within = quote_name(self._connections.schema)
        self._tables = Tables(POSTGRES, self._within)
        self._lock, self._moment = lock_sql(self._tables), moment_sql(self._tables)
        try:
            self.uuid, self.schema_version = retry(
                partial(describe, self._connections, dictionary, create=create), patience
            )
            self.node = derive_node(
                self.uuid, *retry(partial(read_place, self._connections), patience)
            )
        except BaseException:
            self.close()
            raise

    @cached_property
    def wakeups(self) -> Wakeups:
        return PostgresWakeups(self.uuid, self.node, self._pool(), self._read_entries)

    def _read_entries(self, space: str, after: int, limit: int) -> list[JournalEntry]:
        """Entries of a space after a number, in order."""
        with self.transaction(space, write=False) as session:
            return session.select(find(JOURNAL, {"seq": above(after)}, limit=limit))

    def _pool(self) -> ConnectionPool:
        if self._connections is None:
            raise StoreUnavailable(self.url, "it has been closed here")
        return self._connections

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[PostgresSession]:
        area_of(space)
        connections = self._pool()
        with connections.borrow() as connection:
            runner = StatementRunner(connection, connections)
            if write:
                moment = self._begin_writing(runner, space)
            else:
                # The first query fixes the moment that the transaction sees.
                (row,) = runner.begin(Mode.READ, self._moment, space)
                moment = read_moment_row(self._tables, row)
            yield PostgresSession(runner, self._tables, space, moment)

    @contextmanager
    def immediate_read(self, space: str) -> Iterator[PostgresSession]:
        area_of(space)
        connections = self._pool()
        with connections.borrow() as connection:
            yield PostgresSession(StatementRunner(connection, connections), self._tables, space)

    def _begin_writing(self, runner: StatementRunner, space: str) -> tuple[datetime, Head | None]:
        """Lock the space's head: the next writer waits here until this one has ended."""
        rows = runner.begin(Mode.WRITE, self._lock, space)
        if not rows:
            # There is no head yet that says which versions may write here; an upgrade waits for
            # this lock, and this transaction for an upgrade.
            schema = f"SELECT schema_version FROM {self._within}.store FOR SHARE"
            ((version,),) = runner([(schema, None)])
            refuse_newer(self.url, version, self.dictionary)
            heads = self._tables[HEADS]
            fresh = heads.values(new_head(self.dictionary))
            runner([(heads.insert_one, [space, *fresh])])
            rows = runner([(self._lock.replace("$1", "%s"), [space])])
        return read_moment_row(self._tables, rows[0])

    def spaces(self) -> list[str]:
        connections = self._pool()
        question = f"SELECT space FROM {self._tables[HEADS].name} ORDER BY space"
        with connections.borrow() as connection:
            rows = begin(connection, Mode.READ, connections.patience, question)
            return [space for (space,) in rows]

    def close(self) -> None:
        super().close()
        if self._connections is not None:
            self._connections.close()
            self._connections = None
