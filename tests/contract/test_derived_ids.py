"""Rows that are pairs have ids that follow from the pair, on whichever replica they are added."""

from typing import Any

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import AlreadyExists, InvalidValue
from herdbook.ports.engine.derived_ids import derive_id
from herdbook.ports.engine.dictionary import (
    COMMITS,
    DICTIONARY,
    INITIATIVE_PROJECTS,
    PHASE_DEPENDENCIES,
    RETROSPECTIVES,
    TASK_DEPENDENCIES,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from tests.cases import for_each
from tests.contract.rows import make

PAIRS = (PHASE_DEPENDENCIES, TASK_DEPENDENCIES, INITIATIVE_PROJECTS, COMMITS, RETROSPECTIVES)
every_pair = for_each("kind", PAIRS, ids=[kind.name for kind in PAIRS])


def _space_of(kind: Kind[Any], space: str) -> str:
    """The space of a test in the area of a kind."""
    return f"{kind.area}/{space.partition('/')[2]}"


def _add(store: Store, space: str, kind: Kind[Any]) -> Any:
    with unit_of_work(store, _space_of(kind, space)) as uow:
        row = make(uow, kind)
        uow.commit()
    return row


def test_all_pairs_are_declared() -> None:
    """The kinds whose rows are pairs are those that derive their ids."""
    assert {kind.name for kind in DICTIONARY if kind.identity} == {kind.name for kind in PAIRS}


@every_pair
def test_the_id_follows_from_the_pair(store: Store, space: str, kind: Kind[Any]) -> None:
    """Removed and added again, also under another id, it is the same row; twice it is refused."""
    row = _add(store, space, kind)
    assert row.id == derive_id(kind, vars(row))
    with unit_of_work(store, _space_of(kind, space)) as uow:
        with pytest.raises(AlreadyExists):
            uow.add(kind, [evolve(row, id="")])
        uow.remove(kind, [row.id])
        (again,) = uow.add(kind, [evolve(row, id=f"{kind.prefix}_other")])
        uow.commit()
    assert again.id == row.id


@every_pair
def test_rows_that_are_brought_get_the_id_too(store: Store, space: str, kind: Kind[Any]) -> None:
    """A row that comes with an older id, from a merge or an undo, has the id of its pair."""
    row = _add(store, space, kind)
    with unit_of_work(store, _space_of(kind, space)) as uow:
        uow.remove(kind, [row.id])
        uow.insert_verbatim({kind: [evolve(row, id=f"{kind.prefix}_older")]})
        assert uow.get(kind, [row.id, f"{kind.prefix}_older"]) == [row, None]


def test_a_pair_cannot_become_another(store: Store, space: str) -> None:
    """What identifies a row stays; another pair is another row."""
    one = _add(store, space, TASK_DEPENDENCIES)
    other = _add(store, space, TASK_DEPENDENCIES)
    with (
        unit_of_work(store, space) as uow,
        pytest.raises(InvalidValue, match="identifies the task dependency"),
    ):
        uow.save(TASK_DEPENDENCIES, [evolve(one, task_id=other.task_id)])
