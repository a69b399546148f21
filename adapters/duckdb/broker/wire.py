"""What crosses the socket of a broker: frames of JSON, each a list that begins with a word.

Rows cross as the values of their columns. JSON carries all of them but times and bytes, which cross
as text and are recognised by the type of their column.
"""

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

from herdbook.adapters.sql.dialect import Dialect
from herdbook.adapters.sql.statements import SqlTable
from herdbook.domain.errors import (
    AlreadyExists,
    HerdbookError,
    InvalidValue,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
)
from herdbook.ports.engine.kinds import Column, Dictionary, Kind
from herdbook.ports.engine.query import Query, Range
from herdbook.ports.engine.store import TryAgain

PROTOCOL = 2
"""Programs with another protocol do not speak with each other; the clients work directly then."""
LARGEST_FRAME = 256 * 2**20
LENGTH = struct.Struct(">I")

_ERRORS: dict[str, type[HerdbookError]] = {
    each.__name__: each
    for each in (
        AlreadyExists,
        StoreBusy,
        StoreDamaged,
        StoreFull,
        StoreTooNew,
        StoreUnavailable,
        TryAgain,
    )
}


class FrameTooLarge(ValueError):
    """A message has more bytes than the other side accepts."""


def encode_frame(message: list[Any]) -> bytes:
    """A message with its length before it. Raises FrameTooLarge."""
    body = json.dumps(message, separators=(",", ":"), default=_pack).encode()
    if len(body) > LARGEST_FRAME:
        raise FrameTooLarge(f"{len(body)} bytes")
    return LENGTH.pack(len(body)) + body


def decode_frame(body: bytes | bytearray) -> list[Any]:
    """A message; raises ValueError if it is none."""
    try:
        message = json.loads(body)
    except RecursionError as error:
        raise ValueError("too deep") from error
    if not isinstance(message, list) or not message:
        raise ValueError("not a message")
    return message


def _pack(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return b64encode(value).decode()
    raise TypeError(f"a {type(value).__name__} does not cross")


_UNPACK: dict[str, Callable[[Any], Any]] = {"moment": datetime.fromisoformat, "bytes": b64decode}


@cache
def _unpackers(kind: Kind[Any]) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
    columns = enumerate(kind.columns.values())
    return tuple((at, _UNPACK[c.type_name]) for at, c in columns if c.type_name in _UNPACK)


def unpack_rows(kind: Kind[Any], rows: Sequence[list[Any]]) -> list[list[Any]]:
    """The values of rows as DuckDB has them. Raises ValueError and TypeError for others."""
    width = len(kind.columns)
    for row in rows:
        if len(row) != width:
            raise ValueError(f"a row of {kind.name} has {width} values")
        for at, unpack in _unpackers(kind):
            if row[at] is not None:
                row[at] = unpack(row[at])
    return list(rows)


def pack_query(table: SqlTable[Any], query: Query[Any]) -> list[Any]:
    """A query as a message."""

    def pack(name: str, value: Any) -> Any:
        return table.parameter(table.kind.columns[name], value)

    several, within = query.several, query.within
    return [
        query.kind.name,
        query.lookup,
        [[name, pack(name, value)] for name, value in query.equals],
        several and [several[0], [pack(several[0], value) for value in several[1]]],
        within
        and [
            within[0],
            pack(within[0], within[1].low),
            pack(within[0], within[1].high),
            within[1].above,
            within[1].through,
        ],
        query.order,
        query.descending,
        query.limit,
        query.after
        and [pack(name, value) for name, value in zip(query.order, query.after, strict=True)],
    ]


def unpack_query(dictionary: Dictionary, dialect: Dialect, message: Any) -> Query[Any]:
    """The query of a message, all of whose names are in the dictionary.

    Raises LookupError, TypeError and ValueError for anything else.
    """
    name, lookup, equals, several, within, order, descending, limit, after = message
    kind = dictionary.kinds[name]

    def unpack(name: str, value: Any) -> Any:
        return _unpack_value(dialect, kind.columns[name], value)

    if tuple(lookup) not in ((), *kind.all_lookups) or not all(n in kind.columns for n in order):
        raise ValueError("no such lookup")
    if (limit is not None and (type(limit) is not int or limit < 1)) or not order:
        raise ValueError("no such query")
    return Query(
        kind,
        tuple(lookup),
        equals=tuple((name, unpack(name, value)) for name, value in equals),
        several=several and (several[0], tuple(unpack(several[0], each) for each in several[1])),
        within=within
        and (
            within[0],
            Range(
                unpack(within[0], within[1]),
                unpack(within[0], within[2]),
                above=bool(within[3]),
                through=bool(within[4]),
            ),
        ),
        order=tuple(order),
        descending=bool(descending),
        limit=limit,
        after=after and tuple(unpack(n, value) for n, value in zip(order, after, strict=True)),
    )


def _unpack_value(dialect: Dialect, column: Column, value: Any) -> Any:
    if value is None:
        return None
    unpack, convert = _UNPACK.get(column.type_name), dialect.from_db(column)
    value = value if unpack is None else unpack(value)
    return value if convert is None else convert(value)


def encode_error(error: HerdbookError) -> list[Any]:
    """An error of a store as a message."""
    name = type(error).__name__
    if name not in _ERRORS:
        return ["error", "StoreUnavailable", ["", str(error)]]
    return ["error", name, list(error._fields().values())]


def decode_error(message: list[Any]) -> HerdbookError:
    """The error of a message. Raises LookupError, TypeError and ValueError if it is none."""
    _, name, given = message
    if name == StoreBusy.__name__ and given[3] is not None:
        given[3] = datetime.fromisoformat(given[3])
    if name == AlreadyExists.__name__:
        given[2] = tuple(given[2])
    return _ERRORS[name](*given)


def refuse_value(error: Exception) -> HerdbookError:
    """The error for a value that does not cross."""
    return InvalidValue("value", str(error))
