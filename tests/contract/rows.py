"""Rows of every kind, made from the dictionary alone: a new entity is tested by being declared."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

from herdbook.domain.clock import Stamp
from herdbook.domain.entity import evolve
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.domain.secret import Secret
from herdbook.ports.engine.codec import choices_by_value
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import Column, Kind, OnDelete, Reference
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

ENTITIES = [kind for kind in DICTIONARY if kind.area is not None and not kind.derived]
"""What people and programs keep; the rest follows from it or keeps the books."""
KEPT = [kind for kind in ENTITIES if not kind.append_only]
REFERENCES = [(kind, reference) for kind in ENTITIES for reference in kind.references]

_numbers = itertools.count(1)
_START = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

STAMPED = {"id", "created_at", "updated_at", "version"}


def space_for(kind: Kind[Any], space: str) -> str:
    """The test's space in the area a kind belongs to."""
    area = kind.area or Area.WORK
    return f"{area}/{space.partition('/')[2]}"


def value_for(column: Column, number: int) -> Any:
    """A value that tells this column and this number from all others, as far as its type can."""
    text = f"{column.name} {number} · ünï→\U0001f404 'quoted\" \\ \n%s ? :x"
    choices = list(choices_by_value(column).values()) or [None]
    return {
        "id": f"id-{column.name}-{number}",
        "name": text,
        "text": text,
        "integer": number,
        "flag": True,
        "moment": _START + timedelta(days=number, microseconds=number),
        "choice": choices[number % len(choices)],
        "number choice": choices[number % len(choices)],
        "document": {"nested": [1, 2.5, None, True, {"deep": f"é{number}"}], "n": -number},
        "secret": Secret(f"s3cr3t-{column.name}-{number}"),
        "stamp": Stamp(_START, number, "node"),
        "bytes": f"{column.name} {number}\0".encode() + bytes(range(256)),
        "labels": [f"é{number}", "b"],
    }["labels" if column.rule.python_type is list else column.type_name]


def build(uow: UnitOfWork, kind: Kind[Any], *, full: bool = False, **given: Any) -> Any:
    """A row ready to be added; what it must refer to is added first.

    With `full`, optional fields hold something too. References that may be empty stay empty unless
    given or `full`; a row never refers to its own kind unless told to.
    """
    number = next(_numbers)
    references = {reference.field: reference for reference in kind.references}
    values: dict[str, Any] = {}
    for name, column in kind.columns.items():
        if name in given or name in STAMPED:
            continue
        if name in references:
            target = DICTIONARY.kinds[references[name].target]
            if not column.optional or (full and target is not kind):
                values[name] = target.key_of(make(uow, target))
        elif full or not (column.has_default or column.optional):
            values[name] = value_for(column, number)
    return kind.entity(**{**values, **given})


def make(uow: UnitOfWork, kind: Kind[Any], *, full: bool = False, **given: Any) -> Any:
    """Add a row and whatever it must refer to."""
    return uow.add(kind, [build(uow, kind, full=full, **given)])[0]


def referring(uow: UnitOfWork, kind: Kind[Any], reference: Reference, key: Any) -> Any:
    """Add a row of a kind that refers to this key through this reference."""
    return make(uow, kind, **{reference.field: key})


def cascades(reference: Reference) -> bool:
    """Whether a row goes with what it refers to."""
    return reference.on_delete is OnDelete.CASCADE


def replace_pair(uow: UnitOfWork, kind: Kind[Any], row: Any, **changes: Any) -> Any:
    """Put another pair in the place of one, or leave it if the other is refused.

    A save cannot do it: a pair is identified by what it connects.
    """
    uow.remove(kind, [row.id])
    try:
        return uow.add(kind, [evolve(row, **changes)])[0]
    except HerdbookError:
        uow.add(kind, [row])
        raise
