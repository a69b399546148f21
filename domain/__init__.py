"""The domain: frozen attrs classes and pure functions.

Nothing here does I/O or waits, and nothing here imports more than attrs and the standard library:
other tools may import `herdbook.domain` alone.
"""
