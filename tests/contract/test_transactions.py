"""What a transaction is: whole or not at all, alone in its space, and still usable after a no."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from herdbook.adapters import open_store
from herdbook.domain.errors import (
    AlreadyExists,
    CycleRefused,
    HerdbookError,
    InvalidValue,
    NotFound,
    StaleWrite,
    StoreBusy,
    StoreUnavailable,
    UnknownReference,
)
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    INITIATIVES,
    JOURNAL,
    PROJECTS,
    PROPOSALS,
    TASKS,
)
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.cases import for_each
from tests.contract.conftest import SHARED, Begin
from tests.contract.rows import make
from tests.contract.space import HERE, everything_in, work_in

Fresh = Callable[..., Store]

shared = pytest.mark.parametrize("engine", SHARED, indirect=True)
readers_beside_writers = pytest.mark.parametrize(
    "engine", ["memory", "lmdb", "postgres"], indirect=True
)
writers_beside_writers = pytest.mark.parametrize("engine", ["memory", "postgres"], indirect=True)

LONG = 30
"""Seconds after which a thread that should have gone on is taken for stuck."""


def _make_a_mess(uow: UnitOfWork, initiative_id: str, task_id: str) -> None:
    """Add, save and remove, with a cascade and a set-null."""
    make(uow, TASKS, initiative_id=initiative_id)
    uow.tasks.save(evolve(uow.tasks.get(task_id), name="other"))
    uow.initiatives.remove(initiative_id)
    make(uow, AGENTS)


def _planned(begin: Begin) -> tuple[str, str]:
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        task = make(uow, TASKS, initiative_id=initiative.id)
        make(uow, AGENTS, task_id=task.id)
        uow.commit()
    return initiative.id, task.id


def test_an_exception_undoes_everything(store: Store, begin: Begin, space: str) -> None:
    """What was done before an exception leaves no trace, in the journal and the head neither."""
    planned = _planned(begin)
    before = everything_in(store, space)
    with suppress(ZeroDivisionError), begin() as uow:
        _make_a_mess(uow, *planned)
        raise ZeroDivisionError
    assert everything_in(store, space) == before


def test_leaving_without_a_commit_undoes_everything(store: Store, begin: Begin, space: str) -> None:
    """What nobody committed leaves no trace, in the journal and the head neither."""
    planned = _planned(begin)
    before = everything_in(store, space)
    with begin() as uow:
        _make_a_mess(uow, *planned)
    assert everything_in(store, space) == before


def test_an_undone_transaction_makes_no_space(store: Store, begin: Begin, space: str) -> None:
    """A space in which nothing was ever committed is not one."""
    with begin() as uow:
        make(uow, TASKS)
    assert space not in store.spaces()
    assert everything_in(store, space) == {}


def test_a_transaction_goes_on_after_one_that_was_undone(begin: Begin) -> None:
    """What was undone is not in the way of the same thing done again."""
    for _ in range(2):
        with begin() as uow:
            make(uow, PROJECTS, id="prj_1", name="one")
    with begin() as uow:
        project = make(uow, PROJECTS, id="prj_1", name="one")
        uow.commit()
    with begin(write=False) as uow:
        assert uow.select(find(PROJECTS)) == [project]


def test_a_transaction_sees_what_it_did_itself(begin: Begin) -> None:
    """Rows added, saved and removed are so for every question of the same transaction."""
    with begin() as uow:
        kept, gone = make(uow, TASKS, order=1), make(uow, TASKS, order=2)
        saved = uow.tasks.save(evolve(kept, status="blocked"))
        uow.tasks.remove(gone.id)
        session = uow.session
        assert session.get(TASKS, [kept.id, gone.id]) == [saved, None]
        assert session.select(find(TASKS)) == [saved]
        assert session.select(find(TASKS, {"status": "blocked"})) == [saved]
        assert session.count(find(TASKS, {"status": "pending"})) == 0


def _replaced(session: Any, way: str, row: Any) -> None:
    """Replace a row in one of the ways in which a caller may have come by it."""
    match way:
        case "unread":
            session.replace(PROPOSALS, [evolve(row, content="b", metadata={"n": True})])
        case "got":
            (read,) = session.get(PROPOSALS, [row.id])
            session.replace(PROPOSALS, [evolve(read, content="b", metadata={"n": True})])
        case "selected":
            (read,) = (each for each in session.select(find(PROPOSALS)) if each.id == row.id)
            session.replace(PROPOSALS, [evolve(read, content="b", metadata={"n": True})])
        case "changed in place":
            (read,) = session.get(PROPOSALS, [row.id])
            read.metadata["n"] = True
            session.replace(PROPOSALS, [evolve(read, content="b")])
        case "twice":
            (read,) = session.get(PROPOSALS, [row.id])
            session.replace(PROPOSALS, [evolve(read, content="c", metadata={"n": 2})])
            session.replace(PROPOSALS, [evolve(read, content="b", metadata={"n": True})])
        case "made again":
            (read,) = session.get(PROPOSALS, [row.id])
            session.delete(PROPOSALS, [row.id])
            session.insert(PROPOSALS, [evolve(read, content="b", metadata={"n": True})])
        case "made again and replaced":
            (read,) = session.get(PROPOSALS, [row.id])
            session.delete(PROPOSALS, [row.id])
            session.insert(PROPOSALS, [evolve(read, content="c", title="other")])
            session.replace(PROPOSALS, [evolve(read, content="b", metadata={"n": True})])


WAYS = (
    "unread",
    "got",
    "selected",
    "changed in place",
    "twice",
    "made again",
    "made again and replaced",
)


@pytest.mark.parametrize("way", WAYS)
def test_a_replaced_row_is_what_replaced_it(
    store: Store, begin: Begin, space: str, way: str
) -> None:
    """However the caller came by it, and although 1 and True are the same to Python."""
    with begin() as uow:
        rows = [make(uow, PROPOSALS, content="a", metadata={"n": 1}) for _ in range(3)]
        uow.commit()
    with begin() as uow:
        _replaced(uow.session, way, rows[0])
        read = uow.session.get(PROPOSALS, [rows[1].id, rows[2].id])
        uow.session.replace(
            PROPOSALS, [evolve(read[0], content="x"), evolve(read[1], sort_order=7)]
        )
        uow.commit()
    with work_in(store, space, write=False) as uow:
        first, second, third = uow.session.get(PROPOSALS, [row.id for row in rows])
        assert first == evolve(rows[0], content="b", metadata={"n": True})
        assert first.metadata["n"] is True
        assert second == evolve(rows[1], content="x")
        assert third == evolve(rows[2], sort_order=7)


def test_a_row_that_is_put_back_is_as_it_was(store: Store, begin: Begin, space: str) -> None:
    """A change and its opposite in one transaction, and a row that replaces itself."""
    with begin() as uow:
        rows = [make(uow, PROPOSALS, content="a") for _ in range(2)]
        uow.commit()
    with begin() as uow:
        there, same = uow.session.get(PROPOSALS, [row.id for row in rows])
        uow.session.replace(PROPOSALS, [evolve(there, content="b")])
        uow.session.replace(PROPOSALS, [there])
        uow.session.replace(PROPOSALS, [same])
        uow.commit()
    with work_in(store, space, write=False) as uow:
        assert uow.session.get(PROPOSALS, [row.id for row in rows]) == rows


@pytest.mark.parametrize("looked", ["not", "in vain", "for all"])
def test_a_key_is_taken_once(store: Store, begin: Begin, space: str, looked: str) -> None:
    """Whatever the transaction knows of it: looked for before or not, made, removed, made again."""
    with begin() as uow:
        there = make(uow, PROPOSALS, content="a")
        uow.commit()
    fresh = [evolve(there, id=f"{there.id[:-1]}{end}") for end in "xyz"]
    with begin() as uow:
        session = uow.session
        if looked == "in vain":
            assert session.get(PROPOSALS, [fresh[0].id]) == [None]
        if looked == "for all":
            keys = [there.id, *(row.id for row in fresh)]
            assert session.get(PROPOSALS, keys) == [there, None, None, None]
        session.insert(PROPOSALS, fresh[:1])
        for rows in ([fresh[0]], [there], fresh[:2], [fresh[1], there], [fresh[1], fresh[1]]):
            with pytest.raises(AlreadyExists):
                session.insert(PROPOSALS, rows)
        session.delete(PROPOSALS, [fresh[0].id])
        session.insert(PROPOSALS, fresh)
        with pytest.raises(AlreadyExists):
            session.insert(PROPOSALS, [fresh[2]])
        uow.commit()
    with work_in(store, space, write=False) as uow:
        rows = uow.session.select(find(PROPOSALS))
        assert sorted(row.id for row in rows) == sorted(each.id for each in [there, *fresh])


def test_a_number_of_the_journal_is_taken_once(store: Store, begin: Begin, space: str) -> None:
    """Below the head and above it."""
    with begin() as uow:
        make(uow, TASKS)
        uow.commit()
    with work_in(store, space) as uow:
        (last,) = uow.session.select(find(JOURNAL))
        for number in (last.seq, last.seq + 1):
            if number > last.seq:
                uow.session.insert(JOURNAL, [evolve(last, seq=number)])
            with pytest.raises(AlreadyExists):
                uow.session.insert(JOURNAL, [evolve(last, seq=number)])


def _two_kinds(store: Store, space: str, name: str) -> tuple[Any, Any]:
    """Write a project and a task in one transaction."""
    with work_in(store, space) as uow:
        rows = make(uow, PROJECTS, name=name), make(uow, TASKS, name=name)
        uow.commit()
    return rows


def _names(session: Any) -> tuple[list[str], list[str]]:
    projects, tasks = (session.select(find(kind)) for kind in (PROJECTS, TASKS))
    return sorted(row.name for row in projects), sorted(row.name for row in tasks)


@readers_beside_writers
def test_a_reader_sees_the_moment_it_began(store: Store, space: str) -> None:
    """What others commit meanwhile stays unseen, in kinds not asked for before too."""
    _two_kinds(store, space, "first")
    with ThreadPoolExecutor(1) as other, store.transaction(space, write=False) as session:
        head = session.head
        assert [row.name for row in session.select(find(PROJECTS))] == ["first"]
        other.submit(_two_kinds, store, space, "second").result(LONG)
        assert _names(session) == (["first"], ["first"])
        assert session.head == head
    with store.transaction(space, write=False) as session:
        assert _names(session) == (["first", "second"], ["first", "second"])


def test_a_reader_never_sees_half_a_transaction(store: Store, space: str) -> None:
    """Asked while somebody writes, a store answers with all of it or nothing, at once or later."""
    _two_kinds(store, space, "first")
    half_done, asked = threading.Event(), threading.Event()

    def write() -> None:
        with work_in(store, space) as uow:
            make(uow, PROJECTS, name="second")
            half_done.set()
            # A reader that waits for writers is let in by the end of this one.
            asked.wait(0.3)
            make(uow, TASKS, name="second")
            uow.commit()

    with ThreadPoolExecutor(1) as other:
        writer = other.submit(write)
        assert half_done.wait(LONG)
        with store.transaction(space, write=False) as session:
            seen = _names(session)
            asked.set()
        writer.result(LONG)
    assert seen in [(["first"], ["first"]), (["first", "second"], ["first", "second"])]


def test_a_reader_keeps_its_moment_while_a_writer_comes(store: Store, space: str) -> None:
    """A writer that begins under a reader changes nothing for it, and is done when it has gone."""
    _two_kinds(store, space, "first")
    with ThreadPoolExecutor(1) as other:
        with store.transaction(space, write=False) as session:
            assert _names(session) == (["first"], ["first"])
            writer = other.submit(_two_kinds, store, space, "second")
            wait([writer], timeout=0.1)
            assert _names(session) == (["first"], ["first"])
        writer.result(LONG)
    with store.transaction(space, write=False) as session:
        assert _names(session) == (["first", "second"], ["first", "second"])


def test_writers_of_a_space_are_serial(store: Store, space: str) -> None:
    """Of counts that threads read, raise and save at once none is lost."""
    rounds, threads = 25, 3
    with work_in(store, space) as uow:
        task = make(uow, TASKS)
        uow.commit()

    def count() -> None:
        for _ in range(rounds):
            with work_in(store, space) as uow:
                current = uow.tasks.get(task.id)
                uow.tasks.save(evolve(current, order=current.order + 1))
                uow.commit()

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(count) for _ in range(threads)]:
            future.result(2 * LONG)
    with work_in(store, space, write=False) as uow:
        counted = uow.tasks.get(task.id)
        assert (counted.order, counted.version) == (rounds * threads, rounds * threads + 1)
        assert uow.journal.last() == counted.version


@writers_beside_writers
def test_spaces_are_written_in_parallel(store: Store, space: str) -> None:
    """A writer that is held up in one space holds up none in another."""
    with ThreadPoolExecutor(1) as other, work_in(store, space) as uow:
        make(uow, TASKS)
        project, task = other.submit(_two_kinds, store, f"{space}-b", "b").result(LONG)
        uow.commit()
    with work_in(store, f"{space}-b", write=False) as uow:
        assert (uow.projects.get(project.id), uow.tasks.get(task.id)) == (project, task)


def _two_kinds_when_free(store: Store, name: str) -> tuple[Any, Any]:
    """As `_two_kinds`, however often the store's short patience ends on a slow machine."""
    while True:
        with suppress(StoreBusy):
            return _two_kinds(store, HERE, name)


