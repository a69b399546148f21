"""A transaction in the broker of a file: reads ask the broker, writes are sent with the commit.

Until then they are kept here, over what the broker answers. So an aborted transaction never reaches
the file, and the broker can make the commits of several clients durable together.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from herdbook.adapters.duckdb.broker import wire
from herdbook.adapters.duckdb.errors import refuse_foreign_rows
from herdbook.adapters.duckdb.read_rows import ReadRows
from herdbook.adapters.sql.session import Tables
from herdbook.domain.errors import (
    AlreadyExists,
    HerdbookError,
    NotFound,
    StoreBusy,
    StoreUnavailable,
)
from herdbook.domain.journal import Head
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.long_work import is_long_work
from herdbook.ports.engine.query import Query, matches, sort_and_page
from herdbook.ports.engine.store import TryAgain

if TYPE_CHECKING:
    from herdbook.adapters.duckdb.broker.client import Connection

E = TypeVar("E")

GRACE = 2.0
LONG_SECONDS = 600.0
"""For how long an answer may fail to come in long work."""


class BrokerSession:
    """A transaction that runs in a broker."""

    def __init__(
        self,
        connection: "Connection",
        tables: Tables,
        *,
        patience: float,
        place: str,
        now: datetime,
        head: list[Any] | None,
        end: Callable[[], None],
        write: bool,
    ) -> None:
        self.now = now
        self._connection = connection
        self._tables = tables
        self._patience = patience
        self._place = place
        self._given_head = head
        self._end: Callable[[], None] | None = end
        self._write = write
        self._committed = False
        self._changes: dict[Kind[Any], dict[Any, list[Any] | None]] = {}
        self._is_there: dict[Kind[Any], dict[Any, bool]] = {}
        self._read = ReadRows(tables)

    @cached_property
    def head(self) -> Head | None:
        if not self._write:
            return self.get(HEADS, ["head"])[0]
        if self._given_head is None:
            return None
        (values,) = wire.unpack_rows(HEADS, [self._given_head])
        self._read.add(HEADS, [values])
        with refuse_foreign_rows(HEADS, self._place):
            return self._tables[HEADS].row(values)

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        changed = self._changes.get(kind, {})
        asked = list(dict.fromkeys(key for key in keys if key not in changed))
        found: dict[Any, E] = {}
        if asked:
            rows = self._rows(kind, self._ask(["get", kind.name, asked]))
            found = {kind.key_of(row): row for row in rows}
            there = self._is_there.setdefault(kind, {})
            there.update((key, key in found) for key in asked)
        return [
            self._changed_row(kind, changed[key]) if key in changed else found.get(key)
            for key in keys
        ]

    def select(self, query: Query[E]) -> list[E]:
        changed = self._changes.get(query.kind)
        asked = query
        if changed and query.limit is not None:
            asked = query._replace(limit=query.limit + len(changed))
        packed = wire.pack_query(self._tables[query.kind], asked)
        rows = self._rows(query.kind, self._ask(["select", packed]))
        self._is_there.setdefault(query.kind, {}).update(
            (query.kind.key_of(row), True) for row in rows
        )
        if not changed:
            return rows
        others = [row for row in rows if query.kind.key_of(row) not in changed]
        return sort_and_page(query, [*others, *self._matching(query, changed)])

    def count(self, query: Query[Any]) -> int:
        kind, changed = query.kind, self._changes.get(query.kind)
        packed = wire.pack_query(self._tables[kind], query)
        number = int(self._ask(["count", packed]))
        if not changed:
            return number
        before = self._rows(kind, self._ask(["get", kind.name, list(changed)]))
        return (
            number
            - sum(matches(query, row) for row in before)
            + len(self._matching(query, changed))
        )

    def insert(self, kind: Kind[E], rows: Sequence[E]) -> None:
        keys = [kind.key_of(row) for row in rows]
        self._learn(kind, keys)
        seen: set[Any] = set()
        for key in keys:
            if key in seen or self._has(kind, key):
                raise AlreadyExists(kind.title, str(key))
            seen.add(key)
        self._put(kind, keys, rows)

    def append(self, kind: Kind[E], rows: Sequence[E]) -> None:
        keys = [kind.key_of(row) for row in rows]
        self._put(kind, keys, rows)

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        keys = [kind.key_of(row) for row in rows]
        self._learn(kind, keys)
        for key in keys:
            if not self._has(kind, key):
                raise NotFound(kind.title, str(key))
        self._put(kind, keys, rows)

    def delete(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        self._require_usable()
        self._changes.setdefault(kind, {}).update(dict.fromkeys(keys))

    def commit(self) -> None:
        self._require_usable()
        changes = [self._net_changes(kind) for kind in self._changes]
        self._committed = True
        try:
            self._connection.call(["commit", changes], self._timeout())
        except wire.FrameTooLarge as error:
            limit = wire.LARGEST_FRAME >> 20
            reason = f"one transaction writes more than the {limit} MiB that its broker accepts"
            raise StoreUnavailable(self._place, f"{reason}. Nothing was written") from error
        except HerdbookError:
            raise
        except Exception as error:
            reason = (
                "its broker ended before it confirmed the commit, so it is not known whether this "
                "change was kept. Look before you repeat it"
            )
            raise TryAgain(self._place, reason) from error

    def close(self) -> None:
        """End the transaction; what was not committed leaves no trace."""
        end, self._end = self._end, None
        if end is None or os.getpid() != self._connection.pid:
            return
        try:
            if not self._committed and self._connection.is_usable:
                with suppress(OSError):
                    self._connection.send(["end"])
        finally:
            end()

    def _net_changes(self, kind: Kind[Any]) -> list[Any]:
        """What the transaction changed in a kind.

        Rows to insert, to replace, keys to delete, and the columns in which rows are replaced.
        """
        there = self._is_there.get(kind, {})
        inserts, deletes = [], []
        replaces: dict[Any, list[Any]] = {}
        for key, values in self._changes[kind].items():
            if values is None:
                if there.get(key, True):
                    deletes.append(key)
            elif there.get(key, False):
                replaces[key] = values
            else:
                inserts.append(values)
        columns = self._read.changed_columns(kind, replaces.items())
        return [kind.name, inserts, [*replaces.values()], deletes, columns]

    def _put(self, kind: Kind[E], keys: Iterable[Any], rows: Iterable[E]) -> None:
        self._require_usable()
        pack = self._tables[kind].values
        self._changes.setdefault(kind, {}).update(zip(keys, map(pack, rows), strict=True))

    def _has(self, kind: Kind[Any], key: Any) -> bool:
        changed = self._changes.get(kind, {})
        if key in changed:
            return changed[key] is not None
        return self._is_there[kind][key]

    def _learn(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        """Learn which of these keys are there."""
        there = self._is_there.setdefault(kind, {})
        unknown = [key for key in dict.fromkeys(keys) if key not in there]
        if unknown:
            found = set(self._ask(["has", kind.name, unknown]))
            there.update((key, key in found) for key in unknown)

    def _matching(self, query: Query[E], changed: dict[Any, list[Any] | None]) -> list[E]:
        written = [self._changed_row(query.kind, each) for each in changed.values()]
        return [row for row in written if row is not None and matches(query, row)]

    def _changed_row(self, kind: Kind[E], values: list[Any] | None) -> E | None:
        return None if values is None else self._tables[kind].row(values)

    def _rows(self, kind: Kind[E], rows: list[list[Any]]) -> list[E]:
        table = self._tables[kind]
        with refuse_foreign_rows(kind, self._place):
            fetched = wire.unpack_rows(kind, rows)
            if self._write:
                self._read.add(kind, fetched)
            return [table.row(each) for each in fetched]

    def _ask(self, message: list[Any]) -> Any:
        self._require_usable()
        try:
            return self._connection.call(message, self._timeout())[1]
        except HerdbookError:
            raise
        except TimeoutError as error:
            holder = f"process {self._connection.process} (its broker, which does not answer)"
            raise StoreBusy(self._place, self._timeout(), holder) from error
        except wire.FrameTooLarge as error:
            raise StoreUnavailable(self._place, f"a query is too large ({error})") from error
        except TypeError as error:
            raise wire.refuse_value(error) from error
        except Exception as error:
            raise TryAgain(self._place, "its broker ended during this transaction") from error

    def _timeout(self) -> float:
        return LONG_SECONDS if is_long_work() else self._patience + GRACE

    def _require_usable(self) -> None:
        if os.getpid() != self._connection.pid:
            raise StoreUnavailable(
                self._place, "this transaction belongs to the process that was forked"
            )
        if self._end is None or self._committed:
            raise RuntimeError("this transaction has ended")
        if not self._connection.is_usable:
            raise TryAgain(self._place, "its broker ended during this transaction")
