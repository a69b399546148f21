"""The DuckDB store: one file, shared by many processes under a lock of our own.

DuckDB's own lock does not keep commits safe between processes (docs/adr, "sharing a DuckDB file"),
so every database file is opened through `file_access.SharedFile`. It uses `process_file` (the file
in one process), `file_lock` (the lock between processes and what is written in
it), `wakeup_socket` (how a waiter wakes a holder), `idle_release` (which closes idle files),
`file_checks` (which checks files before DuckDB opens them), `rollback_journal` (which undoes a
checkpoint that was cut off), `database_instance` (DuckDB itself, in an `instance` that reaches no
other file) and `errors`, the only module that reads DuckDB's errors. `schema` refuses a file that
holds anything but our tables. `spec` describes the engine to the rest of Herdbook.
"""
