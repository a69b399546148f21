"""Which store is used is told honestly: what is not trusted, where the plan is, and `use`."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters.user_state import trust
from herdbook.domain.location.areas import Area
from tests.e2e.conftest import Files, Person
from tests.e2e.rpc_process import Pipes

SERVER = "postgresql://nobody@127.0.0.1:1/team"
ENGINES = ("lmdb", "duckdb", "postgres")


@pytest.fixture
def planned(person: Person, app: Path) -> list[str]:
    """A plan in the usual place; the names of its tasks."""
    names = ["parse", "print"]
    for name in names:
        person.runs(app, "task", "add", name)
    return names


def _tasks(person: Person, folder: Path) -> list[str]:
    return sorted(each["name"] for each in person.asks(folder, "task", "list"))


@pytest.mark.parametrize("line", [f'backend = "{SERVER}"', f'work = "{SERVER}"', 'work = "/tmp/x"'])
def test_nothing_is_written_past_a_setting_that_nobody_trusted(
    person: Person, app: Path, planned: list[str], line: str
) -> None:
    """It would not be where the setting says; reading goes on with a note, by every way in."""
    (app / "herdbook.toml").write_text(f"{line}\n")
    refused = person.tries(app, "task", "add", "lost", "--json")
    error = json.loads(refused.stderr.splitlines()[-1])["error"]
    assert (refused.returncode, error["type"]) == (5, "SettingUntrusted")
    assert "herdbook.toml, line 1" in error["message"]
    assert "`herdbook trust`" in error["message"]
    with Pipes(person, app) as pipes:
        assert pipes.call("task.add", name="lost")["data"]["type"] == "SettingUntrusted"
    told = person.tries(app, "ready")
    assert (told.returncode, "run `herdbook trust`" in told.stderr) == (0, True)
    usual = f"lmdb://{app}/.git/herdbook/work.lmdb"
    assert person.tries(app, "task", "add", "meant", "--store", usual).returncode == 0
    (app / "herdbook.toml").unlink()
    assert _tasks(person, app) == sorted([*planned, "meant"])


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_after_a_change_of_backend_the_store_with_the_plan_is_named(
    person: Person, app: Path, planned: list[str], engine: str, postgres_url: str
) -> None:
    """By reading and by writing commands, with the copy that brings it over."""
    person.chooses(postgres_url if engine == "postgres" else engine)
    for command in ("board", "ready", "status"):
        told = person.tries(app, command).stderr
        assert f"work is in lmdb://{app}/.git/herdbook/work.lmdb" in told
    (note,) = [line for line in told.splitlines() if "herdbook copy" in line]
    words = note.partition("`herdbook ")[2].partition("`")[0].split()
    person.runs(app, *words)
    assert _tasks(person, app) == planned
    assert "herdbook copy" not in person.tries(app, "board").stderr


def test_another_clone_is_not_taken_for_this_one(
    person: Person, app: Path, planned: list[str], tmp_path: Path
) -> None:
    """Both have the same repository's id, and each has a plan of its own."""
    assert planned
    person.git(tmp_path, "clone", "--quiet", str(app), "clone")
    person.git(tmp_path / "clone", "remote", "set-url", "origin", "https://example.com/team/app")
    assert "herdbook copy" not in person.tries(tmp_path / "clone", "board").stderr


def _urls(engine: str, postgres_url: str) -> str:
    return postgres_url if engine == "postgres" else engine


@pytest.mark.parametrize(
    "engines", [(one, other) for one in ENGINES for other in ENGINES], ids="-".join
)
def test_use_moves_the_plan_and_switches(
    person: Person,
    app: Path,
    everything_in: Callable[[Path], Files],
    postgres_url: str,
    engines: tuple[str, str],
) -> None:
    """In every worktree at once, verified by digest; the old store stays, and one can go back."""
    source, target = engines
    if source == target:
        told = person.asks(app, "use", _urls(source, postgres_url))
        assert person.asks(app, "use", _urls(source, postgres_url))["changed"] is False
        assert told["stores"] == []
        return
    person.asks(app, "use", _urls(source, postgres_url))
    branch = app.parent / "branch"
    person.git(app, "worktree", "add", "--quiet", "-b", "branch", str(branch))
    for folder in (app, branch):
        person.runs(folder, "task", "add", f"by {folder.name}")
    before = person.asks(app, "where")["areas"]["work"]["url"]
    kept = everything_in(app / ".git" / "herdbook") if source == "lmdb" else {}
    journal = person.runs(app, "journal", "list", "--json")
    told = person.asks(app, "use", _urls(target, postgres_url))
    (moved,) = told["stores"]
    assert (moved["area"], moved["source"]) == ("work", before)
    assert moved["spaces"][0]["digest"]
    for folder in (app, branch):
        where = person.asks(folder, "where")["areas"]["work"]["url"]
        assert where == moved["target"] != before
        assert _tasks(person, folder) == ["by app", "by branch"]
    assert person.runs(app, "journal", "list", "--json") == journal
    left = everything_in(app / ".git" / "herdbook")
    assert {name: left[name] for name in kept if name.endswith("data.mdb")} == {
        name: content for name, content in kept.items() if name.endswith("data.mdb")
    }
    person.runs(branch, "task", "add", "later")
    text = person.runs(app, "use", _urls(source, postgres_url))
    assert "was left as it is" in text
    assert _tasks(person, branch) == ["by app", "by branch", "later"]


