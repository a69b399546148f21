"""A check finds what a raw hand has spoilt, and nothing in a store that is whole."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import lmdb
import pytest

from herdbook.adapters import open_store
from herdbook.domain.clock import Stamp
from herdbook.domain.entity import evolve
from herdbook.domain.errors import NotFound, StoreDamaged
from herdbook.domain.grading import Experience
from herdbook.domain.journal import Op
from herdbook.domain.plan.model import Task, TaskDependency
from herdbook.domain.plan.readiness import WaitingTask
from herdbook.domain.record.model import EventKind, ScoreEvent
from herdbook.domain.record.standing import first_standing
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    CHAT_MESSAGES,
    HEADS,
    INITIATIVES,
    JOURNAL,
    LOG_CHUNKS,
    OPENINGS,
    PHASES,
    STANDINGS,
    TASK_DEPENDENCIES,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Session, Store
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.store_check import Flaw, RepairReport, check, repair
from tests.cases import for_each
from tests.contract import raw
from tests.contract.inhabited import inhabit, record_of
from tests.contract.rows import make
from tests.contract.space import HERE, everything_in, work_in
from tests.contract.wrapped import WrappedSession, WrappedStore

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
Spoil = Callable[[Session], None]
NewUrl = Callable[[str], str]

on_lmdb = pytest.mark.parametrize("engine", ["lmdb"], indirect=True)


@contextmanager
def by_hand(store: Store, space: str) -> Iterator[Session]:
    """Write behind the back of the unit of work."""
    with store.transaction(space, write=True) as session:
        yield session
        session.commit()


def changed(session: Session, kind: Kind[Any], key: Any, **changes: Any) -> None:
    """Alter a row behind the journal's back."""
    (row,) = session.get(kind, [key])
    session.replace(kind, [evolve(row, **changes)])


def found(store: Store, space: str) -> set[tuple[str, str | None, str]]:
    """What a check tells, without the space."""
    flaws = check(store, [space])
    assert {flaw.space for flaw in flaws} <= {space}
    return {(flaw.entity, flaw.key, flaw.what) for flaw in flaws}


@pytest.fixture
def worked(store: Store, space: str) -> str:
    """A space with a little work in it."""
    with work_in(store, space) as uow:
        make(uow, INITIATIVES, id="ini_i")
        make(uow, PHASES, id="pha_p", initiative_id="ini_i")
        make(uow, AGENTS, id="agt_a", name="a")
        make(uow, AGENTS, id="agt_b", name="b")
        uow.tasks.add_all([Task(id=f"tsk_{n}", name=n) for n in "abc"])
        uow.tasks.add(Task(id="tsk_d", name="d", initiative_id="ini_i", assignee_id="agt_a"))
        uow.add(
            TASK_DEPENDENCIES,
            [TaskDependency(id="tsd_x", task_id="tsk_a", depends_on_task_id="tsk_b")],
        )
        make(uow, CHAT_MESSAGES, id="chm_c")
        make(uow, LOG_CHUNKS, id="log_l")
        uow.commit()
    with work_in(store, space) as uow:
        uow.tasks.save(evolve(uow.tasks.get("tsk_c"), summary="s", order=3))
        uow.tasks.remove("tsk_b")
        uow.commit()
    assert check(store, [space]) == []
    return space


def test_a_store_with_everything_in_it_has_no_flaw(store: Store, space: str) -> None:
    """Rows of all kinds, saved, removed, emptied and held."""
    spaces = [space, record_of(space)]
    for each in spaces:
        inhabit(store, each)
    assert check(store, spaces) == []
    assert repair(store, spaces) == RepairReport(0, 0, ())


def test_a_space_that_is_not_there_is_not_whole(store: Store) -> None:
    """Whoever misspells its name is not told that nothing is wrong with it."""
    for look in (check, repair):
        with pytest.raises(NotFound):
            look(store, ["work/misspelt"])


