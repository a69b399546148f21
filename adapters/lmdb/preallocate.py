"""Preallocates the data file, so that commits rarely extend it.

To sync a file that has grown also syncs the file system's metadata, which takes longer. So the file
grows in steps, by zeros after its end, during a write transaction: nobody else writes meanwhile,
and LMDB does not read past the last page that it has written.
"""

import os
from contextlib import suppress
from pathlib import Path

LEAST, MOST = 1 << 17, 1 << 22
"""The bounds of a step, in bytes; a step is a sixteenth of what the file holds."""
SCARCE = 1 << 15
"""The next step is due with fewer bytes than this left; most commits need fewer."""


class Preallocator:
    """Extends the data file of one environment and remembers its size."""

    def __init__(self, data: Path, limit: int) -> None:
        self._data = data
        self._limit = limit
        self._size = 0

    def extend(self, kept: int) -> None:
        """Extend the file if it ends soon after the `kept` bytes; only in a write transaction.

        A full disk or a reached size limit raises nothing here: the commit that needs the space
        reports it.
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
