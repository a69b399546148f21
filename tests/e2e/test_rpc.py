"""`herdbook rpc`: real processes, both framings, and every way to ask for too much."""

import json
import threading
from pathlib import Path

import psutil
import pytest

from herdbook.domain.location.areas import Area
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from tests.e2e.conftest import Person
from tests.e2e.rpc_process import Pipes, request, until

both = pytest.mark.parametrize("headers", [True, False], ids=["headers", "lines"])


@both
def test_the_answer_comes_in_the_framing_of_the_question(
    person: Person, app: Path, headers: bool
) -> None:
    """And says what the command line says, in any script."""
    with Pipes(person, app, headers=headers) as pipes:
        task = pipes.call("task.add", "a", name="größer 🐄\u2028", description="-")
        assert pipes.call("task.show", 2, id=task["id"][:9]).items() >= task.items()
        assert pipes.end() == 0
    assert person.asks(app, "task", "show", task["id"]).items() >= task.items()
    assert (task["name"], task["description"]) == ("größer 🐄\u2028", "-")


@both
def test_a_batch_is_answered_as_one(person: Person, app: Path, headers: bool) -> None:
    """Without answers to notifications, and with an error for each that is no request."""
    with Pipes(person, app, headers=headers) as pipes:
        pipes.send(
            [
                request("task.add", 1, name="first"),
                request("task.add", name="told"),
                7,
                request("task.show", "x", id="nothing"),
                request("no.such", None) | {"id": None},
            ]
        )
        answers = {str(each["id"]): each for each in pipes.receive() if each["id"] is not None}
        assert answers["1"]["result"]["name"] == "first"
        assert answers["x"]["error"]["code"] == 3001
        pipes.send([request("task.add", name="told again")])
        pipes.send([])
        assert pipes.receive()["error"]["code"] == -32600
        pipes.send([request("where", 1)] * 10_000)
        assert pipes.receive()["error"]["code"] == -32600
        until(lambda: len(pipes.call("task.list", 3)) == 3)
        names = [each["name"] for each in pipes.call("task.list", 3)]
        assert sorted(names) == ["first", "told", "told again"]


@both
def test_what_is_no_message_is_answered_and_the_next_one_too(
    person: Person, app: Path, headers: bool
) -> None:
    """By the codes of JSON-RPC, with a null for an id that nobody knows."""

    def sent(text: bytes) -> bytes:
        return b"Content-Length: %d\r\n\r\n%b" % (len(text), text) if headers else text

    person.chooses("lmdb", "message_limit = 2000")
    with Pipes(person, app, headers=headers) as pipes:
        deep = json.dumps(request("where", 5)).replace("{}", "[" * 200 + "]" * 200)
        for data, code, id_ in (
            (b"{broken", -32700, None),
            (b"\xff\xfe", -32700, None),
            (b'{"jsonrpc": "2.0", "id": 4}', -32600, 4),
            (b'{"jsonrpc": "1.0", "id": true}', -32600, None),
            (deep.encode(), -32600, None),
            (b'{"x": "%b"}' % (b"y" * 100_000), -32600, None),
        ):
            pipes.send(sent(data))
            answer = pipes.receive()
            assert (answer["error"]["code"], answer["id"]) == (code, id_)
            assert pipes.call("where")["areas"]["work"]["exists"] is False
        for id_, method, params, code in (
            (6, "no.such", {}, -32601),
            (7, "task.list", {"limit": "many"}, -32602),
            (8, "sql", {"query": "SELECT 1"}, -32601),
            (9, "textDocument/hover", {}, -32002),
        ):
            assert pipes.call(method, id_, **params)["code"] == code


def test_a_slow_request_holds_up_no_other(person: Person, app: Path) -> None:
    """Twenty writers wait for a store that somebody else writes in, and readers are answered."""
    person.runs(app, "task", "add", "before")
    here = person.at(app)
    with Pipes(person, app) as pipes:
        assert len(pipes.call("task.list")) == 1
        with (
            here.open(Area.WORK) as store,
            unit_of_work(store, here.workspace.space(Area.WORK)),
        ):
            pipes.send(*(request("task.add", number, name="slow") for number in range(20)))
            for number in range(100, 120):
                assert len(pipes.call("task.list", number)) == 1
        assert sorted(pipes.receive()["id"] for _ in range(20)) == list(range(20))
        assert len(pipes.call("task.list")) == 21


@pytest.mark.parametrize("backend", ["lmdb", "duckdb"])
def test_first_requests_may_come_at_once(person: Person, app: Path, backend: str) -> None:
    """Though the stores, and the folders they are in, are made by the first of them."""
    person.chooses(backend)
    with Pipes(person, app) as pipes:
        pipes.send(*(request("task.add", number, name="x") for number in range(30)))
        emails = {number: f"{number}@example.com" for number in range(30, 40)}  # in the record
        pipes.send(*(request("account.add", n, email=email) for n, email in emails.items()))
        answers = [pipes.receive() for _ in range(40)]
        assert [each for each in answers if "error" in each] == []
        assert len(pipes.call("task.list")) == 30


