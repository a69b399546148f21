"""The values of checkpoints, in the pieces that checkpoints share.

Values are written once: what a step did not change, and most of a large value that it changed a
little, stays in the pieces of earlier steps. Pieces never change, so what was read of them is good
for ever.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from struct import calcsize, pack, unpack_from
from typing import NamedTuple

from herdbook.domain.checkpoints.model import Typed
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.checkpoint_storage.byte_lru import Shelf
from herdbook.ports.checkpoint_storage.extents import (
    Extent,
    Part,
    Stretch,
    bytes_of,
    difference,
    follow,
)
from herdbook.ports.engine.dictionary import PIECES
from herdbook.ports.unit_of_work.changes import Reads

Version = str | int | float | None

LARGE = 4_096
"""From this size on a value is compared with the one before it; smaller ones are written whole."""
MOST_PIECES = 128
"""A checkpoint that would lie in more pieces writes its small extents anew."""
SMALL = 16_384
WIDE = 2**32
SHORT, PREFIX = 13, f"{PIECES.prefix}_"
"""How names of pieces look: the prefix of their kind and so many bytes in hexadecimal digits."""
COMPRESSIBLE = 2_048
"""From this size on bytes are compressed, where that halves them: less costs more than it saves."""
TABLE = 16_384
"""The same for what is written and read with every checkpoint and shrinks to little."""
SAMPLE = 4_096
"""How much of large bytes is tried first."""

_write_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Offer(NamedTuple):
    """A value that comes to be kept; it is written only if no piece has it."""

    version: Version
    changed: bool
    write: Callable[[], Typed]


class Channel(NamedTuple):
    """A value that a checkpoint has, and where in all its bytes it lies."""

    name: str
    version: Version
    tag: str
    start: int
    size: int


class Values:
    """Which values a checkpoint has, and the extents that their bytes lie in, one by one."""

    def __init__(self, channels: Sequence[Channel], extents: Sequence[Extent]) -> None:
        self.channels = {channel.name: channel for channel in channels}
        self.extents = extents

    @cached_property
    def stretch(self) -> Stretch:
        """All extents, to be cut."""
        return Stretch(self.extents)

    @cached_property
    def pieces(self) -> list[str]:
        """The pieces that they lie in, each once."""
        return list(dict.fromkeys([piece for piece, _, _ in self.extents]))

    @property
    def size(self) -> int:
        """How many bytes all values have."""
        return sum([size for _, _, size in self.extents])

    def of(self, channel: Channel, pieces: Mapping[str, bytes]) -> bytes:
        """The bytes of one value."""
        return bytes_of(self.stretch.cut(channel.start, channel.size), pieces)

    def all(self, pieces: Mapping[str, bytes]) -> dict[str, Typed]:
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
            found[name] = Typed(tag, parts[0] if len(parts) == 1 else b"".join(parts))
        return found

    def renamed(self, names: Mapping[str, str]) -> "Values":
        """The same values in pieces with other names."""
        extents = [(names[piece], start, size) for piece, start, size in self.extents]
        return Values(list(self.channels.values()), extents)

    def written(self) -> bytes:
        """All this as bytes; `read_values` reads them.

        JSON, which has a list for each thing that is said of channels, and behind a NUL the names
        of pieces and the numbers of extents: which piece, start, size.
        """
        names = {piece: number for number, piece in enumerate(self.pieces)}
        numbers = [n for piece, start, size in self.extents for n in (names[piece], start, size)]
        width = "I" if max(numbers, default=0) < WIDE else "Q"
        short = [_shortened(piece) for piece in names]
        channels = self.channels.values()
        tags = [each.tag for each in channels]
        said = (
            width,
            len(names) if all(short) else self.pieces,
            list(self.channels),
            [each.version for each in channels],
            tags[0] if len(set(tags)) == 1 else tags,
            [each.size for each in channels],
        )
        named = short if all(short) else []
        rest = pack(f"<{len(numbers)}{width}", *numbers)
        return packed(b"".join([_write_json(said).encode(), b"\0", *named, rest]), TABLE)[1]


def read_values(data: bytes) -> Values:
    """The values behind `Values.written`."""
    table = unpacked(data, is_packed=data[:1] != b"[")
    end = table.index(b"\0")
    width, pieces, names, versions, tags, sizes = json.loads(table[:end])
    end += 1
    if isinstance(pieces, int):
        behind = end + pieces * SHORT
        pieces, end = _lengthened(table[end:behind]), behind
    if isinstance(tags, str):
        tags = [tags] * len(names)
    found, start = [], 0
    for name, version, tag, size in zip(names, versions, tags, sizes, strict=True):
        found.append(Channel(name, version, tag, start, size))
        start += size
    numbers = unpack_from(f"<{(len(table) - end) // calcsize(width)}{width}", table, end)
    where = [pieces[number] for number in numbers[::3]]
    return Values(found, list(zip(where, numbers[1::3], numbers[2::3], strict=True)))


@lru_cache(maxsize=1_024)
def _shortened(name: str) -> bytes:
    """A piece's name in few bytes; in none if it is not such as a unit of work makes."""
    digits = name.removeprefix(PREFIX)
    try:
        short = bytes.fromhex(digits)
    except ValueError:
        return b""
    return short if len(short) == SHORT and PREFIX + short.hex() == name else b""


