"""The database of OpenCode's agent-tracker plugin, read in pure Python and never written.

lmdb-js keeps it in a data format of LMDB that py-lmdb refuses: `pages` walks its trees, `lz4` and
`msgpack` make values of bytes, `reading` puts it all together, and `finding` knows where the plugin
leaves things. Whatever the file holds, reading it ends: with what it says, or with InvalidValue.
"""
