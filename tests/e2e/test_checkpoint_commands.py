"""Checkpoints on the command line: looked at, compared, tidied up, taken over from elsewhere."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PROGRAM, Person


@pytest.fixture
def done(person: Person, app: Path) -> Path:
    """A repository in which a workflow has run."""
    person.works(app, "issue-17")
    return app


@pytest.fixture
def without_langgraph(tmp_path: Path) -> dict[str, str]:
    """What makes Python believe that LangGraph and what it brings are not installed."""
    for name in ("langgraph", "langchain_core", "ormsgpack"):
        folder = tmp_path / "lacking" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(f"raise ModuleNotFoundError(name={name!r})")
    return {"PYTHONPATH": str(tmp_path / "lacking")}


def test_a_thread_is_looked_at_copied_pruned_and_removed(
    person: Person, done: Path, without_langgraph: dict[str, str]
) -> None:
    """All that without LangGraph being there, and a preview changes nothing."""

    def asks(*words: str) -> Any:
        return person.asks(done, "checkpoint", *words, **without_langgraph)

    (thread,) = asks("threads")
    assert (thread["thread_id"], thread["checkpoints"]) == ("issue-17", 6)
    listed = asks("list", "issue-17")
    assert [each["step"] for each in listed] == [4, 3, 2, 1, 0, -1]
    assert [each["parent_id"] for each in listed[:-1]] == [
        each["checkpoint_id"] for each in listed[1:]
    ]
    assert (
        asks("list", "issue-17", "--limit", "2", "--after", listed[2]["checkpoint_id"])
        == (listed[3:5])
    )
    shown = asks("show", "issue-17", listed[1]["checkpoint_id"])
    assert shown["config"]["configurable"] == {
        "thread_id": "issue-17",
        "checkpoint_ns": "",
        "checkpoint_id": listed[1]["checkpoint_id"],
    }
    assert shown["values"]["done"]["value"] == ["plan", "draft", "review", "merge"]
    message = shown["values"]["messages"]["value"][0]
    assert message["$class"] == "langchain_core.messages.human.HumanMessage"
    assert message["$made_of"]["content"] == "please"
    assert asks("copy", "issue-17", "again")["copied"] == 6
    before = {each["thread_id"]: each for each in asks("threads")}
    told = [asks("prune", "again", *preview) for preview in (["--preview"], [])]
    assert [each.pop("preview") for each in told] == [True, False]
    assert told[0] == told[1]
    freed = told[0]["freed"]
    assert (freed["checkpoints"], freed["bytes"] > 0) == (5, True)
    after = {each["thread_id"]: each for each in asks("threads")}
    assert after["again"]["bytes"] == before["again"]["bytes"] - freed["bytes"]
    assert after["issue-17"] == before["issue-17"]
    assert asks("rm", "again", "--preview")["freed"]["checkpoints"] == 1
    assert len(asks("threads")) == 2
    assert asks("rm", "again")["freed"]["bytes"] == after["again"]["bytes"]
    assert asks("threads") == [thread]


def test_two_checkpoints_are_compared_field_by_field(person: Person, done: Path) -> None:
    """What came, what went and what changed, by the path that leads to it."""
    first, *_, fourth, last = reversed(person.asks(done, "checkpoint", "list", "issue-17"))
    told = person.asks(done, "checkpoint", "diff", "issue-17")
    assert told["before"]["checkpoint_id"] == fourth["checkpoint_id"]
    assert told["after"]["checkpoint_id"] == last["checkpoint_id"]
    found = {each["channel"]: each for each in told["channels"]}
    assert found["done"]["differences"] == [
        {"path": "[4]", "change": "added", "before": None, "after": "file"}
    ]
    assert "text" in told["unchanged"]
    assert [each["path"] for each in told["metadata"]["differences"]] == ["step"]
    text = person.runs(
        done,
        "checkpoint",
        "diff",
        "issue-17",
        first["checkpoint_id"][:13] + "-",
        last["checkpoint_id"],
    )
    assert '+ ["plan", "draft", "review", "merge", "file"]' in text
    assert "__start__  (removed, " in text


def test_what_is_not_there_is_told_with_what_may_be_meant(person: Person, done: Path) -> None:
    """With the exit code of what is not found, and without making anything."""
    for words, said in {
        ("show", "issue-1"): "there is no thread 'issue-1'; did you mean 'issue-17'?",
        (
            "rm",
            "issue-17",
            "nothing",
        ): "there is no thread 'nothing'; `herdbook checkpoint threads`",
        ("list", "issue-17", "--after", "ffff"): "there is no checkpoint 'ffff'",
        ("show", "issue-17", "--channel", "x"): "there is no channel 'x'; there are messages, done",
        ("show", "issue-17", "--namespace", "x"): "there is no namespace 'x'; there are ''",
    }.items():
        told = person.tries(done, "checkpoint", *words)
        assert (told.returncode, told.stdout) == (3, "")
        assert said in told.stderr
    other = person.repository(done.parent / "other")
    assert person.asks(other, "checkpoint", "threads") == []
    for words in (("rm", "x"), ("prune", "x", "--preview"), ("copy", "x", "y"), ("show", "x")):
        told = person.tries(other, "checkpoint", *words)
        assert told.returncode == 3
        assert "there are no checkpoints here yet" in told.stderr
    assert not (other / ".herdbook").exists()


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_a_workflow_moves_from_sqlite_and_goes_on(
    person: Person, app: Path, tmp_path: Path, postgres_url: str, engine: str
) -> None:
    """Its file is as it was, a second import adds nothing, and the graph is where it had been."""
    person.chooses(postgres_url if engine == "postgres" else engine)
    file = tmp_path / "old" / "issue_workflow.db"
    file.parent.mkdir()
    person.works(tmp_path, "issue-17", "--sqlite", str(file))
    before = {each.name: each.read_bytes() for each in file.parent.iterdir()}
    told = person.asks(app, "import", "langgraph-sqlite", str(file))
    assert (told["threads"], told["added"], told["kept"], told["failed"]) == (1, 6, 0, [])
    assert told["bytes_before"] > told["bytes_after"] > 0
    again = person.asks(app, "import", "langgraph-sqlite", str(file))
    assert (again["added"], again["kept"], again["writes_added"]) == (0, 6, 0)
    assert {each.name: each.read_bytes() for each in file.parent.iterdir()} == before
    planned = person.asks(app, "checkpoint", "list", "issue-17")[3]
    config = person.asks(app, "checkpoint", "show", "issue-17", planned["checkpoint_id"])["config"]
    went_on = person.works(app, "issue-17", "--from", json.dumps(config), "--note", "again")
    assert sorted(went_on["ran"]) == ["draft", "file", "merge", "review"]
    assert went_on["notes"] == ["again"]


def test_a_file_of_another_kind_is_not_taken_over(person: Person, app: Path) -> None:
    """One sentence says what is wrong, and no store is made."""
    (app / "notes.txt").write_text("no database" * 100)
    for name, said in {"none.db": "no such file", "notes.txt": "file is not a database"}.items():
        told = person.tries(app, "import", "langgraph-sqlite", name)
        assert told.returncode == 5
        assert said in told.stderr
    assert not (app / ".herdbook").exists()


def test_a_reader_that_has_seen_enough_is_no_error(person: Person, done: Path) -> None:
    """Of what is printed only the beginning is read, and nobody complains."""
    with subprocess.Popen(
        [PROGRAM, "checkpoint", "show", "issue-17", "--json"],
        cwd=done,
        env=person.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait() == 0
