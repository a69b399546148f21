"""How a server ends, and how it lives with clients that die, fall behind or send rubbish."""

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from herdbook.domain.errors import StoreUnavailable
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.client import Client
from herdbook.entrypoints.rpc.framing import add_framing
from herdbook.ports.unit_of_work.run import run
from tests.e2e.conftest import PROGRAM, Person
from tests.e2e.rpc_process import SECONDS, Pipes, request, until


def test_shutdown_finishes_what_was_begun(person: Person, app: Path) -> None:
    """Then nothing new is taken, and `exit` ends with 0."""
    person.runs(app, "agent", "add", "otter")
    with Pipes(person, app) as pipes:
        pipes.call("journal.subscribe", "s", since=0)
        until(lambda: pipes.receive().get("method") == "journal.changed")
        pipes.send(request("conversation.listen", "w", agent="otter", wait="1h"))
        pipes.send(*(request("task.add", n, name="x") for n in range(10)))
        pipes.send(request("shutdown", "bye"))
        answers = {}
        while "bye" not in answers or len(answers) < 12:
            answer = pipes.receive()
            if "id" in answer:
                answers[answer["id"]] = answer
        assert answers["w"]["result"] is answers["bye"]["result"] is None
        taken = [each for n in range(10) if "result" in (each := answers[n])]
        assert pipes.call("where")["code"] == -32600
        pipes.send(request("exit"))
        assert pipes.process.wait(SECONDS) == 0
    assert len(person.asks(app, "task", "list")) == len(taken)


def test_shutdown_comes_last_in_its_batch(person: Person, app: Path) -> None:
    """It does not wait for what would wait for it."""
    with Pipes(person, app) as pipes:
        pipes.send([request("shutdown", 1), request("where", 2), request("shutdown", 3)])
        answers = {each["id"]: each for each in pipes.receive()}
        assert sorted(answers) == [1, 2, 3]
        assert "areas" in answers[2]["result"]
        assert pipes.end() == 0


def test_exit_without_shutdown_ends_with_one(person: Person, app: Path) -> None:
    """As editors expect it; and what was begun is finished all the same."""
    with Pipes(person, app) as pipes:
        pipes.send(request("task.add", 1, name="x"), request("exit"))
        assert [each["id"] for each in pipes.rest()] == [1]
        assert pipes.process.wait(SECONDS) == 1


def test_exit_ends_behind_the_batch_that_it_came_in(person: Person, app: Path) -> None:
    """Nothing behind that is read."""
    with Pipes(person, app) as pipes:
        batch = json.dumps([request("task.add", 1, name="x"), request("exit")]).encode()
        pipes.send(batch + b"\n" + json.dumps(request("where", 2)).encode())
        ((answer,),) = pipes.rest()
        assert answer["result"]["name"] == "x"
        assert pipes.process.wait(SECONDS) == 1


def test_the_end_of_input_finishes_what_was_begun(person: Person, app: Path) -> None:
    """All that was asked is answered, also a last line without an end, and the server ends well."""
    person.runs(app, "agent", "add", "otter")
    with Pipes(person, app) as pipes:
        pipes.send(*(request("task.add", number, name="x") for number in range(100)))
        pipes.send(request("conversation.listen", 100, agent="otter", wait="1h"))
        pipes.into.write(json.dumps(request("where", 101)).encode())
        assert sorted(each["id"] for each in pipes.rest()) == list(range(102))
        assert pipes.process.wait(SECONDS) == 0
        assert pipes.err.read() == b""
    assert len(person.asks(app, "task", "list", "--limit", "1000")) == 100


SLOW_GIT = """#!/bin/sh
case " $* " in
*" status "*)
    echo $$ > "$SLOW.fresh" && mv "$SLOW.fresh" "$SLOW"
    while [ -e "$SLOW" ]; do sleep 0.05; done
    ;;
esac
exec "$GIT" "$@"
"""


