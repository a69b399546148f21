"""The DuckDB store: one file, shared by many processes under a lock of our own.

DuckDB's own lock does not keep commits safe between processes (docs/adr, "sharing a DuckDB file"),
so nobody opens a database file but through `sharing.SharedFile`. It stands on `share` (the file as
one process has it), `lock`, `lockfile` and `bell` (the lock between processes, what is written in
it, and how a waiter makes itself heard), `linger` (which lets go of idle files), `place` (which
looks at a file before DuckDB does), `rollback` (which undoes a checkpoint that was cut off),
`engine` (DuckDB itself, in an `instance` that reaches no other file) and `errors`, the one place
that reads DuckDB's errors. `description` refuses a file that holds anything but our tables.
"""
