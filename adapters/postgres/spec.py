"""The PostgreSQL engine, as the rest of Herdbook knows it."""

from herdbook.adapters.stores.engine_spec import EngineSpec, Medium

SPEC = EngineSpec(
    schemes=("postgresql", "postgres"),
    medium=Medium.SERVER,
    store="herdbook.adapters.postgres.store:PostgresStore",
    options=("create",),
    probe="herdbook.adapters.postgres.probe:probe",
    query="herdbook.adapters.sql_query.postgres:query_server",
    queries_in_sandbox=False,
    native_shell="herdbook.adapters.postgres.native_shell:open_shell",
    native_shell_needs="needs the program `psql` on the PATH",
    driver="psycopg",
    extra="postgres",
    shown_url_options=frozenset(
        {"host", "hostaddr", "port", "dbname", "user", "sslmode", "schema", "service"}
    ),
)
