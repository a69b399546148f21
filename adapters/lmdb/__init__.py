"""LMDB: the default store, a folder that any number of processes share.

`keys` turns values into bytes that sort as the values do, `environment` opens and guards the
folder, `session` keeps rows and lookup entries in it, `store` hands sessions out. Touched through
`herdbook.adapters` only.
"""
