"""Checkpoints to look at and to tidy up: pages, ids by their beginnings, what is freed."""

import random
from typing import Any

import pytest

from herdbook.domain.checkpoints.model import TaggedBytes, decode_checkpoint_id
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.thread_operations import ThreadSizes
from herdbook.ports.checkpoint_storage.value_store import ChannelValue
from herdbook.ports.engine.store import Store
from herdbook.ports.repositories.checkpoints import TaskWrite
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.checkpoints import threads as checkpoints_threads
from tests.contract.space import work_in

SAID = {"metadata": TaggedBytes("json", b"{}"), "state": TaggedBytes("json", b"{}")}
NOISE = random.Random(7).randbytes(9_000)


@pytest.fixture
def place(space: str) -> str:
    return f"checkpoints/{space.partition('/')[2]}"


def _put(
    uow: UnitOfWork, thread: str, *ids: str, namespace: str = "", parent: str | None = None
) -> None:
    """Put checkpoints that follow one another, each with a value of its own and a write."""
    kept = CheckpointWriter(uow)
    for at, each in enumerate(ids):
        value = TaggedBytes("bytes", NOISE[at : at + 1_000])
        offers = {"x": ChannelValue(each, changed=True, write=lambda value=value: value)}
        kept.put(thread, namespace, each, parent_id=parent, values=offers, **SAID)
        done = TaskWrite("task", "", 0, "x", TaggedBytes("bytes", b"12345"))
        kept.put_writes(thread, namespace, each, [done])
        parent = each


def _names(found: list[checkpoints_threads.ThreadOverview]) -> list[str]:
    return [each.thread.thread_id for each in found]


def test_threads_come_by_their_newest_checkpoint_page_by_page(store: Store, place: str) -> None:
    """Every thread comes once, also where two have the same checkpoints."""
    with work_in(store, place) as uow:
        for number in range(7):
            _put(uow, f"t{number}", f"c{number}", f"d{9 - number}")
            _put(uow, f"t{number}", f"e{number}", namespace="sub")
        for name in ("copy 1", "copy 2"):
            checkpoints_threads.copy(uow, "t3", name)
        whole = _names(checkpoints_threads.threads(uow, limit=100))
        assert whole[:3] == ["t6", "t5", "t4"]
        assert set(whole[3:6]) == {"t3", "copy 1", "copy 2"}
        assert whole[6:] == ["t2", "t1", "t0"]
        paged: list[str] = []
        while page := checkpoints_threads.threads(uow, limit=2, after=paged[-1] if paged else None):
            assert len(page) <= 2
            paged += _names(page)
        assert paged == whole
        (first,) = checkpoints_threads.threads(uow, limit=1)
        assert first.thread.namespaces == ["", "sub"]
        assert first.thread.sizes[:2] == (3, 3)


def test_checkpoints_of_a_thread_come_newest_first_page_by_page(store: Store, place: str) -> None:
    """Of all namespaces or of one, with the number of writes since."""
    with work_in(store, place) as uow:
        _put(uow, "t", *(f"c{number}" for number in range(5)))
        _put(uow, "t", "c2x", "c3x", namespace="sub")

        def ids(**options: Any) -> list[str]:
            found = checkpoints_threads.list_checkpoints(uow, "t", limit=3, **options)
            assert all(each.writes == 1 for each in found)
            return [decode_checkpoint_id(each.row.place) for each in found]

        assert ids() == ["c4", "c3x", "c3"]
        assert ids(after="c3") == ["c2x", "c2", "c1"]
        assert ids(namespace="", after="c3") == ["c2", "c1", "c0"]
        assert ids(namespace="sub") == ["c3x", "c2x"]


