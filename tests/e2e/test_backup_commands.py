"""Backups on the command line: made when asked and by themselves, listed, and restored."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PROGRAM, Person, at_work
from tests.e2e.rpc_process import Pipes

DOCUMENT = Path(__file__).parents[2] / "docs" / "backup.md"
ASKED = {"HERDBOOK_BACKUP": "daily"}
"""What lets a test start backups by themselves."""


def names(person: Person, app: Path, **variables: str) -> list[str]:
    """The names of the tasks that a command run here finds."""
    return sorted(each["name"] for each in person.asks(app, "task", "list", **variables))


def listed(person: Person, app: Path, *folder: str) -> list[dict[str, Any]]:
    """The backups that there are."""
    found: list[dict[str, Any]] = person.asks(app, "backup", "list", *folder)["backups"]
    return found


def wait_for(what: Callable[[], Any]) -> Any:
    """What a process of its own brings about; it is not waited for by whoever started it."""
    for _ in range(600):
        if found := what():
            return found
        time.sleep(0.1)
    pytest.fail("it did not happen within a minute")


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_a_backup_is_listed_and_restored_on_another_engine(
    person: Person, app: Path, tmp_path: Path, postgres_url: str, engine: str
) -> None:
    """With the digest it had, to be worked with; a store in use and a wrong place are refused."""
    person.chooses(postgres_url if engine == "postgres" else engine)
    at_work(person, app, "otter")
    folder = str(tmp_path / "backups")
    answer = person.asks(app, "backup", "work", "--to", folder)
    (written,) = answer["written"]
    assert stat.S_IMODE(Path(written["path"]).stat().st_mode) == 0o600
    (found,) = listed(person, app, folder)
    assert (found["ok"], found["digest"], found["seq"]) == (True, written["digest"], written["seq"])
    person.runs(app, "task", "add", "later")
    other = f"{'lmdb' if engine == 'duckdb' else 'duckdb'}://{tmp_path}/restored/work"
    (space,) = person.asks(app, "restore", folder, "--to", other)["spaces"]
    assert space["digest"] == space["recorded"] == written["digest"]
    assert names(person, app, HERDBOOK_WORK=other) == ["the task of otter"]
    person.runs(app, "check", "--area", "work", HERDBOOK_WORK=other)
    person.runs(app, "task", "add", "new here", HERDBOOK_WORK=other)
    told = person.tries(app, "restore", folder, "--to", other)
    assert told.returncode == 4
    assert "is restored into an empty store only" in told.stderr
    told = person.tries(app, "restore", str(tmp_path / "nowhere"), "--to", f"{tmp_path}/x.lmdb")
    assert told.returncode == 3
    assert not (tmp_path / "x.lmdb").exists()


def test_only_the_newest_are_kept(person: Person, app: Path, tmp_path: Path) -> None:
    """As many as are asked for, and in a folder of the person's own where none is named."""
    at_work(person, app, "otter")
    for _ in range(4):
        person.runs(app, "backup", "--to", str(tmp_path / "b"), "--keep", "2")
    assert len(listed(person, app, str(tmp_path / "b"))) == 2
    (written,) = person.asks(app, "backup")["written"]
    assert Path(written["path"]).is_relative_to(person.data / "backups")
    assert person.tries(app, "backup", "--keep", "0").returncode == 2


def test_the_first_write_of_a_day_starts_a_copy_and_later_ones_segments(
    person: Person, app: Path
) -> None:
    """By a process of its own, outside the store; a reader starts none, and `off` none at all."""
    person.config.parent.mkdir(parents=True)
    person.config.write_text("backup_every = 0.001\n")
    person.runs(app, "task", "add", "unsaved")
    person.runs(app, "status", **ASKED)
    assert listed(person, app) == []
    assert person.tries(app, "task", "add", "first", **ASKED).returncode == 0
    (copy,) = wait_for(lambda: listed(person, app))
    assert (copy["type"], copy["ok"]) == ("copy", True)
    assert person.tries(app, "task", "add", "second", **ASKED).returncode == 0
    wait_for(lambda: len(listed(person, app)) == 2)
    segment = listed(person, app)[1]
    assert (segment["type"], segment["ok"]) == ("segment", True)
    doctor = person.asks(app, "doctor")["backups"]
    assert doctor["failures"] == {}
    (state,) = doctor["spaces"]
    assert (state["copies"], state["seq"]) == (1, segment["seq"])
    assert f"up to #{segment['seq']};" in person.runs(app, "doctor")
    other = f"duckdb://{person.home}/restored.duckdb"
    person.runs(app, "restore", "work", "--to", other)
    assert names(person, app, HERDBOOK_WORK=other) == ["first", "second", "unsaved"]
    (space,) = person.asks(
        app, "restore", "work", "--to", f"{person.home}/earlier.lmdb", "--at", str(copy["seq"])
    )["spaces"]
    assert space["seq"] == copy["seq"]


