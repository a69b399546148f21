"""LMDB: the default store, a folder that any number of processes share.

`spec` describes the engine to the rest of Herdbook. `files` and `headers` check the folder before
LMDB opens it. `writer_lock`, `data_file_guard` and `page_check` let one writer in at a time and
keep everybody from reading pages that are not whole. `environment` and `open_environments` keep the
folder open, once per process. `keys` encodes values as bytes that sort as the values do, `session`
stores rows and lookup entries, `spaces` the names of spaces, `integrity` checks both, and `store`
opens sessions. Used only through `herdbook.adapters`.
"""