def test_a_checkpoint_is_known_by_a_beginning_of_its_id(store: Store, place: str) -> None:
    """If that could be only one; without any it is the newest of the graph itself."""
    with work_in(store, place) as uow:
        _put(uow, "t", "1f00-aa", "1f00-bb")
        _put(uow, "t", "1f00-bb", "1f00-cc", namespace="sub")

        def chosen(*ids: str, **options: Any) -> str:
            return decode_checkpoint_id(
                checkpoints_threads.find_checkpoint(uow, "t", *ids, **options).place
            )

        assert chosen() == "1f00-bb"
        assert chosen(namespace="sub") == "1f00-cc"
        assert (chosen("1f00-a"), chosen("1f00-b", namespace="")) == ("1f00-aa", "1f00-bb")
        with pytest.raises(InvalidValue, match=r"1f00-bb, 1f00-bb \(namespace 'sub'\)"):
            chosen("1f00-bb")
        with pytest.raises(InvalidValue, match="could be any of 1f00-aa, 1f00-bb"):
            chosen("1f00")
        with pytest.raises(NotFound, match="there is no checkpoint '1f0'"):
            chosen("1f0")
        with pytest.raises(NotFound, match=r"no namespace 'none'; there are '', 'sub'"):
            chosen(namespace="none")


def test_a_thread_is_known_by_its_whole_id_only(store: Store, place: str) -> None:
    """People choose them, so one may be the beginning of another; what is near is named."""
    with work_in(store, place) as uow:
        with pytest.raises(NotFound, match="there are no checkpoints here yet"):
            checkpoints_threads.require_threads(uow, ["issue-1"])
        _put(uow, "issue-17", "c1")
        assert checkpoints_threads.require_threads(uow, ["issue-17", "issue-17"]) == ["issue-17"]
        for use_case in (checkpoints_threads.remove, checkpoints_threads.prune):
            with pytest.raises(NotFound, match="did you mean 'issue-17'"):
                use_case(uow, ["issue-17", "issue-1"])
        with pytest.raises(NotFound, match="`herdbook checkpoint threads`"):
            checkpoints_threads.show_checkpoint(uow, "x")
        assert _names(checkpoints_threads.threads(uow, limit=9)) == ["issue-17"]


def test_two_checkpoints_are_compared_or_one_with_its_parent(store: Store, place: str) -> None:
    """One that came from none has to be compared with a second one."""
    with work_in(store, place) as uow:
        _put(uow, "t", "c1.0", "c2.0", "c3.0")

        def pair(*ids: str) -> tuple[str, ...]:
            found = checkpoints_threads.compare_checkpoints(uow, "t", *ids)
            return tuple(each.checkpoint_id for each in found)

        assert pair() == ("c2.0", "c3.0")
        assert pair("c2.0") == ("c1.0", "c2.0")
        assert pair("c3.0", "c1.0") == ("c3.0", "c1.0")
        assert pair("c1.0", "c1.0") == ("c1.0", "c1.0")
        with pytest.raises(InvalidValue, match="came from none that is kept"):
            pair("c1.0")


def test_what_is_freed_is_what_is_no_longer_there(store: Store, place: str) -> None:
    """By pruning and by removing, in checkpoints, writes and bytes."""
    with work_in(store, place) as uow:
        _put(uow, "t", "c1", "c2", "c3")
        _put(uow, "u", "c1")

        def sizes() -> dict[str, ThreadSizes]:
            found = checkpoints_threads.threads(uow, limit=9)
            return {each.thread.thread_id: each.thread.sizes for each in found}

        before = sizes()
        (pruned,) = checkpoints_threads.prune(uow, ["t"])
        after = sizes()
        assert pruned.left == after["t"]
        assert pruned.freed[:2] == (2, 2)
        assert pruned.freed.bytes == before["t"].bytes - after["t"].bytes > 2_000
        removed = checkpoints_threads.remove(uow, ["t", "u", "t"])
        assert [each.freed for each in removed] == [after["t"], after["u"]]
        assert sizes() == {}


def test_a_copy_says_what_came_and_what_was_there(store: Store, place: str) -> None:
    """A thread is not copied onto itself."""
    with work_in(store, place) as uow:
        _put(uow, "t", "c1", "c2")
        assert checkpoints_threads.copy(uow, "t", "u") == (2, 0)
        _put(uow, "t", "c3", parent="c2")
        assert checkpoints_threads.copy(uow, "t", "u") == (1, 2)
        assert (
            checkpoints_threads.show_checkpoint(uow, "u").values
            == checkpoints_threads.show_checkpoint(uow, "t").values
        )
        with pytest.raises(InvalidValue, match="name another one"):
            checkpoints_threads.copy(uow, "t", "t")
