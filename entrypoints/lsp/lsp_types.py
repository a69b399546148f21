"""Reads values from messages of editors, and converts between URIs and paths."""

import os
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes, urlsplit

from herdbook.domain.errors import InvalidValue


def field(params: Any, *names: str) -> Any:
    """A value inside nested objects; InvalidValue if it is missing."""
    value = params
    for name in names:
        if not isinstance(value, dict) or name not in value:
            raise InvalidValue(".".join(names), "is needed")
        value = value[name]
    return value


def text(params: Any, *names: str) -> str:
    """A string inside nested objects; InvalidValue if it is missing or of another type."""
    value = field(params, *names)
    if not isinstance(value, str):
        raise InvalidValue(".".join(names), "must be a text")
    return value


def number(params: Any, *names: str) -> int:
    """An integer inside nested objects; InvalidValue if it is missing or of another type."""
    value = field(params, *names)
    if type(value) is not int:
        raise InvalidValue(".".join(names), "must be a whole number")
    return value


def array(params: Any, *names: str) -> list[Any]:
    """An array inside nested objects; InvalidValue if it is missing or of another type."""
    value = field(params, *names)
    if not isinstance(value, list):
        raise InvalidValue(".".join(names), "must be an array")
    return value


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