@pytest.mark.parametrize(
    "engines", [(one, other) for one in ENGINES for other in ENGINES if one != other], ids="-".join
)
def test_use_brings_the_checkpoints_of_every_worktree(
    person: Person, app: Path, postgres_url: str, engines: tuple[str, str]
) -> None:
    """Verified by digest, also of a worktree that nothing but a workflow has used; they go on."""
    source, target = (_urls(each, postgres_url) for each in engines)
    person.runs(app, "use", source)
    branch = app.parent / "branch"
    person.git(app, "worktree", "add", "--quiet", "-b", "branch", str(branch))
    person.works(app, "issue-1")
    person.works(branch, "issue-2")
    before = {each: person.asks(each, "checkpoint", "threads") for each in (app, branch)}
    told = person.asks(app, "use", target)
    moved = [each for each in told["stores"] if each["area"] == "checkpoints"]
    spaces = [space for each in moved for space in each["spaces"]]
    assert len(spaces) == 2
    assert all(each["digest"] and each["rows"] for each in spaces)
    for folder, threads in before.items():
        assert person.asks(folder, "checkpoint", "threads") == threads
        assert len(person.asks(folder, "checkpoint", "list", threads[0]["thread_id"])) == 6
    assert person.works(branch, "issue-2")["done"].count("plan") == 2


def test_a_running_server_follows_the_switch(person: Person, app: Path, planned: list[str]) -> None:
    """The next request finds the plan where it is now, and writes there."""
    with Pipes(person, app) as pipes:
        assert len(pipes.call("task.list")) == len(planned)
        person.runs(app, "use", "duckdb")
        pipes.call("task.add", name="later")
        assert len(pipes.call("task.list")) == len(planned) + 1
    assert _tasks(person, app) == sorted([*planned, "later"])


def test_a_target_with_a_plan_of_its_own_is_not_overwritten(
    person: Person, app: Path, planned: list[str]
) -> None:
    """Nothing is switched, and both stores are as they were."""
    place = f"duckdb://{app}/.git/herdbook/work.duckdb"
    person.runs(app, "task", "add", "other", "--work", place)
    refused = person.tries(app, "use", "duckdb")
    assert (refused.returncode, "history of its own" in refused.stderr) == (4, True)
    assert not (app / ".git" / "herdbook" / "config.toml").exists()
    assert _tasks(person, app) == planned


def test_a_writer_that_holds_the_store_is_waited_for_and_not_overtaken(
    person: Person, app: Path, planned: list[str]
) -> None:
    """A switch gives up after the patience, and nothing was switched."""
    with (app / "herdbook.toml").open("w") as file:
        file.write("patience = 1\n")
    here = person.at(app)
    held, done = threading.Event(), threading.Event()

    def write() -> None:
        space = here.workspace.space(Area.WORK)
        with here.open(Area.WORK, create=True) as store, store.transaction(space, write=True):
            held.set()
            done.wait(60)

    writer = threading.Thread(target=write)
    writer.start()
    held.wait(60)
    refused = person.tries(app, "use", "duckdb")
    done.set()
    writer.join()
    assert (refused.returncode, "held by" in refused.stderr) == (4, True)
    assert not (app / ".git" / "herdbook" / "config.toml").exists()
    assert _tasks(person, app) == planned
    assert person.asks(app, "use", "duckdb")["changed"] is True
    assert _tasks(person, app) == planned


