"""Pages, messages and comments are trees: no row is ever its own ancestor, on every store."""

from typing import Any

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import CycleRefused
from herdbook.ports.engine.dictionary import MESSAGES, PAGES, REVIEW_COMMENTS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract.rows import make
from tests.contract.turns import Begin

PARENTS = {
    PAGES: "parent_page_id",
    MESSAGES: "parent_message_id",
    REVIEW_COMMENTS: "parent_comment_id",
}
each_tree = pytest.mark.parametrize("kind", PARENTS, ids=lambda kind: kind.name)


def _grow(uow: UnitOfWork, kind: Kind[Any], *names: str) -> list[Any]:
    """A row, one below it, one below that, and so on, with these ids."""
    rows = [make(uow, kind, id=names[0])]
    shared = {
        name: value
        for name, value in vars(rows[0]).items()
        if name not in {"id", "created_at", "updated_at", "version", PARENTS[kind]}
    }
    for name in names[1:]:
        row = kind.entity(id=name, **{**shared, PARENTS[kind]: rows[-1].id})
        rows += uow.add(kind, [row])
    return rows


@each_tree
def test_a_row_cannot_be_put_below_itself(begin: Begin, kind: Kind[Any]) -> None:
    """Neither directly nor further down; the way round is named, and nothing is written."""
    with begin() as uow:
        top, middle, leaf = _grow(uow, kind, "top", "middle", "leaf")
        uow.commit()
    for below, way in (
        (top, ("top", "top")),
        (middle, ("top", "middle", "top")),
        (leaf, ("top", "leaf", "middle", "top")),
    ):
        with begin() as uow, pytest.raises(CycleRefused, match="be below one another") as refusal:
            uow.save(kind, [evolve(top, **{PARENTS[kind]: below.id})])
        assert refusal.value.cycle == way
    with begin(write=False) as uow:
        assert uow.get(kind, ["top", "middle", "leaf"]) == [top, middle, leaf]


@each_tree
def test_a_row_may_move_anywhere_else(begin: Begin, kind: Kind[Any]) -> None:
    """Two rows that change places in one call are looked at as they will be."""
    with begin() as uow:
        top, middle, leaf = _grow(uow, kind, "top", "middle", "leaf")
        (other,) = uow.save(kind, [evolve(leaf, **{PARENTS[kind]: top.id})])
        turned = [evolve(other, **{PARENTS[kind]: top.id})]
        turned += [evolve(middle, **{PARENTS[kind]: leaf.id})]
        uow.save(kind, turned)
        uow.commit()
    with begin(write=False) as uow:
        found = uow.get(kind, ["top", "middle", "leaf"])
    assert [getattr(row, PARENTS[kind]) for row in found] == [None, "leaf", "top"]


@each_tree
def test_rows_that_come_together_form_no_circle(begin: Begin, kind: Kind[Any]) -> None:
    """Whether they are added or inserted as they are."""
    with begin() as uow:
        (root,) = _grow(uow, kind, "root")
        rest = {name: value for name, value in vars(root).items() if name != "id"}
        circle = {"one": "two", "two": "one"}
        rows = [kind.entity(id=key, **{**rest, PARENTS[kind]: up}) for key, up in circle.items()]
        for write in (lambda: uow.add(kind, rows), lambda: uow.insert_verbatim({kind: rows})):
            with pytest.raises(CycleRefused):
                write()
        assert uow.get(kind, list(circle)) == [None, None]
