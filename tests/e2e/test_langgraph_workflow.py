"""A real workflow of LangGraph: killed, resumed, forked, and run in many worktrees at once."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.location.areas import Area
from herdbook.ports.unit_of_work.run import read
from herdbook.services.checkpoints import threads as checkpoints_threads
from herdbook.services.stores.store_check import check
from tests.e2e.conftest import Person
from tests.e2e.workflow import NODES

ROOT = Path(__file__).parents[2]
ENGINES = ("lmdb", "duckdb", "postgres")


def started(person: Person, folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start the workflow in a folder, as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.workflow", *words],
        cwd=folder,
        env={**person.variables, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed_at(person: Person, folder: Path, node: str) -> None:
    """Run the workflow until it comes to a node, and kill it there."""
    running = started(person, folder, "run", "issue", "--pause", node)
    assert running.stdout is not None
    assert running.stdout.readline() == f"at {node}\n", running.communicate()[1]
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    assert running.returncode == -signal.SIGKILL


@pytest.mark.parametrize("engine", ENGINES)
def test_a_killed_workflow_goes_on_in_another_process(
    person: Person, app: Path, postgres_url: str, engine: str
) -> None:
    """No finished node runs again, not even one whose neighbour was at work, and none is lost.

    Killed beside a finished node and once more behind it, it comes to what it would have come to.
    """
    person.chooses(postgres_url if engine == "postgres" else engine)
    killed_at(person, app, "review")
    assert (app / "effects.txt").read_text().split() == ["plan", "draft"]
    killed_at(person, app, "file")
    assert (app / "effects.txt").read_text().split() == ["plan", "draft", "review", "merge"]
    end = person.works(app, "issue")
    assert end["ran"] == ["file"]
    assert end["done"] == list(NODES)
    assert end["messages"] == ["please", *(f"{node} is done" for node in NODES)]
    assert (app / "effects.txt").read_text().split() == list(NODES)


def test_a_workflow_is_forked_from_an_earlier_checkpoint(person: Person, app: Path) -> None:
    """The config that `checkpoint show` prints leads there, and what had come of it stays."""
    first = person.works(app, "issue")
    before = person.asks(app, "checkpoint", "list", "issue")
    planned = next(each for each in before if each["step"] == 1)
    shown = person.asks(app, "checkpoint", "show", "issue", planned["checkpoint_id"])
    assert shown["values"]["done"]["value"] == ["plan"]
    back = json.dumps(shown["config"])
    fork = person.works(app, "issue", "--from", back, "--note", "another way")
    assert sorted(fork["ran"]) == ["draft", "file", "merge", "review"]
    assert fork["done"] == first["done"]
    assert (first["notes"], fork["notes"]) == ([], ["another way"])
    assert fork["text"] > first["text"]
    after = person.asks(app, "checkpoint", "list", "issue")
    assert after[-len(before) :] == before
    forked = next(each for each in after if each["source"] == "update")
    assert forked["parent_id"] == planned["checkpoint_id"]


def crowd(person: Person, app: Path, number: int) -> None:
    """Run the same thread in many worktrees of one repository, all at the same time."""
    places = [app.parent / f"app-{at}" for at in range(number)]
    for place in places:
        person.git(app, "worktree", "add", "--quiet", "--detach", str(place))
    with person.at(person.home).open(Area.CHECKPOINTS, create=True) as everybodys:
        uuid = everybodys.uuid
    before = files_in(person.data)
    running = started(person, app, "crowd", "issue", *map(str, places))
    assert running.stdout is not None
    assert running.stdout.readline() == "ready\n", running.communicate()[1]
    told, complaint = running.communicate("\n")
    assert (running.returncode, complaint) == (0, "")
    assert files_in(person.data) == before
    answer = json.loads(told)
    assert answer["codes"] == [0] * number
    assert set(answer["told"]) == set(map(str, places))
    kept: list[tuple[str, list[str]]] = []
    for place in places:
        assert answer["told"][str(place)]["done"] == list(NODES)
        assert Counter((place / "effects.txt").read_text().split()) == Counter(NODES)
        here = person.at(place)
        space = here.workspace.space(Area.CHECKPOINTS)
        with here.open(Area.CHECKPOINTS) as store:
            held = read(store, space, checkpoints_threads.show_checkpoint, "issue")
            assert json.loads(held.metadata.data)["step"] == 4
            assert [each.thread.sizes[:2] for each in read(store, space, _threads)] == [(6, 21)]
            assert check(store, [space]) == []
            assert space == f"checkpoints/{here.workspace.worktree_id}"
            kept.append((store.uuid, store.spaces()))
    stores = {uuid for uuid, _ in kept}
    if stores == {uuid}:
        assert {len(spaces) for _, spaces in kept} == {number}
    else:
        assert len(stores | {uuid}) == number + 1
        assert {len(spaces) for _, spaces in kept} == {1}


def files_in(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file in a folder, with its time and its content."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


def _threads(uow: Any) -> Any:
    return checkpoints_threads.threads(uow, limit=9)


@pytest.mark.parametrize(
    "engine", ["lmdb", *(pytest.param(each, marks=pytest.mark.soak) for each in ENGINES[1:])]
)
def test_thirty_worktrees_run_workflows_at_once(
    person: Person, app: Path, postgres_url: str, engine: str
) -> None:
    """Each has its own checkpoints under the same name, all whole, and none fails."""
    person.chooses(postgres_url if engine == "postgres" else engine, "patience = 600")
    crowd(person, app, 30)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
def test_a_hundred_and_fifty_worktrees_run_workflows_at_once(
    person: Person, app: Path, postgres_url: str, engine: str
) -> None:
    """The same with 150 processes."""
    person.chooses(postgres_url if engine == "postgres" else engine, "patience = 600")
    crowd(person, app, 150)
