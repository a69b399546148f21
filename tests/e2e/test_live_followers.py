"""Whoever follows the journal, in whatever way, is told every change once, in order, and the same.

Changes come by the rings that carry them, and from the store where a ring is missing or too long.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import run
from tests.e2e.conftest import Person
from tests.e2e.rpc_process import Pipes, request
from tests.e2e.serve_process import serving
from tests.e2e.test_journal_commands import following, listed

WRITERS, COMMITS = 3, 3


def _commit_many(person: Person, app: Path) -> None:
    """Small commits of several processes at once, a writer that is killed, and a long commit."""
    with ThreadPoolExecutor(WRITERS) as threads:
        for number in range(WRITERS * COMMITS):
            threads.submit(person.runs, app, "task", "add", f"task {number}")
    with Pipes(person, app) as writer:
        writer.send(*(request("task.add", number, name=f"r {number}") for number in range(40)))
        for _ in range(5):
            writer.receive()
        writer.process.kill()
        writer.process.wait()
    here = person.at(app)
    many = [Task(name="long", description="x" * 500) for _ in range(120)]
    with here.open(Area.WORK) as store:
        run(store, here.workspace.space(Area.WORK), lambda uow: uow.tasks.add_all(many))
    person.runs(app, "task", "add", "last")


@pytest.mark.parametrize("engine", ["lmdb", "duckdb", "postgres"])
def test_everybody_is_told_every_change_once(
    person: Person, app: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    """`journal follow`, a subscription over JSON-RPC, and the feed of the server."""
    if engine != "lmdb":
        person.chooses(request.getfixturevalue("postgres_url") if engine == "postgres" else engine)
    person.runs(app, "task", "add", "first")
    with ExitStack() as stack:
        process = stack.enter_context(following(person, app, 0))
        assert process.stdout is not None
        pipes = stack.enter_context(Pipes(person, app))
        server = stack.enter_context(serving(person, app))
        feed = stack.enter_context(server.feed())
        assert pipes.call("journal.subscribe", 1, since=0)["seq"] == 0
        before = listed(person, app, "list", "--limit", "500")
        _commit_many(person, app)
        kept = listed(person, app, "list", "--limit", "500")
        told: dict[str, list[dict[str, Any]]] = {"follow": [], "rpc": [], "http": []}
        while len(told["follow"]) < len(kept):
            told["follow"].append(json.loads(process.stdout.readline()))
        while len(told["rpc"]) < len(kept):
            told["rpc"] += pipes.told("journal.changed")["entries"]
        while len(told["http"]) < len(kept) - len(before):
            event = next(feed)
            told["http"] += event.data["entries"] if event.kind == "journal" else []
    numbers = [each["seq"] for each in kept]
    assert numbers == list(range(1, len(kept) + 1))
    assert len(kept) > 120 + WRITERS * COMMITS + 5
    assert [each["seq"] for each in told["follow"]] == numbers
    assert [each["seq"] for each in told["http"]] == numbers[len(before) :]
    assert told["rpc"][len(before) :] == told["http"]
    for name in ("tx", "at", "entity", "key", "op", "after"):
        ways = [[each.get(name) for each in told[way]] for way in ("follow", "rpc")]
        assert ways[0] == ways[1] == [each.get(name) for each in kept]