def test_a_waiting_request_can_be_called_off(person: Person, app: Path) -> None:
    """One that is not under way is left alone, and its id may come again."""
    person.runs(app, "agent", "add", "otter")
    with Pipes(person, app) as pipes:
        pipes.send(request("conversation.listen", "w", agent="otter", wait="1h"))
        pipes.send(request("$/cancelRequest", id="another"), request("$/cancelRequest"))
        assert pipes.call("agent.waiting", 1) == []
        pipes.send(request("$/cancelRequest", id="w"))
        answer = pipes.receive()
        assert (answer["id"], answer["error"]["code"]) == ("w", -32800)
        assert pipes.call("conversation.listen", "w", agent="otter") is None


def test_a_question_reaches_the_one_who_waits_for_it(person: Person, app: Path) -> None:
    """Also when another process asks it."""
    for name in ("otter", "lynx"):
        person.runs(app, "agent", "add", name)
    with Pipes(person, app) as pipes:
        pipes.send(request("conversation.listen", 1, agent="lynx", wait=3600))
        person.runs(app, "conversation", "add", "which port?", "--to", "lynx", "--agent", "otter")
        assert pipes.receive()["result"]["question"] == "which port?"


def test_ten_thousand_requests_in_a_pipe_leave_memory_as_it_is(person: Person, app: Path) -> None:
    """Each is answered once."""
    task = person.asks(app, "task", "add", "x")["id"]

    def run(pipes: Pipes, count: int) -> int:
        lines = [json.dumps(request("task.show", n, id=task)).encode() for n in range(count)]
        sending = threading.Thread(target=pipes.send, args=(b"\n".join(lines),))
        sending.start()
        assert sorted(pipes.receive()["id"] for _ in range(count)) == list(range(count))
        sending.join()
        return int(psutil.Process(pipes.process.pid).memory_info().rss)

    with Pipes(person, app) as pipes:
        before = run(pipes, 1_000)
        assert run(pipes, 10_000) - before < 16 * 1024**2
        assert pipes.end() == 0


PRINTS = """
import os, sys, threading, time

def chat():
    while not os.path.sameopenfile(1, 2):  # until the server has put its own output aside
        time.sleep(0.001)
    while True:
        print("a library talks")
        sys.stdout.flush()
        os.write(1, b"from C\\n")
        os.system("echo from a child")
        time.sleep(0.01)

if "rpc" in sys.argv:
    threading.Thread(target=chat, daemon=True).start()
"""


def test_standard_output_carries_the_protocol_only(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Whatever a library, its C code or its children print; that goes to standard error."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(PRINTS)
    with Pipes(person, app, PYTHONPATH=str(tmp_path / "site")) as pipes:
        answers = [pipes.call("where", number) for number in range(300)]
        pipes.into.close()
        assert pipes.out.read() == b""
        said = pipes.err.read()
        assert pipes.process.wait() == 0
    assert len(answers) == 300
    for words in (b"a library talks", b"from C", b"from a child"):
        assert words in said


def test_changes_around_a_running_server_count_at_once(person: Person, app: Path) -> None:
    """Another branch, another process' rows, other settings."""
    with Pipes(person, app) as pipes:
        assert pipes.call("where")["branch"] == "main"
        assert pipes.call("task.list") == []
        person.git(app, "switch", "--quiet", "--create", "feature")
        assert pipes.call("where")["branch"] == "feature"
        task = person.asks(app, "task", "add", "from outside")
        assert pipes.call("task.list") == [task]
        assert pipes.call("agent.add", name="otter")["worktree_id"] == task["worktree_id"]
        (app / "herdbook.toml").write_text('work = "other.lmdb"\n')
        until(lambda: pipes.call("task.list") == [])
        assert pipes.call("task.add", name="elsewhere")["name"] == "elsewhere"
    assert [each["name"] for each in person.asks(app, "task", "list")] == ["elsewhere"]


def test_settings_that_make_no_sense_are_told_until_they_do(person: Person, app: Path) -> None:
    """A server outlives somebody's typing."""
    (app / "herdbook.toml").write_text("patience = 'soon'\n")
    with Pipes(person, app) as pipes:
        error = pipes.call("task.list")
        assert (error["code"], error["data"]["type"]) == (2001, "InvalidValue")
        assert "herdbook.toml, line 1" in error["message"]
        (app / "herdbook.toml").write_text("patience = 5\n")
        until(lambda: pipes.call("task.list") == [])


def test_a_duckdb_file_is_free_while_its_server_idles(person: Person, app: Path) -> None:
    """Commands write in it between two requests."""
    person.chooses("duckdb")
    with Pipes(person, app) as pipes:
        pipes.call("task.add", name="served")
        for number in range(3):
            person.runs(app, "task", "add", f"typed {number}")
            assert len(pipes.call("task.list")) == number + 2
