"""Stores the values of checkpoints in pieces that checkpoints share.

Values are written once: what a step did not change, and most of a large value that it changed a
little, stays in the pieces of earlier steps. Pieces never change, so a cached piece is valid for
ever.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from struct import calcsize, pack, unpack_from
from typing import NamedTuple

from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru
from herdbook.ports.checkpoint_storage.extents import (
    Extent,
    ExtentIndex,
    Part,
    append_extents,
    difference,
)
from herdbook.ports.engine.dictionary import PIECES
from herdbook.ports.unit_of_work.changes import RowReader

Version = str | int | float | None

LARGE = 4_096
"""From this size on a value is compared with the previous one; smaller ones are written whole."""
MOST_PIECES = 128
"""A checkpoint that would need more pieces than this rewrites its small extents."""
SMALL = 16_384
WIDE = 2**32
SHORT_NAME_SIZE, NAME_PREFIX = 13, f"{PIECES.prefix}_"
"""The form of piece names: the prefix of their kind and this many bytes in hexadecimal digits."""
COMPRESSIBLE = 2_048
"""From this size on bytes are compressed if that halves them: less costs more than it saves."""
TABLE = 16_384
"""The same for what is written and read with every checkpoint and compresses well."""
SAMPLE = 4_096
"""How much of large bytes is test-compressed first."""

_write_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class ChannelValue(NamedTuple):
    """A channel's value to be stored; it is serialized only if no piece has it."""

    version: Version
    changed: bool
    write: Callable[[], TaggedBytes]


class Channel(NamedTuple):
    """A channel of a checkpoint, and the position of its value in the checkpoint's bytes."""

    name: str
    version: Version
    tag: str
    start: int
    size: int


class ValueTable:
    """Which values a checkpoint has, and the extents of their bytes, one after the other."""

    def __init__(self, channels: Sequence[Channel], extents: Sequence[Extent]) -> None:
        self.channels = {channel.name: channel for channel in channels}
        self.extents = extents

    @cached_property
    def extent_index(self) -> ExtentIndex:
        """All extents, to be sliced."""
        return ExtentIndex(self.extents)

    @cached_property
    def pieces(self) -> list[str]:
        """The names of the pieces the values are stored in, each once."""
        return list(dict.fromkeys([piece for piece, _, _ in self.extents]))

    @property
    def size(self) -> int:
        """How many bytes all values have."""
        return sum([size for _, _, size in self.extents])

    def read_all(self, pieces: Mapping[str, bytes]) -> dict[str, TaggedBytes]:
        """All values, by the names of their channels."""
        extents = iter(self.extents)
        piece, at, left = b"", 0, 0
        found = {}
        for name, _, tag, _, size in self.channels.values():
            parts, lacking = [], size
            while lacking:
                if not left:
                    source, at, left = next(extents)
                    piece = pieces[source]
                taken = min(left, lacking)
                parts.append(piece[at : at + taken])
                at, left, lacking = at + taken, left - taken, lacking - taken
            found[name] = TaggedBytes(tag, parts[0] if len(parts) == 1 else b"".join(parts))
        return found

    def rename_pieces(self, names: Mapping[str, str]) -> "ValueTable":
        """The same values in pieces with other names."""
        extents = [(names[piece], start, size) for piece, start, size in self.extents]
        return ValueTable(list(self.channels.values()), extents)

    def encode(self) -> bytes:
        """The table as bytes; `decode_value_table` decodes them.

        JSON, with one list for each property of the channels, and after a NUL the names of pieces
        and the numbers of the extents: which piece, start, size.
        """
        names = {piece: number for number, piece in enumerate(self.pieces)}
        numbers = [n for piece, start, size in self.extents for n in (names[piece], start, size)]
        width = "I" if max(numbers, default=0) < WIDE else "Q"
        short = [_shorten_name(piece) for piece in names]
        channels = self.channels.values()
        tags = [each.tag for each in channels]
        header = (
            width,
            len(names) if all(short) else self.pieces,
            list(self.channels),
            [each.version for each in channels],
            tags[0] if len(set(tags)) == 1 else tags,
            [each.size for each in channels],
        )
        named = short if all(short) else []
        rest = pack(f"<{len(numbers)}{width}", *numbers)
        return compress(b"".join([_write_json(header).encode(), b"\0", *named, rest]), TABLE)[1]


def decode_value_table(data: bytes) -> ValueTable:
    """Decode what `ValueTable.encode` encoded."""
    table = decompress(data, is_packed=data[:1] != b"[")
    end = table.index(b"\0")
    width, pieces, names, versions, tags, sizes = json.loads(table[:end])
    end += 1
    if isinstance(pieces, int):
        names_end = end + pieces * SHORT_NAME_SIZE
        pieces, end = _expand_names(table[end:names_end]), names_end
    if isinstance(tags, str):
        tags = [tags] * len(names)
    found, start = [], 0
    for name, version, tag, size in zip(names, versions, tags, sizes, strict=True):
        found.append(Channel(name, version, tag, start, size))
        start += size
    numbers = unpack_from(f"<{(len(table) - end) // calcsize(width)}{width}", table, end)
    where = [pieces[number] for number in numbers[::3]]
    return ValueTable(found, list(zip(where, numbers[1::3], numbers[2::3], strict=True)))


