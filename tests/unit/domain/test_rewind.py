"""Entries of the journal are made and taken back, row by row."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.clock import Stamp
from herdbook.domain.errors import StoreDamaged
from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.rewind import redo_entry, undo_entry
from tests.unit.domain.test_values import NOW

Values = dict[str, Any]
rows = st.none() | st.fixed_dictionaries(
    {"id": st.just("x"), "name": st.sampled_from("ab")},
    optional={"branch": st.sampled_from("cd"), "order": st.integers(0, 2)},
)


def _entry(op: Op, before: Values | None, after: Values | None) -> JournalEntry:
    return JournalEntry(
        seq=1,
        tx="tx",
        at=Stamp(NOW, 0, "node"),
        schema_version=1,
        entity="projects",
        key="x",
        op=op,
        before=before,
        after=after,
    )


def _written(before: Values | None, after: Values | None) -> JournalEntry:
    """The entry of a change, as the journal writes it."""
    if before is None or after is None:
        return _entry(Op.ADD if before is None else Op.REMOVE, before, after)
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    was, becomes = ({n: values.get(n) for n in changed} for values in (before, after))
    return _entry(Op.SAVE, was, becomes)


def _present(values: Values | None) -> Values | None:
    return None if values is None else {n: each for n, each in values.items() if each is not None}


@given(history=st.lists(rows, min_size=1, max_size=8))
def test_a_history_is_walked_in_both_directions(history: list[Values | None]) -> None:
    """At each entry the row is what it was before it, and after it."""
    steps = [pair for pair in pairwise(history) if pair != (None, None)]
    for before, after in steps:
        entry = _written(before, after)
        assert _present(undo_entry(entry, after)) == before
        assert _present(redo_entry(entry, before)) == after
    row = history[-1]
    for before, after in reversed(steps):
        row = _present(undo_entry(_written(before, after), row))
    assert row == history[0]


def test_a_row_that_is_written_once_has_no_values() -> None:
    """The journal has no more than its key."""
    assert undo_entry(_entry(Op.REMOVE, None, None), None) == {}
    assert redo_entry(_entry(Op.ADD, None, None), None) == {}


def test_a_saved_row_must_be_there() -> None:
    """A journal that saves what is not there is a sign of damage."""
    entry = _entry(Op.SAVE, {"name": "a"}, {"name": "b"})
    for take in (undo_entry, redo_entry):
        with pytest.raises(StoreDamaged, match="which is not there"):
            take(entry, None)
