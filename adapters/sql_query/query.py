"""Queries a store of any engine in SQL."""

import math

from herdbook.adapters.sql_query.result import Answer
from herdbook.adapters.sql_query.sandbox import Deadline, start_process
from herdbook.adapters.stores.engine_spec import COPY_QUERY, load
from herdbook.adapters.stores.open_store import PATIENCE, open_store
from herdbook.adapters.stores.registry import find_spec
from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import TEXT
from herdbook.ports.engine.store import Store

LIMIT = 10_000


def ask(place: str | Store, sql: str, *, patience: float = PATIENCE, limit: int = LIMIT) -> Answer:
    """Answer one read-only query in the SQL of the store's engine.

    `place` is a store's URL, or a store that is open; one on a server that wants a password is
    named by its URL, because an open store does not show its password. The tables are those of the
    dictionary, by their plain names, with the rows of all spaces. LMDB and memory stores are
    queried in DuckDB's SQL.

    Raises InvalidValue for everything else that the query is or does (a second statement, a change,
    a file, another database, a setting), for what the engine does not understand, and for a query
    that takes longer than `patience` seconds, counted from the call. At most `limit` rows come
    back. Raises StoreUnavailable if there is no store; none is created.
    """
    if type(limit) is not int or limit < 1:
        raise InvalidValue("limit", f"must be a whole number above 0, is {limit!r}")
    if type(patience) not in (int, float) or not 0 < patience < math.inf:
        raise InvalidValue("patience", f"must be a number of seconds above 0, is {patience!r}")
    TEXT.check("sql", sql)
    deadline = Deadline(patience)
    if isinstance(place, str):
        spec = find_spec(place)
        if spec is not None and spec.queries_in_sandbox:
            start_process()  # while the store is opened
        with open_store(place, create=False, patience=patience) as store:
            return _ask(store, place, sql, deadline, limit)
    return _ask(place, place.url, sql, deadline, limit)


def _ask(store: Store, url: str, sql: str, deadline: Deadline, limit: int) -> Answer:
    spec = find_spec(url)
    query = spec.query if spec is not None else COPY_QUERY
    answer: Answer = load(query)(store, url, sql, deadline=deadline, limit=limit)
    return answer
