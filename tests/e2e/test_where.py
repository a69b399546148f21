"""Where everything is kept: the rules, in their order, told by the installed program."""

import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PROGRAM, Files, Person

Look = Callable[[Path], Files]


def url(person: Person, folder: Path, area: str = "work", **variables: str) -> str:
    """The URL of an area's store, seen from a folder."""
    place: str = person.asks(folder, "where", **variables)["areas"][area]["url"]
    return place


def decided(person: Person, folder: Path, area: str = "work", **variables: str) -> str:
    """The rule that decided an area's place."""
    rule: str = person.asks(folder, "where", **variables)["areas"][area]["decided_by"]
    return rule


def notes(person: Person, folder: Path, area: str = "work", **variables: str) -> list[str]:
    """What is to be said about an area's place."""
    said: list[str] = person.asks(folder, "where", **variables)["areas"][area]["notes"]
    return said


def test_where_tells_all_there_is_to_know(person: Person, app: Path) -> None:
    """The keys that programs rely on are there, for every area."""
    answer = person.asks(app, "where")
    assert answer.keys() >= {"repository_id", "worktree_id", "branch", "areas"}
    assert answer["branch"] == "main"
    assert answer["repository_id"].startswith("app-")
    assert len(answer["worktree_id"]) == 12
    assert list(answer["areas"]) == ["work", "checkpoints", "record"]
    wanted = {"url", "scope", "decided_by", "exists", "bytes", "schema_version"}
    for area in answer["areas"].values():
        assert area.keys() >= wanted
        assert (area["exists"], area["bytes"], area["schema_version"]) == (False, None, None)
        assert area["decided_by"] == "default"


def test_where_creates_nothing(
    person: Person, app: Path, tmp_path: Path, everything_in: Look
) -> None:
    """Neither before there is a store nor after: every file stays as it is."""
    before = everything_in(tmp_path)
    person.runs(app, "where")
    person.runs(app, "config")
    person.runs(app, "status")
    person.runs(app, "check")
    assert everything_in(tmp_path) == before
    person.runs(app, "worktree", "add", "login")
    before = {k: v for k, v in everything_in(tmp_path).items() if not k.endswith("lock.mdb")}
    seen = person.asks(app, "where")["areas"]["work"]
    assert seen["exists"]
    assert seen["bytes"] > 0
    assert seen["schema_version"] >= 1
    after = {k: v for k, v in everything_in(tmp_path).items() if not k.endswith("lock.mdb")}
    assert after == before


def test_the_environment_counts_more_than_files(person: Person, app: Path) -> None:
    """One variable speaks for all areas, one of its own for each, and an empty one is unset."""
    (app / "herdbook.toml").write_text('work = "worktree"\n')
    assert decided(person, app) == "herdbook.toml, line 1"
    assert url(person, app, HERDBOOK_STORE="all") == f"lmdb://{app}/all"
    assert url(person, app, "record", HERDBOOK_STORE="all") == f"lmdb://{person.home}/all"
    both = {"HERDBOOK_STORE": "all", "HERDBOOK_WORK": "global"}
    assert url(person, app, **both) == f"lmdb://{person.data}/work.lmdb"
    assert decided(person, app, **both) == "HERDBOOK_WORK"
    assert decided(person, app, HERDBOOK_WORK="", HERDBOOK_STORE="") == "herdbook.toml, line 1"


def test_what_is_typed_counts_most(person: Person, app: Path) -> None:
    """An argument overrules the environment."""
    typed = person.asks(app, "where", "--store", "typed", HERDBOOK_WORK="global")
    assert typed["areas"]["work"]["url"] == f"lmdb://{app}/typed"
    assert typed["areas"]["work"]["decided_by"] == "--store"


def test_the_users_file_counts_least(person: Person, app: Path) -> None:
    """Its paths are meant from the home directory; a repository's file overrules it."""
    person.config.parent.mkdir(parents=True)
    person.config.write_text('# mine\nwork = "state/work"\n\nbackend = "duckdb"\n')
    assert url(person, app) == f"duckdb://{person.home}/state/work"
    assert decided(person, app) == "~/.config/herdbook/config.toml, line 2"
    assert url(person, app, "record") == f"duckdb://{person.data}/record.duckdb"
    (app / "pyproject.toml").write_text('[tool.other]\nwork = 1\n[tool.herdbook]\nwork = "repo"\n')
    assert decided(person, app) == "pyproject.toml, line 4"
    assert url(person, app) == f"duckdb://{app}/.git/herdbook/work.duckdb"