def test_patience_ends_with_who_holds_the_space(fresh: Fresh) -> None:
    """A writer that waits too long is told for whom, and everybody else goes on."""
    store = fresh(patience=0.2)
    with ThreadPoolExecutor(1) as other:
        with work_in(store) as uow:
            first = make(uow, PROJECTS)
            busy = other.submit(_two_kinds, store, HERE, "impatient").exception(LONG)
            uow.commit()
        project, _ = other.submit(_two_kinds_when_free, store, "second").result(LONG)
    assert isinstance(busy, StoreBusy)
    assert busy.waited >= 0.2
    assert busy.holder
    assert f"held by {busy.holder}" in str(busy)
    with work_in(store, write=False) as uow:
        assert uow.projects.get_many([first.id, project.id]) == [first, project]
        assert uow.count(find(PROJECTS)) == 2


@shared
def test_patience_is_each_opens_own(
    fresh: Fresh, new_url: Callable[[str], str], engine: str
) -> None:
    """Who opened a store with little patience waits little, however patient others are."""
    url = new_url(engine)
    patient, impatient = fresh(url), fresh(url, patience=0.2)
    with ThreadPoolExecutor(1) as other, work_in(patient) as uow:
        busy = other.submit(_two_kinds, impatient, HERE, "impatient").exception(LONG / 2)
        make(uow, TASKS)
        uow.commit()
    assert isinstance(busy, StoreBusy)


