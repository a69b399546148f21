"""`herdbook doctor`: it tells what is wrong and what to do, also where everything is broken."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.operations.doctor.checks import CHECKS
from herdbook.ports.engine.dictionary import DICTIONARY, VERSION
from herdbook.ports.engine.kinds import Dictionary
from tests.e2e.conftest import Files, Person
from tests.e2e.serve_process import Serving

ROOT = Path(__file__).parents[2]
HARM = ("delet", "remov", "reset", "drop", "rm ")


def diagnosis(person: Person, folder: Path, **variables: str) -> dict[str, Any]:
    """What the installed program answers; its exit code and its answer agree."""
    told = person.tries(folder, "doctor", "--json", "--full", **variables)
    answer: dict[str, Any] = json.loads(told.stdout)
    assert told.returncode == (0 if answer["ok"] else 1), told.stderr
    assert "could not be checked" not in told.stdout
    for each in answer["checks"]:
        assert each["health"] in ("ok", "warning", "problem")
        assert not [word for word in HARM if word in (each["advice"] or "").lower()]
    return answer


def troubles(answer: dict[str, Any], check: str, health: str = "problem") -> list[str]:
    """What one check says of a health."""
    found = answer["checks"]
    return [each["says"] for each in found if (each["check"], each["health"]) == (check, health)]


def test_it_looks_at_everything_and_creates_nothing(
    person: Person, app: Path, everything_in: Callable[[Path], Files], tmp_path: Path
) -> None:
    """In a folder where nothing was ever written, and where there are stores."""
    before = everything_in(tmp_path)
    answer = diagnosis(person, app)
    assert everything_in(tmp_path) == before
    assert answer["ok"]
    seen = {each["check"] for each in answer["checks"]}
    assert seen <= {each.name for each in CHECKS}
    assert seen >= {"program", "path", "folders", "disk", "stores", "hooks", "mcp", "bounds"}
    person.runs(app, "task", "add", "one")
    names = set(everything_in(tmp_path))
    diagnosis(person, app)
    assert set(everything_in(tmp_path)) == names


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_it_tells_the_journal_its_growth_and_who_has_read_least(
    person: Person, app: Path, engine: str, postgres_url: str
) -> None:
    """On every engine; the schema version is told too."""
    where = {"HERDBOOK_WORK": postgres_url} if engine == "postgres" else {}
    if engine == "duckdb":
        person.chooses(engine)
    for number in range(4):
        person.runs(app, "task", "add", f"{number}", **where)
    person.runs(app, "journal", "hold", "slow", "--seq", "3", "--holder", "a report", **where)
    person.runs(app, "journal", "prune", "--before", "3", **where)
    answer = diagnosis(person, app, **where)
    (journal,) = (each for each in answer["journals"] if each["area"] == "work")
    assert (journal["first"], journal["entries"], journal["entries_in_a_week"]) == (3, 3, 3)
    assert journal["oldest_cursor"] == "slow"
    assert journal["bytes"] > 100
    (line,) = troubles(answer, "journal", "ok")
    assert "oldest cursor 'slow' (a report) at #3, 2 behind" in line
    assert any(f"schema {VERSION}" in each for each in troubles(answer, "stores", "ok"))


@pytest.mark.parametrize("trouble", ["server", "damaged", "no folder", "too new"])
def test_a_store_that_cannot_be_used_is_a_problem(
    person: Person, app: Path, trouble: str, tmp_path: Path
) -> None:
    """Of each area; no other check suffers, and nothing is well."""
    place = tmp_path / "store"
    url = f"lmdb://{place}"
    match trouble:
        case "server":
            url = "postgresql://somebody:hidden@127.0.0.1:1/work"
        case "damaged":
            place.mkdir()
            (place / "data.mdb").write_bytes(b"no store" * 1000)
        case "no folder":
            place.write_text("")
            url = f"lmdb://{place}/store"
        case "too new":
            open_store(url, dictionary=Dictionary(99, DICTIONARY)).close()
    answer = diagnosis(person, app, HERDBOOK_STORE=url)
    assert not answer["ok"]
    assert len(troubles(answer, "stores")) == len(Area)
    shown = person.tries(app, "doctor", HERDBOOK_STORE=url)
    assert "hidden" not in shown.stdout + shown.stderr
    assert shown.stdout.splitlines()[-1].startswith("3 problems")


def test_a_folder_that_is_none_is_a_problem(person: Person, app: Path) -> None:
    """The data folder, and the state folder with the spool in it."""
    for name in ("share", "state"):
        place = person.home / ".local" / name / "herdbook"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("in the way\n")
    told = person.tries(app, "doctor", "--json", "--full")
    answer = json.loads(told.stdout)
    assert (told.returncode, answer["ok"]) == (1, False)
    assert len(troubles(answer, "folders")) == 2


def test_hooks_and_servers_that_call_a_missing_program_are_problems(
    person: Person, app: Path
) -> None:
    """Of each host, with the command that mends them; those that are whole are well."""
    person.runs(app, "hooks", "install", "claude-code")
    person.runs(app, "hooks", "install", "git")
    person.runs(app, "mcp", "install", "codex", "--user")
    answer = diagnosis(person, app)
    assert answer["ok"]
    assert len(troubles(answer, "hooks", "ok")) == 2
    assert len(troubles(answer, "mcp", "ok")) == 1
    settings = app / ".claude" / "settings.local.json"
    settings.write_text(settings.read_text().replace("/entrypoints/", "/gone/entrypoints/"))
    registered = person.home / ".codex" / "config.toml"
    registered.write_text(registered.read_text().replace("/herdbook", "/gone/herdbook"))
    answer = diagnosis(person, app)
    assert [each.partition(":")[0] for each in troubles(answer, "hooks")] == [
        "claude-code (this project)"
    ]
    assert [each.partition(":")[0] for each in troubles(answer, "mcp")] == ["codex (user)"]
    advice = [each["advice"] for each in answer["checks"] if each["health"] == "problem"]
    assert [each.partition("`")[2].partition("`")[0] for each in advice] == [
        "herdbook hooks install claude-code",
        "herdbook mcp install codex --user",
    ]


def test_settings_that_are_no_json_stop_no_check(person: Person, app: Path) -> None:
    """They are a warning, and are left alone."""
    for path in (app / ".claude" / "settings.local.json", person.home / ".claude.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("{")
    answer = diagnosis(person, app)
    assert answer["ok"]
    assert len(troubles(answer, "hooks", "warning")) == 1
    assert len(troubles(answer, "mcp", "warning")) == 1


def test_an_untrusted_settings_file_is_told(person: Person, app: Path) -> None:
    """Until a person has trusted it."""
    (app / "herdbook.toml").write_text('work = "repo"\n')
    (line,) = troubles(diagnosis(person, app), "repository", "warning")
    assert "is not trusted" in line
    person.runs(app, "trust")
    assert troubles(diagnosis(person, app), "repository", "warning") == []


def test_a_program_on_the_path_is_run_only_outside_the_repository(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Another version is a warning, a program of the repository is told and never run."""
    for folder in (tmp_path / "bin", app / "bin"):
        folder.mkdir()
        program = folder / "herdbook"
        program.write_text(f"#!/bin/sh\ntouch {folder}/ran\necho herdbook 0.0.1\n")
        program.chmod(0o755)
        path = f"{folder}:{person.variables['PATH']}"
        (line,) = troubles(diagnosis(person, app, PATH=path), "path", "warning")
        assert str(program) in line
    assert (tmp_path / "bin" / "ran").exists()
    assert not (app / "bin" / "ran").exists()
    git = shutil.which("git")
    assert git is not None
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "git").symlink_to(git)
    nothing = diagnosis(person, app, PATH=str(tmp_path / "git"))
    assert troubles(nothing, "path", "warning") == ["`herdbook` is not on the PATH"]


