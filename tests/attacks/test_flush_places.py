"""Folders that git cannot make sense of: their events lose their project, and stop no others."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.conftest import GiveAway
from tests.attacks.hostile_git import MISSING, leave_event
from tests.e2e.conftest import Person


def head_is_missing(person: Person, folder: Path) -> Path:
    repository = person.repository(folder)
    (repository / ".git" / "refs" / "heads" / "main").write_text(f"{MISSING}\n")
    return repository


def config_cannot_be_read(person: Person, folder: Path) -> Path:
    """A folder in the file's place: neither root nor anybody else can read that as a file."""
    repository = person.repository(folder)
    (repository / ".git" / "config").unlink()
    (repository / ".git" / "config").mkdir()
    return repository


def config_is_broken(person: Person, folder: Path) -> Path:
    repository = person.repository(folder)
    (repository / ".git" / "config").write_text("[core\n")
    return repository


def config_never_ends(person: Person, folder: Path) -> Path:
    """A pipe that nobody writes to: git waits for it, for ever."""
    repository = person.repository(folder)
    (repository / ".git" / "config").unlink()
    os.mkfifo(repository / ".git" / "config")
    return repository


def leads_nowhere(_: Person, folder: Path) -> Path:
    folder.mkdir()
    (folder / ".git").write_text("gitdir: /nowhere/at/all\n")
    return folder


def is_no_repository(_: Person, folder: Path) -> Path:
    folder.mkdir()
    (folder / ".git").write_bytes(b"\xff\0 nonsense")
    return folder


def has_an_unknown_extension(person: Person, folder: Path) -> Path:
    repository = person.repository(folder)
    with (repository / ".git" / "config").open("a") as config:
        config.write("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tnovelty = x\n")
    return repository


def is_of_a_later_format(person: Person, folder: Path) -> Path:
    repository = person.repository(folder)
    person.git(repository, "config", "core.repositoryFormatVersion", "99")
    return repository


def is_pinned_to_nonsense(person: Person, folder: Path) -> Path:
    repository = person.repository(folder)
    (repository / ".git" / "herdbook-repository-id").write_text("../../etc\n")
    return repository


def pin_is_a_folder(person: Person, folder: Path) -> Path:
    repository = person.repository(folder)
    (repository / ".git" / "herdbook-repository-id").mkdir()
    return repository


BROKEN: dict[str, Callable[[Person, Path], Path]] = {
    make.__name__: make
    for make in (
        head_is_missing,
        config_cannot_be_read,
        config_is_broken,
        config_never_ends,
        leads_nowhere,
        is_no_repository,
        has_an_unknown_extension,
        is_of_a_later_format,
        is_pinned_to_nonsense,
        pin_is_a_folder,
    )
}


def diagnosis(person: Person, folder: Path, **variables: str) -> dict[str, Any]:
    """What `doctor` answers, which ends with 1 where something is wrong."""
    told = person.tries(folder, "doctor", "--json", "--full", **variables)
    answer: dict[str, Any] = json.loads(told.stdout)
    assert told.returncode == (0 if answer["ok"] else 1), told.stderr
    return answer


def projects(person: Person, folder: Path) -> set[str]:
    """The projects of all commits in the record."""
    rows: list[dict[str, Any]] = person.asks(
        folder, "sql", "--area", "record", "SELECT project FROM commits"
    )["rows"]
    return {row[0] if isinstance(row, list) else row["project"] for row in rows}


@pytest.mark.parametrize("make", BROKEN.values(), ids=BROKEN)
def test_a_folder_in_trouble_keeps_no_other_event_back(
    make: Callable[[Person, Path], Path], person: Person, app: Path, tmp_path: Path
) -> None:
    """All are flushed, its own without a project, and `doctor` tells why until it is well again."""
    broken = make(person, tmp_path / "broken")
    (broken / "deep").mkdir()
    leave_event(person, broken, tool_name="Read")
    leave_event(person, broken / "deep", tool_name="Read")
    leave_event(person, broken, "post-commit", commit=MISSING)
    head = person.git(app, "rev-parse", "HEAD").strip()
    leave_event(person, app, "post-commit", commit=head)
    leave_event(person, tmp_path, tool_name="Read")
    told = person.asks(app, "flush")
    assert (told["applied"], told["aside"]) == (5, [])
    known = person.asks(app, "where")["repository_id"]
    assert projects(person, app) == {known, str(broken)}
    doctor = diagnosis(person, app)
    assert not doctor["ok"]
    assert doctor["waiting"]["events"] == 0
    notes = {each["folder"]: each for each in doctor["without_project"]}
    assert notes.keys() == {str(broken), str(broken / "deep")}
    assert notes[str(broken)]["events"] == 2
    assert notes[str(broken)]["reason"]
    shown = person.tries(app, "doctor").stdout
    assert f"2 events in {broken} are recorded without their project" in shown
    assert "OK" not in shown
    # What is understood again, or gone, is no trouble any more.
    broken.rename(tmp_path / "set aside")
    person.repository(broken)
    leave_event(person, broken, tool_name="Read")
    assert person.asks(app, "flush")["applied"] == 1
    assert diagnosis(person, app)["ok"]


