"""The journal at the keyboard and over JSON-RPC: pages, cursors, folding."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PROGRAM, Person
from tests.e2e.rpc_process import Pipes


@pytest.fixture(params=["lmdb", "duckdb", "postgres"])
def where(request: pytest.FixtureRequest, person: Person, postgres_url: str) -> dict[str, str]:
    """The variables that choose an engine."""
    if request.param == "postgres":
        return {"HERDBOOK_WORK": postgres_url}
    person.chooses(request.param)
    return {}


def listed(person: Person, folder: Path, *words: str, **variables: str) -> list[dict[str, Any]]:
    lines = person.runs(folder, "journal", *words, "--json", **variables).splitlines()
    return [json.loads(line) for line in lines]


def seqs(person: Person, folder: Path, *words: str, **variables: str) -> list[int]:
    return [each["seq"] for each in listed(person, folder, "list", *words, **variables)]


def write(person: Person, folder: Path, count: int, **variables: str) -> None:
    """Add tasks; the first entry is that of the worktree."""
    for number in range(count):
        person.runs(folder, "task", "add", f"task {number}", **variables)


def test_the_journal_is_listed_by_its_bare_name_in_pages(person: Person, app: Path) -> None:
    """The newest page by default, with its place told; entries have a time and a stamp."""
    assert person.runs(app, "journal") == ""
    assert person.runs(app, "log") == ""
    write(person, app, 5)
    assert [each["seq"] for each in listed(person, app)] == [1, 2, 3, 4, 5, 6]
    assert seqs(person, app, "--limit", "2") == [5, 6]
    assert seqs(person, app, "--before", "5", "--limit", "2") == [3, 4]
    assert seqs(person, app, "--after", "2", "--limit", "2") == [3, 4]
    assert seqs(person, app, "--after", "2", "--before", "4") == [3]
    assert seqs(person, app, "--since", "4") == [5, 6]
    assert seqs(person, app, "--after", "6") == []
    told = person.tries(app, "journal", "list", "--before", "5", "--limit", "2").stderr
    assert told == "herdbook: 2 of 6 entries; --before 3 lists earlier ones\n"
    told = person.tries(app, "journal", "list", "--after", "2", "--limit", "2").stderr
    assert told == "herdbook: 2 of 6 entries; --after 4 lists later ones\n"
    assert person.tries(app, "journal", "list", "--after", "3").stderr == ""
    assert person.tries(app, "journal").stderr == ""
    entry = listed(person, app)[-1]
    assert datetime.fromisoformat(entry["at"]).tzinfo is not None
    assert entry["stamp"].startswith(entry["at"][:19])


def test_folding_is_refused_previewed_done_and_told(
    person: Person, app: Path, where: dict[str, str]
) -> None:
    """On every engine; rows and check are as before, and history says where it begins."""
    write(person, app, 5, **where)
    tasks = person.asks(app, "task", "list", **where)
    first = next(each["id"] for each in tasks if each["name"] == "task 0")
    person.runs(app, "journal", "hold", "report", "--seq", "4", "--for", "30d", **where)
    (cursor,) = person.asks(app, "journal", "cursors", **where)
    assert (cursor["cursor"], cursor["behind"], cursor["live"]) == ("report", 2, True)
    refused = person.tries(app, "journal", "prune", "--keep", "1", **where)
    assert refused.returncode == 4
    assert "'report' (" in refused.stderr
    preview = person.asks(app, "journal", "prune", "--before", "5", "--preview", **where)
    assert (preview["folded"], preview["first"], preview["digest"]) == (4, 5, None)
    assert len(seqs(person, app, **where)) == 6
    folded = person.asks(app, "journal", "prune", "--before", "5", **where)
    assert (folded["folded"], folded["first"], folded["last"]) == (4, 5, 6)
    again = person.runs(app, "journal", "prune", "--before", "5", **where)
    assert f"digest {folded['digest']} before and after" in again
    assert person.asks(app, "task", "list", **where) == tasks
    assert seqs(person, app, **where) == [5, 6]
    for words in (("list", "--after", "1"), ("since", "0"), ("row", first)):
        lost = person.tries(app, "journal", *words, **where)
        assert lost.returncode == 3, words
        assert "begins at #5 since 20" in lost.stderr
    assert "the journal begins at #5" in person.runs(app, "task", "show", first, **where)
    person.runs(app, "status", **where)
    person.runs(app, "board", **where)
    person.runs(app, "check", **where)
    person.runs(app, "journal", "release", "report", **where)
    person.runs(app, "journal", "prune", "--keep", "0s", **where)
    write(person, app, 1, **where)
    assert seqs(person, app, **where) == [7]
    person.runs(app, "check", **where)


def test_an_agent_folds_nothing(person: Person, app: Path) -> None:
    """It is for a person at the keyboard: neither a variable nor a method leads there."""
    write(person, app, 2)
    for name in ("HERDBOOK_AGENT", "HERDBOOK_SESSION", "CLAUDE_CODE_SESSION_ID"):
        told = person.tries(app, "journal", "prune", "--keep", "0", **{name: "otter"})
        assert told.returncode == 2
        assert "ask the person who runs you" in told.stderr
    with Pipes(person, app) as pipes:
        pipes.send({"jsonrpc": "2.0", "id": 1, "method": "journal.prune", "params": {}})
        assert "for the command line alone" in pipes.receive()["error"]["message"]
    assert len(seqs(person, app)) == 3


def test_a_subscription_below_the_beginning_is_told_where_that_is(
    person: Person, app: Path
) -> None:
    """When it begins there; over JSON-RPC the error names the first entry that is there."""
    write(person, app, 4)
    person.runs(app, "journal", "prune", "--before", "4")
    with Pipes(person, app) as pipes:
        request = {"jsonrpc": "2.0", "id": 1, "method": "journal.subscribe"}
        pipes.send({**request, "params": {"since": 1}})
        error = pipes.receive()["error"]
        assert (error["code"], error["data"]["type"]) == (3003, "JournalPruned")
        assert (error["data"]["seq"], error["data"]["first"]) == (1, 4)
        assert pipes.call("journal.subscribe", 2, since=3)["seq"] == 3
        assert [each["seq"] for each in pipes.told("journal.changed")["entries"]] == [4, 5]
        held = pipes.call("journal.hold", 3, cursor="index", seq=4, holder="an index")
        assert (held["id"], held["seq"]) == ("index", 4)
        assert pipes.call("journal.release", 4, cursor="index")["released"] is True


@contextmanager
def following(
    person: Person, folder: Path, since: int, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    """`journal follow` in a process of its own, which is killed at the latest at the end."""
    process = subprocess.Popen(
        [PROGRAM, "journal", "follow", "--since", str(since), "--json"],
        cwd=folder,
        env={**person.variables, **variables},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_who_follows_holds_the_journal_until_it_ends(
    person: Person, app: Path, where: dict[str, str]
) -> None:
    """Ended by Ctrl-C or a signal it holds nothing; killed, it holds the journal for a while."""
    write(person, app, 3, **where)
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with following(person, app, 1, **where) as process:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["seq"] == 2
            refused = person.tries(app, "journal", "prune", "--keep", "0", **where)
            assert refused.returncode == 4
            assert f"journal follow, process {process.pid}" in refused.stderr
            process.send_signal(ending)
            assert process.wait(60) == 128 + ending
            assert person.asks(app, "journal", "cursors", **where) == []
    with following(person, app, 1, **where) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.kill()
        process.wait()
    (held,) = person.asks(app, "journal", "cursors", **where)
    assert (held["live"], held["expires_at"] is not None) == (True, True)
    assert "1 held by followers" in person.tries(app, "doctor", **where).stdout
    assert person.tries(app, "journal", "hold", "follower/me", **where).returncode != 0