def _lengthened(short: bytes) -> list[str]:
    return [PREFIX + short[at : at + SHORT].hex() for at in range(0, len(short), SHORT)]


def fetched(read: Reads, names: Iterable[str], shelf: Shelf, place: str) -> dict[str, bytes]:
    """The bytes of pieces by name; StoreDamaged if one is not there."""
    wanted = list(dict.fromkeys(names))
    found: dict[str, bytes] = shelf.found(wanted)
    missing = [name for name in wanted if name not in found]
    for name, piece in zip(missing, read.get(PIECES, missing) if missing else (), strict=True):
        if piece is None:
            raise StoreDamaged(place, f"the piece {name} of a checkpoint's values is not there")
        found[name] = unpacked(piece.data, is_packed=piece.packed)
        shelf.put(name, found[name], piece.size)
    return found


def packed(data: bytes, least: int = COMPRESSIBLE) -> tuple[bool, bytes]:
    """Bytes as they are kept, and whether that is compressed."""
    if len(data) < least:
        return False, data
    if len(data) > SAMPLE:
        middle = (len(data) - SAMPLE) // 2
        if len(zlib.compress(data[middle : middle + SAMPLE], 1)) > SAMPLE // 2:
            return False, data
    small = zlib.compress(data, 1)
    return (True, small) if len(small) <= len(data) // 2 else (False, data)


def unpacked(data: bytes, *, is_packed: bool) -> bytes:
    """The bytes behind `packed`."""
    return zlib.decompress(data) if is_packed else data


class Composed(NamedTuple):
    """Values as they will be kept, and what of them is new, which lies in a piece of its own.

    `written` are those values that had to be written to find that out.
    """

    values: Values
    fresh: bytes
    written: dict[str, Typed]


class Base(NamedTuple):
    """A checkpoint that is there already, its values, and how to read them and their pieces."""

    values: Values
    value: Callable[[Channel], bytes]
    pieces: Callable[[Iterable[str]], Mapping[str, bytes]]


def compose(offers: Mapping[str, Offer], base: Base | None, piece: str) -> Composed:
    """Find out what of some values is new against those of another checkpoint.

    A value that has not changed is not even written: the other one's is taken, if its version is
    the same. What is new is meant for the named piece.
    """
    fresh = bytearray()
    channels: list[Channel] = []
    extents: list[Extent] = []
    written: dict[str, Typed] = {}
    before, cut = (base.values.channels, base.values.stretch.cut) if base else ({}, _nothing)
    start = first = last = 0  # of the old bytes that follow one another and are taken over
    for name, (version, changed, write) in offers.items():
        old = before.get(name)
        if old is not None and not changed and old.version == version:
            if old.start != last:
                follow(extents, cut(first, last - first))
                first = old.start
            last = old.start + old.size
            channels.append(old if old.start == start else old._replace(start=start))
            start += old.size
            continue
        follow(extents, cut(first, last - first))
        first = last
        written[name] = tag, data = write()
        parts: Sequence[Part] = [data] if data else []
        if base and old is not None and min(old.size, len(data)) >= LARGE:
            parts = difference(base.value(old), data)
        for part in parts:
            if isinstance(part, bytes):
                follow(extents, [(piece, len(fresh), len(part))])
                fresh += part
            elif old is not None:
                follow(extents, cut(old.start + part.start, part.size))
        channels.append(Channel(name, version, tag, start, len(data)))
        start += len(data)
    follow(extents, cut(first, last - first))
    composed = Composed(Values(channels, extents), bytes(fresh), written)
    return _gathered(composed, base, piece) if base else composed


def _nothing(_start: int, _size: int) -> list[Extent]:
    return []


def _gathered(composed: Composed, base: Base, fresh: str) -> Composed:
    """The same with small extents written anew where there are too many pieces to read from."""
    values = composed.values
    if len(values.pieces) <= MOST_PIECES:
        return composed
    small = [piece for piece, _, size in values.extents if size < SMALL and piece != fresh]
    held = {fresh: composed.fresh, **base.pieces(small)}
    anew = bytearray()
    extents: list[Extent] = []
    for piece, start, size in values.extents:
        if size < SMALL or piece == fresh:
            follow(extents, [(fresh, len(anew), size)])
            anew += held[piece][start : start + size]
        else:
            follow(extents, [(piece, start, size)])
    gathered = Values(list(values.channels.values()), extents)
    return composed._replace(values=gathered, fresh=bytes(anew))
