"""Postgres: a store for a team, on a server of its own.

`connections` keeps and renews connections and translates the server's errors, `store` lays out the
schema and runs transactions. Touched through `herdbook.adapters` only.
"""