def _take_the_key(uow: UnitOfWork) -> None:
    uow.add(TASKS, [TASKS.entity(name="new"), TASKS.entity(id="tsk_1", name="again")])


def _take_two_keys(uow: UnitOfWork) -> None:
    uow.add(TASKS, [TASKS.entity(id=key, name="new") for key in ("tsk_x", "tsk_1", "tsk_x")])


def _take_the_name(uow: UnitOfWork) -> None:
    make(uow, PROJECTS, name="one")


def _refer_to_nothing(uow: UnitOfWork) -> None:
    make(uow, TASKS, phase_id="pha_missing")


def _save_what_was_saved_since(uow: UnitOfWork) -> None:
    uow.save(TASKS, [evolve(uow.tasks.get("tsk_1"), version=7)])


def _save_one_row_twice(uow: UnitOfWork) -> None:
    task = uow.tasks.get("tsk_1")
    uow.save(TASKS, [evolve(task, order=1), evolve(task, order=2)])


def _save_what_is_not_there(uow: UnitOfWork) -> None:
    uow.save(TASKS, [evolve(uow.tasks.get("tsk_1"), id="tsk_missing")])


def _remove_what_is_not_there(uow: UnitOfWork) -> None:
    uow.remove(TASKS, ["tsk_1", "tsk_missing"])


