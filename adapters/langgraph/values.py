"""Values as bytes and back, without ever running what the bytes ask for.

LangGraph writes objects as the name of their class and what to call it with; whoever can write into
a store could so have anything called when it is read. Here only classes of a list are made: plain
ones of the standard library, messages and documents, LangGraph's own, and those that the user has
allowed. A value that asks for more is refused as a whole and stays in the store as it is.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from herdbook.adapters.langgraph.extensions import Doubts, ExtensionDecoder
from herdbook.domain.checkpoints.model import TaggedBytes
from herdbook.domain.errors import DecodingRefused
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru

Allowed = type | tuple[str, str]

LONG = (b"\xda", b"\xdb")
"""How msgpack begins a text of 256 bytes and more."""
TEXTS = 16 * 2**20
"""How many bytes of such texts are remembered as they were decoded."""
PLAIN = frozenset({"null", "bytes", "bytearray"})
_NAMES = frozenset(
    name
    for module, name in (each for each in SAFE_MSGPACK_TYPES if len(each) == 2)  # noqa: PLR2004
    if module.startswith(("langchain_core.messages", "langchain_core.documents"))
)
"""The classes of langchain that JSON may name, under whatever path they had when it was written."""


_read_json = json.JSONDecoder().raw_decode
_write_json = json.JSONEncoder(ensure_ascii=False).encode


_doubts = Doubts()


class GuardedSerializer(JsonPlusSerializer):
    """LangGraph's own serializer, with a list of what may be made and an error for all else."""

    def __init__(self, allow: Iterable[Allowed] = ()) -> None:
        names = [_name(each) for each in allow]
        super().__init__(
            pickle_fallback=False,
            allowed_json_modules=[tuple(f"{m}.{n}".split(".")) for m, n in names] or None,
            allowed_msgpack_modules=names or None,
        )
        self._unpack_ext_hook = ExtensionDecoder(names, _doubts)
        self._named = frozenset(names)
        self._texts = ByteLru(TEXTS)  # nobody can change a text, so all who ask get the same one

    def with_msgpack_allowlist(
        self, extra_allowlist: Iterable[tuple[str, ...] | type]
    ) -> JsonPlusSerializer:
        """A serializer that allows further classes; this one if it allows them already."""
        wider = super().with_msgpack_allowlist(extra_allowlist)
        if isinstance(wider, GuardedSerializer) and wider is not self:
            allowed = wider._allowed_msgpack_modules  # noqa: SLF001 - a copy of this one
            names = allowed if isinstance(allowed, set) else ()
            wider._unpack_ext_hook = ExtensionDecoder(names, _doubts)  # noqa: SLF001
        return wider

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value behind the bytes; DecodingRefused if it takes more than is allowed."""
        tag, raw = data
        if tag in PLAIN:
            return super().loads_typed(data)
        if tag not in ("json", "msgpack"):
            raise DecodingRefused(tag, ())
        _doubts.clear()
        try:
            if tag == "json":
                value = json.loads(raw, object_hook=self._made)
            else:
                value = ormsgpack.unpackb(
                    raw, ext_hook=self._unpack_ext_hook, option=ormsgpack.OPT_NON_STR_KEYS
                )
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise _refusal(tag) from error
        if _doubts.there_are:
            raise _refusal(tag)
        return value

    def loads_all(self, values: Mapping[str, TaggedBytes]) -> dict[str, Any]:
        """Many values at once, by name; quicker than one by one."""
        unpack, hook, known = ormsgpack.unpackb, self._unpack_ext_hook, self._texts.peek
        option = ormsgpack.OPT_NON_STR_KEYS
        found: dict[str, Any] = {}
        _doubts.clear()
        try:
            for name, (tag, data) in values.items():
                if tag != "msgpack":
                    continue
                if data[:1] not in LONG:
                    found[name] = unpack(data, ext_hook=hook, option=option)
                    continue
                text = known(data)
                if text is None:
                    text = unpack(data)
                    self._texts.put(data, text, len(data))
                found[name] = text
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise _refusal("msgpack") from error
        if _doubts.there_are:
            raise _refusal("msgpack")
        if len(found) == len(values):
            return found
        return {
            name: found[name] if name in found else self.loads_typed(each)
            for name, each in values.items()
        }

    def _made(self, value: dict[str, Any]) -> Any:
        """What a JSON object stands for: itself, or an object of a class that is allowed."""
        path = value.get("id")
        if value.get("lc") not in (1, 2) or "type" not in value or not isinstance(path, list):
            return value
        names = [str(each) for each in path]
        module, name = ".".join(names[:-1]), names[-1] if names else ""
        known = names[:1] in (["langchain"], ["langchain_core"]) and name in _NAMES
        safe = (module, name) in SAFE_MSGPACK_TYPES or (module, name) in self._named
        if value["type"] != "constructor" or not (known if value["lc"] == 1 else safe):
            _doubts.block(module, name)
            return value
        try:
            made = self._reviver(value)
        except Exception:  # noqa: BLE001 - classes may raise anything, and all means the same
            made = None
        if made is None:  # it says so in a log, and would go on with nothing
            _doubts.fail()
        return made


def _refusal(tag: str) -> DecodingRefused:
    """The error of a value that was not decoded, with the names of what it asked for."""
    return DecodingRefused(tag, tuple(dict.fromkeys(_doubts.blocked)))


def _name(allowed: Allowed) -> tuple[str, str]:
    if isinstance(allowed, type):
        return allowed.__module__, allowed.__name__
    module, name = allowed
    return module, name


def metadata_written(metadata: Mapping[str, Any], serializer: Any) -> TaggedBytes:
    """Metadata as JSON, which everybody can read, or as the serializer writes it."""
    try:
        return TaggedBytes("json", _write_json(metadata).encode("utf-8", "surrogatepass"))
    except (TypeError, ValueError):
        tag, data = serializer.dumps_typed(dict(metadata))
        return TaggedBytes(tag, bytes(data))


def metadata_read(metadata: TaggedBytes, serializer: Any) -> Any:
    """The metadata behind `metadata_written`."""
    if metadata.tag == "json":
        return _read_json(metadata.data.decode("utf-8", "surrogatepass").strip())[0]
    return serializer.loads_typed(metadata)
