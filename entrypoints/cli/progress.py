"""Progress on a terminal: one line that is redrawn."""

import sys

WIDTH = 30


def draw_progress(space: str, done: int, total: int) -> None:
    """Draw how many rows of a space are done; the last call clears the line."""
    if done >= total:
        sys.stderr.write("\r\x1b[K")
    else:
        bar = "#" * (WIDTH * done // total)
        sys.stderr.write(f"\r\x1b[K{space} [{bar:.<{WIDTH}}] {done:,} of {total:,} rows")
    sys.stderr.flush()