def _wait_for_itself(uow: UnitOfWork) -> None:
    uow.tasks.add_dependency("tsk_1", "tsk_2")


def _use_another_area(uow: UnitOfWork) -> None:
    make(uow, ACCOUNTS)


def _ask_for_an_impossible_id(uow: UnitOfWork) -> None:
    uow.tasks.find("x" * 65)


def _ask_for_an_id_with_nul(uow: UnitOfWork) -> None:
    uow.get(TASKS, ["tsk_1", "a\0b"])


def _ask_for_an_id_that_is_no_text(uow: UnitOfWork) -> None:
    uow.tasks.find("\ud800")


@for_each(
    ("mishap", "error"),
    [
        (_take_the_key, AlreadyExists("task", "tsk_1")),
        (_take_two_keys, AlreadyExists("task", "tsk_1")),
        (_take_the_name, AlreadyExists("project", "prj_1", ("name",))),
        (_save_what_was_saved_since, StaleWrite("task", "tsk_1", 7, 1)),
        (_save_one_row_twice, StaleWrite("task", "tsk_1", 1, 2)),
        (_save_what_is_not_there, NotFound("task", "tsk_missing")),
        (_remove_what_is_not_there, NotFound("task", "tsk_missing")),
        (_wait_for_itself, CycleRefused(("tsk_1", "tsk_2", "tsk_1"))),
        (_use_another_area, InvalidValue),
        (_refer_to_nothing, UnknownReference),
        (_ask_for_an_impossible_id, InvalidValue("id", "may have at most 64 bytes")),
        (_ask_for_an_id_with_nul, InvalidValue("id", "may not contain the character NUL")),
        (_ask_for_an_id_that_is_no_text, InvalidValue),
    ],
    ids=lambda it: it.__name__.strip("_") if callable(it) else "",
)
def test_a_refusal_leaves_the_transaction_usable(
    store: Store,
    begin: Begin,
    space: str,
    mishap: Callable[[UnitOfWork], None],
    error: HerdbookError | type[HerdbookError],
) -> None:
    """After a no, what was done before and after it counts, and what was refused does not."""
    with begin() as uow:
        make(uow, PROJECTS, id="prj_1", name="one")
        uow.add(TASKS, [TASKS.entity(id=f"tsk_{n}", name=f"{n}") for n in (1, 2)])
        uow.tasks.add_dependency("tsk_2", "tsk_1")
        uow.commit()
    before = everything_in(store, space)
    with begin() as uow:
        first = make(uow, AGENTS, id="agt_1")
        with pytest.raises(HerdbookError) as refusal:
            mishap(uow)
        second = make(uow, AGENTS, id="agt_2")
        uow.commit()
    after = everything_in(store, space)
    if isinstance(error, type):
        assert type(refusal.value) is error
    else:
        assert (type(refusal.value), vars(refusal.value)) == (type(error), vars(error))
    told = [(entry.entity, entry.key) for entry in after["journal"][len(before["journal"]) :]]
    assert told == [("agents", "agt_1"), ("agents", "agt_2")]
    unchanged = {n: rows for n, rows in after.items() if n not in {"agents", "journal", "heads"}}
    assert unchanged == {n: rows for n, rows in before.items() if n not in {"journal", "heads"}}
    assert after["agents"] == [first, second]


