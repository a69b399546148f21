"""Laws that hold for every entity of the dictionary on every store."""

from typing import Any

import pytest
from attrs import evolve

from herdbook.domain.errors import AlreadyExists, NotFound, StaleWrite, UnknownReference
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import Kind, Reference
from herdbook.ports.engine.query import find
from tests.cases import for_each
from tests.contract.rows import (
    ENTITIES,
    KEPT,
    REFERENCES,
    build,
    cascades,
    make,
    referring,
    space_for,
    value_for,
)

every_entity = for_each("kind", ENTITIES, ids=lambda kind: kind.name)
every_kept = for_each("kind", KEPT, ids=lambda kind: kind.name)
every_reference = for_each(
    ("kind", "reference"), REFERENCES, ids=lambda it: getattr(it, "name", None) or it.field
)
every_unique = for_each(
    ("kind", "unique"),
    [(kind, unique) for kind in ENTITIES for unique in kind.uniques],
    ids=lambda it: getattr(it, "name", None) or "+".join(it.fields),
)


@every_entity
@for_each("full", [True, False], ids=["full", "bare"])
def test_a_row_comes_back_equal_field_by_field(
    begin: Any, space: str, kind: Kind[Any], full: bool
) -> None:
    """What was added is what is read, with the types it had."""
    where = space_for(kind, space)
    with begin(space=where) as uow:
        row = make(uow, kind, full=full)
        uow.commit()
    with begin(space=where, write=False) as uow:
        (found,) = uow.get(kind, [kind.key_of(row)])
    assert found == row
    for name in kind.columns:
        assert type(getattr(found, name)) is type(getattr(row, name)), name


@every_kept
def test_saving_raises_the_version_and_keeps_the_birth(
    begin: Any, space: str, kind: Kind[Any]
) -> None:
    """A save is read back whole, one version higher."""
    where = space_for(kind, space)
    with begin(space=where) as uow:
        row = make(uow, kind)
        uow.commit()
    assert row.version == 1
    with begin(space=where) as uow:
        changed = _changed(kind, uow.get_existing(kind, [row.id])[0])
        (saved,) = uow.save(kind, [changed])
        uow.commit()
    with begin(space=where, write=False) as uow:
        (found,) = uow.get(kind, [row.id])
    assert found == saved
    assert (found.version, found.created_at) == (2, row.created_at)
    assert found.updated_at >= row.updated_at


def _changed(kind: Kind[Any], row: Any) -> Any:
    references = {reference.field for reference in kind.references}
    free = {
        name: value_for(column, row.version + 1_000)
        for name, column in kind.columns.items()
        if name not in {"id", "created_at", "updated_at", "version", "worktree_id"} | references
    }
    return evolve(row, **free)


@every_kept
def test_a_stale_version_is_refused_and_nothing_is_written(
    begin: Any, space: str, kind: Kind[Any]
) -> None:
    """Whoever saves last what they read first is told."""
    where = space_for(kind, space)
    with begin(space=where) as uow:
        row = make(uow, kind)
        uow.commit()
    with begin(space=where) as uow:
        (winner,) = uow.save(kind, [row])
        uow.commit()
    with begin(space=where) as uow:
        with pytest.raises(StaleWrite) as refusal:
            uow.save(kind, [_changed(kind, row)])
        uow.commit()
    assert (refusal.value.version, refusal.value.current) == (1, 2)
    with begin(space=where, write=False) as uow:
        assert uow.get(kind, [row.id]) == [winner]


@every_entity
def test_a_removed_row_is_gone(begin: Any, space: str, kind: Kind[Any]) -> None:
    """Removing takes a row out of every lookup, and cannot be done twice."""
    where = space_for(kind, space)
    with begin(space=where) as uow:
        row = make(uow, kind, full=True)
        uow.commit()
    key = kind.key_of(row)
    with begin(space=where) as uow:
        uow.remove(kind, [key])
        with pytest.raises(NotFound):
            uow.remove(kind, [key])
        uow.commit()
    with begin(space=where, write=False) as uow:
        assert uow.get(kind, [key]) == [None]
        for lookup in kind.all_lookups:
            assert row not in uow.select(find(kind, {lookup[0]: getattr(row, lookup[0])}))
            assert uow.count(find(kind, {lookup[0]: getattr(row, lookup[0])})) == 0


@every_entity
def test_a_taken_key_is_refused_and_the_transaction_goes_on(
    begin: Any, space: str, kind: Kind[Any]
) -> None:
    """A batch with a taken key adds nothing, and what else was done still counts."""
    where = space_for(kind, space)
    with begin(space=where) as uow:
        first = make(uow, kind)
        uow.commit()
    with begin(space=where) as uow:
        fresh = build(uow, kind)
        same = kind.identity or (kind.key,)
        again = build(uow, kind, **{name: getattr(first, name) for name in same})
        with pytest.raises(AlreadyExists):
            uow.add(kind, [fresh, again])
        second = make(uow, kind)
        uow.commit()
    with begin(space=where, write=False) as uow:
        assert uow.get(kind, [kind.key_of(first), kind.key_of(second)]) == [first, second]
        everything = uow.select(find(kind))
        assert first in everything
        assert second in everything


