"""Where messages begin and end, in both framings, whatever comes."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.entrypoints.rpc.framing import MOST_HEADERS, Fault, Frame, Framer, add_framing
from tests.cases import for_each

LIMIT = 1_000
payloads = st.lists(
    st.binary(min_size=1, max_size=50).map(lambda each: b"{" + each.hex().encode() + b"}"),
    min_size=1,
    max_size=6,
)


def fed(framer: Framer, data: bytes, size: int) -> list[Frame]:
    """What comes of bytes that arrive so many at a time."""
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return [frame for piece in pieces for frame in framer.feed(piece)]


@given(payloads, st.integers(1, 40), st.booleans())
def test_messages_come_out_as_they_went_in(messages: list[bytes], size: int, headers: bool) -> None:
    """However the bytes are cut into pieces, and the framing is told by the first of them."""
    framer = Framer(LIMIT)
    data = b"".join(add_framing(each, headers=headers) for each in messages)
    assert fed(framer, data, size) == messages
    assert framer.headers is headers
    assert framer.end() == []


@for_each(
    ("data", "headers"),
    [
        (b"content-length: 2\r\n\r\n{}", True),
        (
            b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nCONTENT-LENGTH:2\n\n{}",
            True,
        ),
        (b"\r\n\r\nContent-Length: 2\r\n\r\n{}", True),
        (b"\r\n  {}\r\n", False),
        (b"null\n", False),
    ],
)
def test_either_framing_is_written_in_many_ways(data: bytes, headers: bool) -> None:
    """Headers in any order and case, lines with any white space around them."""
    framer = Framer(LIMIT)
    assert fed(framer, data, 1) == [data.strip()[-4 if b"null" in data else -2 :]]
    assert framer.headers is headers


@pytest.mark.parametrize("headers", [True, False])
def test_a_message_that_is_too_large_is_passed_over_and_not_kept(headers: bool) -> None:
    """It is told once, and the one behind it is read."""
    framer = Framer(LIMIT)
    found = framer.feed(add_framing(b"{}", headers=headers))
    large = add_framing(b"[" * LIMIT * 50, headers=headers)
    for start in range(0, len(large), 700):
        found += framer.feed(large[start : start + 700])
        assert len(framer._held) <= 2 * LIMIT
    found += framer.feed(add_framing(b"[1]", headers=headers))
    first, fault, last = found
    assert (first, last) == (b"{}", b"[1]")
    assert isinstance(fault, Fault)
    assert fault.too_large


@for_each(
    "broken",
    [
        b"Content-Type: text/plain\r\n\r\n",
        b"Content-Length: many\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Type: x; charset=utf-16\r\nContent-Length: 2\r\n\r\n{}",
        b"X: " + b"y" * 2 * MOST_HEADERS,
        b"garbage\r\n\r\n",
    ],
)
def test_broken_headers_are_told_and_the_next_message_is_found(broken: bytes) -> None:
    """Whatever stood there instead."""
    framer = Framer(LIMIT)
    whole = add_framing(b"{}", headers=True)
    found = fed(framer, whole + broken + whole, 64)
    assert (found[0], found[-1]) == (b"{}", b"{}")
    assert {type(each) for each in found[1:-1]} == {Fault}


def test_a_last_line_needs_no_end() -> None:
    """What the input ends with is a message too."""
    framer = Framer(LIMIT)
    assert framer.feed(b"{}\n[1]") == [b"{}"]
    assert framer.end() == [b"[1]"]
    assert framer.end() == []


def test_an_input_that_ends_within_a_message_is_told() -> None:
    """A client that counts sees that something was cut off."""
    framer = Framer(LIMIT)
    assert framer.feed(add_framing(b"{}", headers=True)[:-1]) == []
    (fault,) = framer.end()
    assert isinstance(fault, Fault)


@given(st.binary(max_size=400), st.integers(1, 50), st.booleans())
def test_no_bytes_break_it_and_lines_are_found_again(data: bytes, size: int, headers: bool) -> None:
    """Behind whatever came, a message on a line of its own is a message."""
    framer = Framer(LIMIT)
    framer.feed(add_framing(b"{}", headers=headers))
    fed(framer, data, size)
    assert len(framer._held) <= LIMIT + MOST_HEADERS + 400
    if not headers:
        assert framer.feed(b'\n{"whole": 1}\n')[-1] == b'{"whole": 1}'


def mutated(chance: random.Random, data: bytes) -> bytes:
    """The same bytes with some of them changed, doubled, moved or gone."""
    changed = bytearray(data)
    for _ in range(chance.randrange(8)):
        place = chance.randrange(len(changed) + 1)
        match chance.randrange(4):
            case 0:
                changed[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del changed[place : place + chance.randrange(9)]
            case 2:
                changed[place:place] = changed[: chance.randrange(30)]
            case _:
                changed[place:place] = chance.choice((b"\n", b"\r\n\r\n", b'"', b"{", b"]"))
    return bytes(changed)


@pytest.mark.soak
def test_a_million_mutated_bytes_do_no_harm() -> None:
    """In both framings: nothing is raised, nothing piles up, and reading ends."""
    chance = random.Random()
    for headers in (True, False):
        framer, count = Framer(LIMIT), 0
        while count < 1_000_000:
            message = b'{"jsonrpc":"2.0","id":%d,"method":"where"}' % count
            data = mutated(chance, add_framing(message, headers=headers))
            framer.feed(data)
            count += len(data)
            assert len(framer._held) <= LIMIT + 2 * MOST_HEADERS
        framer.end()
