"""Translates errors of DuckDB and the system; the only module that knows DuckDB's.

DuckDB 2.0 names few situations by class: a full disk, a foreign file and a lock conflict are all an
`IOException`, and a failed checksum is a bare `Error`. Only the text distinguishes them, so text is
matched here, in one table, and only in errors of the classes that can carry it: the text of a
constraint error quotes what a user wrote.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import duckdb

from herdbook.adapters.system.os_errors import NO_ROOM, translate_os_error
from herdbook.domain.errors import (
    HerdbookError,
    InvalidValue,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreUnavailable,
)
from herdbook.ports.engine.kinds import Kind

_TELLING = (
    duckdb.IOException,
    duckdb.FatalException,
    duckdb.InternalException,
    duckdb.SerializationException,
    duckdb.TransactionException,
)

_HARMFUL = (duckdb.Error, StoreDamaged, StoreFull, StoreUnavailable)


def _full_error(reason: str) -> Callable[[str, str], HerdbookError]:
    return lambda place, _text: StoreFull(place, reason)


def _damaged_error(reason: str) -> Callable[[str, str], HerdbookError]:
    return lambda place, _text: StoreDamaged(place, reason)


def _busy_error(place: str, text: str) -> HerdbookError:
    holder = re.search(r"held in (?P<program>.+) \(PID (?P<pid>\d+)\)", text)
    if holder is None:
        return StoreBusy(place, 0.0)
    program = os.path.basename(holder["program"])  # noqa: PTH119 - a name for people, not a path
    return StoreBusy(place, 0.0, f"process {holder['pid']} ({program}), which opened it without us")


_SIGNS: tuple[tuple[str, Callable[[str, str], HerdbookError]], ...] = (
    # A message about a lack of space ends with the system's text, wherever it occurred.
    *(
        (rf'{re.escape(os.strerror(code))}"?\s*$', _full_error(why))
        for code, why in NO_ROOM.items()
    ),
    (r"Could not set lock on file", _busy_error),
    (r"not a valid DuckDB database file", _damaged_error("it is not a DuckDB database")),
    (
        r"WAL does not match database|WAL checkpoint iteration does not match",
        _damaged_error("the write-ahead log beside it belongs to another copy of it"),
    ),
    (r"Failure while replaying WAL", _damaged_error("its write-ahead log cannot be read")),
    (r"Corrupt|checksum", _damaged_error("a part of it does not match its checksum")),
    (r"Could not read enough bytes", _damaged_error("its end is missing")),
    (
        r"Failed to (decode|deserialize)|Serialization Error",
        _damaged_error("a part cannot be read"),
    ),
)


def translate_error(error: Exception, place: str) -> HerdbookError:
    """The Herdbook error for an error of DuckDB or the system in the store at `place`."""
    if isinstance(error, HerdbookError):
        return error
    if isinstance(error, OSError):
        return translate_os_error(error, place)
    text = str(error)
    if isinstance(error, _TELLING) or type(error) is duckdb.Error:
        for sign, meaning in _SIGNS:
            if re.search(sign, text):
                return meaning(place, text)
    return StoreUnavailable(place, text.partition("\n")[0] or type(error).__name__)


@contextmanager
def translate_errors(place: str) -> Iterator[None]:
    """Raise only Herdbook errors out of the block, with the original as the cause."""
    try:
        yield
    except HerdbookError:
        raise
    except (duckdb.Error, OSError) as error:
        raise translate_error(error, place) from error


@contextmanager
def refuse_foreign_rows(kind: Kind[Any], place: str) -> Iterator[None]:
    """Raise StoreDamaged for rows of a kind with values that no Herdbook has written."""
    reason = f"a row of its table {kind.name} holds what Herdbook never writes"
    try:
        yield
    except InvalidValue as error:
        raise StoreDamaged(place, reason) from error
    except HerdbookError:
        raise
    except (LookupError, ValueError, TypeError, OverflowError) as error:
        raise StoreDamaged(place, reason) from error


def may_be_unusable_after(error: BaseException) -> bool:
    """Whether DuckDB may be unusable after this error; then the file is closed and opened again."""
    return isinstance(error, _HARMFUL)
