"""What two SQL engines disagree on."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from herdbook.domain.clock import Stamp
from herdbook.domain.secret import Secret
from herdbook.ports.engine.codec import members, utc, value_of
from herdbook.ports.engine.kinds import Column

Convert = Callable[[Any], Any]

_write_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Execute(Protocol):
    """Runs one statement and gives its rows."""

    def __call__(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]: ...


@frozen(eq=False)
class Dialect:
    """One engine's way of saying it."""

    parameter: str
    """How a parameter is marked."""
    types: Mapping[str, str]
    """The column type for each type of the dictionary."""
    array_types: Mapping[str, str]
    """What to cast a list of such values to."""
    moment_to_db: Convert
    moment_from_db: Convert
    among: Callable[[str, str], str]
    """How to say that a column has one of the values of a list."""
    hash_of: Callable[[str], str] | None = None
    """How an index stands for a long text; None where there are no indexes."""

    def array_parameter(self, column: Column) -> str:
        """A parameter that carries a list of values of this column."""
        return f"{self.parameter}::{self.array_types[column.type_name]}[]"

    def value_parameter(self, column: Column) -> str:
        """A parameter that carries one value of this column."""
        return f"{self.parameter}::{self.array_types[column.type_name]}"

    def to_db(self, column: Column) -> Convert | None:
        """How a value becomes a parameter; None where it is one already."""
        converters: dict[str, Convert] = {
            "moment": self.moment_to_db,
            "choice": value_of,
            "number choice": value_of,
            "secret": Secret.reveal,
            "stamp": str,
            "document": _write_json,
        }
        return converters.get(column.type_name)

    def from_db(self, column: Column) -> Convert | None:
        """How a fetched value becomes one of the domain's; None where it is one already."""
        choices = members(column).__getitem__
        converters: dict[str, Convert] = {
            "moment": self.moment_from_db,
            "choice": choices,
            "number choice": choices,
            "secret": Secret,
            "stamp": Stamp.parse,
            "document": json.loads,
        }
        return converters.get(column.type_name)


def drop_zone(value: datetime) -> datetime:
    """A time without its zone, for engines that keep UTC by convention."""
    return value.replace(tzinfo=None)


def quote_name(name: str) -> str:
    """A name of the dictionary as SQL; some of them are reserved words."""
    return f'"{name}"'


def default_literal(value: Any) -> str:
    """A default of the dictionary as SQL."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case datetime():
            return f"TIMESTAMP '{utc(value).strftime('%Y-%m-%d %H:%M:%S.%f')}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"
