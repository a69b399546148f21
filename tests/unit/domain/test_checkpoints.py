"""The names of checkpoints: any text goes in, comes back, and keeps its order."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.checkpoints.model import (
    checkpoint_key,
    decode_checkpoint_id,
    decode_text,
    digest_texts,
    encode_checkpoint_id,
    encode_text,
    lane_key,
    run_key,
    thread_key,
    write_key,
)
from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import ID
from tests.cases import for_each

any_text = st.text(st.characters(exclude_categories=()), max_size=40)
ids = st.text(st.sampled_from("\0\1\2aä\U0001f404"), min_size=1, max_size=9)


@given(any_text)
def test_any_text_comes_back(text: str) -> None:
    """NUL and half surrogate pairs are kept as they are."""
    assert decode_text(encode_text(text)) == text


@given(st.lists(any_text, max_size=3), st.lists(any_text, max_size=3))
def test_different_texts_have_different_digests(one: list[str], other: list[str]) -> None:
    """What stands on which side of a border between two texts counts."""
    assert (digest_texts(*one) == digest_texts(*other)) == (one == other)


def test_every_key_fits_whatever_it_stands_for() -> None:
    """However long the texts, a key is one that every store can look up; no two are the same."""
    long, lane = "\0é" * 50_000, lane_key("\0" * 2_000, "n")
    keys = [
        thread_key(long),
        run_key(long),
        lane,
        lane_key("\0" * 2_000 + "n", ""),
        checkpoint_key(lane, "c"),
        write_key("c", long, -1),
        write_key("c", long, 1),
    ]
    assert [ID.check("key", key) for key in keys] == keys
    assert len(set(keys)) == len(keys)


@given(ids, ids)
def test_places_sort_as_the_ids_do(one: str, other: str) -> None:
    """A place has no NUL, gives back its id, and lies before another one's if the id does."""
    assert "\0" not in encode_checkpoint_id(one)
    assert decode_checkpoint_id(encode_checkpoint_id(one)) == one
    assert (encode_checkpoint_id(one) < encode_checkpoint_id(other)) == (one < other)


@for_each(
    ("checkpoint_id", "reason"),
    [("", "must have 1 to 64 bytes"), ("x" * 65, "has 65"), ("a\ud800", "surrogate pair")],
    ids=["empty", "long", "half a pair"],
)
def test_ids_that_no_graph_makes_are_refused(checkpoint_id: str, reason: str) -> None:
    """The refusal names the field and says why."""
    with pytest.raises(InvalidValue, match=reason) as refusal:
        encode_checkpoint_id(checkpoint_id)
    assert refusal.value.field == "checkpoint_id"


def test_ids_of_the_same_length_keep_their_order() -> None:
    """As the ids that graphs make, which grow with time."""
    made = [f"1ef4f797-8335-6428-8001-8a1503f9b8{a}{b}" for a, b in itertools.product("09af", "19")]
    assert sorted(made, key=encode_checkpoint_id) == sorted(made)
