"""Reads the two headers of an LMDB data file without LMDB.

LMDB trusts its headers. Reading past the end of a file that is shorter than they say kills the
process, and of the two headers LMDB takes the one with the larger number, right or wrong.
"""

import os
import struct
import time
from pathlib import Path
from typing import NamedTuple, Self

from herdbook.domain.errors import StoreDamaged, StoreUnavailable

_LAYOUT = struct.Struct("<QHHHHII QQ 48s48s QQ")
_MAGIC, _VERSION = 0xBEEFC0DE, 1
_BEGINNING = struct.pack("<QHHHHII", 0, 0, 8, 0, 0, _MAGIC, _VERSION)
"""The first bytes of every data file."""
_PAGE_SIZES = (4_096, 8_192, 16_384, 32_768, 65_536)
_LARGEST = _PAGE_SIZES[-1]
_NO_PAGE = b"\xff" * 8
_FLAGS = 8, 0
"""The sort flags of LMDB's list of free pages (by number) and its list of databases (by text)."""


class Header(NamedTuple):
    """One of the two headers."""

    is_ours: bool
    flags: tuple[int, int]
    page_size: int
    root: bytes
    last_page: int
    number: int

    @classmethod
    def read(cls, head: bytes, at: int) -> Self:
        """Decode the header at an offset of the file's first bytes."""
        fields = _LAYOUT.unpack_from(head, at)
        # The page size is in the first field of the free list's record.
        page_size = int.from_bytes(fields[9][:4], "little")
        flags = int.from_bytes(fields[9][4:6], "little"), int.from_bytes(fields[10][4:6], "little")
        ours = fields[5:7] == (_MAGIC, _VERSION)
        return cls(ours, flags, page_size, fields[10][40:48], fields[11], fields[12])


def check_headers(data: Path) -> None:
    """Raise StoreDamaged if the headers are not whole or the file is shorter than they say.

    A writer may commit between our reading of the one and the other; so headers that do not fit are
    read again.
    """
    for _ in range(8):
        if _flaw(data) is None:
            return
        time.sleep(0.001)
    if reason := _flaw(data):
        raise StoreDamaged(str(data), reason)


def is_unfinished(data: Path) -> bool:
    """Whether a file was left by a process that died, or ran out of space, while creating a store.

    Nothing was ever in it: LMDB had not written both of its headers, or nobody had written anything
    after them. Any other content of a short file belongs to somebody and is not replaced by a new
    store.
    """
    head, size = _read_start(data)
    if size == len(head) and not head.strip(b"\0"):
        return True
    if not _BEGINNING.startswith(head[: len(_BEGINNING)]):
        return False
    if size < _LAYOUT.size:
        return True
    first = Header.read(head, 0)
    if first.number != 0 or first.root != _NO_PAGE or first.page_size not in _PAGE_SIZES:
        return False
    if size < 2 * first.page_size:
        return True
    second = Header.read(head, first.page_size)
    return second.is_ours and second.number == 0 and second.root == _NO_PAGE


def _read_start(data: Path) -> tuple[bytes, int]:
    try:
        with data.open("rb") as file:
            head = file.read(_LARGEST + _LAYOUT.size)
            return head, os.fstat(file.fileno()).st_size
    except OSError as error:
        raise StoreUnavailable(str(data), error.strerror or str(error)) from error


def _flaw(data: Path) -> str | None:
    head, size = _read_start(data)
    if len(head) < _LAYOUT.size:
        return "it is cut off"
    first = Header.read(head, 0)
    if not first.is_ours:
        return "it is not an LMDB file, or one of another format"
    page = first.page_size
    if page not in _PAGE_SIZES or len(head) < page + _LAYOUT.size:
        return "it is cut off"
    second = Header.read(head, page)
    if not second.is_ours or second.page_size != page:
        return "its second header is not one of LMDB's"
    return _disagreement(first, second, size)


def _disagreement(first: Header, second: Header, size: int) -> str | None:
    if {first.flags, second.flags} != {_FLAGS}:
        return "its headers speak of databases of another kind"
    # Transactions are numbered, and each writes the header that the one before it did not.
    even, odd = first.number, second.number
    if (even, odd) != (0, 0) and (even % 2, odd % 2, abs(even - odd)) != (0, 1, 1):
        return f"its headers say {even} and {odd} and do not follow one another"
    last = max(first, second, key=lambda header: header.number)
    whole = (last.last_page + 1) * last.page_size
    return f"it has {size} bytes of {whole}" if size < whole else None