def test_an_unfinished_copy_is_told_and_not_repaired(store: Store, space: str) -> None:
    """The copy that goes on finds it as it was."""

    def stop(_space: str, _done: int, _total: int) -> None:
        raise InterruptedError

    with open_store("memory://") as source:
        inhabit(source, space)
        with pytest.raises(InterruptedError):
            copy(source, store, [space], batch=90, progress=stop)
        before = everything_in(store, space)
        what = "the space is an unfinished copy; copy into it once more"
        assert ("heads", None, what) in found(store, space)
        assert repair(store, [space]).failed[0].what == "is an unfinished copy and stays as it is"
        assert everything_in(store, space) == before


NOT_THERE = "the journal says that it was added, and it is missing"

ROWS: dict[str, tuple[Spoil, set[tuple[str, str | None, str]]]] = {
    "a row that others name": (
        lambda session: session.delete(AGENTS, ["agt_a"]),
        {
            ("tasks", "tsk_d", "its assignee_id names agent 'agt_a', which is not there"),
            ("agents", "agt_a", NOT_THERE),
        },
    ),
    "a row that nobody names": (
        lambda session: session.delete(AGENTS, ["agt_b"]),
        {("agents", "agt_b", NOT_THERE)},
    ),
    "an append-only row": (
        lambda session: session.delete(CHAT_MESSAGES, ["chm_c"]),
        {("chat_messages", "chm_c", NOT_THERE)},
    ),
    "an altered row": (
        lambda session: changed(session, TASKS, "tsk_c", summary="t", description="d"),
        {("tasks", "tsk_c", "its description, summary is not what the journal says")},
    ),
    "a field that was emptied": (
        lambda session: changed(session, TASKS, "tsk_c", summary=None),
        {("tasks", "tsk_c", "its summary is not what the journal says")},
    ),
    "a row that never came": (
        lambda session: session.insert(PHASES, [_phase(session, "pha_new")]),
        {("phases", "pha_new", "the journal knows nothing of it")},
    ),
    "a row that was removed": (
        lambda session: session.insert(TASKS, [_finished(session, "tsk_b")]),
        {("tasks", "tsk_b", "the journal says that it was removed")},
    ),
    "an append-only row that never came": (
        lambda session: session.insert(CHAT_MESSAGES, [_message(session, "chm_new")]),
        {("chat_messages", "chm_new", "the journal knows nothing of it")},
    ),
    "a row of another area": (
        lambda session: session.insert(
            ACCOUNTS, [ACCOUNTS.entity(id="acc_x", email="x", created_at=START)]
        ),
        {
            ("accounts", None, "1 rows are in a space where they do not belong"),
            ("accounts", "acc_x", "the journal knows nothing of it"),
        },
    ),
}


def _phase(session: Session, key: str) -> Any:
    (row,) = session.get(PHASES, ["pha_p"])
    return evolve(row, id=key)


def _finished(session: Session, key: str) -> Any:
    (row,) = session.get(TASKS, ["tsk_c"])
    return evolve(row, id=key, status="completed")


def _message(session: Session, key: str) -> Any:
    (row,) = session.get(CHAT_MESSAGES, ["chm_c"])
    return evolve(row, id=key)


@pytest.mark.parametrize("harm", ROWS)
def test_a_spoilt_row_is_found_and_left_as_it_is(store: Store, worked: str, harm: str) -> None:
    """It is told once for each promise that it breaks, and no repair touches it."""
    spoil, flaws = ROWS[harm]
    with by_hand(store, worked) as session:
        spoil(session)
    assert found(store, worked) == flaws
    spoilt = everything_in(store, worked)
    assert repair(store, [worked]) == RepairReport(0, 0, ())
    assert everything_in(store, worked) == spoilt


