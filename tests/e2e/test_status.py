"""One screen over all worktrees, the same from each of them."""

import re
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.location.areas import Area
from herdbook.ports.unit_of_work.run import run
from tests.e2e.conftest import Person, at_work


def rows(person: Person, folder: Path, *words: str) -> list[dict[str, Any]]:
    """The rows of the first space `status` answers with."""
    found: list[dict[str, Any]] = person.asks(folder, "status", *words)["spaces"][0]["rows"]
    return found


def crowd(person: Person, app: Path) -> tuple[Path, Path]:
    """Two worktrees with an agent each, beside one in the main one."""
    paths = [Path(person.asks(app, "worktree", "add", name)["path"]) for name in ("one", "two")]
    for folder, name in zip((app, *paths), ("main-agent", "one-agent", "two-agent"), strict=True):
        at_work(person, folder, name)
    return paths[0], paths[1]


def timeless(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what changes while one looks."""
    for space in answer["spaces"]:
        for row in space["rows"]:
            del row["seconds"], row["lease_seconds"]
    return answer


def test_status_is_the_same_from_every_worktree(person: Person, app: Path) -> None:
    """Wherever one stands, also in a sub-directory, one sees all agents with their worktrees."""
    one, two = crowd(person, app)
    deep = two / "a" / "b"
    deep.mkdir(parents=True)
    answers = [timeless(person.asks(each, "status")) for each in (app, one, two, deep)]
    assert all(each == answers[0] for each in answers)
    by_agent = {row["agent"]: row for row in answers[0]["spaces"][0]["rows"]}
    assert {name: row["branch"] for name, row in by_agent.items()} == {
        "main-agent": "main",
        "one-agent": "one",
        "two-agent": "two",
    }
    assert by_agent["one-agent"]["path"] == str(one)
    assert by_agent["one-agent"]["task"] == "the task of one-agent"
    assert answers[0]["spaces"][0]["tasks"] == {"ready": 0, "held": 3, "waiting": 0}
    assert (
        answers[0]["spaces"][0]["last_entry"]["worktree_id"] == by_agent["two-agent"]["worktree_id"]
    )


def test_a_worktree_can_be_named_by_id_path_or_branch(person: Person, app: Path) -> None:
    """The filter shows its rows only; what names no worktree is not found."""
    one, _ = crowd(person, app)
    (found,) = rows(person, app, "--worktree", "one")
    assert found["agent"] == "one-agent"
    for name in (found["worktree_id"], str(one), "../app.worktrees/one"):
        assert [row["agent"] for row in rows(person, app, "--worktree", name)] == ["one-agent"]
    assert [row["agent"] for row in rows(person, one, "--worktree", ".")] == ["one-agent"]
    told = person.tries(app, "status", "--worktree", "three")
    assert told.returncode == 3
    assert "'three'" in told.stderr


def test_all_shows_every_repository_of_the_user(person: Person, app: Path, tmp_path: Path) -> None:
    """Other repositories in stores of their own, and other spaces of the same store."""
    at_work(person, app, "here-agent")
    other = person.repository(tmp_path / "other", origin="https://example.com/team/other.git")
    at_work(person, other, "there-agent")
    here = person.at(app)
    with here.open(Area.WORK) as store:
        run(store, "work/third", lambda uow: uow.agents.add(Agent(name="third-agent")))
    assert len(person.asks(app, "status")["spaces"]) == 1
    spaces = person.asks(app, "status", "--all")["spaces"]
    agents = [[row["agent"] for row in space["rows"]] for space in spaces]
    assert agents == [["here-agent"], ["third-agent"], ["there-agent"]]
    (other / ".git" / "herdbook").rename(tmp_path / "taken away")
    assert len(person.asks(app, "status", "--all")["spaces"]) == 2


def test_before_anything_is_written_status_says_so(person: Person, app: Path) -> None:
    """No store is no error, and none is made."""
    assert "nobody is at work here" in person.runs(app, "status")
    assert not (app / ".herdbook").exists()


def test_people_get_a_table(person: Person, app: Path) -> None:
    """Who, where, on what, how long, and what happened last, with nothing a terminal obeys."""
    at_work(person, app, "brisk\x1b[31m-otter")
    text = person.runs(app, "status")
    for word in ("WORKTREE", "AGENT", "LEASE LEFT", "main", "running", "last change: #"):
        assert word in text
    assert "\x1b" not in text
    assert "brisk\\x1b[31m-otter" in text


@pytest.mark.parametrize("backend", ["lmdb", "duckdb", "postgres"])
def test_repositories_and_changes_are_told_by_name(
    person: Person, tmp_path: Path, backend: str, request: pytest.FixtureRequest
) -> None:
    """Clones of one repository by their folders, worktrees without agents too, rows by names."""
    origin = "https://example.com/team/app.git"
    folders = [person.repository(tmp_path / each, origin=origin) for each in ("one", "two")]
    folders.append(person.repository(tmp_path / "trap"))
    server = request.getfixturevalue("postgres_url") if backend == "postgres" else None
    person.chooses(server or backend)
    for folder in folders[1:] if server else folders:  # clones on one server share their plan
        person.runs(folder, "agent", "add", f"{folder.name}-agent")
        assert f"last change: #2 add agent '{folder.name}-agent'" in person.runs(folder, "status")
        person.runs(folder, "task", "add", f"the task of {folder.name}")
    branch = tmp_path / "branch"
    person.git(folders[-1], "worktree", "add", "--quiet", "-b", "branch", str(branch))
    person.runs(branch, "task", "set", "the task of trap", "--priority", "high")
    everywhere = person.runs(folders[-1], "status", "--all")
    for folder in folders[1:] if server else folders:
        (title,) = [
            line for line in everywhere.splitlines() if ": tasks " in line and str(folder) in line
        ]
        assert title.startswith("work/")
    assert "last change: #5 save task 'the task of trap'" in everywhere
    own = person.runs(branch, "status")
    assert "without agents: branch" in own
    assert not re.search(r"(add|save) [a-z]{3}_[0-9a-f]{20}|(add|save) [0-9a-f]{12}\b", own)


def test_a_store_that_was_switched_from_is_no_repository_of_its_own(
    person: Person, app: Path
) -> None:
    """After `use`, `status --all` shows the store that is used, once."""
    person.runs(app, "task", "add", "parse")
    for engine in ("duckdb", "lmdb", "duckdb"):
        person.runs(app, "use", engine)
        (space,) = person.asks(app, "status", "--all")["spaces"]
        assert space["url"].startswith(engine)