def test_a_transaction_has_one_time(begin: Begin) -> None:
    """All rows of a transaction carry its one time, in UTC, and the next one's is no earlier."""
    with begin() as uow:
        now = uow.now
        first, second = make(uow, TASKS), make(uow, AGENTS)
        saved = uow.tasks.save(first)
        assert uow.now == now
        uow.commit()
    assert now.tzinfo is UTC
    stamps = {first.created_at, first.updated_at, second.created_at, saved.updated_at}
    assert stamps == {now}
    with begin(write=False) as uow:
        assert uow.now >= now
    with begin() as uow:
        assert uow.now >= now
        saved = uow.tasks.save(saved)
        assert (saved.created_at, saved.updated_at) == (now, uow.now)


def test_versions_count_the_saves(begin: Begin) -> None:
    """A row begins at version 1, whatever it was given, and each save raises it by one."""
    with begin() as uow:
        task = make(uow, TASKS, version=41)
        versions = [task.version]
        for _ in range(3):
            task = uow.tasks.save(task)
            versions.append(task.version)
        uow.commit()
    with begin() as uow:
        versions.append(uow.tasks.save(task).version)
    assert versions == [1, 2, 3, 4, 5]


def test_a_birth_is_not_rewritten(begin: Begin) -> None:
    """Times are the transaction's, whatever the caller put there."""
    long_ago = datetime(2001, 1, 1, tzinfo=UTC)
    with begin() as uow:
        task = make(uow, TASKS, created_at=long_ago, updated_at=long_ago)
        assert (task.created_at, task.updated_at) == (uow.now, uow.now)
        uow.commit()
    with begin() as uow:
        saved = uow.tasks.save(evolve(task, created_at=long_ago, updated_at=long_ago))
        uow.commit()
    with begin(write=False) as uow:
        assert uow.tasks.get(task.id) == saved
    assert (saved.created_at, saved.updated_at > long_ago) == (task.created_at, True)


