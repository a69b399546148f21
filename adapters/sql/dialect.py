"""What SQL engines disagree on."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from herdbook.domain.clock import Stamp
from herdbook.domain.secret import Secret
from herdbook.ports.engine.codec import as_utc, choices_by_value, enum_value
from herdbook.ports.engine.kinds import Column

Convert = Callable[[Any], Any]

_write_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Execute(Protocol):
    """Runs one statement and returns its rows."""

    def __call__(self, sql: str, parameters: list[Any] | None = None) -> list[tuple[Any, ...]]: ...


@frozen(eq=False)
class Dialect:
    """How one engine writes types, parameters and conditions."""

    parameter: str
    """How a parameter is marked."""
    types: Mapping[str, str]
    """The column type for each type of the dictionary."""
    array_types: Mapping[str, str]
    """The element type to which a list of such values is cast."""
    moment_to_db: Convert
    moment_from_db: Convert
    among: Callable[[str, str], str]
    """The condition that a column has one of the values of a list."""
    counts_changes: bool = False
    """Whether an UPDATE answers with the number of rows, which costs less than returning them."""
    hash_of: Callable[[str], str] | None = None
    """The expression by which an index stores a long text; None if there are no indexes."""

    def array_parameter(self, column: Column) -> str:
        """A parameter that carries a list of values of this column."""
        return f"{self.parameter}::{self.array_types[column.type_name]}[]"

    def value_parameter(self, column: Column) -> str:
        """A parameter that carries one value of this column."""
        return f"{self.parameter}::{self.array_types[column.type_name]}"

    def to_db(self, column: Column) -> Convert | None:
        """The function that turns a value into a parameter; None if it is one already."""
        converters: dict[str, Convert] = {
            "moment": self.moment_to_db,
            "choice": enum_value,
            "number choice": enum_value,
            "secret": Secret.reveal,
            "stamp": str,
            "document": _write_json,
        }
        return converters.get(column.type_name)

    def from_db(self, column: Column) -> Convert | None:
        """The function that turns a fetched value into the domain's; None if it is one already."""
        choices = choices_by_value(column).__getitem__
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
    """A time without its zone, for engines that store UTC by convention."""
    return value.replace(tzinfo=None)


def quote_name(name: str) -> str:
    """A name of the dictionary as an SQL identifier; some of them are reserved words."""
    return f'"{name}"'


def default_literal(value: Any) -> str:
    """A default value of the dictionary as an SQL literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case datetime():
            return f"TIMESTAMP '{as_utc(value).strftime('%Y-%m-%d %H:%M:%S.%f')}'"
        case _:
            return "'" + str(value).replace("'", "''") + "'"
