"""Work in a space of any store, and look at all of it."""

from contextlib import AbstractContextManager
from typing import Any

from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work

HERE = "work/here"


def work_in(store: Store, space: str = HERE, **options: Any) -> AbstractContextManager[UnitOfWork]:
    """Begin a unit of work in a space of this store."""
    return unit_of_work(store, space, **options)


def everything_in(store: Store, space: str = HERE) -> dict[str, list[Any]]:
    """All rows of all kinds that a space keeps: journal, head and derived rows too."""
    with store.transaction(space, write=False) as session:
        found = {kind.name: session.select(find(kind)) for kind in store.dictionary}
    return {name: rows for name, rows in found.items() if rows}
