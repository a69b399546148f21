"""Decoder of LangGraph's MessagePack extensions that constructs allowed classes only.

LangGraph's own decoder continues with bare data, or with None, if an extension is unknown,
malformed or cannot be constructed, also deep inside of others. No graph should work with half of a
value, so this decoder records each such problem, and its caller refuses the value as a whole.
"""

import threading
from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.types import _DeltaSnapshot

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


class ExtensionDecoder:
    """An `ext_hook` for `ormsgpack.unpackb`: constructs allowed classes, records all else."""

    def __init__(self, allowed: Names, problems: DecodingProblems) -> None:
        self._allowed = frozenset(allowed)
        self._problems = problems
        self._classes: dict[tuple[str, str], Any] = {}
        self._makers: dict[int, Callable[[Any], Any]] = {
            jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG: self._call_with_one,
            jsonplus.EXT_CONSTRUCTOR_POS_ARGS: self._call_with_positions,
            jsonplus.EXT_CONSTRUCTOR_KW_ARGS: self._call_with_names,
            jsonplus.EXT_METHOD_SINGLE_ARG: self._call_method,
            jsonplus.EXT_PYDANTIC_V1: self._pydantic_v1_model,
            jsonplus.EXT_PYDANTIC_V2: self._pydantic_v2_model,
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

    def _call_with_one(self, parts: Any) -> Any:
        module, name, argument = parts
        made = self._find_class(module, name)
        return None if made is None else made(argument)

    def _call_with_positions(self, parts: Any) -> Any:
        module, name, arguments = parts
        made = self._find_class(module, name)
        if made is None:
            return None
        if (module, name) == ("langgraph.types", "Send") and len(arguments) > 2:  # noqa: PLR2004
            node, argument, timeout = arguments
            return made(node, argument, timeout=timeout)
        return made(*arguments)

    def _call_with_names(self, parts: Any) -> Any:
        module, name, arguments = parts
        made = self._find_class(module, name)
        return None if made is None else made(**arguments)

    def _call_method(self, parts: Any) -> Any:
        module, name, argument, method = parts
        if (module, name, method) not in SAFE_MSGPACK_METHODS:
            self._problems.add_blocked(str(module), str(name), str(method))
            return None
        return getattr(getattr(import_module(module), name), method)(argument)

    def _pydantic_v1_model(self, parts: Any) -> Any:
        return self._construct_model(parts, "construct")

    def _pydantic_v2_model(self, parts: Any) -> Any:
        return self._construct_model(parts, "model_construct")

    def _construct_model(self, parts: Any, unchecked: str) -> Any:
        """A model; unchecked if its validators, which may have changed since, refuse the fields."""
        module, name, fields, *_ = parts
        made = self._find_class(module, name)
        if made is None:
            return None
        try:
            return made(**fields)
        except Exception:  # noqa: BLE001 - what a validator raises is its author's to choose
            return getattr(made, unchecked)(**fields)

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
