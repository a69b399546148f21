"""Values of checkpoints as pictures: read without LangGraph, and without making what they name."""

import json
from typing import Any

from herdbook.adapters.msgpack_reader import DEEPEST, Reader, Unreadable
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.checkpoints.preview import BytesPreview, ObjectPreview, preview_bytes
from herdbook.domain.secret import HIDDEN

SECRETS = frozenset({"SecretStr", "SecretBytes"})
ARRAY, SNAPSHOT = 6, 7
"""The kinds that do not name a class: an array of numbers, and a value with all its history."""


def picture(value: TaggedBytes) -> Any:
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
                return _Reader(value.data).only()
    except (Unreadable, ValueError, RecursionError):
        return preview_bytes(value.tag, value.data)
    return preview_bytes(value.tag, value.data)


def is_opaque(shown: Any) -> bool:
    """Whether nothing of a value could be read."""
    return isinstance(shown, BytesPreview)


class _Reader(Reader):
    """Leaves the names of classes as names: LangGraph would look them up and call them."""

    def mapping(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        """A map; lists among its keys become tuples, and maps among them texts."""
        return {_key(key): value for key, value in pairs}

    def value(self, depth: int) -> Any:
        """The next value, bytes as their picture."""
        found = super().value(depth)
        return preview_bytes("bytes", found) if isinstance(found, bytes) else found

    def extension(self, kind: int, body: bytes, depth: int) -> Any:
        """An object: its class, and what it would be made of."""
        inner = _Reader(body)
        try:
            content = inner.value(depth + 1)
        except Unreadable:
            return ObjectPreview(f"kind {kind}", preview_bytes("bytes", body))
        if kind == SNAPSHOT:
            return ObjectPreview("snapshot", content)
        if kind == ARRAY and isinstance(content, list):
            return ObjectPreview("array", content)
        match content:
            case [str(module), str(name), made_of, *_]:
                return ObjectPreview(f"{module}.{name}", HIDDEN if name in SECRETS else made_of)
        return ObjectPreview(f"kind {kind}", content)


def _key(key: Any) -> Any:
    if isinstance(key, list):
        return tuple(_key(each) for each in key)
    return str(key) if isinstance(key, dict | ObjectPreview) else key


def _refuse_deep(value: Any) -> None:
    """Unreadable if JSON is nested deeper than anybody can look."""
    level = [value]
    for _ in range(DEEPEST + 1):
        if not level:
            return
        level = [
            each
            for outer in level
            if isinstance(outer, dict | list)
            for each in (outer.values() if isinstance(outer, dict) else outer)
        ]
    raise Unreadable(f"it is nested deeper than {DEEPEST} levels")
