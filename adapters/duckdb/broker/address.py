"""Where the broker of a database file listens, and who may be at the other end.

The socket is in the user's own folder in `/tmp`, beside those of the wake-ups, and is named after
the file itself: a copy of a store has the same identity, and a process that opens a file cannot
read that identity while a broker holds the file.
"""

import os
import socket
import struct
from contextlib import suppress

from herdbook.adapters.wakeups.socket_folder import ROOT, require_private

PEER = struct.Struct("3i")
"""The process, user and group of a peer, as Linux gives them."""


def user_folder() -> str:
    """The folder of this user's sockets."""
    return f"{ROOT}/herdbook-{os.getuid()}"


def broker_address(status: os.stat_result) -> str:
    """The path of the socket of a file's broker."""
    return f"{user_folder()}/broker-{status.st_dev:x}-{status.st_ino:x}"


def make_user_folder() -> None:
    """Make the folder if it is missing; raises an OSError if it is not the user's alone."""
    with suppress(FileExistsError):
        os.mkdir(user_folder(), 0o700)  # noqa: PTH102 - as for the wake-ups
    require_private(user_folder())


def connect(address: str, timeout: float) -> socket.socket:
    """Connect to a broker of this user.

    Raises an OSError if there is none, or if the folder or the process belongs to somebody else.
    """
    os.lstat(address)  # usually there is none
    require_private(user_folder())
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(address)
        require_same_user(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def require_same_user(connection: socket.socket) -> int:
    """The process at the other end, 0 if unknown; PermissionError if it is another user's.

    Where the system does not tell, the folder alone keeps others away.
    """
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0
    given = connection.getsockopt(socket.SOL_SOCKET, option, PEER.size)
    pid, user, _ = PEER.unpack(given)
    if user != os.getuid():
        raise PermissionError(f"the process {pid} at this socket belongs to user {user}")
    return int(pid)
