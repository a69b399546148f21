"""Taking over what LangGraph's SqliteSaver has kept: all of it, as a graph gets it, once."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from herdbook.adapters.langgraph import HerdbookSaver
from herdbook.adapters.langgraph.sqlite_reader import open_database
from herdbook.domain.errors import DecodingRefused
from herdbook.ports.engine.dictionary import CHECKPOINTS, PIECES
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.services.checkpoints.import_foreign import (
    CheckpointImport,
    ImportCounts,
    import_checkpoints,
)
from herdbook.services.stores.store_check import check
from tests.contract.children import Child, Died
from tests.contract.conftest import SHARED
from tests.contract.foreign_checkpoints import (
    begun,
    import_until_killed,
    sqlite_saver,
    tuples,
    workflow,
)
from tests.contract.space import work_in
from tests.contract.workflows import config, put, steps

IN_MEMORY = pytest.mark.parametrize("engine", ["memory"], indirect=True)


@pytest.fixture
def place(space: str) -> str:
    return f"checkpoints/{space.partition('/')[2]}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "issue_workflow.db"


def _taken(store: Store, place: str, file: Path) -> CheckpointImport:
    with open_database(file) as source:
        return import_checkpoints(source, store, place)


def test_a_graph_goes_on_as_it_would_have_with_its_old_saver(
    store: Store, place: str, file: Path
) -> None:
    """Every checkpoint is what SqliteSaver says it is, and the answer to a question leads on."""
    ours = HerdbookSaver(store, place)
    with sqlite_saver(file) as theirs:
        for thread in ("one", "two"):
            begun(theirs, thread)
        taken = _taken(store, place, file)
        assert list(taken.threads) == ["one", "two"]
        assert taken.failed == []
        for thread in ("one", "two"):
            before = tuples(theirs, thread)
            assert {each[1] for each in before} > {""}
            assert any(each[-1] for each in before)
            assert tuples(ours, thread) == before
        again = _taken(store, place, file)
        assert again.counted == ImportCounts(0, taken.counted.added, 0, taken.counted.writes_added)
        assert (again.bytes, again.failed) == (taken.bytes, [])
        where = {"configurable": {"thread_id": "two"}}
        ends = [workflow(saver).invoke(Command(resume="Yes"), where) for saver in (theirs, ours)]
        assert ends[0] == ends[1]
        assert [each.content for each in ends[1]["messages"]][-1] == "Yes"
        assert ends[1]["parts"] == ["a", "b", "c"]
        assert ends[1]["long"] == "word " * 2_000
    assert check(store, [place]) == []


@pytest.mark.parametrize("engine", SHARED, indirect=True)
def test_an_import_that_was_killed_is_taken_up_again(
    engine: str, new_url: Any, fresh: Any, file: Path
) -> None:
    """What had come stays as it is, and the rest comes; in the end nothing is there twice."""
    with sqlite_saver(file) as theirs:
        where = config("t")
        for step in range(120):
            where = put(theirs, where, step, {"n": step})
            theirs.put_writes(where, [("n", step)], f"task {step}")
        url, place = new_url(engine), "checkpoints/here"
        with pytest.raises(Died, match="SIGKILL"):
            Child(import_until_killed, url, place, file, 110).result()
        store = fresh(url)
        with work_in(store, place, write=False) as uow:
            assert uow.count(find(CHECKPOINTS)) == 100
        assert _taken(store, place, file).counted == ImportCounts(20, 100, 20, 100)
        assert tuples(HerdbookSaver(store, place), "t") == tuples(theirs, "t")


def test_values_come_once_however_often_they_were_written(
    store: Store, place: str, file: Path
) -> None:
    """A state that changes a little per step takes a fraction of what it took."""
    with sqlite_saver(file) as theirs:
        where = config("t")
        for checkpoint, metadata, fresh in steps("100 channels", 30, 100_000):
            where = theirs.put(where, checkpoint, metadata, fresh)
        taken = _taken(store, place, file)
        assert tuples(HerdbookSaver(store, place), "t") == tuples(theirs, "t")
    assert taken.bytes < file.stat().st_size / 8
    with work_in(store, place, write=False) as uow:
        assert sum(piece.size for piece in uow.select(find(PIECES))) < 170_000


@IN_MEMORY
def test_what_cannot_come_is_told_and_holds_up_nothing(
    store: Store, place: str, file: Path
) -> None:
    """Row by row, with its reason; all others come, and the file is as it was."""
    with sqlite_saver(file) as theirs:
        where = config("t")
        for step in range(8):
            where = put(theirs, where, step, {"n": step})
            theirs.put_writes(where, [("n", step), ("m", step)], "task")
    with closing(sqlite3.connect(file)) as harmed:
        ids = [i for (i,) in harmed.execute("SELECT checkpoint_id FROM checkpoints ORDER BY 1")]
        for number, change in enumerate(
            [
                "type = 'pickle'",
                "checkpoint = x'c1'",
                "metadata = '[]'",
                f"checkpoint_id = '{'9' * 70}'",
                "type = NULL",
                "metadata = NULL, parent_checkpoint_id = ''",
            ]
        ):
            harmed.execute(
                f"UPDATE checkpoints SET {change} WHERE checkpoint_id = ?", [ids[number]]
            )
        harmed.execute(
            "UPDATE writes SET type = NULL WHERE checkpoint_id = ? AND idx = 1", [ids[7]]
        )
        harmed.execute("UPDATE writes SET type = 'pickle' WHERE checkpoint_id = ?", [ids[6]])
        harmed.commit()
    before = file.read_bytes()
    taken = _taken(store, place, file)
    assert file.read_bytes() == before
    assert [each.reason.partition(",")[0][:40] for each in taken.failed] == [
        "it was written as 'pickle'",
        "it is no map",
        "what is said of it is no JSON object",
        "the word for how it is written is no tex",
        "the word for how it is written is no tex",
        "checkpoint_id: must have 1 to 64 bytes",
    ]
    assert ids[0] in taken.failed[0].key
    assert taken.counted == ImportCounts(3, 0, 5, 0)
    saver = HerdbookSaver(store, place)
    assert saver.get_tuple(config("t", "", ids[5])) is not None
    with pytest.raises(DecodingRefused, match="pickle"):
        saver.get_tuple(config("t", "", ids[6]))


@IN_MEMORY
@pytest.mark.parametrize("version", [1, 2, 3])
def test_older_formats_come_as_the_saver_reads_them(
    store: Store, place: str, file: Path, version: int
) -> None:
    """Written as JSON, with sends that wait, before tasks had paths."""
    message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "Hello", "type": "human"},
    }
    sent = {
        "lc": 2,
        "type": "constructor",
        "id": ["langgraph", "types", "Send"],
        "args": ["part", {"name": "z"}],
    }
    whole = {
        "v": version,
        "id": "1ef4f797-8335-6428-8001-8a1503f9b875",
        "ts": "2024-07-31T20:14:19.804150+00:00",
        "channel_values": {"messages": [message], "parts": ["a"], "long": "", "begin": "begin"},
        "channel_versions": {"messages": 2, "parts": 3, "begin": 3, "long": 2, "__start__": 2},
        "versions_seen": {"__start__": {"__start__": 1}, "begin": {"start:begin": 2}},
        "pending_sends": [sent],
    }
    with closing(sqlite3.connect(file)) as old:
        old.executescript(
            "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, "
            "parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY "
            "(thread_id, checkpoint_ns, checkpoint_id)); CREATE TABLE writes (thread_id TEXT, "
            "checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER, channel TEXT, "
            "type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, "
            "idx))"
        )
        ids = ["t", "", whole["id"]]
        said = b'{"source": "loop", "step": 1, "writes": {"begin": {"long": ""}}}'
        values = [*ids, None, "json", json.dumps(whole).encode(), said]
        old.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        written = [*ids, "task", 0, "parts", "json", b'["b"]']
        old.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", written)
        other = [*ids[:2], "gone", "task", 0, "parts", "json", b'["b"]']
        old.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", other)
        old.commit()
    with open_database(file) as source:
        assert source.left_out == 1
        assert import_checkpoints(source, store, place).counted == ImportCounts(1, 0, 1, 0)
    ours = HerdbookSaver(store, place)
    with sqlite_saver(file) as theirs:
        assert tuples(ours, "t") == tuples(theirs, "t")
        states = [workflow(saver).get_state(config("t")) for saver in (ours, theirs)]
    assert states[0].next == states[1].next == ("part",)
    assert states[0].values == states[1].values
    assert workflow(ours).invoke(None, config("t"))["parts"] == ["a", "z"]