def test_a_backup_that_does_not_work_is_told_by_doctor(person: Person, app: Path) -> None:
    """Until one does; the command that was typed is not disturbed."""
    person.config.parent.mkdir(parents=True)
    person.config.write_text("backup_size = 10\n")
    person.runs(app, "task", "add", "first")
    answer = json.loads(person.tries(app, "backup", "--automatic", "--json", **ASKED).stdout)
    assert not answer["ok"]
    told = person.tries(app, "doctor")
    assert told.returncode == 1
    assert "larger than 10 bytes" in told.stdout
    person.config.write_text("")
    person.runs(app, "backup", "--automatic", **ASKED)
    person.runs(app, "doctor")


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_other_engines_are_backed_up_by_themselves_too(
    person: Person, app: Path, postgres_url: str, engine: str
) -> None:
    """A copy at the first time of a day, then segments, and nothing where nothing has changed."""
    person.chooses(postgres_url if engine == "postgres" else engine)
    at_work(person, app, "otter")
    for expected in (["copy"], [], ["segment"]):
        if expected == ["segment"]:
            person.runs(app, "task", "add", "later")
        answer = person.asks(app, "backup", "work", "--automatic", **ASKED)
        assert [each["type"] for each in answer["written"]] == expected
    person.runs(app, "restore", "work", "--to", f"{person.home}/restored.lmdb")
    there = f"{person.home}/restored.lmdb"
    assert names(person, app, HERDBOOK_WORK=there) == ["later", "the task of otter"]


def test_a_repository_has_no_say_in_backups(person: Person, app: Path) -> None:
    """Its settings file can neither stop them nor send them elsewhere."""
    (app / "herdbook.toml").write_text('backup = "off"\nbackup_keep = 1\n')
    person.runs(app, "trust")
    told = person.asks(app, "config")
    assert (told["backup_keep"]["value"], told["backup_keep"]["origin"]) == (7, "default")
    assert person.tries(app, "task", "add", "first", **ASKED).returncode == 0
    wait_for(lambda: listed(person, app))


def test_a_server_saves_what_was_written_last(person: Person, app: Path) -> None:
    """When it ends, although the last backup is young: no other write may come."""
    at_work(person, app, "otter")
    with Pipes(person, app, **ASKED) as server:
        server.call("task.add", name="one")
        wait_for(lambda: listed(person, app))
        server.call("task.add", name="two")
        assert server.end() == 0
    wait_for(lambda: len(listed(person, app)) == 2)
    other = f"{person.home}/restored.lmdb"
    person.runs(app, "restore", "work", "--to", other)
    assert names(person, app, HERDBOOK_WORK=other) == ["one", "the task of otter", "two"]


def test_what_a_workflow_saves_is_backed_up(person: Person, app: Path) -> None:
    """By its own program, which no command of ours has a part in; and it goes on elsewhere."""
    program = """
from typing import TypedDict

from langgraph.graph import StateGraph

from herdbook.adapters.langgraph import HerdbookSaver


class Issue(TypedDict):
    title: str


builder = StateGraph(Issue)
builder.add_node("read", lambda issue: {"title": issue["title"].upper()})
builder.set_entry_point("read")
with HerdbookSaver() as saver:
    builder.compile(checkpointer=saver).invoke(
        {"title": "a crash"}, {"configurable": {"thread_id": "issue-16"}}
    )
"""
    environment = {**person.variables, **ASKED}
    subprocess.run([sys.executable, "-c", program], cwd=app, env=environment, check=True)
    last = wait_for(lambda: [each for each in listed(person, app) if each["ok"]])[-1]
    assert last["space"].startswith("checkpoints/")
    other = f"duckdb://{person.home}/restored.duckdb"
    person.runs(app, "restore", "checkpoints", "--to", other)
    assert "issue-16" in person.runs(app, "checkpoint", "threads", HERDBOOK_CHECKPOINTS=other)


def test_a_store_that_is_gone_is_restored_in_its_place(person: Person, app: Path) -> None:
    """Without a word about a new store: it is the one that was there."""
    at_work(person, app, "otter")
    person.runs(app, "backup", "work")
    where = person.asks(app, "where")["areas"]["work"]["url"].removeprefix("lmdb://")
    Path(where).rename(f"{where}.damaged")
    assert person.tries(app, "status").returncode == 5
    Path(f"{where}.damaged/data.mdb").write_bytes(b"noise" * 10_000)
    words = ("restore", "work", "--to", "work")
    told = person.tries(app, *words, "--salvage", f"{where}.damaged")
    assert told.returncode == 2
    assert "without --salvage, what is in the backup is restored" in told.stderr
    assert not Path(where).exists()
    person.runs(app, *words)
    assert names(person, app) == ["the task of otter"]
    person.runs(app, "check")
    assert person.tries(app, "task", "add", "life goes on", **ASKED).returncode == 0
    wait_for(lambda: len(listed(person, app)) == 2)


def test_secrets_are_copied_only_if_that_is_asked_for(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """The restore names the accounts that lack theirs."""
    told = person.tries(
        app, "account", "add", "work", "--provider", "claude", "--credentials", "-", stdin="s3cr3t"
    )
    assert told.returncode == 0, told.stderr
    for flag, expected in ((["--with-secrets"], 0), ([], 1)):
        folder = str(tmp_path / f"b{expected}")
        person.runs(app, "backup", "record", "--to", folder, *flag)
        (space,) = person.asks(app, "restore", folder, "--to", f"{tmp_path}/r{expected}.lmdb")[
            "spaces"
        ]
        assert len(space["masked"]) == expected


def test_the_drill_goes_as_it_is_written(person: Person, app: Path) -> None:
    """Typed into a shell in a repository, every command ends well, and everything is back."""
    at_work(person, app, "otter")
    (script,) = [
        each
        for each in re.findall(r"```sh\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
        if "herdbook restore" in each and "damaged" in each
    ]
    sh = shutil.which("sh")
    assert sh is not None
    done = subprocess.run(
        [sh, "-eu", "-c", script],
        cwd=app,
        env={**person.variables, "PATH": f"{PROGRAM.parent}:{person.variables['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the task of otter" in names(person, app)
    assert "is a drill" in str(names(person, app))
    assert json.loads(person.runs(app, "check", "--json"))["ok"]
    assert os.path.isdir(person.data / "backups")  # noqa: PTH112
