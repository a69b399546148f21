"""The spaces of an LMDB store: their names, and the numbers that their keys begin with.

LMDB keeps no checksums, and a damaged name or number would make a space look as if nobody had ever
written in it. So each is stored a second time, by its number and with a checksum.
"""

import zlib
from typing import Any

from herdbook.domain.errors import HerdbookError, StoreDamaged
from herdbook.domain.location.areas import area_of

META, SPACES = "meta", "spaces"
_COPY = b"space "
_WIDTH = 4


def read_spaces(txn: Any, databases: dict[str, Any], place: str) -> dict[str, bytes]:
    """The number of every space. Raises StoreDamaged if one is not as it was written."""
    found: dict[str, bytes] = {}
    try:
        for name, number in txn.cursor(db=databases[SPACES]):
            found[name.decode()] = number
            area_of(name.decode())
    except (ValueError, HerdbookError) as error:
        raise StoreDamaged(place, "the name of a space cannot be read") from error
    if set(found.values()) != {_number(each) for each in range(1, len(found) + 1)}:
        raise StoreDamaged(place, "its spaces are not numbered as they were")
    # A program that does not know the copies may have added more.
    if not _copies(txn, databases, place).items() <= found.items():
        raise StoreDamaged(place, "its spaces are not called as they were")
    return found


def add_space(txn: Any, databases: dict[str, Any], space: str) -> bytes:
    """Give a new space its number."""
    name, number = space.encode(), _number(txn.stat(databases[SPACES])["entries"] + 1)
    txn.put(name, number, db=databases[SPACES])
    txn.put(_COPY + number, checksum(name) + name, db=databases[META])
    return number


def _copies(txn: Any, databases: dict[str, Any], place: str) -> dict[str, bytes]:
    copies: dict[str, bytes] = {}
    cursor = txn.cursor(db=databases[META])
    there = cursor.set_range(_COPY)
    while there and cursor.key().startswith(_COPY):
        name = cursor.value()[4:]
        if cursor.value()[:4] != checksum(name):
            raise StoreDamaged(place, "the name of a space does not match its checksum")
        copies[name.decode(errors="replace")] = cursor.key()[len(_COPY) :]
        there = cursor.next()
    return copies


def _number(each: int) -> bytes:
    return each.to_bytes(_WIDTH, "big")


def checksum(text: bytes) -> bytes:
    """The CRC-32 of a text, as bytes."""
    return zlib.crc32(text).to_bytes(4, "big")
