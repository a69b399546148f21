"""Postgres: a store for a team, on a server.

`spec` describes the engine to the rest of Herdbook. `address` reads URLs, `connect` opens a
connection, `bounded_connection` ends calls that wait too long, `connection_pool` keeps a few
connections, `errors` translates the server's errors. `begin` begins a transaction and `session`
runs its statements. `ownership` checks whose a schema is, `schema` lays it out, `store` puts all
this together, `probe` looks at a store without opening it, and `native_shell` runs `psql`. Used
only through `herdbook.adapters`.
"""
