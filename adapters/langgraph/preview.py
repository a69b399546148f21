"""Values of checkpoints as pictures: read without LangGraph, and without making what they name."""

import json
from typing import Any

from herdbook.adapters.msgpack_reader import MAX_DEPTH, MsgpackReader, UnreadableValue
from herdbook.domain.checkpoints.model import Typed
from herdbook.domain.checkpoints.preview import Blob, Thing, blob
from herdbook.domain.secret import HIDDEN

SECRET_CLASSES = frozenset({"SecretStr", "SecretBytes"})
ARRAY, SNAPSHOT = 6, 7
"""The kinds that do not name a class: an array of numbers, and a value with all its history."""


def preview(value: Typed) -> Any:
    """What a value is, as plain data; what cannot be read is told by its size and a digest."""
    try:
        match value.tag:
            case "null":
                return None
            case "json":
                found = json.loads(value.data.decode("utf-8", "surrogatepass"))
                _refuse_deep(found)
                return found
            case "msgpack":
                return _PreviewReader(value.data).read_single()
    except (UnreadableValue, ValueError, RecursionError):
        return blob(value.tag, value.data)
    return blob(value.tag, value.data)


def is_opaque(shown: Any) -> bool:
    """Whether nothing of a value could be read."""
    return isinstance(shown, Blob)


class _PreviewReader(MsgpackReader):
    """Leaves the names of classes as names: LangGraph would look them up and call them."""

    def mapping(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        """A map; lists among its keys become tuples, and maps among them texts."""
        return {_key(key): value for key, value in pairs}

    def value(self, depth: int) -> Any:
        """The next value, bytes as their picture."""
        found = super().value(depth)
        return blob("bytes", found) if isinstance(found, bytes) else found

    def extension(self, kind: int, body: bytes, depth: int) -> Any:
        """An object: its class, and what it would be made of."""
        inner = _PreviewReader(body)
        try:
            content = inner.value(depth + 1)
        except UnreadableValue:
            return Thing(f"kind {kind}", blob("bytes", body))
        if kind == SNAPSHOT:
            return Thing("snapshot", content)
        if kind == ARRAY and isinstance(content, list):
            return Thing("array", content)
        match content:
            case [str(module), str(name), made_of, *_]:
                return Thing(f"{module}.{name}", HIDDEN if name in SECRET_CLASSES else made_of)
        return Thing(f"kind {kind}", content)


def _key(key: Any) -> Any:
    if isinstance(key, list):
        return tuple(_key(each) for each in key)
    return str(key) if isinstance(key, dict | Thing) else key


def _refuse_deep(value: Any) -> None:
    """Unreadable if JSON is nested deeper than anybody can look."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return
        level = [
            each
            for outer in level
            if isinstance(outer, dict | list)
            for each in (outer.values() if isinstance(outer, dict) else outer)
        ]
    raise UnreadableValue(f"it is nested deeper than {MAX_DEPTH} levels")
