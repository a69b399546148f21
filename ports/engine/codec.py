"""Encodes rows as JSON-compatible values and decodes them, by declared type.

One encoding serves the journal, operations' answers and the stores that keep JSON. Secrets are
masked, and bytes are replaced by their length, unless the caller is the store itself: with `reveal`
both are encoded as they are.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, TypeVar

from herdbook.domain.clock import Stamp
from herdbook.domain.secret import HIDDEN, Secret
from herdbook.ports.engine.kinds import Column, Kind

E = TypeVar("E")
Encoder = Callable[[Any], Any]


@lru_cache(maxsize=256)
def format_time(value: datetime) -> str:
    """A time as text that sorts as the times do; cached: rows of a transaction share theirs."""
    return value.isoformat(timespec="microseconds")


enum_value: Encoder = attrgetter("_value_")
"""The value of an enum member; the plain attribute, because `value` costs ten times as much."""


def _mask(_: Secret) -> str:
    return HIDDEN


def _size(data: bytes) -> int:
    return len(data)


_ENCODERS: dict[str, Encoder] = {
    "moment": format_time,
    "stamp": str,
    "choice": enum_value,
    "number choice": enum_value,
    "secret": Secret.reveal,
}


def choices_by_value(column: Column) -> dict[Any, Enum]:
    """The enum members of a column by their values; empty for other columns."""
    choices = column.rule.python_type
    return {each.value: each for each in choices} if issubclass(choices, Enum) else {}


def _column_decoder(column: Column) -> Encoder | None:
    decoders: dict[str, Encoder] = {
        "moment": datetime.fromisoformat,
        "stamp": Stamp.parse,
        "choice": choices_by_value(column).__getitem__,
        "number choice": choices_by_value(column).__getitem__,
        "secret": Secret,
    }
    return decoders.get(column.type_name)


# Two functions with one argument each: a cache takes five times as long to find keyword arguments.
@cache
def _stored_encoders(kind: Kind[Any]) -> tuple[tuple[str, Encoder], ...]:
    return _field_encoders(kind, _ENCODERS)


@cache
def _shown_encoders(kind: Kind[Any]) -> tuple[tuple[str, Encoder], ...]:
    return _field_encoders(kind, {**_ENCODERS, "secret": _mask, "bytes": _size})


def _field_encoders(
    kind: Kind[Any], encoders: Mapping[str, Encoder]
) -> tuple[tuple[str, Encoder], ...]:
    """The fields that do not go into JSON as they are, with their encoders."""
    return tuple(
        (name, encoders[each.type_name])
        for name, each in kind.columns.items()
        if each.type_name in encoders
    )


@cache
def _field_decoders(kind: Kind[Any]) -> tuple[dict[str, Encoder], dict[str, Any]]:
    decoders = {name: _column_decoder(column) for name, column in kind.columns.items()}
    defaults = {name: None for name, each in kind.columns.items() if each.optional}
    defaults |= {name: each.default for name, each in kind.columns.items() if each.has_default}
    return {name: each for name, each in decoders.items() if each}, defaults


def encode_row(kind: Kind[E], row: E, *, reveal: bool = False) -> dict[str, Any]:
    """A row as JSON-compatible values by field name; fields that are None are left out."""
    values = {name: value for name, value in vars(row).items() if value is not None}
    for name, encoder in _stored_encoders(kind) if reveal else _shown_encoders(kind):
        if name in values:
            values[name] = encoder(values[name])
    return values


def decode_row(kind: Kind[E], values: Mapping[str, Any]) -> E:
    """Decode what `encode_row` encoded; a field that did not exist yet gets its default."""
    decoders, defaults = _field_decoders(kind)
    row = {**defaults, **values}
    for name, decoder in decoders.items():
        if (value := row[name]) is not None and value is not defaults.get(name):
            row[name] = decoder(value)
    return construct_unchecked(kind, row)


def decode_journalled(kind: Kind[E], values: Mapping[str, Any]) -> tuple[E, bool]:
    """Decode values of the journal; also whether the row lacks a secret, which that masks."""
    masked = {name for name in kind.secrets if values.get(name) == HIDDEN}
    known = {n: value for n, value in values.items() if value is not None and n not in masked}
    return decode_row(kind, known), bool(masked)


def construct_unchecked(kind: Kind[E], values: dict[str, Any]) -> E:
    """Construct a row from values that were validated before, without validating them again."""
    row = object.__new__(kind.entity)
    vars(row).update(values)
    return row


def as_utc(value: datetime) -> datetime:
    """The same time, marked as UTC."""
    return value.replace(tzinfo=UTC)
