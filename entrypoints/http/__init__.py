"""`herdbook serve`: the operations, the journals and the MCP tools over HTTP and a Unix socket.

`guard` decides about every request before anything else sees it, `access` knows who may ask,
`served_folders` what may be asked about. `app` has the routes, `feed` the changes as they happen,
`agent_tools` MCP, `brokers` DuckDB files, `local_socket` the way in for programs of this machine,
`lifecycle` the start and the end. `static/` has the files of the page; every file in it is served
under its name, and nothing else is. Starlette and uvicorn are imported here and nowhere else.
"""
