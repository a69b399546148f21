"""Encode and decode values without ever running what the bytes ask for.

LangGraph writes objects as the name of their class and its arguments; anybody who can write into a
store could so have anything called when it is read. Here only listed classes are constructed: plain
ones of the standard library, messages and documents, LangGraph's own, and those that the user has
allowed. A value that asks for more is refused as a whole and stays in the store as it is.
"""

import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

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


Names = Collection[tuple[str, ...]]

_unpack, _OPTION = ormsgpack.unpackb, ormsgpack.OPT_NON_STR_KEYS


class DecodingProblems(threading.local):
    """The problems of this thread's decoders since the last `clear`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all problems, before another value is decoded."""
        self.blocked: tuple[str, ...] = ()
        self.any = False

    def add_blocked(self, *names: str) -> None:
        """Record the name of something that is not allowed."""
        self.blocked += (".".join(names),)
        self.any = True

    def add_failure(self) -> None:
        """Record that something could not be constructed."""
        self.any = True


def _call_with_positions(made: Any, arguments: Any) -> Any:
    if (made.__module__, made.__name__) == ("langgraph.types", "Send") and len(arguments) > 2:  # noqa: PLR2004
        node, argument, timeout = arguments
        return made(node, argument, timeout=timeout)
    return made(*arguments)


def _construct_model(unchecked: str, made: Any, fields: Any) -> Any:
    """A model; unchecked if its validators, which may have changed since, refuse the fields."""
    try:
        return made(**fields)
    except Exception:  # noqa: BLE001 - what a validator raises is its author's to choose
        return getattr(made, unchecked)(**fields)


_CONSTRUCTORS: dict[int, Callable[[Any, Any], Any]] = {
    jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG: lambda made, argument: made(argument),
    jsonplus.EXT_CONSTRUCTOR_POS_ARGS: _call_with_positions,
    jsonplus.EXT_CONSTRUCTOR_KW_ARGS: lambda made, arguments: made(**arguments),
    jsonplus.EXT_PYDANTIC_V1: partial(_construct_model, "construct"),
    jsonplus.EXT_PYDANTIC_V2: partial(_construct_model, "model_construct"),
}
"""How the class that an extension names is called with the arguments in it, by kind."""


class ExtensionDecoder:
    """An `ext_hook` for `ormsgpack.unpackb`: constructs allowed classes, records all else.

    LangGraph's own decoder continues with bare data, or with None, if an extension is unknown,
    malformed or cannot be constructed, also deep inside of others. No graph should work with half
    of a value, so this decoder records each such problem, and its caller refuses the whole value.
    """

    def __init__(self, allowed: Names, problems: DecodingProblems) -> None:
        self._allowed = frozenset(allowed)
        self._problems = problems
        self._classes: dict[tuple[str, str], Any] = {}
        self._makers: dict[int, Callable[[Any], Any]] = {
            **{code: partial(self._construct, make) for code, make in _CONSTRUCTORS.items()},
            jsonplus.EXT_METHOD_SINGLE_ARG: self._call_method,
            jsonplus.EXT_NUMPY_ARRAY: self._numpy_array,
            jsonplus.EXT_DELTA_SNAPSHOT: _DeltaSnapshot,
        }

    def __call__(self, code: int, data: bytes) -> Any:
        """The value of an extension; None if there was a problem."""
        make = self._makers.get(code)
        if make is None:
            self._problems.add_blocked(f"the MessagePack extension {code}")
            return None
        try:
            parts = _unpack(data, ext_hook=self, option=_OPTION)
            # No constructor may see the rest of a value that had a problem.
            return None if self._problems.any else make(parts)
        except Exception:  # noqa: BLE001 - classes may raise anything, and all means the same
            self._problems.add_failure()
            return None

    def _construct(self, make: Callable[[Any, Any], Any], parts: Any) -> Any:
        module, name, arguments, *_ = parts
        made = self._find_class(module, name)
        return None if made is None else make(made, arguments)

    def _call_method(self, parts: Any) -> Any:
        module, name, argument, method = parts
        if (module, name, method) not in SAFE_MSGPACK_METHODS:
            self._problems.add_blocked(str(module), str(name), str(method))
            return None
        return getattr(getattr(import_module(module), name), method)(argument)

    def _numpy_array(self, parts: Any) -> Any:
        try:
            numpy = import_module("numpy")
        except ImportError:
            self._problems.add_blocked("numpy.ndarray")
            return None
        kind, shape, order, content = parts
        return numpy.frombuffer(content, dtype=numpy.dtype(kind)).reshape(shape, order=order)

    def _find_class(self, module: Any, name: Any) -> Any:
        """The class of this name; None, with a recorded problem, if it is not allowed."""
        key = (module, name)
        made = self._classes.get(key)
        if made is None:
            if key not in SAFE_MSGPACK_TYPES and key not in self._allowed:
                self._problems.add_blocked(str(module), str(name))
                return None
            made = self._classes[key] = getattr(import_module(module), name)
        return made


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
