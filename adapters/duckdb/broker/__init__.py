"""A broker for a DuckDB file: one process keeps it open and serves the others over a Unix socket.

`address` says where a broker's socket is and whom to trust there, `wire` what crosses it. `client`
finds a broker and `session` is a transaction in it, for `DuckDBStore`. `server` is the loop that
serves connections, `turns` admits their transactions, one writer at a time, each a `turn`.
`query_answers` answers what they ask, `row_cache` keeps rows for that in memory, `pending_commits`
makes durable what they commit, merged by `commit_group`. `open_file` holds the file for them, and
`start` runs a broker in a thread. ADR 58 has the reasons.
"""
