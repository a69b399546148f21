"""Split checkpoints that were written as one value into a state and the values of channels.

They are cut, not decoded: the bytes of every value stay as they were, nothing is constructed, and
classes that are not installed here are kept like any other.
"""

import json
from typing import Any

from herdbook.adapters.msgpack_reader import MsgpackReader, UnreadableValue, join_map, split_map
from herdbook.domain.checkpoints.model import Typed
from herdbook.ports.checkpoint_storage.value_store import Version

VALUES, VERSIONS = "channel_values", "channel_versions"

Split = tuple[Typed, dict[str, tuple[Version, Typed]]]


def split(tag: str, data: bytes) -> Split:
    """The state without the values, and each value with its version.

    JSON stays JSON, and MessagePack stays MessagePack. Raises UnreadableValue for anything else.
    """
    if tag == "json":
        return _split_json(data)
    if tag == "msgpack":
        return _split_msgpack(data)
    raise UnreadableValue(
        f"it was written as {tag!r}, which cannot be taken apart here without running code or "
        "knowing a key"
    )


def _split_json(data: bytes) -> Split:
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableValue("it is no JSON that could be read") from error
    if not isinstance(whole, dict) or not isinstance(whole.get(VALUES), dict):
        raise UnreadableValue(f"it has no {VALUES}")
    versions = whole.get(VERSIONS)
    values = {
        name: (_version(versions, name), Typed("json", json.dumps(value).encode()))
        for name, value in whole.pop(VALUES).items()
    }
    return Typed("json", json.dumps(whole).encode()), values


def _split_msgpack(data: bytes) -> Split:
    rest, found = [], {}
    for key, value in split_map(data):
        name = _name(key)
        found[name] = value
        if name != VALUES:
            rest.append((key, value))
    if VALUES not in found:
        raise UnreadableValue(f"it has no {VALUES}")
    versions = MsgpackReader(found[VERSIONS]).read_single() if VERSIONS in found else None
    values = {}
    for key, value in split_map(found[VALUES]):
        name = _name(key)
        values[name] = _version(versions, name), Typed("msgpack", value)
    return Typed("msgpack", join_map(rest)), values


def _name(key: bytes) -> str:
    name = MsgpackReader(key).read_single()
    if not isinstance(name, str):
        raise UnreadableValue("a name in it is no text")
    return name


def _version(versions: Any, name: str) -> Version:
    version = versions.get(name) if isinstance(versions, dict) else None
    return version if isinstance(version, str | int | float) else None
