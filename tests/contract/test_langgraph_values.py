"""What is decoded and what is not: a value that asks for code to be run is refused and stays."""

import json
import pickle
import sys
from collections import deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import ormsgpack
import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Interrupt, Send
from pydantic import BaseModel

from herdbook.adapters.langgraph import HerdbookSaver
from herdbook.adapters.langgraph.values import GuardedSerializer
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.errors import DecodingRefused
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.value_store import ChannelValue
from herdbook.ports.engine.store import Store
from herdbook.ports.repositories.checkpoints import TaskWrite
from tests.cases import for_each
from tests.contract.space import work_in
from tests.contract.workflows import checkpoint, config, put

CALLED: list[object] = []


def trap(*args: object, **kwargs: object) -> None:
    """What a hostile value wants to have called."""
    CALLED.append((args, kwargs))


class Trap:
    """What a pickle calls when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return trap, ("pickle",)


@dataclass
class Plan:
    steps: list[str]


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    name: str


def _ext(code: int, *parts: object) -> bytes:
    return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(parts)))


def _lc(version: int, kind: str, *path: str) -> bytes:
    value = {"lc": version, "type": kind, "id": path, "kwargs": {}, "args": ["x"]}
    return json.dumps({"deep": [value]}).encode()


HERE = __name__
HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "a call with one argument": ("msgpack", _ext(0, HERE, "trap", "x"), "trap"),
    "a call with arguments": ("msgpack", _ext(1, HERE, "trap", ["x"]), "trap"),
    "a call with names": ("msgpack", _ext(2, HERE, "trap", {"x": 1}), "trap"),
    "a method": ("msgpack", _ext(3, HERE, "CALLED", "x", "append"), "append"),
    "a method of a class that is known": (
        "msgpack",
        _ext(3, "pathlib", "Path", "x", "unlink"),
        "unlink",
    ),
    "a model": ("msgpack", _ext(5, HERE, "trap", {}, "model_validate_json"), "trap"),
    "an old model": ("msgpack", _ext(4, HERE, "trap", {}), "trap"),
    "a program": ("msgpack", _ext(0, "os", "system", "true"), "os.system"),
    "hidden in what is allowed": (
        "msgpack",
        _ext(0, "builtins", "set", [ormsgpack.Ext(0, ormsgpack.packb(("os", "system", "true")))]),
        "os.system",
    ),
    "a pickle": ("pickle", pickle.dumps(Trap()), "pickle"),
    "a constructor in JSON": ("json", _lc(2, "constructor", *HERE.split("."), "trap"), "trap"),
    "a prompt in JSON": (
        "json",
        _lc(1, "constructor", "langchain", "prompts", "prompt", "PromptTemplate"),
        "PromptTemplate",
    ),
    "a secret in JSON": ("json", _lc(1, "secret", "HOME"), "HOME"),
    **{
        f"the unknown extension {code}": (
            "msgpack",
            _ext(code, "uuid", "UUID", "0" * 32),
            f"the MessagePack extension {code}",
        )
        for code in (8, 9, 42, 127)
    },
    "an unknown extension in what is allowed": (
        "msgpack",
        _ext(1, "collections", "deque", [[ormsgpack.Ext(8, b"")]]),
        "the MessagePack extension 8",
    ),
    "an unknown extension in an unknown one's neighbour": (
        "msgpack",
        ormsgpack.packb([ormsgpack.Ext(8, b""), {"x": ormsgpack.Ext(99, b"")}]),
        "the MessagePack extension 99",
    ),
    "a method without its name": ("msgpack", _ext(3, "uuid", "UUID", "x"), "msgpack"),
    "a method with too much": ("msgpack", _ext(3, "a", "b", "c", "d", "e"), "msgpack"),
    "a method that is no list": ("msgpack", _ext(3), "msgpack"),
    "a method of nothing": ("msgpack", ormsgpack.packb(ormsgpack.Ext(3, b"")), "msgpack"),
    "a method of noise": ("msgpack", ormsgpack.packb(ormsgpack.Ext(3, b"\xc1\xff")), "msgpack"),
    "a call without an argument": ("msgpack", _ext(0, "uuid", "UUID"), "msgpack"),
    "a call that fails": ("msgpack", _ext(0, "uuid", "UUID", "no number"), "msgpack"),
    "a call with arguments that fails": ("msgpack", _ext(1, "datetime", "date", [1, 2]), "msgpack"),
    "a call with names that fails": ("msgpack", _ext(2, "datetime", "date", {"x": 1}), "msgpack"),
    "a method that fails": (
        "msgpack",
        _ext(3, "datetime", "datetime", "noon", "fromisoformat"),
        "msgpack",
    ),
    "a failure in what is allowed": (
        "msgpack",
        _ext(0, "builtins", "set", [ormsgpack.Ext(0, ormsgpack.packb(("uuid", "UUID", "x")))]),
        "msgpack",
    ),
    "a class by a number": ("msgpack", _ext(0, 1, 2, 3), "1.2"),
    "a class by a list": ("msgpack", _ext(0, ["uuid"], "UUID", "x"), "msgpack"),
    "a model that is none": ("msgpack", _ext(5, "uuid", "UUID", {"x": 1}, "x"), "msgpack"),
    "an old model that is none": ("msgpack", _ext(4, "uuid", "UUID", {"x": 1}), "msgpack"),
    "a snapshot of the unknown": (
        "msgpack",
        ormsgpack.packb(ormsgpack.Ext(7, ormsgpack.packb(ormsgpack.Ext(8, b"")))),
        "the MessagePack extension 8",
    ),
    "a snapshot of nothing": ("msgpack", ormsgpack.packb(ormsgpack.Ext(7, b"")), "msgpack"),
    "a constructor in JSON that fails": ("json", _lc(2, "constructor", "uuid", "UUID"), "json"),
    "what nobody has written": ("msgpack", b"\xc1", "msgpack"),
    "an unknown way of writing": ("marshal", b"x", "marshal"),
}
each_hostile = for_each(("tag", "data", "named"), HOSTILE.values(), ids=HOSTILE)


def checkpoints_of(space: str) -> str:
    """The space for checkpoints of the same owner."""
    return f"checkpoints/{space.partition('/')[2]}"


@pytest.fixture
def place(space: str) -> str:
    return checkpoints_of(space)


@each_hostile
def test_hostile_bytes_are_refused_by_name(tag: str, data: bytes, named: str) -> None:
    """The error names what was asked for, and nothing was called."""
    CALLED.clear()
    with pytest.raises(DecodingRefused) as refusal:
        GuardedSerializer().loads_typed((tag, data))
    assert named in str(refusal.value)
    assert "Nothing was run" in str(refusal.value)
    assert CALLED == []


def test_without_a_guard_the_bait_is_taken() -> None:
    """The same bytes do have our function called where nobody looks."""
    CALLED.clear()
    unguarded = JsonPlusSerializer(pickle_fallback=True, allowed_msgpack_modules=True)
    for name in ("a call with arguments", "a call with names", "a pickle"):
        unguarded.loads_typed(HOSTILE[name][:2])
    assert len(CALLED) == 3
    CALLED.clear()


@each_hostile
def test_a_hostile_value_is_refused_and_stays_stored(
    store: Store, space: str, tag: str, data: bytes, named: str
) -> None:
    """Neither a value nor a write is decoded; both are in the store as they came."""
    CALLED.clear()
    place = checkpoints_of(space)
    saver, bait = HerdbookSaver(store, place), TaggedBytes(tag, data)
    state = TaggedBytes(*GuardedSerializer().dumps_typed(checkpoint(0, {}, {})))
    ids = {"metadata": TaggedBytes("json", b"{}"), "state": state}
    offer = ChannelValue(1, changed=True, write=lambda: bait)
    with work_in(store, place) as uow:
        CheckpointWriter(uow).put("value", "", "c1", values={"a": offer}, **ids)
        CheckpointWriter(uow).put("write", "", "c1", values={}, **ids)
        CheckpointWriter(uow).put_writes("write", "", "c1", [TaskWrite("task", "", 0, "a", bait)])
        CheckpointWriter(uow).put("state", "", "c1", values={}, **{**ids, "state": bait})
        CheckpointWriter(uow).put("metadata", "", "c1", values={}, **{**ids, "metadata": bait})
        uow.commit()
    refused = {"value", "write", "state"} | ({"metadata"} if tag != "json" else set())
    for thread in refused:
        with pytest.raises(DecodingRefused, match=named.replace(".", r"\.")):
            saver.get_tuple(config(thread))
        with pytest.raises(DecodingRefused):
            list(saver.list(config(thread)))
    assert CALLED == []
    with work_in(store, place, write=False) as uow:
        kept = CheckpointWriter(uow)
        held = [
            next(kept.load_bundles([row]))
            for thread in ("value", "write", "state", "metadata")
            if (row := kept.find(thread, ""))
        ]
    assert [held[0].values["a"], held[1].writes[0].value] == [bait, bait]
    assert [held[2].state, held[3].metadata] == [bait, bait]


def test_an_array_is_refused_where_nothing_makes_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without numpy there is no array, and nothing in its place."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(DecodingRefused, match=r"numpy\.ndarray"):
        GuardedSerializer().loads_typed(("msgpack", _ext(6, "<f8", [1], "C", b"\0" * 8)))


def test_a_broken_value_does_not_spoil_the_next() -> None:
    """What was in doubt about one is forgotten with it."""
    guard = GuardedSerializer()
    good = guard.dumps_typed([UUID(int=1), HumanMessage("Hello", id="1")])
    for tag, data, _ in HOSTILE.values():
        with pytest.raises(DecodingRefused):
            guard.loads_typed((tag, data))
        assert guard.loads_typed(good)[0] == UUID(int=1)
        with pytest.raises(DecodingRefused):
            guard.loads_all({"good": TaggedBytes(*good), "bad": TaggedBytes(tag, data)})
        assert guard.loads_all({"good": TaggedBytes(*good)})["good"][0] == UUID(int=1)


VALUES: dict[str, Any] = {
    "plain": {"a": [1, 2.5, None, True, "é", b"\0"], 3: "three"},
    "nothing": None,
    "bytes": b"\0\xff",
    "messages": [
        HumanMessage("Hello", id="1"),
        AIMessage("", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "2"}]),
        ToolMessage("42", tool_call_id="2"),
        SystemMessage("Be brief."),
    ],
    "documents": [Document("text", metadata={"page": 1})],
    "sends": [Send("node", {"x": 1}), Interrupt(value="stop", id="i")],
    "times": [datetime(2026, 1, 2, 3, tzinfo=UTC), date(2026, 1, 2), timedelta(seconds=3)],
    "collections": [{1, 2}, frozenset({3}), deque([4])],
    "others": [Decimal("1.50"), UUID(int=7), Path("/src/app")],
}


@for_each("value", VALUES.values(), ids=VALUES)
def test_what_graphs_hold_comes_back_without_a_word(value: Any) -> None:
    """Plain values, messages, documents and LangGraph's own need no permission."""
    with HerdbookSaver("memory://", "checkpoints/x") as saver:
        stored = put(saver, config("t"), 0, {"a": value})
        saver.put_writes(stored, [("a", value)], "task")
        found = saver.get_tuple(config("t"))
    assert found is not None
    assert found.checkpoint["channel_values"]["a"] == value
    assert found.pending_writes == [("task", "a", value)]
    assert type(found.checkpoint["channel_values"]["a"]) is type(value)


