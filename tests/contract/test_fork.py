"""A fork after open is safe: whatever a child does, its parent's store is whole."""

import json
import re
from collections.abc import Callable

import pytest

from herdbook.adapters import open_store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.contract import forks
from tests.contract.children import program
from tests.contract.conftest import SHARED
from tests.contract.forks import REFUSED, SPACE

STRICT = (
    *("-W", "error"),
    # Newer Pythons warn of every fork with threads, which is what some scenes are there for.
    *("-W", "ignore::DeprecationWarning"),
    # psycopg warns of connections that nobody closed, which a child must not do to its parent's.
    *("-W", "ignore::ResourceWarning"),
)

Play = Callable[..., tuple[dict[str, int], list[str]]]


@pytest.fixture
def play(engine: str, new_url: Callable[[str], str]) -> Play:
    """Plays a scene in a process that forks; how the children ended, and which tasks are there.

    The parent, with warnings as errors, complains of nothing, and another process finds the same.
    """

    def on(scene: str, *acts: str) -> tuple[dict[str, int], list[str]]:
        url = new_url(engine)
        ended = program(*STRICT, "-m", "tests.contract.forks", url, scene, *acts)
        assert (ended.returncode, _complaints(ended.stderr)) == (0, "")
        told = json.loads(ended.stdout)
        if engine in SHARED:
            with open_store(url, create=False) as store:
                assert forks.names_in(store) == told["names"]
                read(store, SPACE, _is_whole)
        return told["children"], told["names"]

    return on


def _complaints(errors: str) -> str:
    # DuckDB's bindings count what a child leaves behind that was its parent's.
    noise = re.compile(r"nanobind: leaked|nanobind: this is likely|See https://nanobind| - ")
    return "\n".join(line for line in errors.splitlines() if not noise.match(line))


def _is_whole(uow: UnitOfWork) -> None:
    numbers = [entry.seq for entry in uow.journal.all_entries()]
    assert numbers == list(range(1, uow.journal.last() + 1))
    assert find_differences(uow) == []


def all_end(codes: dict[str, int], *allowed: int) -> bool:
    """Whether every child ended in one of these ways."""
    return bool(codes) and set(codes.values()) <= set(allowed)


def test_a_child_that_writes_nothing_leaves_no_trace(play: Play) -> None:
    """It may leave, vanish, close the store or read: the parent goes on as if it had not been."""
    children, names = play("between", "leave", "vanish", "close", "look")
    assert all_end(children, 0), children
    assert names == ["after", "before"]


def test_a_child_can_write(play: Play, engine: str) -> None:
    """What it wrote is there for its parent; a store in memory it has for itself."""
    children, names = play("between", "put")
    assert all_end(children, 0), children
    theirs = [] if engine == "memory" else ["by the child"]
    assert names == ["after", "before", *theirs]


def test_parent_and_child_can_write_at_once(play: Play, engine: str) -> None:
    """Neither loses what it wrote."""
    children, names = play("beside", "put_ten")
    assert all_end(children, 0), children
    ours = [f"by the parent {number}" for number in range(10)]
    theirs = [] if engine == "memory" else [f"by the child {number}" for number in range(10)]
    assert names == ["after", "before", *theirs, *ours]


def test_a_fork_while_other_threads_write_harms_nobody(play: Play, engine: str) -> None:
    """The threads lose nothing, and the children can do what they like."""
    children, names = play("threads", "leave", "vanish", "look", "close", "put")
    assert all_end(children, 0), children
    theirs = [] if engine == "memory" else ["by the child"]
    assert names == ["after", "before", *theirs]


# DuckDB's fork waits its own, longer patience before it leaves such a store to the parent.
@pytest.mark.parametrize("engine", ["memory", "lmdb", "postgres"], indirect=True)
def test_a_fork_does_not_wait_for_ever_for_threads_that_wait_for_it(
    play: Play, engine: str, new_url: Callable[[str], str]
) -> None:
    """A thread that goes from one store into another gets through, and so does the fork."""
    children, names = play("two_stores", new_url(engine), "leave", "vanish")
    assert all_end(children, 0), children
    assert names == ["after", "before", "from within"]


def test_a_fork_inside_a_write_leaves_it_to_the_parent(play: Play) -> None:
    """Children may use the store or are told that they cannot; the parent commits all it began."""
    children, names = play("writing", "leave", "vanish", "close", "look", "put")
    assert all_end(children, 0, REFUSED), children
    assert [name for name in names if name != "by the child"] == [
        "after",
        "before",
        "begun before the fork",
        "ended after the fork",
    ]


def test_a_child_cannot_go_on_with_its_parents_write(play: Play, engine: str) -> None:
    """It is told so, and nothing of it gets into what the parent commits."""
    children, names = play("writing", "write_on", "read_on", "commit")
    assert all_end(children, 0 if engine == "memory" else REFUSED), children
    assert names == ["after", "before", "begun before the fork", "ended after the fork"]


def test_a_fork_inside_a_read_leaves_the_parent_its_moment(play: Play) -> None:
    """However children end and whatever others write then, the parent reads what it began to."""
    children, names = play("reading", "leave", "vanish", "look", "read_on", "close")
    assert all_end(children, 0, REFUSED), children
    assert names == ["after", "before"]
