"""Postgres: a store for a team, on a server of its own.

`connecting` makes a connection and `bounded` ends what waits on it too long, `connections` keeps a
few, `errors` translates what the server says. `opening` begins a transaction and `session` runs its
statements. `ownership` looks whose a schema is, `schema` lays it out, `store` puts all this
together. Touched through `herdbook.adapters` only.
"""
