"""Locks between processes, in files beside what they protect.

`file_lock` is the lock, `wait_queue` waits for it in turn with a time limit, `lock_file` records
who holds it. Used by the engines whose stores are files; it knows none of them.
"""