KILLED = """
import os, signal, sys
from herdbook.entrypoints.operations.stores import switch
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
setattr(switch, sys.argv.pop(1), die)
from herdbook.entrypoints.cli.run_command import main
main(["use", "duckdb"])
"""


@pytest.mark.parametrize("place", ["_open_both", "_hold_unchanged", "_write_setting"])
def test_a_switch_that_is_killed_has_switched_nothing(
    person: Person, app: Path, planned: list[str], place: str
) -> None:
    """The plan is where it was, and the same command finishes it."""
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, place], cwd=app, env=person.variables, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert "lmdb" in person.asks(app, "where")["areas"]["work"]["url"]
    person.runs(app, "task", "add", "after all")
    assert person.asks(app, "use", "duckdb")["changed"] is True
    assert _tasks(person, app) == sorted([*planned, "after all"])


def test_an_agent_cannot_switch(person: Person, app: Path, planned: list[str]) -> None:
    """Nor a person for whom another setting decides, nor outside a repository."""
    for variables in ({"HERDBOOK_AGENT": "otter"}, {"CLAUDE_CODE_SESSION_ID": "s-1"}):
        refused = person.tries(app, "use", "duckdb", **variables)
        assert (refused.returncode, "for a person" in refused.stderr) == (2, True)
    refused = person.tries(app, "use", "duckdb", HERDBOOK_WORK="elsewhere.lmdb")
    assert (refused.returncode, "HERDBOOK_WORK" in refused.stderr) == (2, True)
    refused = person.tries(app.parent, "use", "duckdb")
    assert (refused.returncode, "backend" in refused.stderr) == (2, True)
    assert _tasks(person, app) == planned


def test_a_clones_settings_that_somebody_else_wrote_reach_nothing(
    person: Person, app: Path, planned: list[str]
) -> None:
    """A folder that was handed over with its git directory may bring such a file along."""
    assert planned
    file = app / ".git" / "herdbook" / "config.toml"
    file.write_text(f'backend = "{SERVER}"\n')
    refused = person.tries(app, "task", "add", "lost")
    assert (refused.returncode, "config.toml, line 1" in refused.stderr) == (5, True)
    assert not trust.is_trusted(file, str(app / ".git"))


def test_a_bad_target_is_named_by_its_own_name(
    person: Person, app: Path, planned: list[str]
) -> None:
    """Not by an option that nobody typed."""
    assert planned
    for words, name in ((("work", "foo://x"), "target"), (("foo://x", "work"), "source")):
        for command in ("copy", "merge"):
            refused = person.tries(app, command, *words)
            assert refused.returncode == 2
            assert refused.stderr.startswith(f"herdbook: {name}: must be ")


def test_a_file_in_the_place_of_a_store_is_told(person: Person, app: Path, tmp_path: Path) -> None:
    """By reading commands too, and by `where`; it is not an empty plan."""
    file = tmp_path / "notes"
    file.write_text("mine")
    told = person.tries(app, "ready", HERDBOOK_WORK=str(file))
    assert (told.returncode, "there is a file where" in told.stderr) == (5, True)
    assert told.stdout == ""
    assert "there is a file where" in person.runs(app, "where", HERDBOOK_WORK=str(file))
    assert person.tries(app, "task", "add", "x", HERDBOOK_WORK=str(file)).returncode == 5
    assert file.read_text() == "mine"


def test_a_server_that_is_down_is_one_type_of_error(person: Person, app: Path) -> None:
    """The documented one, by reading and by writing."""
    for words in (("ready",), ("task", "add", "x")):
        told = person.tries(app, *words, "--json", HERDBOOK_WORK=SERVER)
        error: dict[str, Any] = json.loads(told.stderr.splitlines()[-1])["error"]
        assert (told.returncode, error["type"]) == (5, "StoreUnavailable")


def test_a_personal_setting_in_a_repositorys_file_is_told_to_be_ignored(
    person: Person, app: Path
) -> None:
    """By every command that reads it, by `where` and by `config`."""
    (app / "herdbook.toml").write_text('experience_tool = 5\nrecord = "repo"\n')
    said = "herdbook.toml, line 1 sets experience_tool, which is ignored"
    assert said in person.tries(app, "ready").stderr
    assert said in person.tries(app, "task", "add", "x").stderr
    assert said in person.runs(app, "where")
    assert said in person.runs(app, "config")
    assert "line 2 sets record, which is ignored" in person.runs(app, "config")
    assert person.asks(app, "config")["experience_tool"]["value"] == 1
