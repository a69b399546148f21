"""The B-trees in a file of LMDB's data format 2: pages of nodes with keys and values.

Everything is read from a copy in memory, so a file that shrinks or changes meanwhile does no harm.
No number in the file is trusted: no page is entered twice and no slice leaves its page.
"""

from collections.abc import Iterator
from struct import Struct, error
from typing import NamedTuple

from herdbook.adapters.agent_tracker.errors import MalformedTracker

MAGIC, FORMAT = 0xBEEFC0DE, 2
NO_PAGE = 2**64 - 1
SIZES = [2**power for power in range(8, 17)]
"""The possible page sizes."""

_PAGE = Struct("<QQHHHH")
_META = Struct("<IIQQ")
_TREE = Struct("<IHHQQQQQ")
_END = Struct("<QQ")
_NODE = Struct("<HHHH")
_OVERFLOW = Struct("<QQQ")
_POINTER = Struct("<H")
_BRANCH, _LEAF, _OVERFLOWING, _META_PAGE, _FIXED = 0x01, 0x02, 0x04, 0x08, 0x20
_BIG, _TREE_NODE, _SEVERAL = 0x01, 0x02, 0x04


class TreeEntry(NamedTuple):
    """A key with its value, or with the root page of another tree.

    `reason` says why the value cannot be read, if so.
    """

    key: bytes
    value: bytes
    root: int | None = None
    reason: str = ""


class Meta(NamedTuple):
    """A meta page: the root of one state of the database; every file has two."""

    page_size: int
    root: int
    txn: int


def _meta(data: bytes, at: int) -> Meta | str:
    """Read the meta page at an offset; a text with the reason if there is none."""
    try:
        flags = _PAGE.unpack_from(data, at)[3]
        magic, version, _, _ = _META.unpack_from(data, at + _PAGE.size)
        trees = at + _PAGE.size + _META.size
        page_size = _TREE.unpack_from(data, trees)[0]
        root = _TREE.unpack_from(data, trees + _TREE.size)[-1]
        _, txn = _END.unpack_from(data, trees + 2 * _TREE.size)
    except error:
        return "the file ends within its first pages"
    if magic != MAGIC or not flags & _META_PAGE:
        return "it does not begin as LMDB's files do"
    if version & 0xFFFF != FORMAT:
        return f"it has LMDB's data format {version & 0xFFFF}, and only {FORMAT} is understood"
    if page_size not in SIZES:
        return f"its pages cannot be {page_size} bytes long"
    return Meta(page_size, root, txn)


def newest_meta(data: bytes) -> Meta:
    """The meta page of the last complete commit; raises MalformedTracker if there is none."""
    first = _meta(data, 0)
    if isinstance(first, Meta):
        places = [first.page_size]
    else:
        # The first page was torn while it was written, so the page size is not known.
        places = [size for size in SIZES if size < len(data)]
    found = [first, *(_meta(data, place) for place in places)]
    known = [each for each in found if isinstance(each, Meta)]
    if not known:
        raise MalformedTracker(str(first))
    return max(known, key=lambda each: each.txn)


class PageReader:
    """Reads the pages of one state of a database, each at most once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.meta = newest_meta(data)
        self._entered: set[int] = set()

    def entries(self, root: int) -> Iterator[TreeEntry]:
        """All entries of a tree in order; raises MalformedTracker if the tree is broken."""
        ahead = [] if root == NO_PAGE else [root]
        while ahead:
            number = ahead.pop()
            page, flags, nodes = self._nodes(number)
            if flags & _BRANCH:
                ahead += reversed([_child(page, at) for at in nodes])
            else:
                for at in nodes:
                    yield self._entry(number, page, at)

    def _enter(self, number: int, count: int = 1) -> bytes:
        size = self.meta.page_size
        if number < 2 or (number + count) * size > len(self._data):  # noqa: PLR2004 - two metas
            raise MalformedTracker(f"page {number} is not in the file, which may be cut off")
        for each in range(number, number + count):
            if each in self._entered:
                raise MalformedTracker(f"page {each} is used twice")
            self._entered.add(each)
        return self._data[number * size : (number + count) * size]

    def _nodes(self, number: int) -> tuple[bytes, int, list[int]]:
        page = self._enter(number)
        page_number, _, _, flags, lower, _ = _PAGE.unpack_from(page)
        kinds = flags & (_BRANCH | _LEAF | _OVERFLOWING | _META_PAGE | _FIXED)
        if page_number != number or kinds not in (_BRANCH, _LEAF):
            raise MalformedTracker(f"page {number} is not part of a tree")
        if _PAGE.size + lower > len(page):
            raise MalformedTracker(f"page {number} claims more than it can hold")
        count = lower // _POINTER.size
        pointers = [
            _POINTER.unpack_from(page, _PAGE.size + each * _POINTER.size)[0]
            for each in range(count)
        ]
        places = [_PAGE.size + each for each in pointers]
        if any(place + _NODE.size > len(page) for place in places):
            raise MalformedTracker(f"page {number} names a place outside itself")
        return page, kinds, places

    def _entry(self, number: int, page: bytes, at: int) -> TreeEntry:
        low, high, flags, key_size = _NODE.unpack_from(page, at)
        size = low | high << 16
        begin = at + _NODE.size + key_size
        key = page[at + _NODE.size : begin]
        held = _OVERFLOW.size if flags & _BIG else size
        if begin + held > len(page):
            raise MalformedTracker(f"page {number} holds a value that is longer than the page")
        if flags & _SEVERAL:
            return TreeEntry(key, b"", reason="it has several values under one key")
        value = page[begin : begin + held]
        if flags & _BIG:
            return TreeEntry(key, self._overflow(value, size))
        if flags & _TREE_NODE:
            if size != _TREE.size:
                raise MalformedTracker(f"page {number} holds a tree that is not described as one")
            return TreeEntry(key, b"", root=_TREE.unpack(value)[-1])
        return TreeEntry(key, value)

    def _overflow(self, place: bytes, size: int) -> bytes:
        number, _, _ = _OVERFLOW.unpack(place)
        count = -(-(_PAGE.size + size) // self.meta.page_size)
        pages = self._enter(number, count)
        page_number, _, _, flags, _, _ = _PAGE.unpack_from(pages)
        if page_number != number or not flags & _OVERFLOWING:
            raise MalformedTracker(f"page {number} does not hold the long value it should")
        return pages[_PAGE.size : _PAGE.size + size]


def _child(page: bytes, at: int) -> int:
    low, high, top, _ = _NODE.unpack_from(page, at)
    return int(low | high << 16 | top << 32)
