"""Locks between processes, kept in files beside what they protect.

`file_lock` is the lock, `waiting` waits for it in turn with a time limit, `lock_file` writes who
holds it. Used by the engines whose stores are files; knows none of them.
"""
