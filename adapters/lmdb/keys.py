"""Encodes values as bytes that sort as the values do."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache, lru_cache
from hashlib import blake2b
from typing import Any

from herdbook.domain.clock import Stamp
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.engine.kinds import Column, Kind

Encode = Callable[[Any], bytes]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HALF = 2**63
_PRESENT, _ABSENT = b"\x01", b"\x02"
OUT_OF_ORDER = "its keys are out of order"


def _text(value: str) -> bytes:
    # NUL is refused by the domain, so it can end a text: a text sorts before its extensions.
    return value.encode() + b"\0"


def _stamp(value: Stamp) -> bytes:
    return _text(str(value))


def _integer(value: int) -> bytes:
    return (value + _HALF).to_bytes(8, "big")


@lru_cache(maxsize=256)
def _moment(value: datetime) -> bytes:
    since = value - _EPOCH
    micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return (micros + _HALF).to_bytes(8, "big")


def _flag(value: object) -> bytes:
    return b"\1" if value else b"\0"


def _digest(value: str) -> bytes:
    return blake2b(value.encode(), digest_size=16).digest()


_ENCODERS: dict[str, Encode] = {
    "id": _text,
    "integer": _integer,
    "flag": _flag,
    "moment": _moment,
    "choice": _text,
    "number choice": _integer,
    "stamp": _stamp,
    "name": _digest,
}


def encoder(column: Column) -> Encode:
    """The function that encodes values of a column; None sorts after everything else."""
    encode = _ENCODERS[column.type_name]
    if not column.optional:
        return encode
    return lambda value: _ABSENT if value is None else _PRESENT + encode(value)


@cache
def key_encoder(kind: Kind[Any]) -> Encode:
    """The function that encodes keys of a kind."""
    return encoder(kind.columns[kind.key])


@cache
def lookup_tag(kind_name: str, lookup: tuple[str, ...]) -> bytes:
    """Four bytes that identify a lookup, whatever else the dictionary holds."""
    return blake2b(f"{kind_name}:{','.join(lookup)}".encode(), digest_size=4).digest()


@cache
def _layout(kind: Kind[Any]) -> tuple[tuple[bytes, tuple[tuple[str, Encode], ...]], ...]:
    return tuple(
        (
            lookup_tag(kind.name, lookup),
            tuple((name, encoder(kind.columns[name])) for name in lookup),
        )
        for lookup in kind.all_lookups
    )


def entries(kind: Kind[Any], row: Any, space: bytes) -> list[bytes]:
    """The lookup entries of a row, in the order in which its kind declares the lookups."""
    values = vars(row)
    key = key_encoder(kind)(values[kind.key])
    return [
        b"".join([space, mark, *[encode(values[name]) for name, encode in parts], key])
        for mark, parts in _layout(kind)
    ]


def row_prefix(kind_name: str, space: bytes) -> bytes:
    """The prefix of the keys of all rows of a kind in a space."""
    return space + kind_name.encode() + b"\0"


@cache
def _encoders(kind: Kind[Any], names: tuple[str, ...]) -> tuple[Encode, ...]:
    return tuple(encoder(kind.columns[name]) for name in names)


def encode_values(kind: Kind[Any], names: tuple[str, ...], values: Iterable[Any]) -> bytes:
    """The encoded values of some columns, concatenated."""
    encoders = _encoders(kind, names)
    return b"".join([encode(value) for encode, value in zip(encoders, values, strict=True)])


def prefix_end(prefix: bytes) -> bytes:
    """The smallest bytes that sort after everything with this prefix."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b"\xff" * 512


def seek(cursor: Any, low: bytes, place: str) -> bool:
    """Move a cursor to the first key that is not smaller than `low`; False if there is none.

    LMDB keeps no checksums: where a key in a branch page is damaged, it moves to a page before, and
    whoever goes on from there reads the same rows for ever. Raises StoreDamaged then.
    """
    if not cursor.set_range(low):
        return False
    if cursor.key() < low:
        raise StoreDamaged(place, OUT_OF_ORDER)
    return True