def test_fields_younger_than_the_journal_have_their_defaults(store: Store, worked: str) -> None:
    """An entry of an older program says nothing of them; a row that says otherwise is spoilt."""
    with by_hand(store, worked) as session:
        for key in ("tsk_a", "tsk_c"):
            (added, *_) = session.select(find(JOURNAL, {"entity": "tasks", "key": key}))
            after = {name: value for name, value in added.after.items() if name != "retry_count"}
            session.replace(JOURNAL, [evolve(added, after=after)])
    assert found(store, worked) == set()
    with by_hand(store, worked) as session:
        changed(session, TASKS, "tsk_c", retry_count=1)
    what = "its retry_count is not what the journal says"
    assert found(store, worked) == {("tasks", "tsk_c", what)}


def _cut_out(session: Session) -> None:
    session.delete(JOURNAL, [2, 3])


def _cut_off(session: Session) -> None:
    last = session.select(find(JOURNAL))[-1]
    session.delete(JOURNAL, [last.seq])


def _turned_back(session: Session) -> None:
    session.replace(JOURNAL, [evolve(session.get(JOURNAL, [3])[0], at=Stamp(START, 0, "n"))])


def _early_head(session: Session) -> None:
    changed(session, HEADS, "head", clock=Stamp(START, 0, "n"))


JOURNALS: dict[str, tuple[Spoil, str]] = {
    "a piece cut out": (_cut_out, "before it, 2 to 3 is missing"),
    "its end cut off": (_cut_off, "and the head says"),
    "a time that goes back": (_turned_back, "its time is not after that of the previous entry"),
    "a head that is behind": (_early_head, "the clock of the head is behind the last entry"),
    "no head": (
        lambda session: session.delete(HEADS, ["head"]),
        "the space has a journal and no head",
    ),
}


@pytest.mark.parametrize("harm", JOURNALS)
def test_a_spoilt_journal_is_found(store: Store, worked: str, harm: str) -> None:
    """Its numbers are gapless, its times ascend and its head stands at its end."""
    spoil, what = JOURNALS[harm]
    with by_hand(store, worked) as session:
        spoil(session)
    assert [
        key for entity, key, said in found(store, worked) if entity == "journal" and what in said
    ]


def test_a_kind_nobody_knows_in_the_journal_is_found(store: Store, worked: str) -> None:
    """The journal speaks of rows that the dictionary has."""
    with by_hand(store, worked) as session:
        (head,) = session.get(HEADS, ["head"])
        (first,) = session.get(JOURNAL, [1])
        at = head.clock._replace(counter=head.clock.counter + 1)
        session.insert(JOURNAL, [evolve(first, seq=head.seq + 1, at=at, entity="unicorns")])
        changed(session, HEADS, "head", seq=head.seq + 1, clock=at)
    assert found(store, worked) == {("journal", None, "it speaks of unicorns, which nobody knows")}


@pytest.mark.parametrize("engine", ["memory", "lmdb", "duckdb"], indirect=True)
def test_a_shared_unique_value_is_found(store: Store, worked: str) -> None:
    """Where the engine itself would let it in."""
    with by_hand(store, worked) as session:
        changed(session, AGENTS, "agt_b", name="a")
    assert ("agents", "agt_b", "another agent has the same name") in found(store, worked)


DERIVED: dict[str, tuple[Spoil, tuple[str, str, str]]] = {
    "lost": (
        lambda session: session.delete(OPENINGS, ["tsk_c"]),
        ("openings", "tsk_c", "follows from other rows and is not there"),
    ),
    "wrong": (
        lambda session: changed(session, OPENINGS, "tsk_c", order=7),
        ("openings", "tsk_c", "its order is not what follows from other rows"),
    ),
    "too many": (
        lambda session: session.insert(WAITING, [WaitingTask(task_id="tsk_none", blockers=1)]),
        ("waiting", "tsk_none", "is there and follows from nothing"),
    ),
}


@pytest.mark.parametrize("harm", DERIVED)
def test_a_spoilt_derived_row_is_found_and_rebuilt(store: Store, worked: str, harm: str) -> None:
    """All rows are what they were, and the next check finds nothing."""
    spoil, flaw = DERIVED[harm]
    whole = everything_in(store, worked)
    with by_hand(store, worked) as session:
        spoil(session)
    assert found(store, worked) == {flaw}
    assert repair(store, [worked]) == RepairReport(1, 0, ())
    assert found(store, worked) == set()
    mended = everything_in(store, worked)
    assert mended.pop(HEADS.name)[0].seq == whole.pop(HEADS.name)[0].seq
    assert mended == whole


