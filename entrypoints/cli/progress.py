"""Progress on a terminal: one line that is written over and over."""

import sys

WIDTH = 30


def on_terminal(space: str, done: int, total: int) -> None:
    """Draw how far a space is; the last stroke clears the line."""
    if done >= total:
        sys.stderr.write("\r\x1b[K")
    else:
        bar = "#" * (WIDTH * done // total)
        sys.stderr.write(f"\r\x1b[K{space} [{bar:.<{WIDTH}}] {done:,} of {total:,} rows")
    sys.stderr.flush()
