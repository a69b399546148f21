"""Answers as programs get them: rows with every field by its name, also those that hold nothing."""

from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeVar

from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import Kind

E = TypeVar("E")


def as_data(kind: Kind[E], row: E) -> dict[str, Any]:
    """A row with all its fields, in the order of their declaration; secrets read `***`."""
    values = encode_row(kind, row)
    return {name: values.get(name) for name in kind.columns}


@cache
def _kinds() -> dict[type, Kind[Any]]:
    return {kind.entity: kind for kind in DICTIONARY}


def plain(answer: Any) -> Any:
    """Whatever a use case answers, as it goes into JSON."""
    if kind := _kinds().get(type(answer)):
        return as_data(kind, answer)
    if hasattr(answer, "_asdict"):
        return {name: plain(value) for name, value in answer._asdict().items()}
    if isinstance(answer, dict):
        return {str(key): plain(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple | set | frozenset):
        return [plain(each) for each in answer]
    return _value(answer)


def _value(value: Any) -> Any:
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
    return value
