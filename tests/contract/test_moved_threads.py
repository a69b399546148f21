"""Threads of checkpoints are brought to another worktree, and two of one name are never mixed."""

from collections.abc import Iterator
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.langgraph import HerdbookSaver
from herdbook.ports.engine.store import Store
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.merge_spaces import MergeReport, merge
from herdbook.services.stores.store_check import check
from tests.contract.foreign_checkpoints import tuples
from tests.contract.workflows import config, put

OUTSIDE, OTHER = "checkpoints/outside", "checkpoints/other"


@pytest.fixture
def place(space: str) -> str:
    return f"checkpoints/{space.partition('/')[2]}"


@pytest.fixture
def source() -> Iterator[Store]:
    """A store to bring threads from."""
    with open_store("memory://") as opened:
        yield opened


def run(store: Store, space: str, thread: str, steps: int, where: Any = None) -> Any:
    """Take some steps of a thread; the config of the last one."""
    saver = HerdbookSaver(store, space)
    where = where or config(thread)
    for step in range(steps):
        where = put(saver, where, step, {"in": space, "step": step})
        saver.put_writes(where, [("step", step)], f"task {step}")
    return where


def bring(source: Store, target: Store, place: str) -> MergeReport:
    """Merge every space of the source into one of the target."""
    return merge(source, target, into=dict.fromkeys(source.spaces(), place))


def test_merged_threads_can_be_resumed_in_the_space_they_were_brought_to(
    source: Store, store: Store, place: str
) -> None:
    """With all their checkpoints, values and writes; merging again adds nothing."""
    run(source, OUTSIDE, "one", 3)
    last = run(source, OTHER, "two", 2)
    report = bring(source, store, place)
    assert (report.added > 0, report.failed) == (True, ())
    ours = HerdbookSaver(store, place)
    assert tuples(ours, "one") == tuples(HerdbookSaver(source, OUTSIDE), "one")
    assert tuples(ours, "two") == tuples(HerdbookSaver(source, OTHER), "two")
    again = bring(source, store, place)
    assert (again.added, again.failed) == (0, ())
    run(store, place, "two", 1, last)
    assert len(tuples(ours, "two")) == 3
    assert bring(source, store, place) == again
    assert check(store, [place]) == []


def test_what_the_source_adds_to_a_thread_comes_and_two_threads_are_not_mixed(
    source: Store, store: Store, place: str
) -> None:
    """A thread that has gone on in both, or is another one, is told and stays as it is."""
    first = run(source, OUTSIDE, "t", 1)
    bring(source, store, place)
    second = run(source, OUTSIDE, "t", 1, first)
    assert bring(source, store, place).failed == ()
    ours = HerdbookSaver(store, place)
    assert len(tuples(ours, "t")) == 2
    run(store, place, "t", 1, second)
    run(source, OUTSIDE, "t", 1, second)
    run(source, OTHER, "t", 1)
    run(source, OTHER, "free", 1)
    before = tuples(ours, "t")
    report = bring(source, store, place)
    assert [(each.entity, each.key, each.space) for each in report.failed] == [
        ("thread", "t", place)
    ] * 2
    assert "has gone on" in report.failed[0].reason
    assert tuples(ours, "t") == before
    assert len(tuples(ours, "free")) == 1
    assert check(store, [place]) == []


def test_a_copied_space_can_have_another_name(source: Store, store: Store, place: str) -> None:
    """Its digest is the same; copied again, what was added since comes too."""
    last = run(source, OTHER, "t", 2)
    (copied,) = copy(source, store, [OTHER], into={OTHER: place}).spaces
    assert (copied.space, copied.written > 0) == (place, True)
    run(source, OTHER, "t", 1, last)
    (again,) = copy(source, store, [OTHER], into={OTHER: place}).spaces
    assert again.digest != copied.digest
    assert tuples(HerdbookSaver(store, place), "t") == tuples(HerdbookSaver(source, OTHER), "t")
    assert OTHER not in store.spaces()
    assert check(store, [place]) == []
