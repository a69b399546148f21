"""The values of checkpoints, in the pieces that checkpoints share.

Values are written once: what a step did not change, and most of a large value that it changed a
little, stays in the pieces of earlier steps. Pieces never change, so what was read of them is good
for ever.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from herdbook.domain.checkpoints import Piece, Typed
from herdbook.domain.errors import StoreDamaged
from herdbook.domain.extents import Extent, Part, Stretch, bytes_of, difference, joined
from herdbook.ports.changes import Reads
from herdbook.ports.dictionary import PIECES
from herdbook.ports.shelf import Shelf

Version = str | int | float | None

LARGE = 4_096
"""From this size on a value is compared with the one before it; smaller ones are written whole."""
MOST_PIECES = 128
"""A checkpoint that would lie in more pieces writes its small extents anew."""
SMALL = 16_384
COMPRESSIBLE = 2_048
"""From this size on bytes are compressed, where that halves them: less costs more than it saves."""
SAMPLE = TABLE = 8_192
"""How much of large bytes is tried first; what a checkpoint says of its channels is small often."""

_write_json = json.JSONEncoder(separators=(",", ":")).encode


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

    @property
    def pieces(self) -> list[str]:
        """The pieces that they lie in, each once."""
        return list(dict.fromkeys([piece for piece, _, _ in self.extents]))

    @property
    def size(self) -> int:
        """How many bytes all values have."""
        return sum(size for _, _, size in self.extents)

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
        """All this as bytes; `read_values` reads them."""
        names = {piece: number for number, piece in enumerate(self.pieces)}
        numbers = [n for piece, start, size in self.extents for n in (names[piece], start, size)]
        channels = [[name, version, tag, size] for name, version, tag, _, size in self._listed]
        return packed(_write_json([list(names), channels, numbers]).encode(), TABLE)[1]

    @property
    def _listed(self) -> Iterable[Channel]:
        return self.channels.values()


def read_values(data: bytes) -> Values:
    """The values behind `Values.written`."""
    pieces, channels, numbers = json.loads(unpacked(data, is_packed=data[:1] != b"["))
    found, start = [], 0
    for name, version, tag, size in channels:
        found.append(Channel(name, version, tag, start, size))
        start += size
    names = [pieces[number] for number in numbers[::3]]
    return Values(found, list(zip(names, numbers[1::3], numbers[2::3], strict=True)))


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
    middle = max(0, len(data) // 2 - SAMPLE // 2)
    sample = data[middle : middle + SAMPLE]
    if len(zlib.compress(sample, 1)) > len(sample) // 2:
        return False, data
    small = zlib.compress(data, 1)
    return (True, small) if len(small) <= len(data) // 2 else (False, data)


def unpacked(data: bytes, *, is_packed: bool) -> bytes:
    """The bytes behind `packed`."""
    return zlib.decompress(data) if is_packed else data


def piece_of(thread: str, data: bytes) -> Piece:
    """A new piece of a thread."""
    is_packed, kept = packed(data)
    return Piece(thread=thread, size=len(data), packed=is_packed, data=kept)


class Composed(NamedTuple):
    """Values as they will be kept, and what of them is new; its extents' piece has no name yet.

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


def compose(offers: Mapping[str, Offer], base: Base | None) -> Composed:
    """Find out what of some values is new against those of another checkpoint.

    A value that has not changed is not even written: the other one's is taken, if its version is
    the same.
    """
    fresh = bytearray()
    channels: list[Channel] = []
    extents: list[Extent] = []
    written: dict[str, Typed] = {}
    before = base.values.channels if base else {}
    start = first = last = 0  # of the old bytes that follow one another and are taken over
    for name, (version, changed, write) in offers.items():
        old = before.get(name)
        if base and old and not changed and old.version == version:
            if old.start != last:
                extents.extend(base.values.stretch.cut(first, last - first))
                first = old.start
            last = old.start + old.size
            channels.append(old if old.start == start else old._replace(start=start))
            start += old.size
            continue
        if base:
            extents.extend(base.values.stretch.cut(first, last - first))
            first = last
        written[name] = tag, data = write()
        parts: Sequence[Part] = [data]
        if base and old and min(old.size, len(data)) >= LARGE:
            parts = difference(base.value(old), data)
        for part in parts:
            if isinstance(part, bytes):
                extents.append(("", len(fresh), len(part)))
                fresh += part
            elif base and old:
                extents.extend(base.values.stretch.cut(old.start + part.start, part.size))
        channels.append(Channel(name, version, tag, start, len(data)))
        start += len(data)
    if base:
        extents.extend(base.values.stretch.cut(first, last - first))
    composed = Composed(Values(channels, joined(extents)), bytes(fresh), written)
    return _gathered(composed, base) if base else composed


def _gathered(composed: Composed, base: Base) -> Composed:
    """The same with small extents written anew where there are too many pieces to read from."""
    values, fresh, _ = composed
    if len(values.pieces) <= MOST_PIECES:
        return composed
    small = [piece for piece, _, size in values.extents if size < SMALL and piece]
    held = {"": fresh, **base.pieces(small)}
    anew = bytearray()
    extents: list[Extent] = []
    for piece, start, size in values.extents:
        if size < SMALL or not piece:
            extents.append(("", len(anew), size))
            anew += held[piece][start : start + size]
        else:
            extents.append((piece, start, size))
    gathered = Values(list(values.channels.values()), joined(extents))
    return composed._replace(values=gathered, fresh=bytes(anew))
