"""The folder of a store's sockets: the same for every process of the user, however it was started.

It is derived from the user's number and the store's identity, and from no variable: programs that
cron, a hook or an editor starts have other environments. Its path is short: the address of a socket
has at most 104 bytes. The user's own folder in `/tmp` may belong to somebody else who was quicker,
or be a link to a folder with other files, so it is used only if it is the user's and nobody else's.
"""

import os
import stat
from contextlib import suppress

ROOT = "/tmp"  # noqa: S108 - whose folder it is, is checked


def socket_folder(uuid: str) -> str | None:
    """The path of a store's folder; None for a store whose identity is none of ours."""
    if not uuid.isascii() or not uuid.replace("-", "").isalnum() or len(uuid) > 36:  # noqa: PLR2004
        return None
    return f"{ROOT}/herdbook-{os.getuid()}/wakeups-{uuid}"


def require_private(path: str) -> None:
    """Raise PermissionError unless a path is a folder of the user alone; FileNotFoundError too."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{path} is not a folder of this user alone")


def check_folder(folder: str) -> None:
    """Raise an OSError unless a store's folder, and the one it is in, belong to the user alone."""
    require_private(os.path.dirname(folder))  # noqa: PTH120 - writers count microseconds
    require_private(folder)


def make_folder(folder: str) -> None:
    """Make a store's folder if it is missing; raises an OSError if it is not the user's alone."""
    for path in (os.path.dirname(folder), folder):  # noqa: PTH120 - as above
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)  # noqa: PTH102 - as above
        require_private(path)