def test_messages_written_as_json_long_ago_are_read() -> None:
    """What older versions wrote of messages is still a message."""
    old = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "Hello", "type": "human"},
    }
    guard = GuardedSerializer()
    assert guard.loads_typed(("json", json.dumps([old]).encode())) == [HumanMessage("Hello")]
    newer = {"lc": 2, "type": "constructor", "id": ["uuid", "UUID"], "args": [str(UUID(int=1))]}
    assert guard.loads_typed(("json", json.dumps(newer).encode())) == UUID(int=1)
    assert guard.loads_typed(("json", b'{"lc": 1, "id": "x"}')) == {"lc": 1, "id": "x"}


@for_each(
    ("value", "allow"),
    [
        (Plan(["a"]), Plan),
        (Colour.RED, Colour),
        (Model(name="x"), (Model.__module__, "Model")),
    ],
    ids=["dataclass", "enum", "model"],
)
def test_further_classes_are_allowed_by_name(value: Any, allow: Any) -> None:
    """A class of the user's own is refused, by its name, until it is allowed."""
    for allowed in ((), (allow,)):
        with HerdbookSaver("memory://", "checkpoints/x", allow=allowed) as saver:
            put(saver, config("t"), 0, {"a": [value]})
            if allowed:
                found = saver.get_tuple(config("t"))
                assert found is not None
                assert found.checkpoint["channel_values"] == {"a": [value]}
            else:
                with pytest.raises(DecodingRefused) as refusal:
                    saver.get_tuple(config("t"))
                assert refusal.value.names == (f"{type(value).__module__}.{type(value).__name__}",)


