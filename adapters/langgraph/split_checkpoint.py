"""Split checkpoints that were written as one value into a state and the values of channels.

They are cut, not decoded: the bytes of every value stay as they were, nothing is constructed, and
classes that are not installed here are kept like any other.
"""

import json
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

from herdbook.adapters.msgpack_reader import MsgpackReader, UnreadableValue
from herdbook.adapters.system.extras import describe_missing
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.errors import StoreUnavailable
from herdbook.ports.checkpoint_storage.value_store import Version

VALUES, VERSIONS = "channel_values", "channel_versions"

Split = tuple[TaggedBytes, dict[str, tuple[Version, TaggedBytes]]]


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
        name: (_version(versions, name), TaggedBytes("json", json.dumps(value).encode()))
        for name, value in whole.pop(VALUES).items()
    }
    return TaggedBytes("json", json.dumps(whole).encode()), values


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
        values[name] = _version(versions, name), TaggedBytes("msgpack", value)
    return TaggedBytes("msgpack", join_map(rest)), values


def split_map(data: bytes) -> list[tuple[bytes, bytes]]:
    """The undecoded keys and values of a map; raises UnreadableValue for anything else.

    Raises StoreUnavailable if msgpack, of the extra `langgraph`, is not installed.
    """
    msgpack = _msgpack()
    unpacker = msgpack.Unpacker(max_buffer_size=len(data) or 1)
    unpacker.feed(data)
    starts: list[int] = []
    try:
        for _ in range(2 * unpacker.read_map_header()):
            starts.append(unpacker.tell())
            unpacker.skip()
    except msgpack.OutOfData as error:
        raise UnreadableValue("it is cut off") from error
    except (msgpack.UnpackException, ValueError) as error:
        what = "a value in it is no MessagePack" if starts else "it is no map"
        raise UnreadableValue(what) from error
    end = unpacker.tell()
    if end != len(data):
        raise UnreadableValue(f"{len(data) - end} bytes are left behind the value")
    parts = [data[start:stop] for start, stop in pairwise([*starts, end])]
    return list(zip(parts[::2], parts[1::2], strict=True))


def join_map(entries: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The bytes of a map of encoded keys and values; the inverse of `split_map`."""
    head: bytes = _msgpack().Packer().pack_map_header(len(entries))
    return head + b"".join(part for entry in entries for part in entry)


def _msgpack() -> Any:
    try:
        return import_module("msgpack")  # of an extra; only an import of checkpoints needs it
    except ModuleNotFoundError as error:
        reason = describe_missing("msgpack", "langgraph")
        raise StoreUnavailable("MessagePack", reason) from error


def _name(key: bytes) -> str:
    name = MsgpackReader(key).read_single()
    if not isinstance(name, str):
        raise UnreadableValue("a name in it is no text")
    return name


def _version(versions: Any, name: str) -> Version:
    version = versions.get(name) if isinstance(versions, dict) else None
    return version if isinstance(version, str | int | float) else None
