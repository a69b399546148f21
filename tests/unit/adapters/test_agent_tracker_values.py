"""LZ4 blocks and msgpackr values: what they stand for, and that nonsense is refused."""

import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.adapters.agent_tracker.errors import MalformedTracker
from herdbook.adapters.agent_tracker.lz4 import NeedsDictionary, decompress
from herdbook.adapters.agent_tracker.msgpack import decode
from tests.cases import for_each


@for_each(
    ("block", "dictionary", "expected"),
    [
        (b"\x00", b"", b""),
        (b"\x30abc", b"", b"abc"),
        (b"\x11a\x01\x00\x10b", b"", b"aaaaaab"),
        (b"\x2fab\x02\x00\x03\x10c", b"", b"ab" * 12 + b"c"),
        (b"\xf0\x01" + b"x" * 16, b"", b"x" * 16),
        (b"\x00\x04\x00\x10!", b"herd", b"herd!"),
        (b"\x12x\x05\x00\x10!", b"herd", b"xherdxh!"),
    ],
    ids=["empty", "literals", "run", "long run", "long literals", "dictionary", "both"],
)
def test_a_block_stands_for_its_bytes(block: bytes, dictionary: bytes, expected: bytes) -> None:
    """Literals, and repetitions of what came before or stands in the dictionary."""
    assert decompress(block, len(expected), dictionary) == expected


@for_each(
    ("block", "size"),
    [
        (b"\x30ab", 3),
        (b"\x30abc", 2),
        (b"\x30abc", 4),
        (b"\xf0", 20),
        (b"\xf0\xff", 300),
        (b"\x10a\x00\x00", 9),
        (b"\x10a\x01", 9),
        (b"\x1fa\x01\x00\xff\xff\xff\xff\x00", 9),
        (b"\x10a", 10_000_000),
    ],
    ids=["cut", "over", "short", "length", "more", "nowhere", "offset", "bomb", "claim"],
)
def test_a_block_that_does_not_come_to_its_size_is_refused(block: bytes, size: int) -> None:
    """It is never more, never less, and no memory is taken for a claim."""
    with pytest.raises(MalformedTracker):
        decompress(block, size)


def test_a_block_that_needs_a_dictionary_says_so() -> None:
    """What stands before the first byte can be had from there alone."""
    with pytest.raises(NeedsDictionary):
        decompress(b"\x00\x04\x00\x10!", 5)


@given(block=st.binary(max_size=60), size=st.integers(0, 500), dictionary=st.binary(max_size=9))
def test_any_bytes_make_a_value_of_that_size_or_none(
    block: bytes, size: int, dictionary: bytes
) -> None:
    """No block makes the reader run away or fail in another way."""
    try:
        found = decompress(block, size, dictionary)
    except MalformedTracker:
        return
    assert len(found) == size


@for_each(
    ("data", "expected"),
    [
        (b"\x05", 5),
        (b"\x7f", 127),
        (b"\xff", -1),
        (b"\xcc\x80", 128),
        (b"\xcd\x01\x00", 256),
        (b"\xd1\xff\x00", -256),
        (b"\xd3" + b"\xff" * 8, -1),
        (b"\xca\x3f\xc0\x00\x00", 1.5),
        (b"\xcb" + struct.pack(">d", 2.5), 2.5),
        (b"\xc0", None),
        (b"\xc2", False),
        (b"\xc3", True),
        (b"\xd4\x00\x00", None),
        (b"\xa2hi", "hi"),
        (b"\xd9\x03\xe2\x82\xac", "€"),
        (b"\xda\x00\x01x", "x"),
        (b"\xc4\x02\x00\x01", b"\x00\x01"),
        (b"\x92\x01\xa1a", [1, "a"]),
        (b"\xdc\x00\x01\x01", [1]),
        (b"\x81\xa1a\x01", {"a": 1}),
        (b"\xde\x00\x01\xa1a\x01", {"a": 1}),
        (b"\x40\x01\xa1x", {"id": 1, "name": "x"}),
        (b"\x41\x40\x01\x02", {"inner": {"id": 1, "name": 2}}),
        (b"\x92\xd4\x72\x45\x91\xa1k\x01\x45\x02", [{"k": 1}, {"k": 2}]),
        (b"\xd6\xff\x00\x00\x00\x3c", datetime(1970, 1, 1, 0, 1, tzinfo=UTC)),
        (
            b"\xd7\xff" + struct.pack(">Q", 250_000_000 << 34 | 60),
            datetime(1970, 1, 1, 0, 1, 0, 250_000, tzinfo=UTC),
        ),
        (
            b"\xc7\x0c\xff" + struct.pack(">Iq", 0, -60),
            datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
        ),
    ],
)
def test_bytes_stand_for_their_value(data: bytes, expected: Any) -> None:
    """Numbers, texts, times, lists and records, as msgpackr writes them."""
    found = decode(data, [["id", "name"], ["inner"]])
    assert (found, type(found)) == (expected, type(expected))


@for_each(
    "data",
    [
        b"",
        b"\x01\x02",
        b"\xa5hi",
        b"\xdb\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff\x01",
        b"\xdf\xff\xff\xff\xff\x01",
        b"\xc1",
        b"\xa1\xff",
        b"\x40\x01",
        b"\xd4\x10\x00",
        b"\xd4\x72\x45\x01\x01",
        b"\xd4\x72\x05\x91\xa1k\x01",
        b"\xd5\xff\x00\x00",
        b"\xc7\x0c\xff" + struct.pack(">Iq", 0, 2**62),
        b"\x91" * 5_000,
    ],
)
def test_bytes_that_stand_for_nothing_are_refused(data: bytes) -> None:
    """Cut off, too long, too deep, unknown, or more than one value."""
    with pytest.raises(MalformedTracker):
        decode(data, [["id", "name"]])


@given(data=st.binary(max_size=80))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    """No value makes the reader fail in another way."""
    try:
        decode(data, [["id", "name"], ["at"]])
    except MalformedTracker:
        return
    assert data
