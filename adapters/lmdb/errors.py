"""Translates LMDB's errors; the only module that knows them."""

import errno
import os

import lmdb

from herdbook.adapters.system.os_errors import NO_ROOM
from herdbook.domain.errors import HerdbookError, StoreDamaged, StoreFull, StoreUnavailable

_NO_ROOM = {
    **NO_ROOM,
    # LMDB reports this when the disk took only a part of a write.
    errno.EIO: "its disk did not take all of it",
}


def translate_error(error: lmdb.Error, place: str) -> HerdbookError:
    """The Herdbook error for an LMDB error in the store at `place`."""
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
        case _ if reason := _no_space_reason(error):
            return StoreFull(place, reason)
        case _:
            return StoreUnavailable(place, f"LMDB says {code}")


def _no_space_reason(error: lmdb.Error) -> str:
    reasons = (why for number, why in _NO_ROOM.items() if os.strerror(number) in str(error))
    return next(reasons, "its disk refused to write" if isinstance(error, lmdb.DiskError) else "")
