"""Workflows that began elsewhere go on here: in a SqliteSaver's file, another worktree, a home."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PROGRAM, Files, Person, Told
from tests.e2e.workflow import NODES

ROOT = Path(__file__).parents[2]
ENGINES = ("lmdb", "duckdb", "postgres")
Look = Callable[[Path], Files]


def started(person: Person, folder: Path, *words: str, **variables: str) -> subprocess.Popen[str]:
    """Start the workflow in a folder, as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.workflow", "run", *words],
        cwd=folder,
        env={**person.variables, "PYTHONPATH": str(ROOT), **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed_at(person: Person, folder: Path, node: str, *words: str, **variables: str) -> None:
    """Run the workflow until it comes to a node, and kill it there."""
    running = started(person, folder, *words, "--pause", node, **variables)
    assert running.stdout is not None
    assert running.stdout.readline() == f"at {node}\n", running.communicate()[1]
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()


def threads(person: Person, folder: Path, **variables: str) -> list[str]:
    """The threads that a command finds in a folder."""
    found = person.asks(folder, "checkpoint", "threads", **variables)
    return [each["thread_id"] for each in found]


@pytest.fixture
def old(person: Person) -> Path:
    """The database of a SqliteSaver, with a workflow that was killed before it merged."""
    file = person.home / ".agentos" / "issue_workflow.db"
    file.parent.mkdir()
    killed_at(person, person.home, "merge", "issue-17", "--sqlite", str(file))
    return file


@pytest.mark.parametrize("engine", ENGINES)
def test_a_thread_of_a_sqlite_file_goes_on_at_its_next_node(
    person: Person, app: Path, old: Path, postgres_url: str, engine: str
) -> None:
    """By naming the file alone; every byte of it, and beside it, stays as it was."""
    person.chooses(postgres_url if engine == "postgres" else engine)
    before = {each.name: each.read_bytes() for each in old.parent.iterdir()}
    named = {"AGENTOS_WORKFLOW_DB": str(old)}
    place = person.asks(app, "where", **named)["areas"]["checkpoints"]
    assert any(str(old) in note and "goes on here" in note for note in place["notes"])
    told = person.tries(app, "checkpoint", "threads", "--json", "--full", **named)
    assert json.loads(told.stdout) == []
    assert "1 threads of" in told.stderr
    assert "'issue-17'" in told.stderr
    shown = person.asks(app, "checkpoint", "show", "issue-17", **named)
    assert sorted(shown["values"]["done"]["value"]) == ["draft", "plan", "review"]
    assert person.asks(app, "checkpoint", "threads") == []
    end = person.works(app, "issue-17", **named)
    assert end["ran"] == ["merge", "file"]
    assert end["done"] == list(NODES)
    assert (app / "effects.txt").read_text().split() == ["merge", "file"]
    assert {each.name: each.read_bytes() for each in old.parent.iterdir()} == before
    assert threads(person, app, **named) == threads(person, app) == ["issue-17"]
    assert person.tries(app, "checkpoint", "threads", **named).stderr == ""
    assert len(person.asks(app, "checkpoint", "list", "issue-17", **named)) == 6


def test_threads_of_a_sqlite_file_are_copied_pruned_and_removed_here(
    person: Person, app: Path, old: Path, everything_in: Look
) -> None:
    """The file is as it was, and what was removed does not come back."""
    before = everything_in(old.parent)
    named = {"AGENTOS_WORKFLOW_DB": str(old)}

    def asks(*words: str) -> Any:
        return person.asks(app, "checkpoint", *words, **named)

    assert asks("rm", "issue-17", "--preview")["freed"]["checkpoints"] == 4
    assert threads(person, app, **named) == []
    assert asks("copy", "issue-17", "again")["copied"] == 4
    assert asks("prune", "issue-17")["freed"]["checkpoints"] == 3
    assert len(asks("list", "issue-17")) == 1
    asks("rm", "issue-17")
    assert person.tries(app, "checkpoint", "show", "issue-17", **named).returncode == 3
    assert person.works(app, "again", **named)["ran"] == ["merge", "file"]
    assert person.works(app, "issue-17", **named)["done"] == list(NODES)
    assert everything_in(old.parent) == before
    told = person.tries(app, "checkpoint", "rm", "nothing", **named)
    assert (told.returncode, "there is no thread 'nothing'" in told.stderr) == (3, True)


def test_a_file_that_is_in_use_is_read_and_holds_up_nobody(
    person: Person, app: Path, old: Path
) -> None:
    """A thread goes on here while another one is under way there, and is seen as it gets on."""
    named = {"AGENTOS_WORKFLOW_DB": str(old)}
    running = started(person, person.home, "other", "--pause", "merge", "--sqlite", str(old))
    assert running.stdout is not None
    assert running.stdout.readline() == "at merge\n"
    before = {each.name: each.read_bytes() for each in old.parent.iterdir()}
    shown = person.asks(app, "checkpoint", "show", "other", **named)
    assert sorted(shown["values"]["done"]["value"]) == ["draft", "plan", "review"]
    assert person.works(app, "issue-17", **named)["ran"] == ["merge", "file"]
    assert {each.name: each.read_bytes() for each in old.parent.iterdir()} == before
    assert running.communicate()[1] == ""
    assert running.returncode == 0
    shown = person.asks(app, "checkpoint", "show", "other", **named)
    assert shown["values"]["done"]["value"] == list(NODES)
    assert person.works(app, "other", **named)["done"].count("plan") == 2


def test_an_empty_file_is_left_as_it_is(person: Person, app: Path, tmp_path: Path) -> None:
    """As SQLite leaves one that was only opened; the worktree's own store is used."""
    empty = tmp_path / "workflow.db"
    empty.touch()
    named = {"AGENTOS_WORKFLOW_DB": str(empty)}
    place = person.asks(app, "where", **named)["areas"]["checkpoints"]
    assert (place["scope"], place["exists"]) == ("worktree", False)
    assert any(str(empty) in note for note in place["notes"])
    assert person.works(app, "issue-17", **named)["done"] == list(NODES)
    assert threads(person, app) == ["issue-17"]
    assert (empty.stat().st_size, list(tmp_path.glob("workflow.db*"))) == (0, [empty])


@pytest.mark.parametrize("engine", ENGINES)
def test_repositories_that_name_one_space_share_their_threads(
    person: Person, app: Path, tmp_path: Path, postgres_url: str, engine: str
) -> None:
    """Begun in one, a thread goes on in the other; without the name each has its own."""
    other = person.repository(tmp_path / "other")
    variable = "AGENTOS_WORKFLOW_DB" if engine == "lmdb" else "HERDBOOK_CHECKPOINTS"
    store = postgres_url if engine == "postgres" else str(tmp_path / "custom" / "workflow.db")
    if engine == "duckdb":
        person.chooses(engine)
    named = {variable: store}
    shared = {**named, "HERDBOOK_CHECKPOINTS_SPACE": "team"}
    killed_at(person, app, "merge", "issue-17", **shared)
    assert threads(person, other, **named) == threads(person, app, **named) == []
    assert threads(person, other, **shared) == ["issue-17"]
    assert person.works(other, "issue-17", **shared)["ran"] == ["merge", "file"]
    assert person.works(other, "issue-17", **named)["ran"] != ["merge", "file"]
    spaces = {
        person.asks(each, "where", **shared)["areas"]["checkpoints"]["space"]
        for each in (app, other)
    }
    assert spaces == {"checkpoints/team"}


def test_a_repository_cannot_name_the_threads_of_another(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Neither a shared name nor another worktree's; trusted, it may, as the user who says so."""
    person.config.parent.mkdir(parents=True)
    person.config.write_text('checkpoints = "global"\n')
    person.works(app, "issue-17")
    person.config.write_text('checkpoints = "global"\ncheckpoints_space = "mine"\n')
    person.works(app, "issue-18")
    own = person.asks(app, "where")["worktree_id"]
    other = person.repository(tmp_path / "other")
    person.config.write_text('checkpoints = "global"\n')
    for name, thread in ((own, "issue-17"), ("mine", "issue-18")):
        (other / "herdbook.toml").write_text(
            f'checkpoints = "global"\ncheckpoints_space = "{name}"\n'
        )
        assert threads(person, other) == []
        told = person.tries(other, "checkpoint", "show", thread)
        assert told.returncode == 3
        assert "herdbook.toml, line 2 sets checkpoints_space" in told.stderr
        assert "herdbook trust" in told.stderr
        place = person.asks(other, "where")["areas"]["checkpoints"]
        assert place["space"] == f"checkpoints/{person.asks(other, 'where')['worktree_id']}"
        person.runs(other, "trust")
        assert threads(person, other) == [thread]
        person.runs(other, "trust", "--revoke")


def test_a_space_has_a_plain_name(person: Person, app: Path) -> None:
    """Anything else is refused, with what is allowed and where it was said."""
    for name in ("", "a/b", "../x", "x" * 65, "ünï"):
        (app / "herdbook.toml").write_text(f'checkpoints_space = "{name}"\n')
        told = person.tries(app, "where")
        assert told.returncode == 2
        assert "herdbook.toml, line 1: checkpoints_space: must be 'worktree', or" in told.stderr


@pytest.mark.parametrize(
    ("command", "engine"), [*(("merge", each) for each in ENGINES), ("copy", "duckdb")]
)
def test_a_thread_is_brought_to_another_worktree_and_resumed_there(
    person: Person, app: Path, postgres_url: str, engine: str, command: str
) -> None:
    """Whichever engine keeps it there; where it came from it is as it was."""
    killed_at(person, app, "merge", "issue-17")
    source = person.asks(app, "where")["areas"]["checkpoints"]["url"]
    login = app.parent / "login"
    person.git(app, "worktree", "add", "--quiet", str(login))
    person.chooses(postgres_url if engine == "postgres" else engine)
    assert person.asks(login, command, source, "checkpoints")["target"] != source
    assert threads(person, login) == ["issue-17"]
    assert person.works(login, "issue-17")["ran"] == ["merge", "file"]
    person.config.unlink()
    assert person.works(app, "issue-17")["ran"] == ["merge", "file"]


def test_the_threads_of_several_worktrees_are_merged_and_not_copied(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """One that both have is told, with what to do; by its path a store keeps its names."""
    home = {"HERDBOOK_CHECKPOINTS": "global"}
    killed_at(person, app, "merge", "issue-17", **home)
    other = person.repository(tmp_path / "other")
    killed_at(person, other, "merge", "issue-18", **home)
    third = person.repository(tmp_path / "third")
    source = str(person.data / "checkpoints.lmdb")
    told = person.tries(third, "copy", source, "checkpoints")
    assert told.returncode == 2
    assert "`merge` brings their threads" in told.stderr
    assert person.asks(third, "merge", source, "checkpoints")["ok"]
    assert sorted(threads(person, third)) == ["issue-17", "issue-18"]
    assert person.works(third, "issue-18")["ran"] == ["merge", "file"]
    killed_at(person, other, "merge", "issue-17", **home)
    told = person.tries(third, "merge", source, "checkpoints")
    assert told.returncode == 1
    assert "thread issue-17: a thread of this name is there" in told.stdout
    person.runs(app, "copy", source, str(tmp_path / "backup.lmdb"))
    backup = {"HERDBOOK_CHECKPOINTS": str(tmp_path / "backup.lmdb")}
    assert threads(person, app, **backup) == ["issue-17"]
    assert sorted(threads(person, other, **backup)) == ["issue-17", "issue-18"]


def written(page: str, heading: str) -> list[str]:
    """The commands that a section of a page has, block by block."""
    text = (ROOT / "docs" / page).read_text().partition(f"{heading}\n")[2]
    section = re.split(r"^#{1,3} ", text, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def types(person: Person, folder: Path, *lines: str) -> Told:
    """Type lines into a shell, and the workflow after them; all must end well."""
    sh = shutil.which("sh")
    assert sh is not None
    done = subprocess.run(
        [sh, "-eu", "-c", "\n".join(lines)],
        cwd=folder,
        env={
            **person.variables,
            "PATH": f"{PROGRAM.parent}:{person.variables['PATH']}",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def ran(done: Told) -> Any:
    """Which nodes ran, by the last line that was printed."""
    return json.loads(done.stdout.splitlines()[-1])["ran"]


WORKFLOW = f"{sys.executable} -m tests.e2e.workflow run issue-17"


def test_the_ways_from_one_global_database_go_as_they_are_written(
    person: Person, app: Path, old: Path, tmp_path: Path, everything_in: Look
) -> None:
    """Typed into a shell, each of them leads a workflow on to its end."""
    sqlite, home, move = written("locations.md", "### Coming from one global database")
    before = everything_in(old.parent)
    done = types(person, app, sqlite, WORKFLOW)
    assert "which is only read" in done.stdout
    assert ran(done) == ["merge", "file"]
    assert everything_in(old.parent) == before

    outside = tmp_path / "outside"
    outside.mkdir()
    killed_at(person, outside, "merge", "issue-17")
    third, fourth = (person.repository(tmp_path / name) for name in ("third", "fourth"))
    done = types(person, third, move, WORKFLOW)
    assert "issue-17" in done.stdout
    assert ran(done) == ["merge", "file"]
    done = types(person, fourth, home, WORKFLOW)
    assert "issue-17" in done.stdout
    assert ran(done) == ["merge", "file"]


def test_the_settings_for_a_global_database_mean_what_is_written(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """The two lines, in the user's own file."""
    page = (ROOT / "docs" / "locations.md").read_text().partition("### Coming from one global")[2]
    (settings,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    outside = tmp_path / "outside"
    outside.mkdir()
    killed_at(person, outside, "merge", "issue-17")
    person.config.parent.mkdir(parents=True)
    person.config.write_text(settings)
    assert threads(person, app) == ["issue-17"]
    assert person.works(app, "issue-17")["ran"] == ["merge", "file"]


@pytest.mark.parametrize("way", [0, 1])
def test_the_ways_from_sqlite_saver_go_as_they_are_written(
    person: Person, app: Path, old: Path, everything_in: Look, way: int
) -> None:
    """Naming the file, and importing it."""
    before = everything_in(old.parent)
    command = written("checkpoints.md", "## Coming from SqliteSaver")[way]
    assert ran(types(person, app, command, WORKFLOW)) == ["merge", "file"]
    assert everything_in(old.parent) == before
