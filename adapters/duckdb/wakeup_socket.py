"""How a process that waits for a file tells those that only keep it: one datagram each.

Every process that keeps files has a socket in a folder of the user's, and writes its address into
the lock files it holds. Where there can be no such socket, or a ring is not heard, nothing is lost
but the few milliseconds of the linger.
"""

import logging
import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from herdbook.adapters.locks.lock_file import is_alive

_LOG = logging.getLogger(__name__)


class Bell:
    """A socket on which this process can be rung."""

    def __init__(self, path: Path, listening: socket.socket) -> None:
        self.address = str(path)
        self._path = path
        self._socket = listening

    def fileno(self) -> int:
        """What to poll."""
        return self._socket.fileno()

    def still(self) -> None:
        """Take note of the rings so far."""
        try:
            while self._socket.recv(16):
                continue
        except BlockingIOError:
            return

    def close(self) -> None:
        """Be rung no longer."""
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def forget_inherited(self) -> None:
        """In a forked child: it is the parent that is rung there."""
        self._socket.close()


def hang_up_bell() -> Bell | None:
    """A new bell, unless there can be none here."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        listening.settimeout(0.0)
        path = _folder() / f"{os.getpid()}-{os.urandom(4).hex()}"
        listening.bind(str(path))
    except OSError as error:
        _LOG.debug("nobody can ring here: %s", error)
        listening.close()
        return None
    return Bell(path, listening)


def ring(addresses: Iterable[str]) -> None:
    """Tell them that somebody waits."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ringing:
        ringing.settimeout(0.0)
        for address in addresses:
            try:
                ringing.sendto(b".", address)
            except OSError as error:
                _LOG.debug("nobody hears a ring at %s: %s", address, error)


def _folder() -> Path:
    """The user's own folder of bells, rid of those whose process was killed."""
    folder = Path(tempfile.gettempdir()) / f"herdbook-{os.getuid()}"
    if not re.fullmatch(r"[\w./ ~+-]+", str(folder), re.ASCII):
        raise OSError(f"{folder} does not fit into a line of the lock file")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is open to others")
    for each in folder.iterdir():
        pid = each.name.partition("-")[0]
        if pid.isdecimal() and not is_alive(int(pid)):
            each.unlink(missing_ok=True)
    return folder
