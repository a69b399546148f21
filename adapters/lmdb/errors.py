"""What LMDB raises, in Herdbook's words: the only place that knows its errors."""

import errno
import os

import lmdb

from herdbook.adapters.system.os_errors import NO_ROOM
from herdbook.domain.errors import HerdbookError, StoreDamaged, StoreFull, StoreUnavailable

_NO_ROOM = {
    **NO_ROOM,
    # What LMDB makes of a write of which the disk took a part.
    errno.EIO: "its disk did not take all of it",
}


def translate_error(error: lmdb.Error, place: str) -> HerdbookError:
    """The error of ours that tells what this one means for the store at `place`."""
    code = error.args[0] if error.args else ""
    match error:
        case lmdb.MapFullError():
            return StoreFull(place, "it has reached its size limit; a larger one can be configured")
        case (
            lmdb.CorruptedError()
            | lmdb.IncompatibleError()
            | lmdb.PageNotFoundError()
            | lmdb.PanicError()
            | lmdb.InvalidError()
            | lmdb.VersionMismatchError()
        ):
            return StoreDamaged(place, f"LMDB says {code}")
        case lmdb.ReadersFullError():
            return StoreUnavailable(place, "more processes read it at once than it has room for")
        case _ if reason := _lack_of_room(error):
            return StoreFull(place, reason)
        case _:
            return StoreUnavailable(place, f"LMDB says {code}")


def _lack_of_room(error: lmdb.Error) -> str:
    reasons = (why for number, why in _NO_ROOM.items() if os.strerror(number) in str(error))
    return next(reasons, "its disk refused to write" if isinstance(error, lmdb.DiskError) else "")
