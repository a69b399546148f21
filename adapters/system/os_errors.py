"""Translates what the system raises about a store's files."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from herdbook.domain.errors import HerdbookError, StoreFull, StoreUnavailable

NO_ROOM = {
    errno.ENOSPC: "there is no space left on its disk",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "no file may grow larger here",
}
"""The errors of a file or a folder that could not grow."""


def translate_os_error(error: OSError, place: str) -> StoreFull | StoreUnavailable:
    """The Herdbook error for an error of the system in the store at `place`."""
    if error.errno in NO_ROOM:
        return StoreFull(place, NO_ROOM[error.errno])
    about = f" ({error.filename})" if error.filename else ""
    return StoreUnavailable(place, f"{error.strerror or error}{about}")


@contextmanager
def translate_os_errors(place: str) -> Iterator[None]:
    """Raise only Herdbook errors out of the block, with the system's error as the cause."""
    try:
        yield
    except HerdbookError:
        raise
    except OSError as error:
        raise translate_os_error(error, place) from error