@for_each(("where", "kind"), [("work", ACCOUNTS), ("record", TASKS), ("checkpoints", AGENTS)])
def test_a_kind_of_another_area_is_refused(begin: Begin, space: str, where: str, kind: Any) -> None:
    """A space keeps what its area holds: anything else is not added, saved or removed there."""
    elsewhere = f"{where}/{space.partition('/')[2]}"
    row = kind.entity(id="x", **{"email" if kind is ACCOUNTS else "name": "x"})
    with begin(space=elsewhere) as uow:
        for change in (
            lambda: uow.add(kind, [row]),
            lambda: uow.save(kind, [row]),
            lambda: uow.remove(kind, ["x"]),
        ):
            with pytest.raises(InvalidValue, match=f"{kind.name} are not kept in {elsewhere}"):
                change()
        assert uow.select(find(kind)) == []


@for_each("write", [True, False], ids=["write", "read"])
@for_each(
    "name",
    ["", "/", "work", "work/", "/owner", "Work/x", "plan/x", "work/a\0b", "work/" + "x" * 96,
     "work/" + "é" * 48, "work/\ud800"],
)  # fmt: skip
def test_what_is_not_the_name_of_a_space_is_refused(store: Store, name: str, write: bool) -> None:
    """A space is <area>/<owner> in at most 100 bytes of text."""
    before = store.spaces()
    with pytest.raises(InvalidValue) as refusal, store.transaction(name, write=write):
        pass
    assert refusal.value.field == "space"
    assert store.spaces() == before


def test_owners_may_have_any_name(fresh: Fresh) -> None:
    """Spaces are told apart by every character of their names, up to 100 bytes."""
    store = fresh()
    names = ["work/a", "work/A", "work/a ", "work/a/b", "work/ä", "work/a'b\"%s;--", "record/a",
             "work/\U0001f404", "work/" + "x" * 95, "work/" + "x" * 94]  # fmt: skip
    for name in names:
        kind = ACCOUNTS if name.startswith("record") else PROJECTS
        with work_in(store, name) as uow:
            make(uow, kind, id="same")
            uow.commit()
    assert store.spaces() == sorted(names)
    assert [everything_in(store, name)["heads"][0].seq for name in names] == [1] * len(names)


def test_many_spaces_live_in_one_store(fresh: Fresh) -> None:
    """Each space has its own rows under the same ids, its own journal and its own numbers."""
    store = fresh()
    names = [f"work/{number}" for number in range(40)]
    rows = {}
    for name in names:
        with work_in(store, name) as uow:
            rows[name] = make(uow, PROJECTS, id="prj_1", name=name, url="the same")
            uow.commit()
    for name in names:
        with work_in(store, name, write=False) as uow:
            assert uow.select(find(PROJECTS)) == [rows[name]]
            assert [(entry.seq, entry.key) for entry in uow.journal.all_entries()] == [(1, "prj_1")]
    assert store.spaces() == sorted(names)


def test_looking_into_a_space_does_not_make_it(fresh: Fresh) -> None:
    """A store has the spaces somebody has written in, and no others."""
    store = fresh()
    assert store.spaces() == []
    with work_in(store, write=False) as uow:
        assert uow.select(find(TASKS)) == []
        assert uow.journal.last() == 0
    assert store.spaces() == []


