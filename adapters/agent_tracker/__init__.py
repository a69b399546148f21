"""Reader of the database of OpenCode's agent-tracker plugin, in pure Python; never writes it.

lmdb-js stores it in a data format of LMDB that py-lmdb refuses: `pages` walks its trees, `lz4` and
`msgpack` decode its values, `reader` puts them together, and `locate` knows where the plugin puts
its files. For any content of the file, reading ends with its records or with InvalidValue.
"""
