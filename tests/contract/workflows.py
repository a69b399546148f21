"""Checkpoints as LangGraph makes them, and graphs and processes that keep some."""

import random
from collections.abc import Iterator
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from herdbook.adapters.langgraph import HerdbookSaver
from tests.contract.children import Place, opened

MEGABYTE = 1_000_000
LETTERS = "abcdefghijklmnopqrstuvwxyz     "


def config(thread_id: str, namespace: str | None = "", checkpoint_id: str | None = None) -> Any:
    """A thread, a namespace unless that is left open, and a checkpoint if one is meant."""
    named = {
        "thread_id": thread_id,
        "checkpoint_ns": namespace,
        "checkpoint_id": checkpoint_id,
    }
    return {"configurable": {name: each for name, each in named.items() if each is not None}}


def checkpoint(step: int, values: dict[str, Any], versions: dict[str, Any]) -> Any:
    """A checkpoint with these values, later than all before it."""
    made = empty_checkpoint()
    return {
        **made,
        "id": str(uuid6(clock_seq=step)),
        "channel_values": values,
        "channel_versions": versions,
    }


def put(saver: Any, where: Any, step: int, values: dict[str, Any], **metadata: Any) -> Any:
    """Put a checkpoint in which every value is new; gives its config."""
    versions = dict.fromkeys(values, step + 1)
    said = {"source": "loop", "step": step, "parents": {}, **metadata}
    return saver.put(where, checkpoint(step, values, versions), said, versions)


def steps(shape: str, number: int, size: int = MEGABYTE) -> Iterator[tuple[Any, Any, Any]]:
    """The steps of a workflow over a state of which 1 KB changes per step.

    As LangGraph calls a saver: a checkpoint, its metadata, and the versions that are new. The state
    is a hundred channels, or one that holds a list.
    """
    chance = random.Random(5)

    def text(length: int) -> str:
        return "".join(chance.choices(LETTERS, k=length))

    values: dict[str, Any]
    if shape == "one channel":
        values = {"state": [text(1_000) for _ in range(size // 1_000)]}
    else:
        values = {f"channel {n:03}": text(size // 100) for n in range(100)}
    versions: dict[str, Any] = dict.fromkeys(values, 1)
    fresh = dict(versions)
    for step in range(number):
        if step:
            name = chance.choice(list(values))
            values, versions = dict(values), {**versions, name: step + 1}
            values[name] = _changed(values[name], text(1_000), chance)
            fresh = {name: step + 1}
        metadata = {"source": "loop", "step": step, "parents": {}}
        yield checkpoint(step, values, versions), metadata, fresh


def _changed(value: Any, text: str, chance: random.Random) -> Any:
    if isinstance(value, list):
        at = chance.randrange(len(value))
        return [*value[:at], text, *value[at + 1 :]]
    at = chance.randrange(max(1, len(value) - len(text)))
    return value[:at] + text + value[at + len(text) :]


def keep_going(place: Place, space: str, name: str, start: Any, number: int) -> list[str]:
    """Put checkpoints on a thread that others write to at the same time; gives their ids."""
    with opened(place) as store:
        saver = HerdbookSaver(store, space)
        where, ids = config("shared"), []
        start.wait()
        for step in range(number):
            where = put(saver, where, step, {"name": name, "steps": list(range(step))})
            saver.put_writes(where, [("name", name)], f"{name} {step}")
            ids.append(where["configurable"]["checkpoint_id"])
    return ids
