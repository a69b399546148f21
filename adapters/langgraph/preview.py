"""Previews of checkpoint values: read without LangGraph, and without constructing any class."""

import json
from typing import Any

from herdbook.adapters.msgpack_reader import MAX_DEPTH, MsgpackReader, UnreadableValue
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.checkpoints.preview import BytesPreview, ObjectPreview, preview_bytes
from herdbook.domain.secret import HIDDEN

SECRET_CLASSES = frozenset({"SecretStr", "SecretBytes"})
ARRAY, SNAPSHOT = 6, 7
"""The extension kinds that name no class: an array of numbers, and a value with its history."""


def preview(value: TaggedBytes) -> Any:
    """A value as plain data; a `Blob` with size and digest if it cannot be read."""
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
        return preview_bytes(value.tag, value.data)
    return preview_bytes(value.tag, value.data)


def is_opaque(shown: Any) -> bool:
    """Whether a preview is only the size and digest of a value that could not be read."""
    return isinstance(shown, BytesPreview)


class _PreviewReader(MsgpackReader):
    """Keeps the names of classes as names: LangGraph would import and call them."""

    def mapping(self, pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
        """A map; lists among its keys become tuples, and maps among them text."""
        return {_key(key): value for key, value in pairs}

    def value(self, depth: int) -> Any:
        """Read the next value, with bytes as a `Blob`."""
        found = super().value(depth)
        return preview_bytes("bytes", found) if isinstance(found, bytes) else found

    def extension(self, kind: int, body: bytes, depth: int) -> Any:
        """An object: the name of its class, and its arguments."""
        inner = _PreviewReader(body)
        try:
            content = inner.value(depth + 1)
        except UnreadableValue:
            return ObjectPreview(f"kind {kind}", preview_bytes("bytes", body))
        if kind == SNAPSHOT:
            return ObjectPreview("snapshot", content)
        if kind == ARRAY and isinstance(content, list):
            return ObjectPreview("array", content)
        match content:
            case [str(module), str(name), made_of, *_]:
                return ObjectPreview(
                    f"{module}.{name}", HIDDEN if name in SECRET_CLASSES else made_of
                )
        return ObjectPreview(f"kind {kind}", content)


def _key(key: Any) -> Any:
    if isinstance(key, list):
        return tuple(_key(each) for each in key)
    return str(key) if isinstance(key, dict | ObjectPreview) else key


def _refuse_deep(value: Any) -> None:
    """Raise UnreadableValue if JSON is nested deeper than MAX_DEPTH."""
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
