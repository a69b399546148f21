"""An open file, and whether it is still the one at its path.

The system could be asked for the status of the file. But newer kernels then give its next write a
time of its own, which has to be written to the disk as well: a commit takes a quarter longer. So
where the system gives the path of an open file (Linux), that is compared instead.
"""

import os
from pathlib import Path

_LINKS = Path("/proc/self/fd")


class WatchedFile:
    """A file at a path; kept open, so that no other file gets its inode number."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self.identity: tuple[int, int] | None = None
        self._descriptor: int | None = None
        self._link = ""
        self._target = ""

    def watch(self) -> bool:
        """Watch the file that is at the path now; False if another one was watched before."""
        status = os.stat(self._path)  # noqa: PTH116 - as in `is_in_place`
        identity = status.st_dev, status.st_ino
        if self._descriptor is not None:
            return identity == self.identity
        if self.identity not in (None, identity):
            return False
        flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags)
        opened = os.fstat(descriptor)
        if (opened.st_dev, opened.st_ino) != identity:
            os.close(descriptor)
            return False
        self._descriptor, self.identity = descriptor, identity
        link = f"{_LINKS}/{descriptor}"
        try:
            # The link last: another thread may compare it with the target at once.
            self._target, self._link = os.readlink(link), link  # noqa: PTH115 - pathlib is slow
        except OSError:
            self._link = ""
        return True

    def is_in_place(self) -> bool:
        """Whether the path still leads to the watched file."""
        try:
            if self._link:
                return os.readlink(self._link) == self._target  # noqa: PTH115
            status = os.stat(self._path)  # noqa: PTH116 - in every transaction, pathlib is slow
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def close(self) -> None:
        """Stop watching; another file may be watched then."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor, self._link = None, ""