def test_exit_does_not_wait_for_git(person: Person, app: Path, tmp_path: Path) -> None:
    """Whoever is shown above a file matters to nobody any more."""
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "task", "add", "x")
    person.runs(app, "claim", "--agent", "otter")
    slow, git = tmp_path / "slow", tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(SLOW_GIT)
    git.chmod(0o755)
    real, path = shutil.which("git") or "", f"{git.parent}:{person.variables['PATH']}"
    with Pipes(person, app, headers=True, PATH=path, GIT=real, SLOW=str(slow)) as pipes:
        pipes.call("initialize", 1, rootUri=app.as_uri(), capabilities={})
        document = {"uri": (app / "a.py").as_uri()}
        pipes.send(request("textDocument/codeLens", 2, textDocument=document))
        until(slow.exists)
        pipes.send(request("shutdown", 3))
        until(lambda: pipes.receive().get("id") == 3)
        pipes.send(request("exit"))
        assert pipes.process.wait(SECONDS) == 0
        asked = psutil.Process(int(slow.read_text()))
        slow.unlink()
        until(lambda: not asked.is_running() or asked.status() == psutil.STATUS_ZOMBIE)


def test_what_the_hooks_left_is_flushed_at_the_end_if_it_is_due(person: Person, app: Path) -> None:
    """A long session does not leave it lying."""
    person.chooses("lmdb", "flush_size = 10")
    person.runs(app, "agent", "add", "otter")
    told = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    person.tries(app, "hook", "PostToolUse", stdin=json.dumps(told), HERDBOOK_AGENT="otter")
    with Pipes(person, app) as pipes:
        pipes.call("where")
        assert pipes.end() == 0
    assert person.asks(app, "flush")["applied"] == 0
    (standing,) = person.asks(app, "standing")
    assert (standing["agent"], standing["experience_points"] > 0) == ("otter", True)


def test_a_client_that_stops_reading_for_good_ends_its_server(person: Person, app: Path) -> None:
    """Though its input is still open."""
    with Pipes(person, app) as pipes:
        pipes.call("where")
        pipes.out.close()
        pipes.send(request("task.add", 1, name="x"))
        assert pipes.process.wait(SECONDS) == 0
        assert pipes.err.read() == b""
    assert len(person.asks(app, "task", "list")) == 1


def test_a_server_that_is_killed_leaves_no_caller_waiting(person: Person, app: Path) -> None:
    """What is under way and what comes after it is refused by one of our own errors."""
    with Client.spawn(app, variables=person.variables) as herd:
        herd.call("agent.add", name="otter")
        pending = herd.begin("conversation.listen", agent="otter", wait="1h")
        assert herd.process is not None
        herd.process.kill()
        with pytest.raises(StoreUnavailable, match="ended before it answered"):
            pending.result(SECONDS)
        assert list(herd.notifications()) == []
        with pytest.raises(StoreUnavailable):
            herd.call("where")


CLIENT = """
import json, subprocess, sys, time
server = subprocess.Popen([sys.argv[1], "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(server.pid, flush=True)
number = 0
while True:
    for method, params in (
        ("task.add", {"name": "x"}),
        ("conversation.listen", {"agent": "otter", "wait": "1h"}),
    ):
        number += 1
        said = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        server.stdin.write(json.dumps(said).encode() + b"\\n")
    server.stdin.flush()
    server.stdout.readline()
    print("going", flush=True)
"""


@pytest.mark.parametrize("backend", ["lmdb", "duckdb"])
def test_a_client_that_is_killed_leaves_nothing_locked(
    person: Person, app: Path, backend: str
) -> None:
    """Its server ends by itself, and others write where it wrote."""
    person.chooses(backend)
    person.runs(app, "agent", "add", "otter")
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, PROGRAM],
        cwd=app,
        env=person.variables,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    server = psutil.Process(int(client.stdout.readline()))
    assert client.stdout.readline() == "going\n"
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    gone, left = psutil.wait_procs([server], SECONDS)
    assert (len(gone), left) == (1, [])
    person.runs(app, "task", "add", "after")