@lru_cache(maxsize=1_024)
def _shorten_name(name: str) -> bytes:
    """A piece's name in few bytes; empty if it is not one that a unit of work makes."""
    digits = name.removeprefix(NAME_PREFIX)
    try:
        short = bytes.fromhex(digits)
    except ValueError:
        return b""
    return short if len(short) == SHORT_NAME_SIZE and NAME_PREFIX + short.hex() == name else b""


def _expand_names(short: bytes) -> list[str]:
    return [
        NAME_PREFIX + short[at : at + SHORT_NAME_SIZE].hex()
        for at in range(0, len(short), SHORT_NAME_SIZE)
    ]


def fetch_pieces(
    reader: RowReader, names: Iterable[str], cache: ByteLru, place: str
) -> dict[str, bytes]:
    """The bytes of pieces by name; raises StoreDamaged if one is missing."""
    wanted = list(dict.fromkeys(names))
    found: dict[str, bytes] = cache.get_many(wanted)
    missing = [name for name in wanted if name not in found]
    for name, piece in zip(missing, reader.get(PIECES, missing) if missing else (), strict=True):
        if piece is None:
            raise StoreDamaged(place, f"the piece {name} of a checkpoint's values is not there")
        found[name] = decompress(piece.data, is_packed=piece.packed)
        cache.put(name, found[name], piece.size)
    return found


def compress(data: bytes, least: int = COMPRESSIBLE) -> tuple[bool, bytes]:
    """Compress bytes if that is worth it; return whether it was, and the bytes to store."""
    if len(data) < least:
        return False, data
    if len(data) > SAMPLE:
        middle = (len(data) - SAMPLE) // 2
        if len(zlib.compress(data[middle : middle + SAMPLE], 1)) > SAMPLE // 2:
            return False, data
    small = zlib.compress(data, 1)
    return (True, small) if len(small) <= len(data) // 2 else (False, data)


def decompress(data: bytes, *, is_packed: bool) -> bytes:
    """Reverse `compress`."""
    return zlib.decompress(data) if is_packed else data


class Composition(NamedTuple):
    """Values as they will be stored, and their new bytes, which go into a piece of their own.

    `encoded` are the values that had to be serialized to find that out.
    """

    values: ValueTable
    fresh: bytes
    encoded: dict[str, TaggedBytes]


class BaseCheckpoint(NamedTuple):
    """An existing checkpoint to compare with: its values, and how to read them and their pieces."""

    values: ValueTable
    value: Callable[[Channel], bytes]
    pieces: Callable[[Iterable[str]], Mapping[str, bytes]]


def compose(
    offers: Mapping[str, ChannelValue], base: BaseCheckpoint | None, piece: str
) -> Composition:
    """Find out which bytes of some values are new compared with another checkpoint's.

    A value that has not changed is not even serialized: the other checkpoint's is used, if its
    version is the same. The new bytes are meant for the piece named `piece`.
    """
    fresh = bytearray()
    channels: list[Channel] = []
    extents: list[Extent] = []
    written: dict[str, TaggedBytes] = {}
    before, cut = (
        (base.values.channels, base.values.extent_index.cut) if base else ({}, _cut_nothing)
    )
    start = first = last = 0  # of consecutive old bytes that are reused
    for name, (version, changed, write) in offers.items():
        old = before.get(name)
        if old is not None and not changed and old.version == version:
            if old.start != last:
                append_extents(extents, cut(first, last - first))
                first = old.start
            last = old.start + old.size
            channels.append(old if old.start == start else old._replace(start=start))
            start += old.size
            continue
        append_extents(extents, cut(first, last - first))
        first = last
        written[name] = tag, data = write()
        parts: Sequence[Part] = [data] if data else []
        if base and old is not None and min(old.size, len(data)) >= LARGE:
            parts = difference(base.value(old), data)
        for part in parts:
            if isinstance(part, bytes):
                append_extents(extents, [(piece, len(fresh), len(part))])
                fresh += part
            elif old is not None:
                append_extents(extents, cut(old.start + part.start, part.size))
        channels.append(Channel(name, version, tag, start, len(data)))
        start += len(data)
    append_extents(extents, cut(first, last - first))
    composed = Composition(ValueTable(channels, extents), bytes(fresh), written)
    return _merge_small_extents(composed, base, piece) if base else composed


def _cut_nothing(_start: int, _size: int) -> list[Extent]:
    return []


def _merge_small_extents(composed: Composition, base: BaseCheckpoint, fresh: str) -> Composition:
    """The same with small extents rewritten where there would be too many pieces to read from."""
    values = composed.values
    if len(values.pieces) <= MOST_PIECES:
        return composed
    small = [piece for piece, _, size in values.extents if size < SMALL and piece != fresh]
    held = {fresh: composed.fresh, **base.pieces(small)}
    rewritten = bytearray()
    extents: list[Extent] = []
    for piece, start, size in values.extents:
        if size < SMALL or piece == fresh:
            append_extents(extents, [(fresh, len(rewritten), size)])
            rewritten += held[piece][start : start + size]
        else:
            append_extents(extents, [(piece, start, size)])
    gathered = ValueTable(list(values.channels.values()), extents)
    return composed._replace(values=gathered, fresh=bytes(rewritten))
