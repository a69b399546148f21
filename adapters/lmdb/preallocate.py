"""Room in the data file ahead of what is kept: a commit that need not enlarge the file is quicker.

To sync a file that has grown means to sync the file system's own books too. So the file grows in
steps, by zeros behind its end, in the midst of a write transaction: nobody else writes meanwhile,
and LMDB does not look behind the last page that it has written.
"""

import os
from contextlib import suppress
from pathlib import Path

LEAST, MOST = 1 << 17, 1 << 22
"""How large a step is: a sixteenth of what is kept, within these bounds."""
SCARCE = 1 << 15
"""With less than this left it is time for the next step; most commits need less."""


class Room:
    """The data file of an environment, and how far it is known to reach."""

    def __init__(self, data: Path, limit: int) -> None:
        self._data = data
        self._limit = limit
        self._size = 0

    def make(self, kept: int) -> None:
        """Let the file grow if it ends soon behind the bytes that are kept; in a write transaction.

        A disk that takes no more, or an end of what the file may have, is told of by the commit
        that needs the room.
        """
        if self._size - kept >= SCARCE:
            return
        self._size = self._data.stat().st_size
        step = min(max(kept // 16, LEAST), MOST, self._limit - self._size)
        if self._size - kept >= SCARCE or step <= 0:
            return
        with suppress(OSError):
            descriptor = os.open(self._data, os.O_WRONLY | os.O_CLOEXEC)
            try:
                self._size += os.pwrite(descriptor, bytes(step), self._size)
            finally:
                os.close(descriptor)
