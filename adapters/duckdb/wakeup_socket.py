"""Wakes processes that only keep a file for their next use, with one datagram each.

Every process that keeps files has a socket in a folder of the user, and writes its address into the
lock files it holds. If there can be no such socket, or a datagram is lost, only the few
milliseconds of the linger are lost.
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


class WakeupSocket:
    """A socket on which this process can be woken."""

    def __init__(self, path: Path, listening: socket.socket) -> None:
        self.address = str(path)
        self._path = path
        self._socket = listening

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._socket.fileno()

    def drain(self) -> None:
        """Read all datagrams that have arrived."""
        try:
            while self._socket.recv(16):
                continue
        except BlockingIOError:
            return

    def close(self) -> None:
        """Close and remove the socket."""
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def forget_inherited(self) -> None:
        """In a forked child: close the socket without removing it, because it is the parent's."""
        self._socket.close()


def open_wakeup_socket() -> WakeupSocket | None:
    """Open a new wake-up socket; None where that is not possible."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        listening.settimeout(0.0)
        path = _folder() / f"{os.getpid()}-{os.urandom(4).hex()}"
        listening.bind(str(path))
    except OSError as error:
        _LOG.debug("no wake-up socket can be opened here: %s", error)
        listening.close()
        return None
    return WakeupSocket(path, listening)


def wake(addresses: Iterable[str]) -> None:
    """Send a datagram to each address, to say that somebody waits."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.settimeout(0.0)
        for address in addresses:
            try:
                sender.sendto(b".", address)
            except OSError as error:
                _LOG.debug("nobody listens at %s: %s", address, error)


def _folder() -> Path:
    """The user's own folder of sockets, without those of processes that were killed."""
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
