"""Ask a store of any engine one question in SQL."""

import math
from importlib import import_module

from herdbook.adapters.asking.answer import Answer
from herdbook.adapters.opening import PATIENCE, open_store
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.values import TEXT
from herdbook.ports.store import Store

LIMIT = 10_000

_NO_DUCKDB = (
    "SQL over it is answered by the package duckdb, which is not installed; "
    "`pip install 'herdbook[duckdb]'` brings it"
)


def ask(place: str | Store, sql: str, *, patience: float = PATIENCE, limit: int = LIMIT) -> Answer:
    """The answer to one query that only reads, in the SQL of the store's engine.

    `place` is a store's URL, or a store that is open; one on a server that wants a password is
    named by its URL, for a store does not tell its password. The tables are those of the
    dictionary, by their plain names, with the rows of all spaces. LMDB and memory stores are asked
    in DuckDB's SQL.

    Whatever else the query is or does (a second statement, a change, a file, another database, a
    setting) is InvalidValue, and so is what the engine does not understand. It is stopped after
    `patience` seconds, and at most `limit` rows come back. A store that is not there is
    StoreUnavailable; none is made.
    """
    if type(limit) is not int or limit < 1:
        raise InvalidValue("limit", f"must be a whole number above 0, is {limit!r}")
    if type(patience) not in (int, float) or not 0 < patience < math.inf:
        raise InvalidValue("patience", f"must be a number of seconds above 0, is {patience!r}")
    TEXT.check("sql", sql)
    if isinstance(place, str):
        with open_store(place, create=False, patience=patience) as store:
            return _asked(store, place, sql, patience, limit)
    return _asked(place, place.url, sql, patience, limit)


def _asked(store: Store, url: str, sql: str, patience: float, limit: int) -> Answer:
    if url.startswith("postgres"):
        from herdbook.adapters.asking.postgres import ask_server  # noqa: PLC0415 - needs its driver

        return ask_server(store, url, sql, patience=patience, limit=limit)
    try:
        import_module("duckdb")
    except ImportError as error:
        raise StoreUnavailable(store.url, _NO_DUCKDB) from error
    if url.startswith("duckdb"):
        from herdbook.adapters.asking.duckdb_file import ask_file  # noqa: PLC0415 - so does this

        return ask_file(store, sql, patience=patience, limit=limit)
    from herdbook.adapters.asking.lending import ask_lent  # noqa: PLC0415 - and this

    return ask_lent(store, sql, patience=patience, limit=limit)