@every_unique
def test_a_unique_value_is_given_once(begin: Any, space: str, kind: Kind[Any], unique: Any) -> None:
    """A second row with the same values is refused by add, by one batch and by save."""
    where = space_for(kind, space)
    with begin(space=where) as uow:
        first = make(uow, kind)
        uow.commit()
    taken = {name: getattr(first, name) for name in unique.fields}
    with begin(space=where) as uow:
        with pytest.raises(AlreadyExists) as refusal:
            uow.add(kind, [build(uow, kind, **taken)])
        assert refusal.value.fields == unique.fields
        other = build(uow, kind)
        same = {name: getattr(other, name) for name in unique.fields}
        with pytest.raises(AlreadyExists):
            uow.add(kind, [other, build(uow, kind, **same)])
        (kept,) = uow.add(kind, [other])
        if kind in KEPT:
            with pytest.raises(AlreadyExists):
                uow.save(kind, [evolve(kept, **taken)])
        uow.commit()
    with begin(space=where, write=False) as uow:
        assert sorted(uow.select(find(kind)), key=lambda row: row.id) == sorted(
            [first, kept], key=lambda row: row.id
        )


@every_reference
def test_a_reference_to_nothing_is_refused(
    begin: Any, space: str, kind: Kind[Any], reference: Reference
) -> None:
    """Neither add nor save lets a field name a row that is not there."""
    where = space_for(kind, space)
    with begin(space=where) as uow:
        row = build(uow, kind, **{reference.field: "missing"})
        with pytest.raises(UnknownReference) as refusal:
            uow.add(kind, [row])
        assert (refusal.value.field, refusal.value.target_key) == (reference.field, "missing")
        kept = make(uow, kind)
        if kind in KEPT:
            with pytest.raises(UnknownReference):
                uow.save(kind, [evolve(kept, **{reference.field: "missing"})])
        uow.commit()
    with begin(space=where, write=False) as uow:
        assert uow.select(find(kind)) == [kept]


@every_reference
def test_what_refers_to_a_removed_row_goes_or_is_emptied(
    begin: Any, space: str, kind: Kind[Any], reference: Reference
) -> None:
    """A cascade takes the row along; set-null empties the field and raises the version."""
    where = space_for(kind, space)
    target = DICTIONARY.kinds[reference.target]
    with begin(space=where) as uow:
        there = make(uow, target)
        row = referring(uow, kind, reference, target.key_of(there))
        bystander = make(uow, kind)
        uow.commit()
    with begin(space=where) as uow:
        uow.remove(target, [target.key_of(there)])
        uow.commit()
    with begin(space=where, write=False) as uow:
        found, other = uow.get(kind, [kind.key_of(row), kind.key_of(bystander)])
    assert other == bystander
    if cascades(reference):
        assert found is None
    else:
        assert getattr(found, reference.field) is None
        versions = (getattr(row, "version", None), getattr(found, "version", None))
        assert versions in {(1, 2), (None, None)}


@every_entity
def test_the_journal_tells_what_happened_to_a_row(begin: Any, space: str, kind: Kind[Any]) -> None:
    """Add, save and remove are entries with the fields that changed; secrets are masked."""
    where = space_for(kind, space)
    with begin(space=where) as uow:
        row = make(uow, kind, full=True)
        uow.commit()
    key = kind.key_of(row)
    if kind in KEPT:
        with begin(space=where) as uow:
            (row,) = uow.save(kind, [_changed(kind, row)])
            uow.commit()
    with begin(space=where) as uow:
        uow.remove(kind, [key])
        uow.commit()
    with begin(space=where, write=False) as uow:
        entries = uow.journal.of_row(kind, key)
        whole = repr(uow.journal.since(0))
    assert "s3cr3t" not in whole
    if not kind.journalled:
        assert entries == []
        return
    ops = ["add", "save", "remove"] if kind in KEPT else ["add", "remove"]
    assert [entry.op.value for entry in entries] == ops
    if kind.append_only:
        assert all(entry.before is None and entry.after is None for entry in entries)
        return
    added, saved, removed = entries
    assert (added.before, added.after["version"]) == (None, 1)
    assert set(saved.before) == set(saved.after)
    assert (saved.before["version"], saved.after["version"]) == (1, 2)
    assert not {"created_at", "id"} & set(saved.after)
    assert (removed.after, removed.before["version"]) == (None, 2)
    for secret in kind.secrets:
        assert {added.after[secret], saved.before[secret], removed.before[secret]} == {"***"}


@every_entity
def test_spaces_are_apart(begin: Any, space: str, kind: Kind[Any]) -> None:
    """The same key may be in two spaces, and neither sees the other's."""
    here, there = space_for(kind, space), space_for(kind, f"{space}-other")
    with begin(space=here) as uow:
        row = make(uow, kind)
        uow.commit()
    with begin(space=there) as uow:
        assert uow.get(kind, [kind.key_of(row)]) == [None]
        assert uow.select(find(kind)) == []
        for reference in kind.references if kind.identity else ():
            target = DICTIONARY.kinds[reference.target]
            make(uow, target, **{target.key: getattr(row, reference.field)})
        same = kind.identity or (kind.key,)
        twin = make(uow, kind, **{name: getattr(row, name) for name in same})
        uow.commit()
    with begin(space=here) as uow:
        uow.remove(kind, [kind.key_of(row)])
        uow.commit()
    with begin(space=there, write=False) as uow:
        assert uow.get(kind, [kind.key_of(row)]) == [twin]
