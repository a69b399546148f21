"""Folding a journal: only what every cursor has passed, and no other row changes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.user_state.backup_files import BackupFolder
from herdbook.domain.entity import evolve
from herdbook.domain.errors import (
    BackupDamaged,
    CursorHolds,
    InvalidValue,
    JournalPruned,
    NotFound,
    SpaceRefused,
    StoreDamaged,
)
from herdbook.domain.plan.model import ChangeSet, Project
from herdbook.ports.engine.dictionary import CURSORS, HEADS, JOURNAL, PROJECTS, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.repositories import journal as repository
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.backups.chains import choose_chain, find_chains
from herdbook.services.backups.restore import assemble, deliver
from herdbook.services.backups.write_backup import write_copy, write_segment
from herdbook.services.journal import undo, watch
from herdbook.services.journal.prune import PruneReport, plan_prune, prune
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.merge_spaces import merge
from herdbook.services.stores.store_check import check
from tests.contract.conftest import ENGINES, Begin
from tests.contract.proposed import add_plan
from tests.contract.rows import make
from tests.contract.space import everything_in
from tests.contract.wrapped import WrappedSession, WrappedStore

NewUrl = Callable[[str], str]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once."""
    monkeypatch.setattr("herdbook.ports.engine.retry.FIRST_PAUSE", 0)


def _write(begin: Begin, *sizes: int) -> list[Project]:
    """One transaction for each number, which adds so many projects."""
    added = []
    for size in sizes:
        with begin() as uow:
            added += [make(uow, PROJECTS) for _ in range(size)]
            uow.commit()
    return added


def _hold(begin: Begin, name: str, seq: int, **options: Any) -> None:
    with begin() as uow:
        uow.cursors.hold(name, seq, "a test", **options)
        uow.commit()


def _plan(begin: Begin, **wanted: Any) -> int:
    with begin(write=False) as uow:
        return plan_prune(uow, **wanted).to


def _prune(store: Store, space: str, to: int, **options: Any) -> PruneReport:
    return prune(store, space, to, **options)


def _seqs(begin: Begin) -> list[int]:
    with begin(write=False) as uow:
        return [entry.seq for entry in uow.journal.all_entries()]


def _rows(store: Store, space: str) -> dict[str, list[Any]]:
    found = everything_in(store, space)
    return {name: rows for name, rows in found.items() if name not in ("journal", "heads")}


def test_only_whole_transactions_are_folded(begin: Begin) -> None:
    """A position inside of one is taken down to its beginning, by number, count and time."""
    _write(begin, 2, 3, 2)
    asked = {before: _plan(begin, before=before) for before in range(1, 10)}
    assert asked == {1: 0, 2: 0, 3: 2, 4: 2, 5: 2, 6: 5, 7: 5, 8: 7, 9: 7}
    assert [_plan(begin, keep=number) for number in (0, 1, 2, 3, 5, 99)] == [7, 5, 5, 2, 2, 0]
    assert _plan(begin, keep=timedelta(days=1)) == 0
    with begin(write=False) as uow:
        third = uow.journal.since(5)[0].time
        later = uow.now + timedelta(days=1)
    assert (_plan(begin, before=third), _plan(begin, before=later)) == (5, 7)


def test_before_or_keep_is_needed(begin: Begin) -> None:
    """Neither and both are refused."""
    with begin(write=False) as uow:
        for wanted in ({}, {"before": 1, "keep": 1}):
            with pytest.raises(InvalidValue, match="either"):
                plan_prune(uow, **wanted)


def test_folding_changes_no_other_row(store: Store, begin: Begin, space: str) -> None:
    """Rows are as they were, numbers stay, new entries follow, and the report has the digest."""
    _write(begin, 2, 3, 2)
    _hold(begin, "reader", 6)
    before = _rows(store, space)
    report = _prune(store, space, 5, batch=2)
    assert _rows(store, space) == before
    assert (report.folded, report.batches, report.pruned_to, report.left) == (5, 2, 5, 2)
    assert len(report.digest) == 32
    assert _seqs(begin) == [6, 7]
    _write(begin, 1)
    assert _seqs(begin) == [6, 7, 8]
    assert check(store, [space]) == []
    assert _prune(store, space, 5).folded == 0


