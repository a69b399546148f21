"""Translation of the system's errors about a store's files into Herdbook's errors."""

import errno

from herdbook.domain.errors import StoreFull, StoreUnavailable

NO_ROOM = {
    errno.ENOSPC: "there is no space left on its disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "no file may grow larger here",
}
"""The errors of a file or a folder that could not grow."""


def translate_os_error(error: OSError, place: str) -> StoreFull | StoreUnavailable:
    """The Herdbook error for a system error about the store at `place`."""
    if error.errno in NO_ROOM:
        return StoreFull(place, NO_ROOM[error.errno])
    about = f" ({error.filename})" if error.filename else ""
    return StoreUnavailable(place, f"{error.strerror or error}{about}")
