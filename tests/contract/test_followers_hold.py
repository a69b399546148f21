"""Who follows the journal holds it: nothing is folded that it has not read."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from herdbook.adapters.user_state.backup_files import BackupFolder
from herdbook.domain.entity import evolve
from herdbook.domain.errors import CursorHolds, StoreUnavailable
from herdbook.domain.journal import FOLLOWER, JournalCursor, JournalEntry
from herdbook.domain.retention import FOLLOWER_KEPT, FOLLOWER_MOVED, FOLLOWER_RENEWED
from herdbook.ports.engine.dictionary import HEADS, PROJECTS
from herdbook.ports.engine.digests import digest_space
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.run import read
from herdbook.services.backups.write_backup import write_copy, write_segment
from herdbook.services.journal import follower_cursor, watch
from herdbook.services.journal.follower_cursor import FollowerCursor
from herdbook.services.journal.prune import prune
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.store_check import check
from tests.contract.conftest import Begin
from tests.contract.rows import make
from tests.contract.wrapped import WrappedStore

WHO = "a test"


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def go(self, time: timedelta) -> None:
        """Let time pass."""
        self.now += time.total_seconds()


def _write(begin: Begin, number: int) -> None:
    for _ in range(number):
        with begin() as uow:
            make(uow, PROJECTS)
            uow.commit()


def _cursors(store: Store, space: str) -> list[JournalCursor]:
    found: list[JournalCursor] = read(store, space, lambda uow: uow.cursors.page())
    return found


def _follow(
    store: Store,
    space: str,
    since: int,
    holder: str = WHO,
    stop: watch.Stop = watch.never,
) -> Generator[JournalEntry]:
    cursor = FollowerCursor(lambda: nullcontext(store), space, holder)
    return watch.follow_holding(store, space, since, cursor, stop=stop)


def _take(entries: Iterator[Any], number: int) -> list[int]:
    return [next(entries).seq for _ in range(number)]


def test_what_a_slow_follower_has_not_read_is_not_folded(
    store: Store, begin: Begin, space: str
) -> None:
    """It is named in the refusal, reads on without a gap, and holds nothing once it has ended."""
    _write(begin, 5)
    with closing(_follow(store, space, 1, WHO)) as entries:
        assert _take(entries, 1) == [2]
        with pytest.raises(CursorHolds, match=rf"{FOLLOWER}.*\(a test\) has read up to #1"):
            prune(store, space, 4)
        assert prune(store, space, 1).pruned_to == 1
        assert _take(entries, 3) == [3, 4, 5]
    assert _cursors(store, space) == []
    assert prune(store, space, 5).left == 0


def test_many_followers_each_hold_what_they_need(store: Store, begin: Begin, space: str) -> None:
    """The one that has read least decides; none is left when all have ended."""
    _write(begin, 12)
    followers = [_follow(store, space, since, WHO) for since in range(10)]
    assert [_take(each, 1) for each in followers] == [[since + 1] for since in range(10)]
    assert [each.seq for each in sorted(_cursors(store, space), key=lambda each: each.seq)] == [
        *range(10)
    ]
    for since, each in enumerate(followers):
        with pytest.raises(CursorHolds, match=f"has read up to #{since}"):
            prune(store, space, 10)
        assert prune(store, space, since).pruned_to == since
        each.close()
    assert _cursors(store, space) == []
    assert prune(store, space, 10).pruned_to == 10


def test_a_cursor_is_moved_rarely(store: Store, begin: Begin, space: str) -> None:
    """Not with every entry, but once it is time to; an idle follower renews it rarer still."""
    _write(begin, 6)
    clock = Clock()
    cursor = FollowerCursor(lambda: nullcontext(store), space, WHO, clock=clock)

    def move(seq: int, after: timedelta = timedelta(0)) -> tuple[int, int]:
        clock.go(after)
        cursor.move(seq)
        (there,) = _cursors(store, space)
        assert there.expires_at == there.updated_at + FOLLOWER_KEPT
        return there.seq, there.version

    assert move(0) == (0, 1)
    assert [move(seq) for seq in (1, 2, 3)] == [(0, 1)] * 3
    assert move(4, after=FOLLOWER_MOVED) == (4, 2)
    assert move(4, after=FOLLOWER_MOVED) == (4, 2)
    assert move(4, after=FOLLOWER_RENEWED - FOLLOWER_MOVED) == (4, 3)
    cursor.release()
    assert _cursors(store, space) == []


def test_a_killed_follower_holds_nothing_for_long(
    store: Store, begin: Begin, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cursor expires by itself, and leaves with the next one that is held."""
    _write(begin, 3)
    monkeypatch.setattr(follower_cursor, "FOLLOWER_KEPT", timedelta(microseconds=1))
    monkeypatch.setattr(follower_cursor.FollowerCursor, "release", lambda _: None)
    with closing(_follow(store, space, 0, "killed")) as entries:
        assert _take(entries, 1) == [1]
    assert [each.holder for each in _cursors(store, space)] == ["killed"]
    assert prune(store, space, 3).pruned_to == 3
    assert check(store, [space]) == []
    monkeypatch.undo()
    _write(begin, 1)
    with closing(_follow(store, space, 3, WHO)) as entries:
        assert _take(entries, 1) == [4]
        assert [each.holder for each in _cursors(store, space)] == [WHO]


def test_the_cursor_of_a_follower_is_no_content(
    store: Store,
    begin: Begin,
    space: str,
    tmp_path: Path,
    fresh: Callable[..., Store],
) -> None:
    """No clock ticks, no digest changes, no backup is due for it, and no copy has it."""
    _write(begin, 2)
    files = BackupFolder(tmp_path)
    write_copy(store, space, files)

    def measure() -> tuple[Any, str]:
        with store.transaction(space, write=False) as session:
            return session.head, digest_space(session, store.dictionary).whole

    before = measure()
    with closing(_follow(store, space, 0, WHO)) as entries:
        assert _take(entries, 1) == [1]
        assert measure() == before
        assert write_segment(store, space, files) is None
        other = fresh()
        copy(store, other, [space])
        assert _cursors(other, space) == []
        assert len(_cursors(store, space)) == 1
    assert measure() == before


class ReadOnlyStore(WrappedStore):
    """A store that refuses to write."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, lambda session: session)

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[Session]:
        """Begin a transaction to read."""
        if write:
            raise StoreUnavailable("a store", "it is read-only")
        with super().transaction(space, write=False) as session:
            yield session


def test_who_may_not_write_follows_without_a_cursor(store: Store, begin: Begin, space: str) -> None:
    """All entries come, and nothing is held."""
    _write(begin, 2)
    with closing(_follow(cast(Store, ReadOnlyStore(store)), space, 0, WHO)) as entries:
        assert _take(entries, 2) == [1, 2]
        assert _cursors(store, space) == []


def test_following_begins_no_space_and_rewrites_no_rows(
    store: Store, begin: Begin, space: str
) -> None:
    """A space that nobody has written to stays so; an older one is left to those who write."""
    with closing(_follow(store, space, 0, WHO, stop=lambda: True)) as entries:
        assert list(entries) == []
    assert read(store, space, lambda uow: uow.session.head) is None
    _write(begin, 1)
    with store.transaction(space, write=True) as session:
        assert session.head is not None
        older = evolve(session.head, rows_version=4)
        session.replace(HEADS, [older])
        session.commit()
    with closing(_follow(store, space, 0, WHO)) as entries:
        assert _take(entries, 1) == [1]
    assert read(store, space, lambda uow: uow.session.head) == older
