"""The DuckDB store: one file, shared by many processes under a lock of our own.

DuckDB's own lock does not keep commits safe between processes (docs/adr, "sharing a DuckDB file"),
so nothing here or elsewhere opens a database file but through `sharing.SharedFile`. What it is made
of: `place` looks at the file before DuckDB does, `lock` and `lockfile` are the lock and what is
written in it, `engine` is DuckDB itself, `linger` ends idle holds, and `errors` is the one place
that reads DuckDB's errors.
"""
