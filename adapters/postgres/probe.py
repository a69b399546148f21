"""Probes a schema of a Postgres server."""

from herdbook.adapters.postgres.connection_pool import ConnectionPool
from herdbook.adapters.postgres.ownership import STORE
from herdbook.adapters.postgres.schema import inspect_schema
from herdbook.adapters.sql.dialect import quote_name
from herdbook.domain.location.resolve import NO_STORE, StoreProbe
from herdbook.ports.engine.dictionary import DICTIONARY

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'm')
"""


def probe(url: str, patience: float) -> StoreProbe:
    """What the schema says of itself; raises at once what prevents that."""
    connections = ConnectionPool(url, patience=patience)
    try:
        with connections.borrow(keep_trying=False) as connection:
            if STORE not in inspect_schema(connection, connections, DICTIONARY).tables:
                return NO_STORE
            size = connection.execute(_SIZE, [connections.schema]).fetchone()
            table = f"{quote_name(connections.schema)}.{STORE}"
            row = connection.execute(f"SELECT schema_version FROM {table}").fetchone()
            return StoreProbe(
                exists=True,
                bytes=size[0] if size else None,
                schema_version=row[0] if row else None,
            )
    finally:
        connections.close()
