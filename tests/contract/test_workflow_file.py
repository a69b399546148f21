"""Threads of a SqliteSaver's file go on here, whoever writes to it, and it stays as it is."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from herdbook.adapters.langgraph import HerdbookSaver
from herdbook.adapters.langgraph.saver_store import SaverPlace, SaverStore
from herdbook.adapters.langgraph.workflow_file import WorkflowFile
from herdbook.domain.errors import StoreUnavailable
from herdbook.ports.engine.dictionary import CHECKPOINTS, LANES
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.services.stores.store_check import check
from tests.contract.foreign_checkpoints import begun, sqlite_saver, tuples, workflow
from tests.contract.space import work_in
from tests.contract.workflows import config, put

IN_MEMORY = pytest.mark.parametrize("engine", ["memory"], indirect=True)


@pytest.fixture
def place(space: str) -> str:
    return f"checkpoints/{space.partition('/')[2]}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "theirs").mkdir()
    return tmp_path / "theirs" / "issue_workflow.db"


def saver_with(store: Store, place: str, file: Path) -> HerdbookSaver:
    """A saver of a space, where a workflow file is named."""
    saver = HerdbookSaver(store, place)
    found = SaverPlace(store, place, WorkflowFile(file))
    saver._saver_store = SaverStore(lambda _: found, 2**20)
    return saver


def bytes_in(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, with its content."""
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def count(store: Store, place: str, kind: Any = CHECKPOINTS) -> int:
    """How many checkpoints a space has."""
    with work_in(store, place, write=False) as uow:
        return uow.count(find(kind))


def test_a_thread_goes_on_at_its_next_node(store: Store, place: str, file: Path) -> None:
    """As with its old saver; until then nothing is stored, and the file stays as it is."""
    with sqlite_saver(file) as theirs:
        for thread in ("one", "two"):
            begun(theirs, thread)
        wanted = tuples(theirs, "one")
        before = bytes_in(file.parent)
        ours = saver_with(store, place, file)
        assert tuples(ours, "one") == wanted
        waiting = workflow(ours).get_state(config("one"))
        assert waiting.next == workflow(theirs).get_state(config("one")).next != ()
        assert ours.get_tuple(config("three")) is None
        assert count(store, place) == 0
        end = workflow(ours).invoke(Command(resume="Yes"), config("one"))
        assert [each.content for each in end["messages"]][-1] == "Yes"
        assert end["parts"] == ["a", "b", "c"]
        assert bytes_in(file.parent) == before
        assert count(store, place) > len(wanted)
        kept = [each[:-1] for each in tuples(saver_with(store, place, file), "one")]
        assert [each for each in wanted if each[:-1] not in kept] == []
        assert end == workflow(theirs).invoke(Command(resume="Yes"), config("one"))
        assert tuples(HerdbookSaver(store, place), "two") == []
    assert check(store, [place]) == []


def test_the_file_counts_until_the_thread_has_gone_on_here(
    store: Store, place: str, file: Path
) -> None:
    """What its program writes meanwhile is seen, and no longer once a step was taken here."""
    with sqlite_saver(file) as theirs:
        first = put(theirs, config("t"), 0, {"n": 0})
        ours = saver_with(store, place, file)
        assert ours.get_tuple(config("t")).config == first  # type: ignore[union-attr]
        second = put(theirs, first, 1, {"n": 1})
        theirs.put_writes(second, [("n", 2)], "task")
        found = ours.get_tuple(config("t"))
        assert found is not None
        assert (found.config, found.pending_writes) == (second, [("task", "n", 2)])
        own = put(ours, second, 2, {"n": "ours"})
        put(theirs, second, 3, {"n": "theirs"})
        for saver in (ours, saver_with(store, place, file)):
            newest = saver.get_tuple(config("t"))
            assert newest is not None
            assert newest.config == own
            assert len(list(saver.list(config("t")))) == 3


def test_a_thread_that_was_removed_here_does_not_come_back(
    store: Store, place: str, file: Path
) -> None:
    """A new run under its name begins anew; the others are still there."""
    with sqlite_saver(file) as theirs:
        for thread in ("t", "u"):
            put(theirs, config(thread), 0, {"n": 0})
    ours = saver_with(store, place, file)
    ours.delete_thread("t")
    for saver in (ours, saver_with(store, place, file)):
        assert saver.get_tuple(config("t")) is None
        assert saver.get_tuple(config("u")) is not None
    ours.copy_thread("u", "v")
    ours.prune(["u"], strategy="delete")
    assert [ours.get_tuple(config(each)) is None for each in "uv"] == [True, False]
    assert count(store, place, LANES) == 1


@IN_MEMORY
def test_a_thread_of_the_space_is_never_looked_up_in_the_file(
    store: Store, place: str, file: Path
) -> None:
    """Two threads of one name are not mixed, and a damaged file holds up no thread that is here."""
    ours = saver_with(store, place, file)
    with sqlite_saver(file) as theirs:
        theirs.setup()
        mine = put(ours, config("t"), 0, {"n": "mine"})
        put(theirs, config("t"), 1, {"n": "theirs"})
    assert [each.config for each in ours.list(config("t"))] == [mine]
    file.write_bytes(b"no database" * 100)
    assert ours.get_tuple(config("t")) is not None
    with pytest.raises(StoreUnavailable, match="not a database"):
        ours.get_tuple(config("other"))


@IN_MEMORY
def test_a_thread_of_which_something_cannot_be_read_is_refused(
    store: Store, place: str, file: Path
) -> None:
    """It neither begins anew nor goes on from an earlier step; the others do."""
    with sqlite_saver(file) as theirs:
        first = put(theirs, config("t"), 0, {"n": 0})
        second = put(theirs, first, 1, {"n": 1})
        put(theirs, config("u"), 0, {"n": 0})
    with closing(sqlite3.connect(file)) as harmed:
        ids = [second["configurable"]["checkpoint_id"]]
        harmed.execute("UPDATE checkpoints SET type = 'pickle' WHERE checkpoint_id = ?", ids)
        harmed.commit()
    ours = saver_with(store, place, file)
    for attempt in (
        lambda: ours.get_tuple(config("t")),
        lambda: list(ours.list(config("t"))),
        lambda: put(ours, first, 2, {"n": 2}),
    ):
        with pytest.raises(StoreUnavailable, match="pickle.*herdbook import langgraph-sqlite"):
            attempt()
    assert count(store, place) == 0
    assert ours.get_tuple(config("u")) is not None


@IN_MEMORY
@pytest.mark.parametrize("made", ["empty", "no tables"])
def test_a_file_without_checkpoints_has_no_threads(
    store: Store, place: str, file: Path, made: str
) -> None:
    """An empty one, as SQLite leaves it, and one in which other things are."""
    file.touch()
    if made == "no tables":
        with closing(sqlite3.connect(file)) as other:
            other.execute("CREATE TABLE notes (text)")
    before = bytes_in(file.parent)
    ours = saver_with(store, place, file)
    assert ours.get_tuple(config("t")) is None
    put(ours, config("t"), 0, {"n": 0})
    assert ours.get_tuple(config("t")) is not None
    assert bytes_in(file.parent) == before
    with sqlite_saver(file) as theirs:
        put(theirs, config("u"), 0, {"n": 0})
    assert ours.get_tuple(config("u")) is not None
