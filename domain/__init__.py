"""What is true: frozen attrs classes and pure functions.

Nothing here opens, reads or waits for anything, and nothing here imports more than attrs and the
standard library: other tools may import `herdbook.domain` alone.
"""