def test_a_graph_may_extend_the_list() -> None:
    """LangGraph hands the classes of a graph's state to a copy of the saver, as it does to all."""
    with HerdbookSaver("memory://", "checkpoints/x") as saver:
        put(saver, config("t"), 0, {"a": Plan(["a"])})
        wider = saver.with_allowlist([(Plan.__module__, "Plan")])
        found = wider.get_tuple(config("t"))
        assert found is not None
        assert found.checkpoint["channel_values"] == {"a": Plan(["a"])}
        with pytest.raises(DecodingRefused):
            saver.get_tuple(config("t"))


def test_metadata_that_is_no_json_is_kept_all_the_same(store: Store, place: str) -> None:
    """What JSON cannot say is written as values are."""
    saver = HerdbookSaver(store, place)
    put(saver, config("t"), 0, {}, when=datetime(2026, 1, 2, tzinfo=UTC))
    put(saver, config("t"), 1, {}, odd=float("inf"), text="\ud800")
    listed = list(saver.list(config("t"), filter={"step": 1}))
    assert (listed[0].metadata["odd"], listed[0].metadata["text"]) == (float("inf"), "\ud800")
    (first,) = saver.list(config("t"), filter={"when": datetime(2026, 1, 2, tzinfo=UTC)})
    assert first.metadata["step"] == 0
