"""The spaces of an LMDB store: their names, and the numbers that their keys begin with.

LMDB keeps no checksums, and a name or a number that was damaged would make a space look as if
nobody had ever written in it. So the names are kept a second time, with a checksum.
"""

import json
import zlib
from typing import Any

from herdbook.domain.errors import HerdbookError, StoreDamaged
from herdbook.domain.places import area_of

META, SPACES = "meta", "spaces"
_COPY = b"spaces"
_WIDTH = 4


def read_spaces(txn: Any, databases: dict[str, Any], place: str) -> dict[str, bytes]:
    """The number of every space; StoreDamaged if one is not as it was written."""
    found: dict[str, bytes] = {}
    try:
        for name, number in txn.cursor(db=databases[SPACES]):
            found[name.decode()] = number
            area_of(name.decode())
    except (ValueError, HerdbookError) as error:
        raise StoreDamaged(place, "the name of a space cannot be read") from error
    wanted = {number.to_bytes(_WIDTH, "big") for number in range(1, len(found) + 1)}
    if set(found.values()) != wanted:
        raise StoreDamaged(place, "its spaces are not numbered as they were")
    # A program that knows nothing of the copy may have added more.
    if not _copy(txn, databases, place).items() <= found.items():
        raise StoreDamaged(place, "its spaces are not called as they were")
    return found


def add_space(txn: Any, databases: dict[str, Any], place: str, space: str) -> bytes:
    """Give a new space its number."""
    found = read_spaces(txn, databases, place)
    number = found[space] = (len(found) + 1).to_bytes(_WIDTH, "big")
    txn.put(space.encode(), number, db=databases[SPACES])
    text = json.dumps({name: int.from_bytes(each, "big") for name, each in found.items()}).encode()
    txn.put(_COPY, zlib.crc32(text).to_bytes(4, "big") + text, db=databases[META])
    return number


def _copy(txn: Any, databases: dict[str, Any], place: str) -> dict[str, bytes]:
    value = txn.get(_COPY, db=databases[META])
    if value is None:
        return {}
    if zlib.crc32(value[4:]) != int.from_bytes(value[:4], "big"):
        raise StoreDamaged(place, "the names of its spaces do not match their checksum")
    try:
        numbers = json.loads(value[4:])
        return {name: number.to_bytes(_WIDTH, "big") for name, number in numbers.items()}
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise StoreDamaged(place, "the names of its spaces cannot be read") from error
