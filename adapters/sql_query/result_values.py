"""Values of an answer: as callers get them, and as JSON between two processes."""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_KIND, _CONTENT = "kind", "content"

_TO_TEXT: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    # A datetime is a date as well, so it comes first.
    (datetime, "datetime", datetime.isoformat),
    (date, "date", date.isoformat),
    (time, "time", time.isoformat),
    (timedelta, "timedelta", lambda value: [value.days, value.seconds, value.microseconds]),
    (Decimal, "decimal", str),
    (UUID, "uuid", str),
    (bytes, "bytes", lambda value: b64encode(value).decode()),
)
_FROM_TEXT: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "decimal": Decimal,
    "uuid": UUID,
    "bytes": b64decode,
}


def plain_value(value: Any, *, document: bool) -> Any:
    """A fetched value as an answer has it: times in UTC, stored JSON decoded."""
    if document and isinstance(value, str):
        return json.loads(value)
    match value:
        case datetime():
            # Every store keeps UTC; DuckDB's times do not name their zone.
            return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        case dict():
            return {key: plain_value(each, document=False) for key, each in value.items()}
        case list():
            return [plain_value(each, document=False) for each in value]
    return value


def encode_value(value: Any) -> Any:
    """A value as JSON can carry it; values of unknown types become text."""
    if value is None or isinstance(value, str | int | float):  # a bool is an int
        return value
    if isinstance(value, list | tuple):
        name = type(value).__name__
        return {_KIND: name, _CONTENT: [encode_value(each) for each in value]}
    if isinstance(value, dict):
        pairs = [[encode_value(key), encode_value(each)] for key, each in value.items()]
        return {_KIND: "dict", _CONTENT: pairs}
    for kind, name, encode in _TO_TEXT:
        if isinstance(value, kind):
            return {_KIND: name, _CONTENT: encode(value)}
    return str(value)


def decode_value(value: Any) -> Any:
    """The value that `encode_value` encoded; ValueError, LookupError or TypeError for others."""
    if not isinstance(value, dict):
        return value
    content = value[_CONTENT]
    match value[_KIND]:
        case "list":
            return [decode_value(each) for each in content]
        case "tuple":
            return tuple(decode_value(each) for each in content)
        case "dict":
            return {decode_value(key): decode_value(each) for key, each in content}
        case kind:
            return _FROM_TEXT[kind](content)