def test_a_reader_does_not_write(store: Store, begin: Begin, space: str) -> None:
    """A transaction begun for reading refuses every change, and leaves none."""
    with begin() as uow:
        task = make(uow, TASKS)
        uow.commit()
    before = everything_in(store, space)
    with begin(write=False) as uow:
        for change in (
            lambda: make(uow, TASKS),
            lambda: uow.tasks.save(task),
            lambda: uow.tasks.remove(task.id),
            uow.commit,
        ):
            with pytest.raises(RuntimeError, match="reading"):
                change()
    assert everything_in(store, space) == before


def test_a_committed_transaction_is_over(store: Store, begin: Begin, space: str) -> None:
    """Nothing can be changed behind the commit, where no journal would tell of it."""
    with begin() as uow:
        task = make(uow, TASKS)
        uow.commit()
        for change in (
            lambda: make(uow, TASKS),
            lambda: uow.tasks.save(task),
            lambda: uow.tasks.remove(task.id),
            uow.commit,
        ):
            with pytest.raises(RuntimeError, match="over"):
                change()
    found = everything_in(store, space)
    assert (found["tasks"], len(found["journal"])) == ([task], 1)


def test_a_closed_store_says_so(fresh: Fresh) -> None:
    """Whoever asks a store that was closed is told; closing it twice is no error."""
    store = fresh()
    store.close()
    store.close()
    for use in (
        store.spaces,
        lambda: store.transaction(HERE, write=False).__enter__(),
        lambda: store.transaction(HERE, write=True).__enter__(),
    ):
        with pytest.raises(StoreUnavailable, match="closed"):
            use()


def test_leaving_the_block_closes_the_store(engine: str, new_url: Callable[[str], str]) -> None:
    """A store is a context manager, also around an exception."""
    with pytest.raises(ZeroDivisionError), open_store(new_url(engine)) as store:
        raise ZeroDivisionError
    with pytest.raises(StoreUnavailable, match="closed"):
        store.spaces()


@shared
def test_a_store_keeps_what_it_held_when_it_is_opened_again(
    engine: str, new_url: Callable[[str], str], fresh: Fresh
) -> None:
    """Everything is there after the last one has closed it, and it is the same store."""
    url = new_url(engine)
    with open_store(url) as store:
        _two_kinds(store, HERE, "first")
        before, uuid = everything_in(store), store.uuid
    again = fresh(url, create=False)
    assert (everything_in(again), again.uuid, again.spaces()) == (before, uuid, [HERE])


@shared
def test_two_opens_of_one_place_are_one_store(
    engine: str, new_url: Callable[[str], str], fresh: Fresh
) -> None:
    """What one open commits the other sees, and goes on when the first is closed."""
    url = new_url(engine)
    one, other = fresh(url), fresh(url)
    project, task = _two_kinds(one, HERE, "first")
    with work_in(other) as uow:
        assert uow.tasks.get(task.id) == task
        saved = uow.projects.save(project)
        uow.commit()
    one.close()
    with work_in(other, write=False) as uow:
        assert uow.projects.get(project.id) == saved
    assert one.uuid == other.uuid


@pytest.mark.parametrize("engine", ["lmdb", "duckdb"], indirect=True)
def test_a_path_through_a_link_is_the_same_store(
    engine: str, new_url: Callable[[str], str], fresh: Fresh, tmp_path: Path
) -> None:
    """A store opened through a symbolic link has the same rows and the same lock."""
    url = new_url(engine)
    real = Path(url.partition("://")[2])
    direct = fresh(url)
    by_file, by_folder = tmp_path / "by-file", tmp_path / "by-folder"
    by_file.symlink_to(real)
    by_folder.symlink_to(real.parent)
    for link in (by_file, by_folder / real.name):
        linked = fresh(f"{engine}://{link}", patience=0.2)
        assert linked.uuid == direct.uuid
        _, task = _two_kinds(linked, HERE, link.name)
        with ThreadPoolExecutor(1) as other, work_in(direct) as uow:
            assert uow.tasks.get(task.id) == task
            busy = other.submit(_two_kinds, linked, HERE, "impatient").exception(LONG / 2)
        assert isinstance(busy, StoreBusy)