def entries(pipes: Pipes, count: int) -> list[dict[str, Any]]:
    """So many entries that a subscription tells of."""
    found: list[dict[str, Any]] = []
    while len(found) < count:
        said = pipes.told("journal.changed")
        assert said["seq"] == said["entries"][-1]["seq"]
        found += said["entries"]
    return found


def test_a_subscription_tells_every_change_once_and_in_order(person: Person, app: Path) -> None:
    """From a number on or from now on, whoever makes them, until it is ended."""
    person.runs(app, "task", "add", "first")
    with Pipes(person, app) as pipes:
        begun = pipes.call("journal.subscribe", 1, since=0)
        first = entries(pipes, 1)
        assert begun["seq"] == 0
        person.runs(app, "task", "add", "second")
        pipes.send(*(request("task.add", name=f"told {n}") for n in range(20)))
        found = [*first, *entries(pipes, 21)]
        numbers = [each["seq"] for each in found]
        assert numbers == list(range(1, len(found) + 1))
        assert pipes.call("journal.unsubscribe", 2, subscription=begun["subscription"]) is True
        assert pipes.call("journal.unsubscribe", 3, subscription=begun["subscription"]) is False
        again = pipes.call("journal.subscribe", 4)
        assert again["seq"] == pipes.call("board", 5)["seq"]
        person.runs(app, "task", "add", "third")
        (last,) = entries(pipes, 1)
        assert (last["op"], last["after"]["name"]) == ("add", "third")
        assert pipes.call("journal.since", 6, seq=last["seq"] - 1) == [last]


