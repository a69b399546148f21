"""The command line as a whole: help, hints, errors, exit codes, and what it loads."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import PROGRAM, Person

HEAVY = {"duckdb", "psycopg", "cattrs", "asyncio", "rich", "importlib.metadata"}
WRITING = {
    f"herdbook.ports.unit_of_work.{name}"
    for name in (
        "cycles",
        "integrity",
        "journal_writer",
        "projections",
        "reactions",
        "verbatim_insert",
    )
}


@pytest.mark.parametrize("words", [["where"], ["worktree", "add"], ["task", "add"], ["claim"]])
def test_a_command_explains_itself_with_an_example(
    person: Person, tmp_path: Path, words: list[str]
) -> None:
    """With --help, wherever one is."""
    assert "example: herdbook" in person.runs(tmp_path, *words, "--help")


def test_the_version_is_that_of_the_package(person: Person, tmp_path: Path) -> None:
    """`herdbook --version`."""
    assert person.runs(tmp_path, "--version").startswith("herdbook 0.")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["wher"], "did you mean `herdbook where`?"),
        (["worktre", "add"], "did you mean `herdbook worktree add`?"),
        (["worktree", "ad"], "did you mean `herdbook worktree add`?"),
        (["frobnicate"], "`herdbook --help` lists them all"),
        (["task", "rn"], "did you mean `herdbook task "),
    ],
)
def test_a_misspelt_command_gets_a_hint(
    person: Person, tmp_path: Path, words: list[str], hint: str
) -> None:
    """And exit code 2."""
    told = person.tries(tmp_path, *words)
    assert told.returncode == 2
    assert hint in told.stderr
    assert told.stdout == ""
    assert not re.search(r"herdbook (\S+ )?(rm|remove|prune|revert|reinstate)`", told.stderr)


def test_words_of_other_tools_name_the_same_commands(person: Person, app: Path) -> None:
    """An epic is an initiative, a comment belongs to a review, and tasks are completed."""
    epic = json.loads(person.runs(app, "epic", "add", "login", "--json"))
    assert json.loads(person.runs(app, "initiative", "show", epic["id"], "--json")) == epic
    first, second = (
        json.loads(person.runs(app, "task", "add", name, "--json"))["id"] for name in ("a", "b")
    )
    person.runs(app, "task", "depends-on", second, first)
    (waited,) = json.loads(person.runs(app, "task", "waits-for", second, "--json"))
    assert waited["id"] == first
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "claim", "--agent", "otter")
    person.runs(app, "complete", HERDBOOK_AGENT="otter")
    assert json.loads(person.runs(app, "task", "show", first, "--json"))["status"] == "completed"
    assert "review threads" in person.runs(app, "comment")
    assert "task done" in person.runs(app, "task", "complete", "--help")


def test_a_command_can_be_called_as_if_from_elsewhere(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """With -C before the command, as git has it, or behind it."""
    there = person.runs(app, "where", "--json")
    assert person.runs(tmp_path, "-C", str(app), "where", "--json") == there
    assert person.runs(tmp_path, "where", "--json", "-C", "app") == there
    assert person.tries(tmp_path, "where", "-C", "nowhere").returncode == 2


def test_an_unknown_option_is_an_error_of_usage(person: Person, tmp_path: Path) -> None:
    """Options are not guessed from their beginnings."""
    for words in (["where", "--jso"], ["where", "--nope"], ["where", "extra"], ["sql"]):
        assert person.tries(tmp_path, *words).returncode == 2


def test_errors_are_one_sentence_for_people_and_an_object_for_programs(
    person: Person, app: Path
) -> None:
    """On standard error, with nothing on standard output."""
    told = person.tries(app, "status", "--worktree", "nobody", HERDBOOK_WORK="memory://")
    assert (told.returncode, told.stdout) == (3, "")
    assert told.stderr == "herdbook: there is no worktree 'nobody'\n"
    told = person.tries(app, "status", "--worktree", "nobody", "--json", HERDBOOK_WORK="memory://")
    assert (told.returncode, told.stdout) == (3, "")
    assert json.loads(told.stderr)["error"]["type"] == "NotFound"


def test_a_store_that_cannot_be_reached_is_exit_code_5(person: Person, app: Path) -> None:
    """With the reason, and without a traceback."""
    there = "postgresql://me@127.0.0.1:1/x?connect_timeout=1"
    told = person.tries(app, "status", HERDBOOK_WORK=there)
    assert told.returncode == 5
    assert "Traceback" not in told.stderr
    assert "127.0.0.1" in told.stderr


def test_a_settings_file_that_cannot_be_read_is_named(person: Person, app: Path) -> None:
    """A folder of that name, say."""
    (app / "herdbook.toml").mkdir()
    told = person.tries(app, "where")
    assert told.returncode == 2
    assert "herdbook.toml: cannot be read" in told.stderr


def test_a_defect_of_ours_shows_no_traceback(person: Person, app: Path) -> None:
    """Unless somebody asks for it."""
    script = """