def test_a_spoilt_standing_is_found_and_rebuilt(store: Store, space: str) -> None:
    """By the rules of experience that the ledger was counted by."""
    record, mild = record_of(space), Experience(per_skill_point=10)
    event = ScoreEvent(agent="otter", kind=EventKind.COMMIT, points=25, at=START)
    with work_in(store, record, experience=mild) as uow:
        uow.ledger.add(event)
        uow.commit()
    assert check(store, [record], experience=mild) == []
    assert [flaw.entity for flaw in check(store, [record])] == ["standings"]
    with by_hand(store, record) as session:
        session.delete(STANDINGS, [first_standing("otter").id])
    assert len(check(store, [record], experience=mild)) == 1
    assert repair(store, [record], experience=mild).derived == 1
    assert check(store, [record], experience=mild) == []


def test_what_cannot_be_derived_is_told_and_the_rest_goes_on(store: Store, worked: str) -> None:
    """Where a task names a phase that is not there, nobody can say whether it is open."""
    with by_hand(store, worked) as session:
        changed(session, TASKS, "tsk_c", phase_id="pha_gone")
    flaws = found(store, worked)
    assert ("tasks", "tsk_c", "its phase_id names phase 'pha_gone', which is not there") in flaws
    assert [what for entity, _, what in flaws if entity == "derived rows" and "pha_gone" in what]
    report = repair(store, [worked])
    assert (report.derived, len(report.failed)) == (0, 1)
    assert "pha_gone" in report.failed[0].what


