"""What a saver has at hand is quick, and never hides what others have done meanwhile."""

from typing import Any

import pytest

from herdbook.adapters.langgraph import HerdbookSaver
from herdbook.ports.checkpoint_storage.checkpoint_writer import CheckpointWriter
from herdbook.ports.checkpoint_storage.latest_checkpoint_cache import (
    MAX_LANES,
    NO_CHECKPOINTS,
    LatestCheckpointCache,
)
from herdbook.ports.checkpoint_storage.value_store import Channel, ValueTable, decode_value_table
from herdbook.ports.engine.dictionary import PIECES
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store, SupportsImmediateRead
from tests.cases import for_each
from tests.contract.space import work_in
from tests.contract.workflows import checkpoint, config, put

LARGE = ["line " * 100] * 100
SAID: Any = {"source": "loop", "step": 1, "parents": {}}


@pytest.fixture
def place(space: str) -> str:
    return f"checkpoints/{space.partition('/')[2]}"


@pytest.fixture
def savers(store: Store, place: str) -> list[HerdbookSaver]:
    return [HerdbookSaver(store, place) for _ in range(3)]


def _values(saver: HerdbookSaver, thread: str = "t") -> Any:
    found = saver.get_tuple(config(thread))
    assert found is not None
    return found.checkpoint["channel_values"]


def test_who_builds_on_anothers_checkpoint_takes_its_values(savers: list[HerdbookSaver]) -> None:
    """Two savers in turn on one thread; a third one reads what both have put."""
    where, lines = config("t"), list(LARGE)
    for step in range(6):
        lines[step * 10] = f"{step} by {step % 2}"
        where = put(savers[step % 2], where, step, {"lines": list(lines)})
        assert _values(savers[2]) == _values(savers[1 - step % 2]) == {"lines": lines}
        assert len(list(savers[0].list(config("t")))) == step + 1


@pytest.mark.parametrize("way", ["removed", "pruned"])
def test_nobody_builds_on_what_another_has_removed(savers: list[HerdbookSaver], way: str) -> None:
    """A value that a saver put itself, and says is unchanged, is kept anew if it has gone."""
    ours, other, third = savers
    first = put(ours, config("t"), 0, {"lines": LARGE, "n": 0})
    second = put(ours, first, 1, {"lines": [*LARGE, "last"], "n": 1})
    if way == "removed":
        other.delete_thread("t")
    else:
        put(other, second, 2, {"n": 2})
        other.prune(["t"])
    made = checkpoint(3, {"lines": [*LARGE, "last"], "n": 3}, {"lines": 2, "n": 4})
    ours.put(second, made, SAID, {"n": 4})
    assert _values(third) == _values(ours) == {"lines": [*LARGE, "last"], "n": 3}


def test_a_checkpoint_that_is_put_again_is_what_it_was_put_as_last(
    savers: list[HerdbookSaver],
) -> None:
    """The saver that put it first sees that too, and what comes from it has its values."""
    ours, other, third = savers
    first = put(ours, config("t"), 0, {"lines": LARGE})
    made = checkpoint(1, {"lines": ["one"]}, {"lines": 2})
    where = ours.put(first, made, SAID, {"lines": 2})
    again = {**made, "channel_values": {"lines": ["two"]}, "channel_versions": {"lines": 3}}
    assert other.put(first, again, SAID, {"lines": 3}) == where
    follower = checkpoint(2, {"lines": ["two"], "n": 1}, {"lines": 3, "n": 4})
    ours.put(where, follower, SAID, {"n": 4})
    assert _values(third) == _values(ours) == {"lines": ["two"], "n": 1}
    assert len(list(ours.list(config("t")))) == 3


def test_what_is_remembered_holds_while_the_clock_of_the_space_stands(
    store: Store, place: str
) -> None:
    """A transaction of anybody, whatever it does, ends it."""
    recent, saver = LatestCheckpointCache(), HerdbookSaver(store, place)
    put(saver, config("t"), 0, {"n": 0})
    with work_in(store, place) as uow:
        kept = CheckpointWriter(uow)
        row = kept.find("t", "")
        assert row is not None
        kept.put_writes("t", "", "unknown", [])
        kept.uow.append(PIECES, [PIECES.entity(thread="t", size=1, data=b"x")])
        uow.commit()
        recent.remember(uow, {row.lane: row})
    with work_in(store, place) as uow:
        assert uow.session.head is not None
        assert recent.at(uow.session.head.clock) == {row.lane: row}
        assert recent.at(None) == NO_CHECKPOINTS
        uow.remove(PIECES, [each.id for each in uow.select(find(PIECES))])
        uow.commit()
    with work_in(store, place, write=False) as after:
        assert after.session.head is not None
        assert recent.at(after.session.head.clock) == NO_CHECKPOINTS
        recent.remember(uow, {row.lane: row})
        assert recent.at(after.session.head.clock) == NO_CHECKPOINTS


def test_only_so_many_lanes_are_remembered(store: Store, place: str) -> None:
    """Those that were put first are forgotten first."""
    recent, saver = LatestCheckpointCache(), HerdbookSaver(store, place)
    put(saver, config("t"), 0, {"n": 0})
    with work_in(store, place) as uow:
        row = CheckpointWriter(uow).find("t", "")
        assert row is not None
        uow.append(PIECES, [PIECES.entity(thread="t", size=1, data=b"x")])
        uow.commit()
    recent.remember(uow, {f"lane {number}": row for number in range(MAX_LANES + 2)})
    assert list(recent.at(uow.clock_after_commit)) == [
        f"lane {number}" for number in range(2, MAX_LANES + 2)
    ]


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_who_asks_at_once_sees_one_moment_from_the_first_question_on(
    store: Store, place: str
) -> None:
    """What is committed before the first question is seen, and nothing that comes later."""
    assert isinstance(store, SupportsImmediateRead)
    saver = HerdbookSaver(store, place)
    with store.immediate_read(place) as session:
        put(saver, config("t"), 0, {"n": 0})
        first = session.select(find(PIECES))
        put(saver, config("t"), 1, {"n": 1})
        assert len(first) == 1
        assert session.select(find(PIECES)) == first
        seen = session.head
    with store.transaction(place, write=False) as session:
        put(saver, config("t"), 2, {"n": 2})
        assert len(session.select(find(PIECES))) == 2
        assert session.head != seen
        assert session.head is session.head
    with store.immediate_read(place):
        pass


@for_each(
    "names",
    [
        ["pce_" + "0a" * 13, "pce_" + "ff" * 13],
        ["pce_" + "0A" * 13],
        ["pce_" + "0a" * 12],
        ["\N{COW}", "pce_" + "0a" * 13],
    ],
    ids=["ours", "large letters", "short", "mixed"],
)
@for_each("size", [5, 2**40])
def test_what_a_checkpoint_says_of_its_channels_comes_back(names: list[str], size: int) -> None:
    """Whatever pieces are called, however large they are, and whatever versions look like."""
    channels = [
        Channel("a", 1, "json", 0, size),
        Channel("b\0", "2.5", "msgpack", size, 0),
        Channel("", None, "json", size, 7 * len(names)),
    ]
    extents = [(name, at, size if not at else 7) for at, name in enumerate(["x", *names])]
    for some in (channels, channels[:1], []):
        read = decode_value_table(ValueTable(some, extents).encode())
        assert list(read.channels.values()) == some
        assert read.extents == extents
