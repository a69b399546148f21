"""LMDB: the default store, a folder that any number of processes share.

`files` and `headers` look at what lies in the folder before LMDB does, `writer_lock`, `guard` and
`verification` let one writer in at a time and nobody read what is not whole. `loading`,
`environment` and `registry` have the folder open, once in a process. `keys` turns values into bytes
that sort as the values do, `session` keeps rows and lookup entries, `spaces` their names, `store`
hands sessions out. Touched through `herdbook.adapters` only.
"""
