"""Rows as JSON-able values and back, by declared type.

One encoding serves the journal, operations' answers and the stores that keep JSON. Secrets are
masked, and bytes are told by their number, unless the caller says that it is the store itself that
is writing: it gets both as they are.
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
def moment(value: datetime) -> str:
    """A time as text that sorts as the times do; the rows of a transaction share theirs."""
    return value.isoformat(timespec="microseconds")


value_of: Encoder = attrgetter("_value_")
"""What a choice is written as; the plain attribute, because `value` costs ten times as much."""


def _masked(_: Secret) -> str:
    return HIDDEN


def _size(data: bytes) -> int:
    return len(data)


_ENCODERS: dict[str, Encoder] = {
    "moment": moment,
    "stamp": str,
    "choice": value_of,
    "number choice": value_of,
    "secret": Secret.reveal,
}


def members(column: Column) -> dict[Any, Enum]:
    """The choices of a column by their values; none where it is not a choice."""
    choices = column.rule.python_type
    return {each.value: each for each in choices} if issubclass(choices, Enum) else {}


def _decoder(column: Column) -> Encoder | None:
    decoders: dict[str, Encoder] = {
        "moment": datetime.fromisoformat,
        "stamp": Stamp.parse,
        "choice": members(column).__getitem__,
        "number choice": members(column).__getitem__,
        "secret": Secret,
    }
    return decoders.get(column.type_name)


@cache
def _encoding(kind: Kind[Any], *, revealed: bool) -> tuple[tuple[str, Encoder], ...]:
    """The fields that do not go into JSON as they are."""
    hiding: dict[str, Encoder] = {"secret": _masked, "bytes": _size}
    encoders = _ENCODERS if revealed else {**_ENCODERS, **hiding}
    return tuple(
        (name, encoders[each.type_name])
        for name, each in kind.columns.items()
        if each.type_name in encoders
    )


@cache
def _decoding(kind: Kind[Any]) -> tuple[dict[str, Encoder], dict[str, Any]]:
    decoders = {name: _decoder(column) for name, column in kind.columns.items()}
    defaults = {name: None for name, each in kind.columns.items() if each.optional}
    defaults |= {name: each.default for name, each in kind.columns.items() if each.has_default}
    return {name: each for name, each in decoders.items() if each}, defaults


def encode(kind: Kind[E], row: E, *, revealed: bool = False) -> dict[str, Any]:
    """A row as JSON-able values by field name; fields that hold nothing are left out."""
    values = {name: value for name, value in vars(row).items() if value is not None}
    for name, encoder in _encoding(kind, revealed=revealed):
        if name in values:
            values[name] = encoder(values[name])
    return values


def decode(kind: Kind[E], values: Mapping[str, Any]) -> E:
    """The row behind `encode`; a field that was not there yet gets its default."""
    decoders, defaults = _decoding(kind)
    row = {**defaults, **values}
    for name, decoder in decoders.items():
        if (value := row[name]) is not None and value is not defaults.get(name):
            row[name] = decoder(value)
    return revive(kind, row)


def revive(kind: Kind[E], values: dict[str, Any]) -> E:
    """A row from values that were checked when it was first made, without checking them again."""
    row = object.__new__(kind.entity)
    vars(row).update(values)
    return row


def utc(value: datetime) -> datetime:
    """The same moment, as the domain has it."""
    return value.replace(tzinfo=UTC)
