"""Checkpoints as ports see them: values in pieces that are shared, and threads as a whole."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from herdbook.domain.checkpoints.model import TaggedBytes, checkpoint_key, lane_key
from herdbook.domain.errors import AlreadyExists, InvalidValue, StoreDamaged
from herdbook.ports.checkpoint_storage import thread_operations
from herdbook.ports.checkpoint_storage.byte_lru import ByteLru
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.value_store import (
    MOST_PIECES,
    ChannelValue,
    decode_value_table,
)
from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES, PIECES, WRITES
from herdbook.ports.engine.digests import digest_space
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store, SupportsAppend
from herdbook.ports.repositories.checkpoints import CheckpointBundle, TaskWrite
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.checkpoints import threads
from herdbook.services.stores.copy_spaces import copy
from tests.contract.space import work_in

CHANCE = random.Random(3)
BIG = CHANCE.randbytes(60_000)
NOTHING = TaggedBytes("json", b"{}")


@pytest.fixture
def place(space: str) -> str:
    return f"checkpoints/{space.partition('/')[2]}"


def _put(
    kept: CheckpointWriter,
    number: int,
    values: Mapping[str, tuple[int, bytes]],
    *,
    changed: tuple[str, ...] | None = None,
    thread: str = "t",
    namespace: str = "",
    parent: int | None = None,
    **more: Any,
) -> None:
    """Put checkpoint `number`; `changed` are the channels said to be new, all by default."""

    def offer(name: str, version: int, data: bytes) -> ChannelValue:
        return ChannelValue(
            version, changed is None or name in changed, lambda: TaggedBytes("bytes", data)
        )

    kept.put(
        thread,
        namespace,
        f"c{number:04}",
        parent_id=f"c{number - 1 if parent is None else parent:04}" if number else None,
        metadata=more.pop("metadata", NOTHING),
        state=TaggedBytes("msgpack", b"state %d" % number),
        values={name: offer(name, *each) for name, each in values.items()},
        **more,
    )


def _held(uow: UnitOfWork, number: int, thread: str = "t", namespace: str = "") -> CheckpointBundle:
    kept = CheckpointWriter(uow)
    row = kept.find(thread, namespace, f"c{number:04}")
    assert row is not None
    (held,) = kept.load_bundles([row])
    return held


def _bytes(uow: UnitOfWork) -> int:
    return sum(len(piece.data) for piece in uow.select(find(PIECES)))


def test_values_come_back_with_all_that_belongs_to_them(store: Store, place: str) -> None:
    """A checkpoint keeps names, parent, state, values and what was written since."""
    done = TaskWrite("task", "path", 0, "chän", TaggedBytes("bytes", b"written" * 1_000))
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        _put(kept, 0, {}, namespace="ns")
        _put(kept, 1, {"a": (1, b"x"), "b\0": (1, b""), "c": (1, BIG)}, namespace="ns")
        kept.put_writes("t", "ns", "c0001", [done])
        uow.commit()
    with work_in(store, place, write=False) as uow:
        held = _held(uow, 1, namespace="ns")
    assert (held.thread_id, held.namespace) == ("t", "ns")
    assert (held.checkpoint_id, held.parent_id) == ("c0001", "c0000")
    assert (held.state, held.metadata) == (("msgpack", b"state 1"), NOTHING)
    assert {name: each.data for name, each in held.values.items()} == {
        "a": b"x",
        "b\0": b"",
        "c": BIG,
    }
    assert held.writes == [done]


def test_a_value_is_kept_once_per_version(store: Store, place: str) -> None:
    """Steps that leave a value alone add nothing of it, and are not even asked to write it."""

    def never() -> TaggedBytes:
        raise AssertionError("an unchanged value was written")

    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        _put(kept, 0, {"big": (1, BIG), "n": (1, b"0")})
        for number in range(1, 9):
            values = {
                "big": ChannelValue(1, changed=False, write=never),
                "n": ChannelValue(number, changed=True, write=lambda: NOTHING),
            }
            ids = {"parent_id": f"c{number - 1:04}", "metadata": NOTHING, "state": NOTHING}
            kept.put("t", "", f"c{number:04}", values=values, **ids)
        uow.commit()
    with work_in(store, place, write=False) as uow:
        assert _held(uow, 8).values["big"].data == BIG
        assert _bytes(uow) < len(BIG) + 100


def test_a_large_value_that_changes_little_adds_little(store: Store, place: str) -> None:
    """Whoever reads any of its versions gets that version, whole."""
    versions = [BIG]
    for _ in range(12):
        at = CHANCE.randrange(len(BIG) - 100)
        versions.append(versions[-1][:at] + CHANCE.randbytes(100) + versions[-1][at + 90 :])
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        for number, version in enumerate(versions):
            _put(kept, number, {"big": (number, version)})
        uow.commit()
    with work_in(store, place, write=False) as uow:
        for number, version in enumerate(versions):
            assert _held(uow, number).values["big"].data == version
        assert _bytes(uow) < len(BIG) + 12 * 700


def test_what_compresses_well_is_compressed(store: Store, place: str) -> None:
    """Text takes half its size or less; what does not shrink is kept as it is."""
    text = b"the quick brown fox jumps over the lazy dog. " * 2_000
    with work_in(store, place) as uow:
        _put(CheckpointWriter(uow), 0, {"text": (1, text)})
        _put(CheckpointWriter(uow), 0, {"noise": (1, BIG)}, thread="other")
        uow.commit()
    with work_in(store, place, write=False) as uow:
        pieces = {piece.size: piece for piece in uow.select(find(PIECES))}
        assert _held(uow, 0).values["text"].data == text
    assert len(pieces[len(text)].data) < len(text) // 10
    assert pieces[len(BIG)].data == BIG


def test_a_checkpoint_never_lies_in_many_pieces(store: Store, place: str) -> None:
    """After hundreds of small changes it is still read from a limited number of rows."""
    value = BIG
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow, ByteLru(2**24))
        for number in range(MOST_PIECES + 2):
            at = 400 * number
            value = value[:at] + b"changed!" + value[at + 8 :]
            _put(kept, number, {"big": (number, value)})
        row = kept.find("t", "")
        assert row is not None
        assert len(decode_value_table(row.channels).pieces) <= MOST_PIECES + 1
        assert _held(uow, number).values["big"].data == value


def test_an_unchanged_value_that_the_parent_lacks_is_taken_from_the_offer(
    store: Store, place: str
) -> None:
    """A parent that is gone, or that has another version, loses nobody a value."""
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        _put(kept, 5, {"a": (2, b"from the offer")}, changed=())
        _put(kept, 6, {"a": (3, b"newer")}, changed=())
        assert [_held(uow, n).values["a"].data for n in (5, 6)] == [b"from the offer", b"newer"]


def test_putting_a_checkpoint_again_replaces_it(store: Store, place: str) -> None:
    """The same one twice takes no more room; another one under its id takes its place."""
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        _put(kept, 0, {"big": (1, BIG)})
        _put(kept, 0, {"big": (1, BIG)})
        assert _bytes(uow) == len(BIG)
        _put(kept, 0, {"other": (1, b"x")})
        assert _held(uow, 0).values == {"other": TaggedBytes("bytes", b"x")}
        assert uow.count(find(CHECKPOINTS)) == 1


def test_what_is_at_hand_is_never_out_of_date(store: Store, place: str) -> None:
    """A shelf shared by many transactions gives what the store holds now."""
    shelf = ByteLru(2**20)
    for data in (b"first" * 9_000, b"second" * 9_000):
        with work_in(store, place) as uow:
            _put(CheckpointWriter(uow, shelf), 0, {"a": (1, data)})
            uow.commit()
        with work_in(store, place, write=False) as uow:
            kept = CheckpointWriter(uow, shelf)
            row = kept.find("t", "")
            assert row is not None
            assert [held.values["a"].data for held in kept.load_bundles([row])] == [data]


def test_a_shelf_forgets_what_was_used_longest_ago() -> None:
    """It never holds more than it has room for."""
    shelf = ByteLru(100)
    for name in "abc":
        shelf.put(name, name, 40)
        shelf.get_many(["a"])
    shelf.put("huge", "huge", 51)
    assert shelf.get_many(["a", "b", "c", "huge"]) == {"a": "a", "c": "c"}


def test_writes_come_by_path_task_and_number(store: Store, place: str) -> None:
    """The first of two with the same task and number stays, unless it is to be replaced."""
    said = [("b", "p2", 0), ("a", "p2", 1), ("a", "p2", 0), ("z", "p1", 0), ("a", "", -1)]
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        for task, path, number in said:
            kept.put_writes(
                "t", "", "c1", [TaskWrite(task, path, number, "ch", TaggedBytes("bytes", b"1"))]
            )
        again = [TaskWrite("a", "p2", 0, "ch", TaggedBytes("bytes", b"2"))]
        kept.put_writes("t", "", "c1", again)
        key = checkpoint_key(lane_key("t", ""), "c1")
        found = kept.writes([key])[key]
        assert [each[:3] for each in found] == [
            ("a", "", -1),
            ("z", "p1", 0),
            ("a", "p2", 0),
            ("a", "p2", 1),
            ("b", "p2", 0),
        ]
        assert {each.value.data for each in found} == {b"1"}
        kept.put_writes("t", "", "c1", again, replace=True)
        assert kept.writes([key])[key][2] == again[0]


def test_pages_come_newest_first(store: Store, place: str) -> None:
    """Of a lane, of a thread and of the space, from any id on down, page by page."""
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        for number in range(6):
            _put(kept, number, {}, thread="tu"[number % 2], namespace="n" * (number // 4))

        def places(*names: str, **more: Any) -> list[int]:
            return [int(row.place[1:]) for row in kept.page(*names, **more)]

        assert places() == [5, 4, 3, 2, 1, 0]
        assert places("t") == [4, 2, 0]
        assert places("t", "") == [2, 0]
        assert places(before="c0003", limit=2) == [2, 1]
        assert places(after=kept.page(limit=2)[-1]) == [3, 2, 1, 0]
        assert places("t", checkpoint_id="c0002") == [2]
        assert places("t", checkpoint_id="c0002", before="c0002") == []


def _lane_of_five(uow: UnitOfWork, thread: str = "t", **more: Any) -> None:
    for number in range(5):
        values = {"big": (1, BIG), "n": (number, BIG[number : number + 3_000])}
        _put(CheckpointWriter(uow), number, values, thread=thread)
        done = TaskWrite("task", "", 0, "ch", TaggedBytes("bytes", b"%d" % number))
        CheckpointWriter(uow).put_writes(thread, "", f"c{number:04}", [done])
    for number in range(3):
        _put(
            CheckpointWriter(uow),
            number,
            {"n": (number, b"y")},
            thread=thread,
            namespace="sub",
            **more,
        )


def test_pruning_keeps_the_newest_of_each_lane_whole(store: Store, place: str) -> None:
    """It has all its values and writes, no parent, and the room of the others is free."""
    with work_in(store, place) as uow:
        _lane_of_five(uow)
        _lane_of_five(uow, "other")
        before = _bytes(uow)
        assert thread_operations.prune_thread(uow, "t") == 6
        held = _held(uow, 4)
        assert held.values["big"].data == BIG
        assert (held.parent_id, [each.value.data for each in held.writes]) == (None, [b"4"])
        assert _held(uow, 2, namespace="sub").values["n"].data == b"y"
        assert thread_operations.describe_thread(uow, "t").sizes[:2] == (2, 1)
        assert thread_operations.describe_thread(uow, "other").sizes[:2] == (8, 5)
        assert _bytes(uow) < before - 8_000
        assert thread_operations.prune_thread(uow, "t") == 0


def test_pruning_keeps_the_ancestors_that_values_are_made_from(store: Store, place: str) -> None:
    """A channel that has no value of its own there is made from writes, back to its last value."""
    rests = TaggedBytes("json", b'{"counters_since_delta_snapshot": {"log": [1, 2]}}')
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        for number in range(6):
            values = {"log": (1, b"snapshot")} if number in (0, 2) else {}
            _put(kept, number, values, metadata=rests)
        assert thread_operations.prune_thread(uow, "t") == 2
        assert [row.place for row in kept.page("t")] == ["c0005", "c0004", "c0003", "c0002"]
        assert [_held(uow, n).parent_id for n in (2, 3)] == [None, "c0002"]


def test_removing_a_run_leaves_what_others_need(store: Store, place: str) -> None:
    """Checkpoints that came from a removed one keep their values."""
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        for number in range(4):
            run = "first" if number < 2 else "second"
            _put(kept, number, {"big": (1, BIG)}, changed=("big",) * (not number), run_id=run)
        assert thread_operations.remove_runs(uow, ["first", "unknown"]) == 2
        assert [row.place for row in kept.page("t")] == ["c0003", "c0002"]
        assert _held(uow, 2).values["big"].data == BIG
        assert (_held(uow, 2).parent_id, _held(uow, 3).parent_id) == (None, "c0002")


def test_a_removed_thread_leaves_nothing(store: Store, place: str) -> None:
    """No row of any kind is left of it, and all of another one."""
    with work_in(store, place) as uow:
        _lane_of_five(uow)
        kinds = (LANES, CHECKPOINTS, PIECES, WRITES)
        before = [uow.count(find(kind)) for kind in kinds]
        _lane_of_five(uow, "other")
        assert thread_operations.remove_threads(uow, ["other", "unknown"]) == 8
        assert [uow.count(find(kind)) for kind in kinds] == before
        assert thread_operations.remove_runs(uow, []) == 0
        assert thread_operations.remove_threads(uow, ["t"]) == 8
        assert [uow.count(find(kind)) for kind in kinds] == [0, 0, 0, 0]


def test_a_copied_thread_stands_alone(store: Store, place: str) -> None:
    """It has all checkpoints, values and writes; copying again changes nothing."""
    with work_in(store, place) as uow:
        _lane_of_five(uow)
        assert thread_operations.copy_thread(uow, "t", "copy") == 8
        assert thread_operations.copy_thread(uow, "t", "copy") == 0
        assert thread_operations.copy_thread(uow, "t", "t") == 0
        assert thread_operations.copy_thread(uow, "unknown", "copy") == 0
        sizes = thread_operations.describe_thread(uow, "t").sizes
        assert thread_operations.describe_thread(uow, "copy").sizes == sizes
        thread_operations.remove_threads(uow, ["t"])
        for number in range(5):
            held = _held(uow, number, "copy")
            assert held.values["big"].data == BIG
            assert [each.value.data for each in held.writes] == [b"%d" % number]


def test_threads_are_listed_with_their_sizes(store: Store, place: str) -> None:
    """By the names they were given, with how much they keep."""
    with work_in(store, place) as uow:
        _lane_of_five(uow, "a\0b")
        _put(CheckpointWriter(uow), 7, {"n": (1, b"xyz")}, thread="é" * 1_000)
        listed = [each.thread for each in threads.threads(uow, limit=10)]
        found = {each.thread_id: each for each in listed}
        assert set(found) == {"a\0b", "é" * 1_000}
        assert found["a\0b"].namespaces == ["", "sub"]
        assert found["a\0b"].newest == "c0004"
        assert found["a\0b"].at == uow.now
        assert found["a\0b"].sizes.bytes > len(BIG)
        assert found["é" * 1_000].sizes[:3] == (1, 0, 1)


def test_checkpoints_are_not_journalled(store: Store, place: str) -> None:
    """The journal of a space stays empty, and whoever prints a row sees the size of its bytes."""
    with work_in(store, place) as uow:
        _lane_of_five(uow)
        uow.commit()
    with work_in(store, place, write=False) as uow:
        assert uow.journal.since(0) == []
        (piece, *_) = uow.select(find(PIECES))
    assert encode_row(PIECES, piece)["data"] == len(piece.data)


def test_a_copied_space_has_the_same_checkpoints(
    store: Store, place: str, new_url: Callable[[str], str], fresh: Callable[..., Store]
) -> None:
    """Copying to another store and back gives the same digest, byte for byte."""
    with work_in(store, place) as uow:
        _lane_of_five(uow)
        uow.commit()
    other = fresh(new_url("lmdb"))
    copy(store, other, [place])
    with work_in(other, place, write=False) as theirs, work_in(store, place, write=False) as ours:
        assert digest_space(theirs, other.dictionary) == digest_space(ours, store.dictionary)
        assert _held(theirs, 4).values["big"].data == BIG
    with work_in(other, place) as uow:
        (piece, *_) = uow.select(find(PIECES))
        uow.session.delete(PIECES, [piece.id])
        uow.session.insert(PIECES, [type(piece)(**{**vars(piece), "data": b"x" * piece.size})])
        changed = digest_space(uow, other.dictionary)
    with work_in(store, place, write=False) as ours:
        assert digest_space(ours, store.dictionary).differing_kinds(changed) == (PIECES.name,)


def test_a_missing_piece_is_damage(store: Store, place: str) -> None:
    """A value that is not whole is not given out as one."""
    with work_in(store, place) as uow:
        _put(CheckpointWriter(uow), 0, {"a": (1, b"x")})
        uow.commit()
    with work_in(store, place) as uow:
        uow.session.delete(PIECES, [piece.id for piece in uow.select(find(PIECES))])
        with pytest.raises(StoreDamaged, match="is not there"):
            _held(uow, 0)


@pytest.mark.parametrize("near", [True, False], ids=["near", "far"])
@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_appended_rows_are_seen_at_once_and_clash_at_the_commit(
    store: Store, place: str, monkeypatch: pytest.MonkeyPatch, near: bool
) -> None:
    """What an engine held back is there for the next question; a taken key undoes everything.

    Be the server on this machine or not: statements go there one by one, or many on one way.
    """
    monkeypatch.setattr("herdbook.adapters.postgres.session.is_near", lambda _: near)
    with work_in(store, place) as uow:
        assert isinstance(uow.session, SupportsAppend)
        (first,) = uow.append(PIECES, [_piece("a")])
        assert uow.session.get(PIECES, [first.id]) == [first]
        uow.commit()
    with work_in(store, place) as uow:
        uow.append(PIECES, [_piece("b") for _ in range(9)])
        uow.append(PIECES, [PIECES.entity(**{**vars(first), "data": b"other"})])
        with pytest.raises(AlreadyExists):
            uow.commit()
    for _ in range(8):  # often enough for statements to be prepared
        with work_in(store, place) as uow:
            uow.append(PIECES, [PIECES.entity(**{**vars(first), "data": b"other"})])
            with pytest.raises(AlreadyExists):
                uow.commit()
        with work_in(store, place, write=False) as uow:
            assert uow.select(find(PIECES)) == [first]


def _piece(thread: str) -> Any:
    return PIECES.entity(thread=thread, size=1, data=b"x")


def test_bytes_are_bytes(store: Store, place: str) -> None:
    """Text is not taken for bytes, nor are they kept where others belong."""
    with pytest.raises(InvalidValue, match="data: must be bytes, not str"):
        PIECES.entity(thread="t", size=1, data="x")
    with work_in(store, place.replace("checkpoints", "work")) as uow, pytest.raises(InvalidValue):
        uow.append(PIECES, [_piece("t")])
