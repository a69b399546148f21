"""One screen over all worktrees, the same from each of them."""

from pathlib import Path
from typing import Any

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
