"""Ask a store that knows no SQL: its rows are lent to a DuckDB in this process."""

from time import monotonic
from typing import Any

import duckdb

from herdbook.adapters.asking.answer import Answer, too_slow
from herdbook.adapters.asking.sandbox import ask_sandbox
from herdbook.adapters.duckdb.store import DUCKDB
from herdbook.adapters.sql.layout import steps
from herdbook.adapters.sql.statements import Table
from herdbook.domain.secret import HIDDEN, Secret
from herdbook.ports.kinds import Kind
from herdbook.ports.paging import pages
from herdbook.ports.store import Store
from herdbook.ports.wire import revive

WITHIN = "memory.main"


def ask_lent(store: Store, sql: str, *, patience: float, limit: int) -> Answer:
    """The answer over the rows of the tables that a query names; their secrets stay behind.

    A space is read in one transaction, as it was at one moment. To lend the rows counts towards
    the time that the query may take.
    """
    begun = monotonic()

    def furnish(connection: duckdb.DuckDBPyConnection, named: set[str]) -> None:
        for step in steps(store.dictionary, {}, DUCKDB, WITHIN):
            connection.execute(step)
        kinds = [kind for kind in store.dictionary if kind.name in named]
        for space in store.spaces() if kinds else ():
            with store.transaction(space, write=False) as session:
                for kind in kinds:
                    for rows in pages(session, kind):
                        if monotonic() - begun > patience:
                            raise too_slow(patience)
                        _lend(connection, space, kind, rows)

    return ask_sandbox(
        store.dictionary,
        furnish,
        sql,
        place=store.url,
        patience=patience,
        limit=limit,
        begun=begun,
    )


def _lend(
    connection: duckdb.DuckDBPyConnection, space: str, kind: Kind[Any], rows: list[Any]
) -> None:
    table = Table(kind, DUCKDB, WITHIN)
    columns = zip(*(table.values(_hidden(kind, row)) for row in rows), strict=True)
    connection.execute(table.insert_many, [space, *map(list, columns)])


def _hidden(kind: Kind[Any], row: Any) -> Any:
    held = vars(row)
    masks = {name: Secret(HIDDEN) for name in kind.secrets if held[name] is not None}
    return revive(kind, {**held, **masks}) if masks else row