class Breaking(WrappedSession):
    """A session in which one kind cannot be read, and nothing after it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._broken = False

    def __getattr__(self, name: str) -> object:
        if name in {"readable_rows", "find_flaws", "repair_lookups"}:
            raise AttributeError(name)
        return super().__getattr__(name)

    def select(self, query: Any) -> list[Any]:
        self._broken |= query.kind is AGENTS
        if self._broken:
            raise StoreDamaged("wrapped store", "a block is damaged")
        return self._session.select(query)


def test_what_cannot_be_read_is_told_and_the_next_kind_is_looked_at(
    store: Store, worked: str
) -> None:
    """In another transaction, where the one before broke."""
    with by_hand(store, worked) as session:
        session.delete(CHAT_MESSAGES, ["chm_c"])
    wrapped: Any = WrappedStore(store, Breaking)
    flaws = found(wrapped, worked)
    assert [what for entity, key, what in flaws if entity == "agents" and "cannot be read" in what]
    assert ("chat_messages", "chm_c", NOT_THERE) in flaws


def test_progress_ends_with_everything(store: Store, worked: str) -> None:
    """It never goes back and never beyond."""
    seen: list[tuple[int, int]] = []
    check(store, [worked], progress=lambda _, done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert all(done <= total for done, total in seen)
    assert seen[-1][0] == seen[-1][1] == sum(map(len, everything_in(store, worked).values()))


def test_every_space_is_looked_at(fresh: Callable[..., Store]) -> None:
    """Unless some are named."""
    store = fresh()
    for space in (HERE, "work/there"):
        with work_in(store, space) as uow:
            uow.tasks.add(Task(id="tsk_x", name="x"))
            uow.commit()
        with by_hand(store, space) as session:
            session.delete(OPENINGS, ["tsk_x"])
    assert {flaw.space for flaw in check(store)} == {HERE, "work/there"}
    assert {flaw.space for flaw in check(store, [HERE])} == {HERE}
    assert repair(store).derived == 2


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_a_value_that_no_field_can_have_is_told(engine: str, new_url: NewUrl) -> None:
    """A hand in the database can write what no program does."""
    url = new_url(engine)
    with open_store(url) as store:
        with work_in(store, HERE) as uow:
            uow.tasks.add(Task(id="tsk_x", name="x"))
            uow.commit()
        with raw.postgres(url) as server:
            server.execute("UPDATE tasks SET status = 'unheard of'")
        told = [flaw for flaw in check(store) if flaw.entity == "tasks"]
        assert told[0].what.startswith("cannot be read to the end")


def lmdb_by_hand(url: str, spoil: Callable[[Any, Any, Any], None]) -> None:
    """Write into the two databases of a store that nobody has open."""
    with lmdb.open(str(raw.path_of(url)), max_dbs=8) as env:
        rows, lookups = (env.open_db(name, create=False) for name in (b"rows", b"lookups"))
        with env.begin(write=True) as txn:
            spoil(txn, rows, lookups)


def lmdb_filled(url: str, tasks: int = 50) -> dict[str, list[Any]]:
    """Make a store with some tasks in it; what it holds."""
    with open_store(url) as store:
        with work_in(store, HERE) as uow:
            uow.tasks.add_all([Task(id=f"tsk_{n}", name=f"name {n}") for n in range(tasks)])
            uow.commit()
        return everything_in(store)


def _flip(txn: Any, database: Any, part: bytes) -> None:
    """Change a byte in the first value that has this in its key."""
    cursor = txn.cursor(db=database)
    key, value = next((bytes(k), bytes(v)) for k, v in cursor if part in k)
    txn.put(key, value[:-3] + bytes([value[-3] ^ 1]) + value[-2:], db=database)


def _some(txn: Any, database: Any, part: bytes) -> tuple[bytes, bytes]:
    return next((bytes(k), bytes(v)) for k, v in txn.cursor(db=database) if part in k)


@on_lmdb
def test_a_damaged_row_of_lmdb_is_one_flaw_among_others(engine: str, new_url: NewUrl) -> None:
    """It is named, the rest is read, and repairing neither takes nor changes anything."""
    url = new_url(engine)
    lmdb_filled(url, 1_500)

    def spoil(txn: Any, rows: Any, _: Any) -> None:
        _flip(txn, rows, b"tasks\0tsk_700")
        _flip(txn, rows, b"openings\0tsk_9\0")

    lmdb_by_hand(url, spoil)
    with open_store(url) as store, by_hand(store, HERE) as session:
        session.delete(OPENINGS, ["tsk_1400"])
        changed(session, TASKS, "tsk_1401", summary="behind")
    with open_store(url) as store:
        flaws = found(store, HERE)
        assert ("tasks", "tsk_700", "does not match its checksum or its key") in flaws
        assert ("openings", "tsk_9", "does not match its checksum or its key") in flaws
        assert ("tasks", "tsk_1401", "its summary is not what the journal says") in flaws
        assert {key for _, key, _ in flaws} == {"tsk_700", "tsk_9", "tsk_1401", None}
        report = repair(store)
        assert (report.derived, report.lookups, len(report.failed)) == (0, 0, 1)
        assert found(store, HERE) == flaws


@on_lmdb
def test_a_damaged_entry_of_the_journal_is_named(engine: str, new_url: NewUrl) -> None:
    """Of the rows that only it knows nothing more is said."""
    url = new_url(engine)
    lmdb_filled(url)
    lmdb_by_hand(url, lambda txn, rows, _: _flip(txn, rows, b"journal\0"))
    with open_store(url) as store:
        assert found(store, HERE) == {
            ("journal", "1", "does not match its checksum or its key"),
            ("journal", "2", "before it, 1 is missing"),
        }


LOOKUPS: dict[str, tuple[Callable[[Any, Any, Any], None], str]] = {}


def _lookup(name: str, what: str) -> Callable[[Any], Any]:
    def note(spoil: Callable[[Any, Any, Any], None]) -> Any:
        LOOKUPS[name] = spoil, what
        return spoil

    return note


@_lookup("a lost entry", "does not lead to it")
def _lost(txn: Any, _: Any, lookups: Any) -> None:
    txn.delete(_some(txn, lookups, b"tsk_7\0")[0], db=lookups)


@_lookup("an entry that leads to another row", "does not lead to it")
def _astray(txn: Any, _: Any, lookups: Any) -> None:
    txn.put(_some(txn, lookups, b"tsk_7\0")[0], b"tsk_8\0", db=lookups)


@_lookup("an entry that leads nowhere", "it is not there")
def _nowhere(txn: Any, _: Any, lookups: Any) -> None:
    key, _ = _some(txn, lookups, b"tsk_7\0")
    txn.put(key.replace(b"tsk_7", b"tsk_none"), b"tsk_none\0", db=lookups)


@_lookup("an entry with values of its own", "by values that it does not have")
def _invented(txn: Any, _: Any, lookups: Any) -> None:
    key, value = _some(txn, lookups, b"pending\0")
    txn.put(key.replace(b"pending", b"blocked"), value, db=lookups)


@_lookup("an entry of no lookup", "belongs to no lookup")
def _foreign(txn: Any, _: Any, lookups: Any) -> None:
    key, value = _some(txn, lookups, b"tsk_7\0")
    txn.put(key[:4] + b"none" + key[8:], value, db=lookups)


@on_lmdb
@for_each("harm", LOOKUPS)
def test_a_spoilt_lookup_of_lmdb_is_found_and_mended(
    engine: str, new_url: NewUrl, harm: str
) -> None:
    """The rows are what they were, and the databases too, byte by byte."""
    url = new_url(engine)
    spoil, what = LOOKUPS[harm]
    kept = lmdb_filled(url)
    with raw.lmdb_entries(url, "lookups") as entries:
        whole = list(entries)
    lmdb_by_hand(url, spoil)
    with open_store(url) as store:
        assert [flaw.what for flaw in check(store) if what in flaw.what]
        assert repair(store) == RepairReport(0, 1, ())
        assert check(store) == []
        mended = everything_in(store)
    assert mended.pop(HEADS.name) != kept.pop(HEADS.name)
    assert mended == kept
    with raw.lmdb_entries(url, "lookups") as entries:
        assert entries == whole


@on_lmdb
def test_rows_of_a_kind_nobody_knows_are_found_in_lmdb(engine: str, new_url: NewUrl) -> None:
    """They are told and left."""
    url = new_url(engine)
    lmdb_filled(url)

    def spoil(txn: Any, rows: Any, _: Any) -> None:
        key, value = _some(txn, rows, b"tasks\0")
        txn.put(key.replace(b"tasks", b"unicorns"), value, db=rows)

    lmdb_by_hand(url, spoil)
    with open_store(url) as store:
        flaw = Flaw(HERE, "unicorns", None, "are rows of a kind that nobody knows")
        assert check(store) == [flaw]
        assert repair(store) == RepairReport(0, 0, ())
        assert check(store) == [flaw]


def test_rows_that_came_twice_are_told_once(store: Store, space: str) -> None:
    """A row that was removed and added again is what its last entries say."""
    for _ in range(2):
        with work_in(store, space) as uow:
            uow.tasks.add(Task(id="tsk_x", name="x"))
            uow.commit()
        with work_in(store, space) as uow:
            uow.tasks.remove("tsk_x")
            uow.commit()
    with work_in(store, space) as uow:
        # More than a page of the journal lies between the two.
        uow.tasks.add_all([Task(name="x") for _ in range(PAGE)])
        uow.tasks.add(Task(id="tsk_x", name="y"))
        uow.commit()
    assert check(store, [space]) == []
    with by_hand(store, space) as session:
        session.delete(OPENINGS, ["tsk_x"])
        session.delete(TASKS, ["tsk_x"])
    assert check(store, [space]) == [Flaw(space, "tasks", "tsk_x", NOT_THERE)]
    with work_in(store, space, write=False) as uow:
        ops = [entry.op for entry in uow.journal.of_row(TASKS, "tsk_x")]
    assert ops == [Op.ADD, Op.REMOVE] * 2 + [Op.ADD]
