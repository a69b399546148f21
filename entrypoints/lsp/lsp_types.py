"""Reads values from messages of editors, and converts between URIs and paths."""

import os
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from herdbook.domain.errors import InvalidValue

T = TypeVar("T")


def field(params: Any, *names: str) -> Any:
    """A value inside nested objects; InvalidValue if it is missing."""
    value = params
    for name in names:
        if not isinstance(value, dict) or name not in value:
            raise InvalidValue(".".join(names), "is needed")
        value = value[name]
    return value


def _typed_field(type_: type[T], what: str, params: Any, *names: str) -> T:
    """A value inside nested objects; InvalidValue if it is missing or of another type."""
    value = field(params, *names)
    if type(value) is not type_:
        raise InvalidValue(".".join(names), f"must be {what}")
    return value


text = partial(_typed_field, str, "a text")
number = partial(_typed_field, int, "a whole number")
array = partial(_typed_field, list, "an array")


def optional(params: Any, *names: str) -> Any:
    """A value inside nested objects; None if it is missing."""
    value = params
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def path_of(uri: str) -> str | None:
    """The path of a file URI; None if it is not a file of this machine."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = os.fsdecode(unquote_to_bytes(parts.path.encode("utf-8", "surrogatepass")))
    return path if path.startswith("/") and "\0" not in path else None


def uri_of(path: str) -> str:
    """The URI of a path; any bytes are possible."""
    return f"file://{quote_from_bytes(os.fsencode(path))}"