def test_a_workflow_database_of_another_program_is_honoured(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Where nothing is, its path is the checkpoints' store; a SQLite database is left alone."""
    theirs = tmp_path / "workflow.db"
    assert url(person, app, "checkpoints", AGENTOS_WORKFLOW_DB=str(theirs)) == f"lmdb://{theirs}"
    assert decided(person, app, AGENTOS_WORKFLOW_DB=str(theirs)) == "default"
    ours = {"AGENTOS_WORKFLOW_DB": str(theirs), "HERDBOOK_CHECKPOINTS": "repo"}
    assert decided(person, app, "checkpoints", **ours) == "HERDBOOK_CHECKPOINTS"
    theirs.write_bytes(b"SQLite format 3\0" + bytes(100))
    place = person.asks(app, "where", AGENTOS_WORKFLOW_DB=str(theirs))["areas"]["checkpoints"]
    assert place["scope"] == "worktree"
    assert "SQLite" in place["decided_by"]


@pytest.mark.parametrize(
    "text",
    [
        'work = "postgresql://thief.example/all"',
        'store = "/elsewhere"',
        'backend = "postgresql://thief.example/all"',
    ],
)
def test_a_strangers_settings_reach_nothing_until_trusted(
    person: Person, app: Path, text: str
) -> None:
    """Trust holds for the file as it is, in all worktrees, and ends when it changes."""
    home = url(person, app)
    file = app / "herdbook.toml"
    file.write_text(f"{text}\n")
    assert url(person, app) == home
    assert "herdbook trust" in notes(person, app)[0]
    assert "herdbook trust" in person.tries(app, "status").stderr
    person.runs(app, "trust")
    chosen = url(person, app)
    assert chosen != home
    person.git(app, "add", "herdbook.toml")
    person.git(app, "commit", "--quiet", "--message=settings")
    person.git(app, "worktree", "add", "--quiet", "../other")
    assert url(person, app.parent / "other") == chosen
    file.write_text(f"{text}\n# changed\n")
    assert url(person, app) == home
    file.write_text(f"{text}\n")
    person.runs(app, "trust", "--revoke")
    assert url(person, app) == home


def test_another_repository_with_the_same_file_is_not_trusted(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Trust is given to one repository."""
    (app / "herdbook.toml").write_text('work = "/elsewhere"\n')
    person.runs(app, "trust")
    other = person.repository(tmp_path / "other")
    (other / "herdbook.toml").write_text('work = "/elsewhere"\n')
    assert url(person, other) == f"lmdb://{other}/.git/herdbook/work.lmdb"


def test_a_committed_link_leads_nowhere(person: Person, app: Path, tmp_path: Path) -> None:
    """A repository whose .herdbook is a link to another place: nothing is made or read there."""
    (app / ".herdbook").symlink_to(tmp_path / "elsewhere")
    person.runs(app, "task", "add", "x")
    assert url(person, app) == f"lmdb://{app}/.git/herdbook/work.lmdb"
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "elsewhere").mkdir()
    person.runs(app, "task", "add", "y")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('wrok = "repo"\n', "unknown setting 'wrok'; did you mean work?"),
        ('\nwork = "sqlite:///x"\n', "herdbook.toml, line 2: work: must be"),
        ("work = 5\n", "herdbook.toml, line 1: work: must be"),
        ("[work]\nx = 1\n", "herdbook.toml: work: must be"),
        ("work =\n", "is not TOML"),
        ("patience = -1\n", "line 1: patience: must be"),
    ],
)
def test_a_bad_settings_file_says_where_and_what_is_allowed(
    person: Person, app: Path, text: str, said: str
) -> None:
    """Nothing is guessed from a file that cannot be read as it was meant."""
    (app / "herdbook.toml").write_text(text)
    for command in ("where", "config", "status"):
        told = person.tries(app, command)
        assert told.returncode == 2
        assert "herdbook.toml" in told.stderr
        assert said in told.stderr


def test_config_tells_every_setting_and_its_origin(person: Person, app: Path) -> None:
    """What counts, and where it was made."""
    (app / "herdbook.toml").write_text('backend = "duckdb"\nsize_limit = "16 GiB"\n')
    answer = person.asks(app, "config", HERDBOOK_RECORD="/x")
    assert answer["backend"] == {
        "value": "duckdb",
        "origin": "herdbook.toml, line 1",
        "trusted": False,
    }
    assert answer["size_limit"]["value"] == 16 * 2**30
    assert answer["record_size_limit"]["value"] == 512 * 2**20
    assert answer["record"]["origin"] == "HERDBOOK_RECORD"
    assert answer["work"] == {"value": "repo", "origin": "default", "trusted": True}


SIZES = ("0", "1", "1048575", "1099511627777", '"abc"', '"16 QiB"', "true")


@pytest.mark.parametrize("file", ["herdbook.toml", "config.toml"])
@pytest.mark.parametrize("key", ["size_limit", "work_size_limit", "record_size_limit"])
def test_a_size_out_of_range_is_refused_where_it_is_read(
    person: Person, app: Path, file: str, key: str
) -> None:
    """With the file, the line and the range, by every command that reads it."""
    path = app / file if file == "herdbook.toml" else person.config
    path.parent.mkdir(parents=True, exist_ok=True)
    for value in (*SIZES, *(["2147483649"] if key == "record_size_limit" else [])):
        path.write_text(f"# sizes\n{key} = {value}\n")
        for words in (("config",), ("where",), ("status",)):
            told = person.tries(app, *words)
            assert told.returncode == 2, (words, value)
            assert f"{file}, line 2: {key}: must be" in told.stderr
            assert "1048576 (1 MiB) to" in told.stderr


def test_a_larger_limit_for_work_does_not_touch_the_record(person: Person, app: Path) -> None:
    """Nor does a repository's: the record's own is the user's, and its borders are allowed."""
    (app / "herdbook.toml").write_text('size_limit = "16 GiB"\nrecord_size_limit = "1 MiB"\n')
    for value in ("1048576", "2147483648"):
        person.config.parent.mkdir(parents=True, exist_ok=True)
        person.config.write_text(f'size_limit = "1 TiB"\nrecord_size_limit = {value}\n')
        answer = person.asks(app, "config")
        assert answer["size_limit"]["value"] == 16 * 2**30
        assert answer["record_size_limit"]["value"] == int(value)
    person.config.write_text('size_limit = "1 TiB"\n')
    person.registers(app, "otter")
    person.runs(app, "activity", "add", "x", "--agent", "otter")
    person.runs(app, "task", "add", "x")
    person.runs(app, "bug", "otter")
    claim = person.tries(app, "claim", "--agent", "otter")
    assert "is halted" in claim.stderr


@pytest.mark.parametrize("backend", ["duckdb", "postgresql://127.0.0.1:1/x?connect_timeout=1"])
def test_a_size_limit_that_an_engine_does_not_keep_is_told(
    person: Person, app: Path, backend: str
) -> None:
    """By `where` and by `config`, for each area it was set for."""
    person.chooses(backend, "size_limit = 1048576", "record_size_limit = 1048576")
    answer = person.asks(app, "config")
    assert "has no effect on record" in answer["record_size_limit"]["notes"][0]
    assert len(answer["size_limit"]["notes"]) == 2
    assert "has no effect on work" in person.runs(app, "config")
    assert "record_size_limit has no effect on record" in person.runs(app, "where")
    person.config.write_text("size_limit = 1048576\n")
    assert "has no effect" not in person.runs(app, "where")


def test_a_relative_path_of_the_record_is_from_home(person: Person, app: Path) -> None:
    """By variable, by option and in the user's file; from every repository and folder."""
    other = person.repository(app.parent / "other")
    (other / "deep").mkdir()
    expected = f"lmdb://{person.home}/rec/r.lmdb"
    for folder in (app, other, other / "deep", app.parent):
        for words, variables in (
            ((), {"HERDBOOK_RECORD": "rec/r.lmdb"}),
            ((), {"HERDBOOK_STORE": "./rec/r.lmdb"}),
            (("--record", "rec/r.lmdb"), {}),
            (("--store", "rec/r.lmdb"), {}),
        ):
            areas = person.asks(folder, "where", *words, **variables)["areas"]
            assert areas["record"]["url"] == expected, (folder, words, variables)
    person.config.parent.mkdir(parents=True)
    person.config.write_text('record = "rec/r.lmdb"\n')
    assert person.asks(other, "where")["areas"]["record"]["url"] == expected
    (other / "~").mkdir()
    areas = person.asks(other, "where", "--work", "./~/w.lmdb")["areas"]
    assert areas["work"]["url"] == f"lmdb://{other}/~/w.lmdb"


def test_a_repositorys_broken_settings_do_not_reach_the_record(person: Person, app: Path) -> None:
    """What is read from it is the user's own, so standings and halts are still told there."""
    person.registers(app, "otter")
    person.runs(app, "bug", "otter")
    (app / "herdbook.toml").write_text("size_limit = 1\n")
    (standing,) = person.asks(app, "standing")
    assert standing["active"] is False
    refused = person.tries(app, "claim", "--agent", "otter")
    assert refused.returncode == 2
    assert "herdbook.toml, line 1" in refused.stderr


def test_a_password_is_never_printed(person: Person, app: Path) -> None:
    """Neither by where nor by config nor in an error."""
    hidden = "S3CRET"
    person.chooses("lmdb", "patience = 1")
    there = f"postgresql://me:{hidden}@127.0.0.1:1/x?password={hidden}&connect_timeout=1"
    for words in (["where"], ["config"], ["where", "--json"], ["status"], ["check"]):
        told = person.tries(app, *words, HERDBOOK_STORE=there)
        assert hidden not in told.stdout + told.stderr
    assert "postgresql://me@127.0.0.1:1/x" in person.runs(app, "where", HERDBOOK_STORE=there)


def test_outside_a_repository_everything_is_global(person: Person, tmp_path: Path) -> None:
    """With one line that says so."""
    answer = person.asks(tmp_path, "where")
    assert (answer["repository_id"], answer["worktree_id"], answer["branch"]) == (None, None, None)
    assert answer["areas"]["work"]["scope"] == "global"
    assert "not inside a git repository" in answer["areas"]["work"]["notes"][0]


@pytest.mark.parametrize("backend", ["lmdb", "duckdb"])
def test_a_store_is_for_its_user_alone_and_out_of_gits_sight(
    person: Person, app: Path, backend: str
) -> None:
    """Folders 0700, files 0600, and nothing of it in `git status`."""
    (app / "herdbook.toml").write_text(f'backend = "{backend}"\n')
    person.git(app, "add", "herdbook.toml")
    person.git(app, "commit", "--quiet", "--message=settings")
    person.runs(app, "worktree", "add", "login")
    kept = app / ".git" / "herdbook"
    found = [kept, *kept.rglob("*"), app / ".herdbook", app / ".herdbook" / ".gitignore"]
    found += [person.home / ".local", *(person.home / ".local").rglob("*")]
    for path in found:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert person.git(app, "status", "--porcelain") == ""
    assert person.git(app.parent / "app.worktrees" / "login", "status", "--porcelain") == ""
    assert not (app / ".gitignore").exists()


@pytest.mark.parametrize("name", ["with space", "ünïcode", "new\nline", "per%cent?#"])
def test_any_path_will_do(person: Person, tmp_path: Path, name: str) -> None:
    """Whatever a folder is called, its store is made there and found there again."""
    app = person.repository(tmp_path / name)
    person.runs(app, "worktree", "add", "login")
    answer: Any = person.asks(app, "where")
    assert answer["areas"]["work"]["exists"]
    assert (app / ".herdbook" / "work.lmdb" / "data.mdb").exists()
    login = tmp_path / f"{name}.worktrees" / "login"
    assert person.asks(login, "where")["areas"]["work"] == answer["areas"]["work"]


def test_a_folder_that_was_removed_is_told(person: Person, tmp_path: Path) -> None:
    """Who stands in it is told so; a folder that is named will do."""
    script = f'mkdir gone && cd gone && rmdir "$PWD" && exec {PROGRAM} where "$@"'
    for words, code in ((), 2), (("-C", str(tmp_path)), 0):
        told = subprocess.run(
            ["/bin/sh", "-c", script, "sh", *words],
            cwd=tmp_path,
            env=person.variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert told.returncode == code, told.stderr
        assert ("has been removed" in told.stderr) == (code == 2)
