"""What the tests of named questions share: units of work, and rows added one after the other."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

from herdbook.domain.entity import evolve
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")

Begin = Callable[..., AbstractContextManager[UnitOfWork]]
"""Begins a unit of work, in the test's own space unless told otherwise."""


def in_turn(begin: Begin, kind: Kind[E], rows: Iterable[E]) -> list[E]:
    """Add rows one transaction after the other, under ids that sort the other way round."""
    added: list[E] = []
    for number, row in enumerate(rows):
        with begin() as uow:
            added += uow.add(kind, [evolve(row, id=f"{kind.prefix}_{99 - number}")])
            uow.commit()
    return added


def by_id(rows: Iterable[E]) -> list[E]:
    """Rows whose order means nothing, in one that can be compared."""
    return sorted(rows, key=lambda row: vars(row)["id"])
