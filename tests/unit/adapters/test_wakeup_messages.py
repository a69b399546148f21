"""A ring as a datagram: what is encoded comes back, and what is damaged is nothing."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.adapters.wakeups.coalesce import PendingRing
from herdbook.adapters.wakeups.messages import (
    LONGEST_CONTENT,
    LONGEST_MESSAGE,
    MOST_ENTRIES,
    decode_ring,
    encode_entries,
    encode_hint,
    encode_ring,
    limit_entries,
)
from herdbook.domain.clock import Stamp
from herdbook.domain.journal import Cause, JournalEntry, Op
from herdbook.domain.location.areas import LONGEST_SPACE
from herdbook.ports.engine.wakeups import Ring

NODE = "0123456789abcdef" * 2
SPACE = "work/somewhere with blanks"

text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
names = text.filter(bool)
moments = st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - st.just is one
stamps = st.builds(
    Stamp, moments, st.integers(0, 99_999_999), st.text("abcdef0123456789", min_size=1, max_size=64)
)
ids = st.text("abcdef_0123456789", min_size=1, max_size=64)
numbers = st.integers(-(2**63), 2**63 - 1)
scalars = st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    scalars | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=12,
)
objects = st.none() | st.dictionaries(text, documents, max_size=4)
entries = st.builds(
    JournalEntry,
    seq=st.integers(1, 2**63 - 1),
    tx=ids,
    at=stamps,
    recorded_at=st.none() | moments,
    person=st.none() | names,
    agent=st.none() | names,
    session=st.none() | names,
    worktree=st.none() | ids,
    note=st.none() | names,
    operation_id=st.none() | ids,
    schema_version=st.integers(0, 99),
    entity=ids,
    key=ids,
    op=st.sampled_from(Op),
    before=objects,
    after=objects,
    trace_id=st.none() | ids,
    cause=st.none() | st.sampled_from(Cause),
    root=st.none() | stamps,
    origin=st.none() | stamps,
    origin_tx=st.none() | ids,
    parents=st.none() | st.lists(stamps.map(str), max_size=3),
)


def an_entry(seq: int = 1, **values: Any) -> JournalEntry:
    """An entry with this number."""
    at = Stamp(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=seq % 99), 0, NODE)
    known = {"tx": "tx_1", "schema_version": 1, "entity": "tasks", "key": "tsk_1", "op": Op.ADD}
    return JournalEntry(**{**known, "seq": seq, "at": at, **values})


def a_message(*given_entries: JournalEntry) -> bytes:
    """A ring with entries."""
    return encode_ring(NODE, SPACE, given_entries[-1].seq, encode_entries(given_entries))


@given(st.lists(entries, min_size=1, max_size=3))
def test_entries_come_back_equal(given_entries: list[JournalEntry]) -> None:
    """Whatever the domain allows in them."""
    ring = decode_ring(a_message(*given_entries), NODE)
    assert ring == Ring(SPACE, given_entries[-1].seq, given_entries)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_ring_or_none(message: bytes) -> None:
    """They never raise an error."""
    assert decode_ring(message, NODE) is None or message


@given(st.data())
def test_a_damaged_message_is_never_another_entry_unnoticed(data: st.DataObject) -> None:
    """Cut off or with one byte changed it is no ring, a hint, or has valid entries still."""
    message = bytearray(a_message(an_entry(after={"name": "x", "n": 1})))
    position = data.draw(st.integers(0, len(message) - 1))
    less = decode_ring(bytes(message[:position]), NODE)
    assert less is None or not less.entries
    message[position] = data.draw(st.integers(0, 255))
    ring = decode_ring(bytes(message), NODE)
    for entry in ring.entries if ring is not None else ():
        assert JournalEntry(**vars(entry)) == entry


def test_a_hint_has_no_entries() -> None:
    """As programs send it that know no others."""
    assert decode_ring(encode_hint(SPACE, 7), NODE) == Ring(SPACE, 7, [])
    assert encode_ring(NODE, SPACE, 7, ()) == encode_hint(SPACE, 7)


def test_entries_of_another_node_are_not_even_looked_at() -> None:
    """What a copy has committed is only a ring."""
    assert decode_ring(a_message(an_entry()), "f" * 32) == Ring(SPACE, 1, [])
    assert decode_ring(f"{SPACE} 1\0other\0no JSON".encode(), NODE) == Ring(SPACE, 1, [])


@pytest.mark.parametrize(
    "values",
    [
        {"op": "steal"},
        {"seq": None},
        {"seq": True},
        {"seq": "1"},
        {"seq": 2**63},
        {"at": "yesterday"},
        {"at": 7},
        {"after": []},
        {"after": {"x": "\ud800"}},
        {"key": "\0"},
        {"person": ""},
        {"person": "x" * 501},
        {"unknown": 1},
        {"__class__": "x"},
        {"recorded_at": "2024-01-01"},
        {"cause": "fun"},
    ],
)
def test_what_no_entry_can_have_makes_no_entry(values: dict[str, Any]) -> None:
    """The rules of the fields hold here too: nothing of the message is believed."""
    (row,) = encode_entries([an_entry()])
    changed = json.dumps({**json.loads(row), **values})
    assert decode_ring(encode_ring(NODE, SPACE, 1, (changed,)), NODE) is None


def test_a_missing_field_makes_no_entry() -> None:
    """Unless it may be None."""
    (row,) = encode_entries([an_entry()])
    for name in json.loads(row):
        less = {key: value for key, value in json.loads(row).items() if key != name}
        assert decode_ring(encode_ring(NODE, SPACE, 1, (json.dumps(less),)), NODE) is None


def test_every_message_can_be_received() -> None:
    """Of the longest space, node and entries there are."""
    size = LONGEST_CONTENT - len(encode_entries([an_entry(2**63 - 1, after={"x": ""})])[0]) - 1
    encoded = encode_entries([an_entry(2**63 - 1, after={"x": "x" * size})])
    assert len(encoded[0]) == LONGEST_CONTENT - 1
    space = "work/" + "x" * (LONGEST_SPACE - 5)
    message = encode_ring("f" * 64, space, 2**63 - 1, limit_entries(encoded))
    assert LONGEST_CONTENT < len(message) <= LONGEST_MESSAGE
    assert encode_entries([an_entry(after={"x": "x" * (size + 19)})]) == ()


def test_too_many_entries_are_left_out() -> None:
    """All of them in a transaction; the last ones of several."""
    many = [an_entry(seq) for seq in range(1, MOST_ENTRIES + 2)]
    assert encode_entries(many) == ()
    encoded = encode_entries(many[:-1])
    assert len(encoded) == MOST_ENTRIES
    joined = PendingRing(64, encoded).join(PendingRing(65, encoded[:1]))
    assert joined.seq == 65
    assert limit_entries(joined.entries) == encoded
    long = tuple("x" * 6_000 for _ in range(4))
    assert limit_entries(long) == long[:2]


def test_joined_rings_have_the_greater_number() -> None:
    """Two threads may ring in another order than they have committed."""
    assert PendingRing(6, ("b",)).join(PendingRing(5, ("a",))) == PendingRing(6, ("b", "a"))