def test_a_whole_journal_can_be_folded(store: Store, begin: Begin, space: str) -> None:
    """The space goes on counting where it was, and `check` knows."""
    _write(begin, 1, 2)
    assert _prune(store, space, 3).left == 0
    assert check(store, [space]) == []
    with begin(write=False) as uow:
        assert (uow.journal.last(), uow.journal.since(3), uow.journal.recent(5)) == (3, [], [])
    _write(begin, 1)
    assert _seqs(begin) == [4]
    assert check(store, [space]) == []


def test_nothing_is_folded_that_a_cursor_needs(store: Store, begin: Begin, space: str) -> None:
    """The refusal names the cursor that has read least and its holder; nothing is folded."""
    _write(begin, 1, 1, 1, 1)
    _hold(begin, "far", 3)
    _hold(begin, "near", 2)
    for attempt in (lambda: _plan(begin, before=4), lambda: _prune(store, space, 3)):
        with pytest.raises(CursorHolds, match=r"'near' \(a test\) has read up to #2.*--before 3"):
            attempt()
    assert _seqs(begin) == [1, 2, 3, 4]
    assert _prune(store, space, _plan(begin, before=3)).pruned_to == 2
    with begin() as uow:
        uow.cursors.advance("near", 4)
        assert uow.cursors.drop("far")
        assert not uow.cursors.drop("far")
        uow.commit()
    assert _prune(store, space, 4).pruned_to == 4


def test_an_expired_cursor_holds_nothing(store: Store, begin: Begin, space: str) -> None:
    """One that expires later still does."""
    _write(begin, 1, 1)
    with begin(write=False) as uow:
        now = uow.now
    _hold(begin, "gone", 0, expires_at=now - timedelta(seconds=1))
    _hold(begin, "there", 1, expires_at=now + timedelta(days=1))
    with begin(write=False) as uow:
        assert [each.id for each in uow.cursors.live()] == ["there"]
    assert _prune(store, space, 1).folded == 1
    with pytest.raises(CursorHolds):
        _prune(store, space, 2)
    assert check(store, [space]) == []


def test_a_cursor_moves_forward_only_and_only_where_entries_are(
    store: Store, begin: Begin, space: str
) -> None:
    """Behind the beginning and after the end it is refused; a name is plain text."""
    _write(begin, 1, 1, 1)
    _hold(begin, "one", 2)
    with begin() as uow:
        assert uow.cursors.advance("one", 1).seq == 2
        with pytest.raises(InvalidValue, match="ends at #3"):
            uow.cursors.hold("one", 4, "x")
        with pytest.raises(NotFound):
            uow.cursors.advance("two", 1)
        for name in ("", " x", "a b", "a\n", "x" * 65):
            with pytest.raises(InvalidValue, match="cursor"):
                uow.cursors.hold(name, 1, "x")
    _prune(store, space, 2)
    with begin() as uow, pytest.raises(JournalPruned, match="begins at #3"):
        uow.cursors.hold("two", 1, "x")