def test_set_aside_lines_are_not_all_well(person: Person, app: Path) -> None:
    """The last line counts warnings, and says OK only where there is none."""
    assert person.tries(app, "doctor").stdout.splitlines()[-1] in ("OK", "1 warning")
    spool = person.home / ".local" / "state" / "herdbook" / "spool"
    spool.mkdir(parents=True)
    (spool / "events.jsonl").write_text("no event\n")
    person.runs(app, "flush")
    told = person.tries(app, "doctor")
    assert told.returncode == 0
    assert "set aside" in told.stdout
    assert "warning" in told.stdout.splitlines()[-1]


def test_an_old_store_is_told_of_and_not_upgraded(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """An LMDB store that came from elsewhere, so that its pages have to be verified first."""
    folder = tmp_path / "old"
    folder.mkdir(mode=0o700)
    data = folder / "data.mdb"
    content = gzip.decompress((ROOT / "tests/contract/old_stores/v4.lmdb.gz").read_bytes())
    data.write_bytes(content)
    data.chmod(0o600)
    for _ in range(2):
        said = person.tries(app, "doctor", HERDBOOK_WORK=f"lmdb://{folder}").stdout
        assert f"schema 4; the next command that opens it makes it {VERSION}" in said
        assert data.read_bytes() == content


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_a_server_finds_what_the_command_finds_and_tells_of_itself(
    person: Person, app: Path, engine: str, postgres_url: str
) -> None:
    """Beside its own open stores; but not what stands in a line that was set aside."""
    person.chooses(engine if engine != "postgres" else postgres_url)
    person.runs(app, "task", "add", "one")
    spool = person.home / ".local" / "state" / "herdbook" / "spool"
    spool.mkdir(parents=True, exist_ok=True)
    (spool / "events.jsonl").write_text("no event\n")
    person.runs(app, "flush")
    server = Serving(person, app)
    try:
        with server.feed() as feed:
            next(feed)
            answer = server.calls("doctor")
    finally:
        assert server.ends() == (0, "")
    own = [each for each in answer["checks"] if each["check"] == "server"]
    assert [each["health"] for each in own] == ["ok"] * 3
    assert "1 connection to the feed, all told of every change" in own[2]["says"]
    assert (answer["server"]["feed_readers"], answer["server"]["feed_behind"]) == (1, 0)
    command = diagnosis(person, app)
    assert command["server"] is None
    assert [troubles(answer, each.name, "warning") for each in CHECKS] == [
        troubles(command, each.name, "warning") for each in CHECKS
    ]
    assert "could not be checked" not in json.dumps(answer)
    assert [each["line"] for each in answer["aside"]] == [""]
    assert [each["line"] for each in command["aside"]] == ["no event"]
    (work,) = (each for each in answer["stores"] if each["area"] == "work")
    assert (work["engine"], work["trouble"]) == (
        "postgresql" if engine == "postgres" else engine,
        None,
    )
    assert work["head"] > 0
