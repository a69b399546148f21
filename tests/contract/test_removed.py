"""Nothing is acknowledged that goes into a file which is no longer there.

`git clean`, a moved folder, a backup put in place: whoever has the store open is told, and whoever
opens it again gets what lies there now.
"""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from herdbook.adapters import open_store
from herdbook.domain.errors import HerdbookError, StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract.space import HERE, everything_in

NewUrl = Callable[[str], str]
Harm = Callable[[Path], object]

in_files = pytest.mark.parametrize("engine", ["lmdb", "duckdb"], indirect=True)


def add(uow: UnitOfWork, name: str) -> str:
    """Add a task; its id."""
    return uow.tasks.add(Task(name=name)).id


def names_in(store: Store) -> list[str]:
    """The names of all tasks."""
    return sorted(task.name for task in everything_in(store).get("tasks", []))


def parts(path: Path) -> list[Path]:
    """The files of a store: a folder, or a file and what stands beside it."""
    return [path] if path.is_dir() else sorted(path.parent.glob(f"{path.name}*"))


def remove(path: Path) -> None:
    """Remove a store as `rm -rf` does."""
    for each in parts(path):
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def move(path: Path) -> None:
    """Move it somewhere else."""
    away = path.parent / "away"
    away.mkdir()
    for each in parts(path):
        each.rename(away / each.name)


def replace(path: Path) -> None:
    """Put another store in its place."""
    elsewhere = path.parent / "other" / path.name
    elsewhere.parent.mkdir()
    scheme = "lmdb" if path.is_dir() else "duckdb"
    with open_store(f"{scheme}://{elsewhere}") as other:
        run(other, HERE, add, "of the other")
    remove(path)
    for each in parts(elsewhere):
        each.rename(path.with_name(each.name))


def replace_data(path: Path) -> None:
    """Put another file in its place, and leave what stands beside it."""
    elsewhere = path.parent / "other" / path.name
    elsewhere.parent.mkdir()
    scheme = "lmdb" if path.is_dir() else "duckdb"
    with open_store(f"{scheme}://{elsewhere}") as other:
        run(other, HERE, add, "of the other")
    if path.is_dir():
        path, elsewhere = path / "data.mdb", elsewhere / "data.mdb"
    elsewhere.replace(path)


HARM: dict[str, Harm] = {
    "removed": remove,
    "moved away": move,
    "replaced": replace,
    "its data replaced": replace_data,
}

harmed = pytest.mark.parametrize("harm", HARM)


@pytest.fixture
def url(engine: str, new_url: NewUrl) -> str:
    """Where a store is that holds one task."""
    place = new_url(engine)
    with open_store(place) as store:
        run(store, HERE, add, "before")
    return place


def path_in(url: str) -> Path:
    """The path in a URL."""
    return Path(url.partition("://")[2])


@in_files
@harmed
@pytest.mark.parametrize("written", [True, False], ids=["after a write", "after a read"])
def test_what_is_written_then_is_kept_or_refused(url: str, harm: str, written: bool) -> None:
    """An id that came back leads to a row in the store that lies there; else there is an error."""
    with open_store(url) as store:
        if written:
            run(store, HERE, add, "while open")
        else:
            names_in(store)
        HARM[harm](path_in(url))
        acknowledged: list[str] = []
        for number in range(3):
            with suppress(HerdbookError):
                acknowledged.append(run(store, HERE, add, f"after {number}"))
    if not acknowledged:
        return
    with open_store(url, create=False) as store:
        found = read(store, HERE, lambda uow: uow.tasks.get_many(acknowledged))
    assert [task.name for task in found if task is not None] == ["after 0", "after 1", "after 2"]


@pytest.mark.parametrize("engine", ["lmdb"], indirect=True)
@harmed
def test_an_open_store_says_that_it_is_gone(url: str, harm: str) -> None:
    """To those who write and to those who read, in one clear sentence."""
    with open_store(url) as store:
        run(store, HERE, add, "while open")
        HARM[harm](path_in(url))
        with pytest.raises(StoreUnavailable) as refusal:
            run(store, HERE, add, "after")
        with pytest.raises(StoreUnavailable, match="replaced while it was open. Open it again"):
            names_in(store)
    assert str(refusal.value) == (
        f"{path_in(url)} cannot be used: it was removed or replaced while it was open. "
        "Nothing of this change was kept"
    )


@pytest.mark.parametrize("engine", ["lmdb"], indirect=True)
@harmed
def test_a_change_that_was_begun_is_not_acknowledged(url: str, harm: str) -> None:
    """A store that goes while a transaction is under way keeps nothing of it."""

    def begin_and_lose_it(uow: UnitOfWork) -> None:
        add(uow, "begun before")
        HARM[harm](path_in(url))

    with open_store(url) as store:
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            run(store, HERE, begin_and_lose_it)
        if harm == "moved away":
            path_in(url).parent.joinpath("away", path_in(url).name).rename(path_in(url))
            assert names_in(store) == ["before"]


@in_files
@harmed
def test_who_opens_it_again_gets_what_lies_there(url: str, harm: str) -> None:
    """Also while somebody in this process still has the old one open."""
    expected = ["of the other"] if "replaced" in harm else []
    with open_store(url) as old:
        run(old, HERE, add, "while open")
        HARM[harm](path_in(url))
        with suppress(HerdbookError):
            run(old, HERE, add, "acknowledged")
            expected.append("acknowledged")
        with open_store(url) as new:
            assert names_in(new) == sorted(expected)
            run(new, HERE, add, "in the new one")
            assert names_in(new) == sorted([*expected, "in the new one"])
    with open_store(url) as again:
        assert "in the new one" in names_in(again)
