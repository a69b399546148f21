"""Checkpoints that were written in one go, taken apart into a state and the values of channels.

They are cut, not decoded: the bytes of every value stay what they were, nothing is made, and
classes that nobody has here come along like any other.
"""

import json
from typing import Any

from herdbook.adapters.msgpack_reader import Reader, Unreadable, entries_of, map_of
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.ports.checkpoint_storage.value_store import Version

VALUES, VERSIONS = "channel_values", "channel_versions"

Split = tuple[TaggedBytes, dict[str, tuple[Version, TaggedBytes]]]


def split(tag: str, data: bytes) -> Split:
    """The state without the values, and each value with its version; Unreadable if it is neither.

    What was written as JSON stays JSON, what was written as MessagePack stays that.
    """
    if tag == "json":
        return _split_json(data)
    if tag == "msgpack":
        return _split_msgpack(data)
    raise Unreadable(
        f"it was written as {tag!r}, which cannot be taken apart here without running code or "
        "knowing a key"
    )


def _split_json(data: bytes) -> Split:
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable("it is no JSON that could be read") from error
    if not isinstance(whole, dict) or not isinstance(whole.get(VALUES), dict):
        raise Unreadable(f"it has no {VALUES}")
    versions = whole.get(VERSIONS)
    values = {
        name: (_version(versions, name), TaggedBytes("json", json.dumps(value).encode()))
        for name, value in whole.pop(VALUES).items()
    }
    return TaggedBytes("json", json.dumps(whole).encode()), values


def _split_msgpack(data: bytes) -> Split:
    rest, found = [], {}
    for key, value in entries_of(data):
        name = _name(key)
        found[name] = value
        if name != VALUES:
            rest.append((key, value))
    if VALUES not in found:
        raise Unreadable(f"it has no {VALUES}")
    versions = Reader(found[VERSIONS]).only() if VERSIONS in found else None
    values = {}
    for key, value in entries_of(found[VALUES]):
        name = _name(key)
        values[name] = _version(versions, name), TaggedBytes("msgpack", value)
    return TaggedBytes("msgpack", map_of(rest)), values


def _name(key: bytes) -> str:
    name = Reader(key).only()
    if not isinstance(name, str):
        raise Unreadable("a name in it is no text")
    return name


def _version(versions: Any, name: str) -> Version:
    version = versions.get(name) if isinstance(versions, dict) else None
    return version if isinstance(version, str | int | float) else None
