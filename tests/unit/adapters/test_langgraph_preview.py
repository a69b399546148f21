"""Values of checkpoints to look at: everything can be looked at, and nothing is ever run."""

import json
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Send
from pydantic import SecretStr

from herdbook.adapters.langgraph.preview import is_opaque, preview
from herdbook.adapters.langgraph.split_checkpoint import split
from herdbook.adapters.msgpack_reader import MAX_DEPTH, UnreadableValue
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.checkpoints.preview import ObjectPreview, preview_bytes
from herdbook.entrypoints.operations.checkpoints.preview import as_json, line
from tests.cases import for_each

serializer = JsonPlusSerializer()


def _kept(value: Any) -> TaggedBytes:
    return TaggedBytes(*serializer.dumps_typed(value))


def test_plain_data_is_shown_as_it_is() -> None:
    """Numbers, texts, lists and maps with any keys; bytes by their size."""
    value = {"a": [1, 1.5, None, True, "ü"], 1: {"b": {}}, "bytes": b"abc"}
    assert preview(_kept(value)) == {**value, "bytes": preview_bytes("bytes", b"abc")}
    assert preview(_kept(None)) is None
    assert preview(_kept(b"abc")) == preview_bytes("bytes", b"abc")


def test_objects_are_shown_by_their_class_and_what_they_are_made_of() -> None:
    """Those that LangGraph would make, and those that it would only make if told to."""
    value = [
        UUID(int=1),
        datetime(2026, 1, 1, tzinfo=UTC),
        Send("node", {"x": 1}),
        HumanMessage("Hello"),
        {1},
    ]
    shown = preview(_kept(value))
    assert [each.name.rpartition(".")[2] for each in shown] == [
        "UUID",
        "datetime",
        "Send",
        "HumanMessage",
        "set",
    ]
    assert shown[0].content == UUID(int=1).hex
    assert shown[2].content == ["node", {"x": 1}]
    assert shown[3].content["content"] == "Hello"


def test_a_hostile_value_is_shown_and_not_run(tmp_path: Path) -> None:
    """Neither the call that it asks for is made, nor what it names imported."""
    there = tmp_path / "run"
    call = ormsgpack.packb(("os", "system", f"touch {there}"))
    data = ormsgpack.packb({"x": ormsgpack.Ext(0, call)})
    assert preview(TaggedBytes("msgpack", data)) == {
        "x": ObjectPreview("os.system", f"touch {there}")
    }
    envelope = b'{"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["x"]}'
    assert preview(TaggedBytes("json", envelope))["id"] == ["os", "system"]
    assert not there.exists()


@for_each("tag", ["pickle", "msgpack+aes", "json", "msgpack"])
def test_what_cannot_be_read_is_told_by_its_size(tag: str) -> None:
    """With a digest, so that two can be compared."""
    data = pickle.dumps("x" * 100)
    shown = preview(TaggedBytes(tag, data))
    assert shown == preview_bytes(tag, data)
    assert is_opaque(shown)


def test_what_is_nested_too_deep_is_told_by_its_size() -> None:
    """In either form; nothing falls over it."""
    depth = MAX_DEPTH + 50
    for typed in (
        TaggedBytes("json", b"[" * depth + b"]" * depth),
        TaggedBytes("json", b"[" * 100_000 + b"]" * 100_000),
        TaggedBytes("msgpack", b"\x91" * depth + b"\x01"),
    ):
        assert is_opaque(preview(typed))


def test_secrets_stay_secret() -> None:
    """A secret of pydantic is written in the clear, and shown as ***."""
    assert preview(_kept({"key": SecretStr("hush")})) == {
        "key": ObjectPreview("pydantic.types.SecretStr", "***")
    }


@given(st.binary(), st.sampled_from(["json", "msgpack"]))
def test_any_bytes_can_be_shown(data: bytes, tag: str) -> None:
    """Whatever they are, there is a picture, JSON for it, and a line of it."""
    shown = as_json(preview(TaggedBytes(tag, data)))
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown
    assert len(line(shown, 40)) <= 40


@for_each(
    ("tag", "data", "reason"),
    [
        ("pickle", b"x", "cannot be taken apart"),
        ("json", b"[]", "has no channel_values"),
        ("json", b"\xff", "no JSON"),
        ("msgpack", b"\x80", "has no channel_values"),
        ("msgpack", b"\xc0", "no map"),
        ("msgpack", b"\x81\x01\x01", "no text"),
    ],
)
def test_what_is_no_checkpoint_is_not_taken_apart(tag: str, data: bytes, reason: str) -> None:
    """It is refused with its reason."""
    with pytest.raises(UnreadableValue, match=reason):
        split(tag, data)


def test_a_checkpoint_taken_apart_has_all_its_values() -> None:
    """Each under its name, with its version, as it was written."""
    whole = {
        "v": 4,
        "channel_values": {"a": [1, UUID(int=1)], "b": None},
        "channel_versions": {"a": "1.5", "b": 2},
        "pending_sends": [Send("node", 1)],
    }
    state, values = split(*serializer.dumps_typed(whole))
    assert {n: (version, serializer.loads_typed(v)) for n, (version, v) in values.items()} == {
        "a": ("1.5", [1, UUID(int=1)]),
        "b": (2, None),
    }
    rest = serializer.loads_typed(state)
    assert rest == {name: value for name, value in whole.items() if name != "channel_values"}
