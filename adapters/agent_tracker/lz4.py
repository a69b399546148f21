"""Decompression of raw LZ4 blocks, with the dictionary they may refer to."""

from herdbook.adapters.agent_tracker.errors import MalformedTracker

MAX_EXPANSION = 255
"""How many bytes one byte of a block can expand to, at most."""
SHORTEST_MATCH = 4
_LENGTH_CONTINUES = 15


class NeedsDictionary(MalformedTracker):
    """The block refers to bytes before its own, which only its dictionary has."""


def decompress(block: bytes, size: int, dictionary: bytes = b"") -> bytes:
    """Decompress a block to `size` bytes; raises MalformedTracker if it has another size."""
    if size > len(block) * MAX_EXPANSION:
        raise MalformedTracker(f"{len(block)} compressed bytes cannot stand for {size}")
    out = bytearray(dictionary)
    end = len(dictionary) + size
    at = 0
    while at < len(block):
        token = block[at]
        literals, at = _length(block, at + 1, token >> 4)
        if at + literals > len(block) or len(out) + literals > end:
            raise MalformedTracker("a compressed value runs over its end")
        out += block[at : at + literals]
        at += literals
        if at == len(block):
            break
        offset = int.from_bytes(block[at : at + 2], "little")
        length, at = _length(block, at + 2, token & _LENGTH_CONTINUES)
        _repeat(out, offset, length + SHORTEST_MATCH, end)
    if len(out) != end:
        raise MalformedTracker(
            f"a compressed value has {len(out) - len(dictionary)} of {size} bytes"
        )
    return bytes(out[len(dictionary) :])


def _length(block: bytes, at: int, first: int) -> tuple[int, int]:
    length = first
    more = first == _LENGTH_CONTINUES
    while more:
        if at >= len(block):
            raise MalformedTracker("a compressed value is cut off")
        length += block[at]
        more = block[at] == MAX_EXPANSION
        at += 1
    return length, at


def _repeat(out: bytearray, offset: int, length: int, end: int) -> None:
    """Append the bytes `offset` back, which may overlap with those being appended."""
    if not offset or len(out) + length > end:
        raise MalformedTracker("a compressed value runs over its end")
    if offset > len(out):
        raise NeedsDictionary("a compressed value refers to bytes that are not there")
    begin = len(out) - offset
    piece = bytes(out[begin : begin + length])
    out += (piece * (length // len(piece) + 1))[:length]