def test_a_flush_works_also_from_a_folder_in_trouble(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """A session that ends there starts one there, and has nothing to do with the folder."""
    broken = has_an_unknown_extension(person, tmp_path / "broken")
    leave_event(person, app, tool_name="Read")
    assert person.tries(broken, "where").returncode != 0
    assert diagnosis(person, broken)["waiting"]["events"] == 1
    assert person.asks(broken, "flush")["applied"] == 1
    assert diagnosis(person, broken)["ok"]


def test_an_event_of_another_accounts_repository_is_flushed_without_its_project(
    person: Person, tmp_path: Path, give_away: GiveAway
) -> None:
    """Of one that the fast reader knows, and of one that only git can read."""
    outside = tmp_path / "outside"
    outside.mkdir()
    variables: dict[str, str] = {}
    for name, form in (("usual", "sha1"), ("newer", "sha256")):
        folder = tmp_path / name
        folder.mkdir()
        person.git(folder, "init", "--quiet", f"--object-format={form}")
        person.git(folder, "remote", "add", "origin", "https://example.com/theirs.git")
        leave_event(person, folder, tool_name="Read")
        variables.update(give_away(folder))
    leave_event(person, outside, tool_name="Read")
    told = person.asks(outside, "flush", **variables)
    assert (told["applied"], told["aside"]) == (3, [])
    notes = diagnosis(person, outside, **variables)["without_project"]
    assert [each["folder"] for each in notes] == [str(tmp_path / "usual"), str(tmp_path / "newer")]
    assert all("belongs to another account" in each["reason"] for each in notes)


@pytest.mark.parametrize(
    "cwd", ["/" + "long" * 2_000, "nowhere", "", "/with\0nul", "/\ud800", "/dev/null"]
)
def test_a_folder_that_cannot_be_one_keeps_no_event_back(
    cwd: str, person: Person, app: Path, tmp_path: Path
) -> None:
    """A line in the spool may say anything."""
    leave_event(person, app, tool_name="Read")
    (spool,) = tmp_path.rglob("events.jsonl")
    line = spool.read_text().strip()
    hostile = line.replace(f'"cwd": "{app}"', f'"cwd": {json.dumps(cwd)}').replace(
        '"id": "', '"id": "x'
    )
    assert hostile != line
    with spool.open("a") as file:
        file.write(f"\n{hostile}\n")
    assert person.asks(app, "flush")["applied"] == 2
    assert diagnosis(person, app)["ok"]


def test_what_another_worktree_refuses_to_export_stops_nothing(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Its settings are broken, or its links lead out; the others get their exports."""
    (app / "herdbook.toml").write_text("exports = true\n")
    other = person.repository(tmp_path / "other", origin="https://example.com/other.git")
    (other / "herdbook.toml").write_text("exports = true\n")
    (other / ".agent").symlink_to(tmp_path)
    misspelt = person.repository(tmp_path / "misspelt", origin="https://example.com/third.git")
    (misspelt / "herdbook.toml").write_text("exprots = true\n")
    for folder in (other, misspelt, app):
        leave_event(person, folder, tool_name="Read")
    told = person.tries(app, "flush", "--json", "--full")
    assert told.returncode == 0, told.stderr
    assert str(app / ".agent" / "status.json") in told.stdout
    assert f"{other} gets no exports" in told.stderr
    assert f"{misspelt} gets no exports" in told.stderr
    assert not (tmp_path / "status.json").exists()