def test_cursors_are_bounded(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Expired ones make room; where none has expired, one more is refused."""
    monkeypatch.setattr(repository, "MOST_CURSORS", 2)
    _write(begin, 1)
    with begin() as uow:
        uow.cursors.hold("a", 1, "x", expires_at=uow.now)
        uow.cursors.hold("b", 1, "x")
        uow.cursors.hold("c", 1, "x")
        with pytest.raises(InvalidValue, match="2 cursors"):
            uow.cursors.hold("d", 1, "x")
        assert [each.id for each in uow.cursors.page()] == ["b", "c"]


def test_nobody_is_given_a_gap_silently(store: Store, begin: Begin, space: str) -> None:
    """A reader below the beginning is told where the journal begins; one above reads on."""
    _write(begin, 1, 1, 1)
    following = watch.follow_journal(store, space, 0, stop=lambda: True, limit=1)
    assert next(following).seq == 1
    _prune(store, space, 2)
    with pytest.raises(JournalPruned) as caught:
        next(following)
    assert (caught.value.seq, caught.value.first, caught.value.space) == (1, 3, space)
    assert caught.value.since is not None
    assert "begins at #3 since 20" in str(caught.value)
    for seq in (0, 1):
        with pytest.raises(JournalPruned):
            read(store, space, lambda uow, seq=seq: uow.journal.since(seq))
    assert [each.seq for each in watch.follow_journal(store, space, 2, stop=lambda: True)] == [3]
    with begin(write=False) as uow:
        assert [each.seq for each in uow.journal.before(9, limit=5)] == [3]
        assert uow.journal.before(3) == []


def test_a_folded_change_set_cannot_be_taken_back(store: Store, begin: Begin, space: str) -> None:
    """The refusal says where the journal begins; one above it is taken back as always."""
    plan = add_plan(begin)
    keys = []
    for _ in range(2):
        with begin() as uow:
            make(uow, PROJECTS)
            row = ChangeSet(initiative_id=plan.initiative.id, summary="x", tx=uow.tx)
            keys.append(uow.change_sets.add(row).id)
            uow.commit()
    _prune(store, space, 6)
    with pytest.raises(JournalPruned, match=r"cannot be taken back: .* begins at #7"):
        run(store, space, undo.revert, keys[0])
    run(store, space, undo.revert, keys[1])
    assert check(store, [space]) == []


def test_check_still_finds_what_is_wrong_after_the_beginning(
    store: Store, begin: Begin, space: str
) -> None:
    """A lost entry, a field that differs from an entry, and a cursor below the beginning."""
    first, second = _write(begin, 1, 1)
    with begin() as uow:
        uow.projects.save(evolve(uow.projects.get(first.id), name="new"))
        uow.commit()
    _write(begin, 1)
    _prune(store, space, 2)
    _hold(begin, "low", 3)
    with store.transaction(space, write=True) as session:
        (row,) = session.get(PROJECTS, [first.id])
        session.replace(PROJECTS, [evolve(row, name="other")])
        (cursor,) = session.get(CURSORS, ["low"])
        session.replace(CURSORS, [evolve(cursor, seq=1)])
        session.commit()
    found = {(flaw.entity, flaw.key): flaw.what for flaw in check(store, [space])}
    assert found == {
        ("projects", first.id): "its name is not what the journal says",
        ("cursors", "low"): "it has read up to 1, and entries up to 2 were folded",
    }
    assert second.id not in str(found)
    with store.transaction(space, write=True) as session:
        session.delete(JOURNAL, [3])
        session.commit()
    assert "before it, 3 is missing" in {flaw.what for flaw in check(store, [space])}


class _Harmful(WrappedSession):
    """A session whose deletes take a row of another kind along."""

    def delete(self, kind: Kind[Any], keys: Any) -> None:
        self._session.delete(kind, keys)
        if kind is JOURNAL:
            (row,) = self._session.select(find(PROJECTS, limit=1))
            self._session.delete(PROJECTS, [row.id])


def test_a_batch_that_changes_another_row_is_undone(store: Store, begin: Begin, space: str) -> None:
    """Rows are counted before the commit."""
    _write(begin, 1, 1)
    before = everything_in(store, space)
    with pytest.raises(StoreDamaged, match="would have changed its projects"):
        prune(WrappedStore(store, _Harmful), space, 1)
    assert everything_in(store, space) == before


class _Scribbling(WrappedSession):
    """A session whose deletes of entries change a field of a row of another kind."""

    def delete(self, kind: Kind[Any], keys: Any) -> None:
        self._session.delete(kind, keys)
        if kind is JOURNAL:
            (row,) = self._session.select(find(PROJECTS, limit=1))
            self._session.replace(PROJECTS, [evolve(row, name="scribbled")])


class _Disturbed(WrappedStore):
    """A store in which somebody else does something after each transaction that writes."""

    def __init__(self, store: Store, wrap: Callable[[Any], Any], act: Callable[[], object]) -> None:
        super().__init__(store, wrap)
        self._act = act

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[Any]:
        """Begin a transaction."""
        with super().transaction(space, write=write) as session:
            yield session
        if write:
            self._act()


@pytest.mark.parametrize("others", [0, 1])
def test_a_batch_that_changes_a_field_is_the_last_one(
    store: Store, begin: Begin, space: str, others: int
) -> None:
    """What rows hold is compared after each batch, also if somebody else has written meanwhile."""
    _write(begin, 1, 1, 1, 1)
    disturbed = _Disturbed(store, _Scribbling, lambda: _write(begin, *[1] * others))
    with pytest.raises(StoreDamaged, match="has changed its projects"):
        prune(disturbed, space, 4, batch=1)
    assert _seqs(begin) == [2, 3, 4, *range(5, 5 + others)]


def test_what_others_change_meanwhile_is_no_damage(store: Store, begin: Begin, space: str) -> None:
    """They add, change and remove rows after every batch, and everything wanted is folded."""
    first, second = _write(begin, 1, 1)
    _write(begin, 1, 1)

    def act() -> None:
        with begin() as uow:
            make(uow, PROJECTS)
            uow.projects.save(evolve(uow.projects.get(first.id), name=f"{uow.journal.last()}"))
            if uow.projects.find(second.id):
                uow.projects.remove(second.id)
            make(uow, TASKS, phase_id=None, initiative_id=None, parent_task_id=None)
            uow.commit()

    report = prune(_Disturbed(store, lambda session: session, act), space, 4, batch=1)
    assert (report.folded, report.batches) == (4, 4)
    assert check(store, [space]) == []


def test_others_write_and_hold_between_two_batches(store: Store, begin: Begin, space: str) -> None:
    """What they write counts from then on; a new cursor stops the next batch."""
    _write(begin, 1, 1, 1, 1)

    def disturb(_: str, done: int, __: int) -> None:
        if done == 1:
            _write(begin, 1)
        elif done == 2:
            _hold(begin, "late", 2)

    with pytest.raises(CursorHolds, match="late"):
        _prune(store, space, 4, batch=1, progress=disturb)
    assert _seqs(begin) == [3, 4, 5]
    assert check(store, [space]) == []


def test_a_copy_carries_the_beginning_and_the_cursors(
    store: Store, begin: Begin, space: str, new_url: NewUrl
) -> None:
    """Into every engine; it is copied again after more was folded and written at the source."""
    _write(begin, 1, 1, 1)
    _hold(begin, "reader", 2)
    _prune(store, space, 2)
    for engine in ENGINES:
        with open_store(new_url(engine)) as target:
            copy(store, target, [space])
            assert everything_in(target, space)["heads"] == everything_in(store, space)["heads"]
            assert everything_in(target, space)["cursors"] == everything_in(store, space)["cursors"]
            assert check(target, [space]) == []
            _write(begin, 1)
            copy(store, target, [space])
            assert check(target, [space]) == []


def test_a_copy_goes_on_only_where_the_source_can_show_it(
    store: Store, begin: Begin, space: str, new_url: NewUrl, engine: str
) -> None:
    """Up to the last folded entry; a target that ends before that is refused and left alone."""
    _write(begin, 1, 1)
    with open_store(new_url(engine)) as target:
        copy(store, target, [space])
        _write(begin, 1)
        _prune(store, space, 2)
        copy(store, target, [space])
        _write(begin, 1, 1)
        _prune(store, space, 4)
        before = everything_in(target, space)
        with pytest.raises(SpaceRefused, match="ends at #3, and the journal of the source begins"):
            copy(store, target, [space])
        assert everything_in(target, space) == before
        assert merge(store, target, [space]).added == 2


def test_folding_can_be_repeated_after_a_lost_answer(
    store: Store, begin: Begin, space: str
) -> None:
    """Another process that was faster is no error."""
    _write(begin, 1, 1, 1)
    assert _prune(store, space, 2).folded == 2
    assert _prune(store, space, 2).folded == 0
    with begin(write=False) as uow:
        assert plan_prune(uow, before=2).entries == 0


def test_a_head_of_an_earlier_version_has_folded_nothing(store: Store, space: str) -> None:
    """Its new fields have their defaults."""
    run(store, space, lambda uow: make(uow, PROJECTS))
    with store.transaction(space, write=False) as session:
        assert session.head is not None
        assert (session.head.pruned_to, session.head.pruned_at) == (0, None)
        assert session.get(HEADS, ["head"]) == [session.head]


def _restore(files: BackupFolder, new_url: NewUrl, at: int | None = None) -> dict[str, list[Any]]:
    """What the newest backup, up to a position, restores; `check` finds nothing wrong in it."""
    chains = find_chains(files)
    chain = chains[-1] if at is None else choose_chain(chains, at)
    with open_store("memory://") as scratch, open_store(new_url("memory")) as target:
        assembled = assemble(chain, files, scratch, at=at)
        deliver(assembled, scratch, target)
        assert check(target) == []
        return everything_in(target, assembled.space)


def test_a_backup_goes_on_after_folding_and_restores_what_it_has(
    store: Store, begin: Begin, space: str, tmp_path: Path, new_url: NewUrl
) -> None:
    """Entries that were folded after the copy was taken are restored with it."""
    files = BackupFolder(tmp_path)
    _write(begin, 1, 1, 1)
    write_copy(store, space, files)
    _hold(begin, "reader", 3)
    _prune(store, space, 3)
    _write(begin, 1, 1)
    assert write_segment(store, space, files) is not None
    found = _restore(files, new_url)
    assert [entry.seq for entry in found["journal"]] == [1, 2, 3, 4, 5]
    assert found["projects"] == everything_in(store, space)["projects"]
    earlier = _restore(files, new_url, at=2)
    assert len(earlier["projects"]) == 2
    assert [each.seq for each in earlier.get("cursors", [])] in ([], [2])


def test_what_was_folded_before_it_was_backed_up_begins_a_new_copy(
    store: Store, begin: Begin, space: str, tmp_path: Path, new_url: NewUrl
) -> None:
    """No segment hides the gap, and the copy says where its journal begins."""
    files = BackupFolder(tmp_path)
    _write(begin, 1)
    write_copy(store, space, files)
    _write(begin, 1, 1, 1)
    _hold(begin, "reader", 4)
    _prune(store, space, 2)
    with pytest.raises(BackupDamaged, match="does not continue the backup at 1"):
        write_segment(store, space, files)
    write_copy(store, space, files)
    assert [entry.seq for entry in _restore(files, new_url)["journal"]] == [3, 4]
    _write(begin, 1)
    with begin() as uow:
        uow.cursors.advance("reader", 5)
        uow.commit()
    _write(begin, 1)
    write_segment(store, space, files)
    (cursor,) = _restore(files, new_url)["cursors"]
    assert cursor.seq == 5
    (cursor,) = _restore(files, new_url, at=5)["cursors"]
    assert cursor.seq == 5
    with pytest.raises(InvalidValue, match="the last position in this backup is 1"):
        _restore(files, new_url, at=2)


def test_folding_that_was_interrupted_goes_on(store: Store, begin: Begin, space: str) -> None:
    """What was folded until then is whole: `check` finds nothing, and rows are as they were."""
    _write(begin, 1, 2, 1, 2)
    before = _rows(store, space)

    def interrupt(_: str, done: int, __: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _prune(store, space, 6, batch=1, progress=interrupt)
    assert _seqs(begin) == [4, 5, 6]
    assert check(store, [space]) == []
    assert _prune(store, space, 6, batch=1).folded == 3
    assert _rows(store, space) == before
    assert check(store, [space]) == []
