"""Worktrees that share the repository's stores, made and taken down by the installed program."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.domain.journal import OperationResult
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import read, run
from tests.e2e.conftest import PROGRAM, Person, at_work


def worktrees(person: Person, app: Path) -> list[dict[str, Any]]:
    """What `worktree list` answers."""
    listed: list[dict[str, Any]] = person.asks(app, "worktree", "list")["worktrees"]
    return listed


def test_a_worktree_is_a_real_one_and_is_written_down(person: Person, app: Path) -> None:
    """Git knows it, the store knows it, and its branch starts where it should."""
    answer = person.asks(app, "worktree", "add", "login", "--branch", "feature/login")
    path = Path(answer["path"])
    assert path == app.parent / "app.worktrees" / "login"
    assert person.git(path, "branch", "--show-current").strip() == "feature/login"
    assert person.git(path, "rev-parse", "HEAD") == person.git(app, "rev-parse", "main")
    main, login = worktrees(person, app)
    assert main["is_main"]
    assert (login["worktree_id"], login["branch"]) == (answer["worktree_id"], "feature/login")
    place = person.at(app)
    with place.open(Area.WORK) as store:
        known = read(store, place.workspace.space(Area.WORK), lambda uow: uow.worktrees.page())
    assert {each.id for each in known} == {main["worktree_id"], login["worktree_id"]}


@pytest.mark.parametrize("backend", ["lmdb", "duckdb"])
def test_a_store_opened_through_the_link_is_the_same_store(
    person: Person, app: Path, backend: str
) -> None:
    """One engine, one lock, one cache: what is written through the link is there at once."""
    (app / "herdbook.toml").write_text(f'backend = "{backend}"\n')
    person.git(app, "add", "herdbook.toml")
    person.git(app, "commit", "--quiet", "--message=settings")
    answer = person.asks(app, "worktree", "add", "login")
    (link,) = answer["links"]
    assert Path(link["link"]).is_symlink()
    assert Path(link["link"]).resolve() == app / ".git" / "herdbook" / f"work.{backend}"
    place = person.at(app)
    linked = place.workspace.locate(Area.WORK)._replace(url=f"{backend}://{link['link']}")
    space = place.workspace.space(Area.WORK)
    with place.open(Area.WORK) as store, place.stores.open_at(linked) as through:
        assert (store.uuid, store.url) == (through.uuid, through.url)
        for number, (one, other) in enumerate([(store, through), (through, store)]):
            added = run(one, space, lambda uow: uow.tasks.add(Task(name="x")))
            assert read(other, space, lambda uow, key: uow.tasks.get(key), added.id) == added
            assert read(other, space, lambda uow: len(uow.tasks.page())) == number + 1
    assert {each.name for each in Path(link["link"]).parent.iterdir()} == {
        ".gitignore",
        f"work.{backend}",
    }


def test_a_link_may_come_before_its_store(person: Person, app: Path) -> None:
    """Areas of scope `repo` that nobody has used yet are made where the link leads."""
    (app / "herdbook.toml").write_text('checkpoints = "repo"\n')
    person.git(app, "add", "herdbook.toml")
    person.git(app, "commit", "--quiet", "--message=settings")
    person.runs(app, "worktree", "add", "login")
    login = app.parent / "app.worktrees" / "login"
    place = person.at(login)
    through = place.workspace.locate(Area.CHECKPOINTS)._replace(
        url=f"lmdb://{login}/.herdbook/checkpoints.lmdb"
    )
    with place.stores.open_at(through, create=True):
        assert (app / ".git" / "herdbook" / "checkpoints.lmdb" / "data.mdb").exists()


def test_parallel_adds_queue(person: Person, app: Path) -> None:
    """Eight at once make eight worktrees, and nobody fails."""
    names = [f"w{number}" for number in range(8)]
    running = [
        subprocess.Popen(
            [PROGRAM, "worktree", "add", name],
            cwd=app,
            env=person.variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for name in names
    ]
    for each in running:
        _, complaint = each.communicate()
        assert each.returncode == 0, complaint.decode()
    listed = worktrees(person, app)
    assert {each["branch"] for each in listed} == {"main", *names}
    assert len({each["worktree_id"] for each in listed}) == 9


def test_a_name_used_again_is_another_worktree(person: Person, app: Path) -> None:
    """History of a worktree that went is not taken for that of a new one of the same name."""
    first = person.asks(app, "worktree", "add", "login")["worktree_id"]
    person.runs(app, "worktree", "remove", "login")
    assert person.asks(app, "worktree", "add", "login")["worktree_id"] != first
    gone = person.asks(app, "worktree", "list", "--all")["worktrees"]
    assert [each["worktree_id"] for each in gone if each["state"] == "gone"] == [first]


def test_a_moved_worktree_is_the_same(person: Person, app: Path) -> None:
    """`git worktree move` changes neither its identity nor what it finds."""
    answer = person.asks(app, "worktree", "add", "login")
    before = person.asks(Path(answer["path"]), "where")
    moved = app.parent / "moved"
    person.git(app, "worktree", "move", answer["path"], str(moved))
    after = person.asks(moved, "where")
    assert after["worktree_id"] == before["worktree_id"] == answer["worktree_id"]
    assert after["areas"]["work"] == before["areas"]["work"]


def test_removing_archives_checkpoints_and_says_who_was_there(person: Person, app: Path) -> None:
    """The archive is a whole store with the same rows; agents, tasks and the branch stay."""
    login = Path(person.asks(app, "worktree", "add", "login")["path"])
    at_work(person, login, "brisk-otter")
    place = person.at(login)
    kept = OperationResult(
        operation_id="step 1", result={"state": [1, 2]}, at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    with place.open(Area.CHECKPOINTS, create=True) as store:
        run(store, place.workspace.space(Area.CHECKPOINTS), lambda uow: uow.operations.add(kept))
    refused = person.tries(app, "worktree", "remove", "login")
    assert refused.returncode == 1
    assert "brisk-otter" in refused.stderr
    assert login.exists()
    answer = person.asks(app, "worktree", "remove", "login", "--force")
    assert not login.exists()
    assert [agent["name"] for agent in answer["agents"]] == ["brisk-otter"]
    assert [task["name"] for task in answer["tasks"]] == ["the task of brisk-otter"]
    (archived,) = answer["archived"]
    assert archived["area"] == "checkpoints"
    with open_store(archived["url"], create=False) as store:
        (space,) = store.spaces()
        assert space == f"checkpoints/{answer['worktree_id']}"
        assert read(store, space, lambda uow: uow.operations.find("step 1")) == kept
    status = person.asks(app, "status")["spaces"][0]
    assert [row["agent"] for row in status["rows"]] == ["brisk-otter"]
    assert "login" in person.git(app, "branch")


def test_uncommitted_changes_are_not_thrown_away(person: Person, app: Path) -> None:
    """A worktree with changes stays, unless forced; nothing is archived then either."""
    login = Path(person.asks(app, "worktree", "add", "login")["path"])
    (login / "new.txt").write_text("precious")
    told = person.tries(app, "worktree", "remove", "login")
    assert told.returncode == 1
    assert "not committed" in told.stderr
    assert (login / "new.txt").exists()
    person.runs(app, "worktree", "remove", "login", "--force")
    assert not login.exists()


def test_prune_says_who_was_in_what_is_gone(person: Person, app: Path) -> None:
    """A folder removed by hand is forgotten by git, and remembered by us."""
    login = Path(person.asks(app, "worktree", "add", "login")["path"])
    at_work(person, login, "brisk-otter")
    login.rename(app.parent / "taken away")
    told = person.tries(app, "worktree", "remove", "login")
    assert told.returncode == 2
    assert "worktree prune" in told.stderr
    (pruned,) = person.asks(app, "worktree", "prune")["pruned"]
    assert pruned["path"] == str(login)
    assert [agent["name"] for agent in pruned["agents"]] == ["brisk-otter"]
    assert person.asks(app, "worktree", "prune")["pruned"] == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["add", "a/b"], 2),
        (["add", "-x"], 2),
        (["add", ""], 2),
        (["add", "x", "--branch", "bad..name"], 2),
        (["add", "x", "--base", "nowhere"], 2),
        (["add", "x", "--branch", "main"], 2),
        (["remove", "nobody"], 3),
        (["remove", "main"], 2),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    person: Person, app: Path, words: list[str], code: int
) -> None:
    """Nothing is made, and the error says why."""
    told = person.tries(app, "worktree", *words)
    assert told.returncode == code, told
    assert "Traceback" not in told.stderr
    assert told.stderr
    assert len(worktrees(person, app)) == 1


def test_outside_a_repository_there_are_no_worktrees(person: Person, tmp_path: Path) -> None:
    """Every command of the group says so."""
    for words in (["add", "x"], ["list"], ["remove", "x"], ["prune"]):
        told = person.tries(tmp_path, "worktree", *words)
        assert told.returncode == 3
        assert "git repository" in told.stderr


def test_a_bare_repository_has_worktrees_too(person: Person, app: Path, tmp_path: Path) -> None:
    """Its stores are inside its git directory, shared by all its worktrees."""
    bare = tmp_path / "app.git"
    person.git(tmp_path, "clone", "--quiet", "--bare", str(app), str(bare))
    one = Path(person.asks(bare, "worktree", "add", "one")["path"])
    two = Path(person.asks(one, "worktree", "add", "two")["path"])
    places = {person.asks(each, "where")["areas"]["work"]["url"] for each in (bare, one, two)}
    assert places == {f"lmdb://{bare}/herdbook/work.lmdb"}
    assert len(person.asks(two, "worktree", "list")["worktrees"]) == 2
