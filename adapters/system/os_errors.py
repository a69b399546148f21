"""What the system raises about a store's files, in Herdbook's words."""

import errno

from herdbook.domain.errors import StoreFull, StoreUnavailable

NO_ROOM = {
    errno.ENOSPC: "there is no space left on its disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "no file may grow larger here",
}
"""The errors that say that a file or a folder could not grow."""


def translate_os_error(error: OSError, place: str) -> StoreFull | StoreUnavailable:
    """The error of ours that tells what this one means for the store at `place`."""
    if error.errno in NO_ROOM:
        return StoreFull(place, NO_ROOM[error.errno])
    about = f" ({error.filename})" if error.filename else ""
    return StoreUnavailable(place, f"{error.strerror or error}{about}")