import sys
from herdbook.entrypoints.cli import run_command
from herdbook.entrypoints.operations.location import handlers

handlers.where = lambda here: 1 / 0
sys.exit(run_command.main(["where"]))
"""
    for asked in ("", "1"):
        ended = subprocess.run(
            [sys.executable, "-c", script],
            cwd=app,
            env={**person.variables, "HERDBOOK_DEBUG": asked},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == (1 if asked else 70)
        assert "ZeroDivisionError" in ended.stderr
        assert ("Traceback" in ended.stderr) is bool(asked)


def test_a_reader_that_has_seen_enough_is_no_error(person: Person, app: Path) -> None:
    """`herdbook … | head -1` ends quietly."""
    sh = shutil.which("sh")
    assert sh is not None
    ended = subprocess.run(
        [sh, "-c", f"'{PROGRAM}' --help | head -1; '{PROGRAM}' where --json | head -1"],
        cwd=app,
        env=person.variables,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr == ""


def loaded(person: Person, folder: Path, *words: str) -> set[str]:
    """The modules that a command has loaded when it ends."""
    script = (
        "import sys; from herdbook.entrypoints.main import main; code = main(); "
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=folder,
        env=person.variables,
        input="{}",
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stderr.split())


def test_what_is_typed_all_day_waits_for_no_cattrs(person: Person, app: Path) -> None:
    """Nor does a hook; cattrs is for the wires, and takes 40 ms to load."""
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "task", "add", "x")
    for words in (
        ["ready"],
        ["claim", "--agent", "otter", "--json"],
        ["status", "--json"],
        ["prime"],
        ["prime", "--hook-json", "-"],
        ["done", "--agent", "otter", "--json"],
        ["hook", "PostToolUse"],
    ):
        assert "cattrs" not in loaded(person, app, *words), words


def test_where_loads_neither_attrs_nor_an_entity(person: Person, app: Path) -> None:
    """What every session asks first must cost next to nothing."""
    person.runs(app, "worktree", "add", "login")
    modules = loaded(person, app, "where", "--json")
    assert not modules & (HEAVY | {"attr", "attrs", "herdbook.ports.engine.dictionary"})
    assert not modules & {
        "herdbook.domain.plan.model",
        "herdbook.adapters.stores.open_store",
        "tomllib",
    }


def test_task_list_loads_neither_attrs_nor_rich_nor_another_engine(
    person: Person, app: Path
) -> None:
    """It reads rows and prints them."""
    person.runs(app, "task", "add", "x")
    modules = loaded(person, app, "task", "list")
    assert not modules & (HEAVY | {"attr", "attrs", *WRITING})
    assert "lmdb" in modules


def test_status_loads_only_its_engine_and_nothing_that_writes(person: Person, app: Path) -> None:
    """Nobody waits for what is not used."""
    person.runs(app, "worktree", "add", "login")
    modules = loaded(person, app, "status")
    assert not modules & (HEAVY | {"herdbook.adapters.sql_query", *WRITING})
    assert "lmdb" in modules
