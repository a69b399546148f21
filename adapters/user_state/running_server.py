"""The `herdbook serve` of this user: its lock, its token, its address, and the folders it serves.

All of it is in one private folder. Whoever holds the lock is the running server; everything else
is only believed while somebody holds it. A folder is served because the user's own command wrote it
into the list here: no client of the server can add one.
"""

import fcntl
import json
import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from herdbook.adapters.user_state.dirs import make_private, state_folder, write_private

LONGEST_SOCKET_PATH = 100
"""Bytes; the kernel's own limit is 108 on Linux and 104 on macOS."""
_TOKEN = re.compile(r"[0-9a-f]{64}")


class RunningServer(NamedTuple):
    """The process that serves, its address for browsers, and its socket for local programs."""

    pid: int
    url: str
    socket: str


def server_folder() -> Path:
    """The private folder with everything about the server."""
    return state_folder() / "serve"


def take_lock() -> int | None:
    """Become the running server until the descriptor is closed; None if it cannot be now.

    Then there is one already, or somebody asks whether there is.
    """
    return _lock(fcntl.LOCK_EX)


def _lock(kind: int) -> int | None:
    make_private(server_folder())
    descriptor = os.open(server_folder() / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def find_server() -> RunningServer | None:
    """The running server; None if there is none, or it has not said yet where it is."""
    descriptor = _lock(fcntl.LOCK_SH)  # which others who ask may have at the same time
    if descriptor is not None:
        os.close(descriptor)
        return None
    try:
        said = json.loads((server_folder() / "server.json").read_bytes())
        return RunningServer(int(said["pid"]), str(said["url"]), str(said["socket"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def announce(server: RunningServer | None) -> None:
    """Say where this server is, or, with None, that it is not anywhere yet or any more."""
    place = server_folder() / "server.json"
    if server is None:
        place.unlink(missing_ok=True)
    else:
        write_private(place, json.dumps(server._asdict()))


def socket_path() -> str:
    """Where the socket for local programs is: in our folder, else in a private temporary one.

    The path of a socket may not be as long as that of a file.
    """
    own = str(server_folder() / "rpc.sock")
    if len(os.fsencode(own)) <= LONGEST_SOCKET_PATH:
        return own
    import tempfile  # noqa: PLC0415 - seldom needed

    place = tempfile.gettempdir()
    if len(os.fsencode(place)) + len("/herdbook-12345678/rpc.sock") > LONGEST_SOCKET_PATH:
        place = "/tmp"  # noqa: S108 - the folder in it is new, and private
    return str(Path(tempfile.mkdtemp(prefix="herdbook-", dir=place)) / "rpc.sock")


def remove_socket(path: str) -> None:
    """Remove the socket, and the temporary folder that was made for it."""
    Path(path).unlink(missing_ok=True)
    if Path(path).parent != server_folder():
        with suppress(OSError):
            Path(path).parent.rmdir()


def read_token(*, renew: bool = False) -> str:
    """The 256 bits that programs show to the server; made when there are none, or to `renew` them.

    A file that others can read is not believed.
    """
    place = server_folder() / "token"
    with suppress(OSError):
        is_private = not place.is_symlink() and place.stat().st_mode & 0o077 == 0
        token = place.read_text(encoding="ascii", errors="replace") if is_private else ""
        if _TOKEN.fullmatch(token) and not renew:
            return token
    token = secrets.token_hex(32)
    write_private(place, token)
    return token


def add_folder(folder: str) -> None:
    """Let the running server work for a folder too."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(_folders(), flags, 0o600)
    try:
        os.write(descriptor, json.dumps(folder).encode() + b"\n")
    finally:
        os.close(descriptor)


def list_folders() -> list[str]:
    """The folders that the user's commands have named, the first one first."""
    try:
        lines = _folders().read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return list(dict.fromkeys(json.loads(line) for line in lines))


def folders_stamp() -> int:
    """Changes when a folder is added."""
    try:
        return _folders().stat().st_size
    except FileNotFoundError:
        return 0


def forget_folders() -> None:
    """Begin a new list."""
    _folders().unlink(missing_ok=True)


def _folders() -> Path:
    return server_folder() / "folders"
