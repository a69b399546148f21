"""Encode and decode values without ever running what the bytes ask for.

LangGraph writes objects as the name of their class and its arguments; anybody who can write into a
store could so have anything called when it is read. Here only listed classes are constructed: plain
ones of the standard library, messages and documents, LangGraph's own, and those that the user has
allowed. A value that asks for more is refused as a whole and stays in the store as it is.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from herdbook.adapters.langgraph.extensions import DecodingProblems, ExtensionDecoder
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.errors import DecodingRefused
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru

Allowed = type | tuple[str, str]

LONG_TEXT_TOKENS = (b"\xda", b"\xdb")
"""The first bytes of MessagePack texts of 256 bytes and more."""
TEXT_CACHE_BYTES = 16 * 2**20
"""How many bytes of such texts are cached after decoding."""
PLAIN_TAGS = frozenset({"null", "bytes", "bytearray"})
_NAMES = frozenset(
    name
    for module, name in (each for each in SAFE_MSGPACK_TYPES if len(each) == 2)  # noqa: PLR2004
    if module.startswith(("langchain_core.messages", "langchain_core.documents"))
)
"""The classes of langchain that JSON may name, under any path they had when it was written."""


_read_json = json.JSONDecoder().raw_decode
_write_json = json.JSONEncoder(ensure_ascii=False).encode


_problems = DecodingProblems()


class GuardedSerializer(JsonPlusSerializer):
    """LangGraph's own serializer, with an allow-list of classes and an error for all others."""

    def __init__(self, allow: Iterable[Allowed] = ()) -> None:
        names = [_name(each) for each in allow]
        super().__init__(
            pickle_fallback=False,
            allowed_json_modules=[tuple(f"{m}.{n}".split(".")) for m, n in names] or None,
            allowed_msgpack_modules=names or None,
        )
        self._unpack_ext_hook = ExtensionDecoder(names, _problems)
        self._named = frozenset(names)
        self._texts = ByteLru(TEXT_CACHE_BYTES)  # texts are immutable, so they can be shared

    def with_msgpack_allowlist(
        self, extra_allowlist: Iterable[tuple[str, ...] | type]
    ) -> JsonPlusSerializer:
        """A serializer that allows further classes; this one if it allows them already."""
        wider = super().with_msgpack_allowlist(extra_allowlist)
        if isinstance(wider, GuardedSerializer) and wider is not self:
            allowed = wider._allowed_msgpack_modules  # noqa: SLF001 - a copy of this one
            names = allowed if isinstance(allowed, set) else ()
            wider._unpack_ext_hook = ExtensionDecoder(names, _problems)  # noqa: SLF001
        return wider

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Decode a value; raises DecodingRefused if it names classes that are not allowed."""
        tag, raw = data
        if tag in PLAIN_TAGS:
            return super().loads_typed(data)
        if tag not in ("json", "msgpack"):
            raise DecodingRefused(tag, ())
        _problems.clear()
        try:
            if tag == "json":
                value = json.loads(raw, object_hook=self._construct_json)
            else:
                value = ormsgpack.unpackb(
                    raw, ext_hook=self._unpack_ext_hook, option=ormsgpack.OPT_NON_STR_KEYS
                )
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise _decoding_refused(tag) from error
        if _problems.any:
            raise _decoding_refused(tag)
        return value

    def loads_all(self, values: Mapping[str, TaggedBytes]) -> dict[str, Any]:
        """Decode many values by name; faster than one by one."""
        unpack, hook, known = ormsgpack.unpackb, self._unpack_ext_hook, self._texts.peek
        option = ormsgpack.OPT_NON_STR_KEYS
        found: dict[str, Any] = {}
        _problems.clear()
        try:
            for name, (tag, data) in values.items():
                if tag != "msgpack":
                    continue
                if data[:1] not in LONG_TEXT_TOKENS:
                    found[name] = unpack(data, ext_hook=hook, option=option)
                    continue
                text = known(data)
                if text is None:
                    text = unpack(data)
                    self._texts.put(data, text, len(data))
                found[name] = text
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise _decoding_refused("msgpack") from error
        if _problems.any:
            raise _decoding_refused("msgpack")
        if len(found) == len(values):
            return found
        return {
            name: found[name] if name in found else self.loads_typed(each)
            for name, each in values.items()
        }

    def _construct_json(self, value: dict[str, Any]) -> Any:
        """The value of a JSON object: itself, or an object of an allowed class."""
        path = value.get("id")
        if value.get("lc") not in (1, 2) or "type" not in value or not isinstance(path, list):
            return value
        names = [str(each) for each in path]
        module, name = ".".join(names[:-1]), names[-1] if names else ""
        known = names[:1] in (["langchain"], ["langchain_core"]) and name in _NAMES
        safe = (module, name) in SAFE_MSGPACK_TYPES or (module, name) in self._named
        if value["type"] != "constructor" or not (known if value["lc"] == 1 else safe):
            _problems.add_blocked(module, name)
            return value
        try:
            made = self._reviver(value)
        except Exception:  # noqa: BLE001 - classes may raise anything, and all means the same
            made = None
        if made is None:  # the reviver only logs it, and would continue with None
            _problems.add_failure()
        return made


def _decoding_refused(tag: str) -> DecodingRefused:
    """The error for a value that was not decoded, with the names of the classes it asked for."""
    return DecodingRefused(tag, tuple(dict.fromkeys(_problems.blocked)))


def _name(allowed: Allowed) -> tuple[str, str]:
    if isinstance(allowed, type):
        return allowed.__module__, allowed.__name__
    module, name = allowed
    return module, name


def encode_metadata(metadata: Mapping[str, Any], serializer: Any) -> TaggedBytes:
    """Encode metadata as JSON, which any program can read, else with the serializer."""
    try:
        return TaggedBytes("json", _write_json(metadata).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError):
        tag, data = serializer.dumps_typed(dict(metadata))
        return TaggedBytes(tag, bytes(data))


def decode_metadata(metadata: TaggedBytes, serializer: Any) -> Any:
    """Decode what `encode_metadata` has written."""
    if metadata.tag == "json":
        return _read_json(metadata.data.decode("utf-8", "surrogatepass").strip())[0]
    return serializer.loads_typed(metadata)