def test_a_subscription_ends_when_an_earlier_copy_takes_the_place_of_the_store(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Its client is told to read again what it shows, and from where to go on."""
    person.runs(app, "task", "add", "kept")
    stores = app / ".git" / "herdbook"
    shutil.copytree(stores, tmp_path / "early")
    person.runs(app, "task", "add", "lost")
    with Pipes(person, app) as pipes:
        begun = pipes.call("journal.subscribe", 1, since=0)
        lost = entries(pipes, 3)[-1]
        pipes.process.send_signal(signal.SIGSTOP)  # for a moment none is there
        stores.rename(tmp_path / "away")
        (tmp_path / "early").rename(stores)
        pipes.process.send_signal(signal.SIGCONT)
        told = pipes.told("journal.behind")
        assert told["subscription"] == begun["subscription"]
        assert told["seq"] == lost["seq"] - 1
        assert "has taken its place. Read again what you show" in told["error"]["message"]
        pipes.send(request("journal.subscribe", 2, since=lost["seq"]))
        assert "ends at #2" in pipes.receive()["error"]["message"]
        pipes.call("journal.subscribe", 3, since=told["seq"])
        person.runs(app, "task", "add", "new")
        assert entries(pipes, 1)[0]["after"]["name"] == "new"


def many_tasks(person: Person, app: Path, count: int) -> None:
    """Let another process add tasks, all at once."""
    here = person.at(app)
    tasks = [Task(name="x", description="y" * 500) for _ in range(count)]
    with here.open(Area.WORK) as store:
        run(store, here.workspace.space(Area.WORK), lambda uow: uow.tasks.add_all(tasks))


def test_a_slow_client_is_told_that_it_fell_behind(person: Person, app: Path) -> None:
    """Writers are not held up, memory stays as it is, and from there on nothing is missing."""
    person.runs(app, "task", "add", "first")
    with Pipes(person, app) as pipes:
        name = pipes.call("journal.subscribe", 1)["subscription"]
        size = psutil.Process(pipes.process.pid).memory_info().rss
        for _ in range(2):
            many_tasks(person, app, 1_500)
            until(pipes.has_sent)  # the rest of the page does not fit into the pipe
            time.sleep(1.5)  # longer than a client takes that reads
        last = person.asks(app, "board")["seq"]
        seen: list[int] = []
        while (message := pipes.receive())["method"] == "journal.changed":
            seen += [each["seq"] for each in message["params"]["entries"]]
        said = message["params"]
        assert message["method"] == "journal.behind"
        assert (said["subscription"], said["seq"], said["error"]) == (name, seen[-1], None)
        assert psutil.Process(pipes.process.pid).memory_info().rss - size < 32 * 1024**2
        assert pipes.call("journal.subscribe", 2, since=said["seq"])["seq"] == said["seq"]
        while seen[-1] < last:
            seen += [each["seq"] for each in entries(pipes, 1)]
        assert seen == list(range(seen[0], last + 1))


def test_a_client_that_reads_is_told_all_of_a_great_change(person: Person, app: Path) -> None:
    """It has not fallen behind, however much came at once."""
    person.runs(app, "task", "add", "first")
    with Pipes(person, app) as pipes:
        pipes.call("journal.subscribe", 1)
        many_tasks(person, app, 3_000)
        assert len(entries(pipes, 3_000)) == 3_000


@pytest.mark.soak
@pytest.mark.parametrize("headers", [True, False], ids=["headers", "lines"])
def test_a_million_mutated_bytes_leave_no_request_unanswered(
    person: Person, app: Path, headers: bool
) -> None:
    """Whole requests among rubbish are answered; nothing crashes and nothing hangs."""
    chance = random.Random()
    asked: set[int] = set()
    pieces: list[bytes] = []
    size = 0
    while size < 1_000_000:
        number = len(pieces)
        message = json.dumps(request(chance.choice(("where", "task.list")), number)).encode()
        if chance.random() < 0.1:
            asked.add(number)
        else:
            changed = bytearray(message)
            for _ in range(chance.randrange(1, 6)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            message = bytes(changed)
        pieces.append(add_framing(message, headers=headers))
        size += len(pieces[-1])
    with Pipes(person, app, headers=headers) as pipes:
        sending = threading.Thread(target=lambda: pipes.into.write(b"".join(pieces)))
        sending.start()
        found: set[Any] = set()
        while not asked <= found:
            answer = pipes.receive()
            found |= {answer["id"]} if isinstance(answer, dict) else set()
        sending.join()
        assert pipes.end() == 0
        assert pipes.err.read() == b""


def test_a_slow_client_whose_entries_were_folded_is_told_where_the_journal_begins(
    person: Person, app: Path
) -> None:
    """Only a person can let that happen: its cursor holds what it has not read until released.

    Then it gets every entry up to some number, and the first one that is still there.
    """
    person.runs(app, "task", "add", "first")
    with Pipes(person, app) as pipes:
        pipes.call("journal.subscribe", 1, since=0)
        many_tasks(person, app, 3_000)
        until(pipes.has_sent)  # the rest of the page does not fit into the pipe
        last = person.asks(app, "board")["seq"]
        refused = person.tries(app, "journal", "prune", "--keep", "0")
        assert (refused.returncode, "a subscription (journal-1)" in refused.stderr) == (4, True)
        (held,) = person.asks(app, "journal", "cursors")
        person.runs(app, "journal", "release", held["cursor"])
        person.runs(app, "journal", "prune", "--keep", "0")
        seen: list[int] = []
        while (message := pipes.receive())["method"] == "journal.changed":
            seen += [each["seq"] for each in message["params"]["entries"]]
        said = message["params"]
        assert message["method"] == "journal.behind"
        assert seen == list(range(1, said["seq"] + 1))
        assert said["error"]["data"]["type"] == "JournalPruned"
        assert (said["error"]["data"]["seq"], said["error"]["data"]["first"]) == (
            seen[-1],
            last + 1,
        )
        assert pipes.call("journal.subscribe", 2, since=last)["seq"] == last
