"""`herdbook serve` as a person, a program and a browser use it."""

import json
import os
import shlex
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from http.client import HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from herdbook.adapters.user_state import running_server
from herdbook.domain.errors import InvalidValue, NotFound, StoreUnavailable
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.client import Client
from herdbook.entrypoints.hooks.hosts import local_command
from tests.e2e.conftest import Person
from tests.e2e.rpc_process import until
from tests.e2e.serve_process import JSON, SECONDS, Serving, entries, serving

ENGINES = ("lmdb", "duckdb", "postgres")
Choose = Callable[[str], None]


@pytest.fixture
def choose(person: Person, request: pytest.FixtureRequest) -> Choose:
    """Choose an engine; a server is started for the one that needs it."""

    def engine(name: str) -> None:
        if name != "lmdb":
            url = request.getfixturevalue("postgres_url") if name == "postgres" else name
            person.chooses(url)

    return engine


def test_it_serves_its_page_and_answers_a_method(person: Person, app: Path) -> None:
    """The first free port from 8420 on, and the same answer as that of the command line."""
    task = person.asks(app, "task", "add", "write the parser")
    with serving(person, app, any_port=False) as server:
        assert server.told["folders"] == [str(app)]
        assert server.told["state"] == "started"
        assert server.port is not None
        assert 8420 <= server.port < 8520
        page = server.asks("GET", "/", {})
        assert page.status == 200
        assert page.headers["content-type"].startswith("text/html")
        assert b"/static/page.js" in page.body
        script = server.asks("GET", "/static/page.js", {})
        assert script.headers["content-type"].startswith("text/javascript")
        assert server.asks("GET", "/healthz", {}).json == {"ok": True}
        shown = person.asks(app, "task", "show", task["id"])
        assert server.calls("task.show", id=task["id"]) == shown
        assert server.calls("task.show", id="tsk_nothing")["data"]["type"] == "NotFound"
        added = server.calls("task.add", name="test it")
    assert person.asks(app, "task", "show", added["id"])["name"] == "test it"


def test_a_batch_is_answered_as_one_and_a_notification_not_at_all(
    person: Person, app: Path
) -> None:
    """As over standard input; what needs a connection of its own is refused with what to use."""
    with serving(person, app) as server:
        headers = {**server.bearer, **JSON}
        batch = [
            {"jsonrpc": "2.0", "id": "a", "method": "task.add", "params": {"name": "one"}},
            {"jsonrpc": "2.0", "method": "task.add", "params": {"name": "two"}},
            {"jsonrpc": "2.0", "id": "b", "method": "task.list", "params": {}},
            {"jsonrpc": "2.0", "id": "c", "method": "journal.subscribe", "params": {}},
        ]
        answers = server.asks("POST", "/rpc", headers, batch).json
        assert [each["id"] for each in answers] == ["a", "b", "c"]
        assert {each["name"] for each in answers[1]["result"]} == {"one", "two"}
        assert "GET /feed" in answers[2]["error"]["message"]
        notice = {"jsonrpc": "2.0", "method": "task.add", "params": {"name": "three"}}
        assert server.asks("POST", "/rpc", headers, notice).status == 204
        assert len(server.calls("task.list")) == 3


@pytest.mark.parametrize("engine", ENGINES)
def test_the_feed_shows_what_commands_change(
    person: Person, app: Path, choose: Choose, engine: str
) -> None:
    """Every entry once and in order, whether the store was there before the server or not."""
    choose(engine)
    with serving(person, app) as server, server.feed() as feed:
        kind, id_, spaces = next(feed)
        assert kind == "spaces"
        assert {each["area"] for each in spaces} == {"work", "record"}
        assert id_ == ",".join(f"{each['key']}:0" for each in spaces)
        names = [f"task {number}" for number in range(5)]
        for name in names:
            person.runs(app, "task", "add", name)
        found = entries(feed, 6)  # the worktree is the first thing that is written
        assert [each["seq"] for each in found] == list(range(1, 7))
        added = [each["after"]["name"] for each in found if each["entity"] == "tasks"]
        assert added == names


@pytest.mark.parametrize("engine", ENGINES)
def test_readers_who_connect_while_others_write_miss_nothing(
    person: Person, app: Path, choose: Choose, engine: str
) -> None:
    """Each has every entry after its greeting once and in order, also if all others have left."""
    choose(engine)
    with serving(person, app) as server, ExitStack() as readers:
        server.calls("task.add", name="first")
        writer = threading.Thread(
            target=lambda: [server.calls("task.add", name=f"task {each}") for each in range(40)]
        )
        writer.start()
        greeted = []
        for _ in range(20):
            with server.feed() as gone:
                next(gone)
            feed = readers.enter_context(server.feed())
            (work,) = [each for each in next(feed).data if each["area"] == "work"]
            greeted.append((feed, work["seq"]))
        writer.join()
        last = server.calls("task.add", name="last")["id"]
        for feed, seq in greeted:
            found = []
            while not found or found[-1]["key"] != last:
                found += entries(feed, 1)
            numbers = [each["seq"] for each in found]
            assert numbers == list(range(seq + 1, seq + 1 + len(numbers)))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_reader_comes_back_after_the_server_was_killed_and_misses_nothing(
    person: Person, app: Path, choose: Choose, engine: str
) -> None:
    """Not what was written while there was no server, and nothing twice."""
    choose(engine)
    person.runs(app, "task", "add", "before")
    server = Serving(person, app)
    with server.feed() as feed:
        next(feed)
        person.runs(app, "task", "add", "seen")
        event = next(feed)
        seen = event.data["seq"]
    server.process.kill()
    server.process.communicate()
    for number in range(3):
        person.runs(app, "task", "add", f"missed {number}")
    with serving(person, app) as again:
        assert again.token == server.token
        with again.feed(event.id) as feed:
            greeting = next(feed)
            assert greeting.id == event.id
            person.runs(app, "task", "add", "new")
            found = entries(feed, 4)
    assert [each["seq"] for each in found] == list(range(seen + 1, seen + 5))
    names = [each["after"]["name"] for each in found]
    assert names == ["missed 0", "missed 1", "missed 2", "new"]


def test_a_reader_whose_entries_were_folded_is_told_to_read_again(
    person: Person, app: Path
) -> None:
    """By one event that says from where on there is something; then it hears what is new."""
    for number in range(5):
        person.runs(app, "task", "add", f"task {number}")
    with serving(person, app) as server:
        with server.feed() as feed:
            (work,) = [each for each in next(feed).data if each["area"] == "work"]
        person.runs(app, "journal", "prune", "--keep", "2")
        with server.feed(f"{work['key']}:1") as feed:
            next(feed)
            kind, id_, data = next(feed)
            assert (kind, data["reason"], data["spaces"]) == ("reset", "pruned", [work["space"]])
            assert data["first"] == work["seq"] - 1
            assert f"{work['key']}:{work['seq']}" in id_
            person.runs(app, "task", "add", "new")
            (entry,) = entries(feed, 1)
            assert entry["seq"] == work["seq"] + 1
        with server.feed(f"{work['key']}:1000000") as feed:
            next(feed)
            assert next(feed).data["reason"] == "unknown"


@pytest.mark.parametrize("engine", ["lmdb", "duckdb"])
def test_readers_are_told_when_an_earlier_copy_takes_the_place_of_the_store(
    person: Person, app: Path, tmp_path: Path, choose: Choose, engine: str
) -> None:
    """They read again what they show, hear what is new in it, and so do those who come later."""
    choose(engine)
    person.runs(app, "task", "add", "kept")
    stores = app / ".git" / "herdbook"
    shutil.copytree(stores, tmp_path / "early")
    for number in range(3):
        person.runs(app, "task", "add", f"lost {number}")
    with serving(person, app) as server, server.feed() as feed:
        (work,) = [each for each in next(feed).data if each["area"] == "work"]
        assert len(server.calls("task.list")) == 4
        server.process.send_signal(signal.SIGSTOP)  # for a moment none is there
        stores.rename(tmp_path / "away")
        (tmp_path / "early").rename(stores)
        server.process.send_signal(signal.SIGCONT)
        kind, id_, data = next(feed)
        assert (kind, data["reason"], data["spaces"]) == ("reset", "unknown", [work["space"]])
        assert data["seq"] == work["seq"] - 3
        assert f"{work['key']}:{data['seq']}" in id_
        assert [each["name"] for each in server.calls("task.list")] == ["kept"]
        person.runs(app, "task", "add", "new")
        (entry,) = entries(feed, 1)
        assert entry["seq"] == data["seq"] + 1
        with server.feed(f"{work['key']}:{work['seq']}") as later:
            next(later)
            assert next(later).data["reason"] == "unknown"


def test_a_server_that_runs_is_not_started_with_other_options(person: Person, app: Path) -> None:
    """What it would not follow is refused with the command that ends it, never left out quietly."""
    person.runs(app, "task", "add", "here")
    with serving(person, app) as server:
        for words in (["--host", "0.0.0.0"], ["--port", "9999"], ["--new-token"]):  # noqa: S104
            told = person.tries(app, "serve", "--no-open", *words)
            assert told.returncode == 2, words
            assert server.url in told.stderr
            assert "herdbook serve --stop" in told.stderr
        assert person.runs(app, "serve", "--no-open", "--host", "127.0.0.1")
    told = person.tries(app, "broker")
    assert "no store of this folder is a DuckDB file" in told.stderr


def test_one_server_has_several_repositories_and_a_second_one_finds_it(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """The second command adds its folder, says where the first is, and ends."""
    other = person.repository(tmp_path / "other")
    person.runs(app, "task", "add", "here")
    person.runs(other, "task", "add", "there")
    with serving(person, app) as server:
        refused = server.calls("task.list", other)
        assert refused["data"]["field"] == "folder"
        found = person.asks(other, "serve", "--no-open")
        assert (found["state"], found["url"]) == ("running", server.url)
        assert found["pid"] == server.process.pid
        assert [each["name"] for each in server.calls("task.list", other)] == ["there"]
        assert [each["name"] for each in server.calls("task.list")] == ["here"]
        inner = other / "src"
        assert [each["name"] for each in server.calls("task.list", inner)] == ["there"]
        with server.feed() as feed:
            spaces = next(feed).data
            assert [each["area"] for each in spaces] == ["work", "record", "work"]
            person.runs(other, "task", "add", "new there")
            person.runs(app, "task", "add", "new here")
            names = {each["after"]["name"] for each in entries(feed, 2)}
            assert names == {"new there", "new here"}
        with server.feed(path=f"/feed?folder={other}") as feed:
            work, record = next(feed).data
            assert (work["folder"], record["area"]) == (str(other), "record")


def test_worktrees_of_a_served_repository_are_served(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """Also one that is made later; what is written there is written in that worktree."""
    with serving(person, app) as server:
        tree = tmp_path / "tree"
        person.git(app, "worktree", "add", "--quiet", str(tree))
        task = server.calls("task.add", tree, name="there")
        assert task["worktree_id"] == person.asks(tree, "where")["worktree_id"]
        assert task["worktree_id"] != person.asks(app, "where")["worktree_id"]


def test_a_store_named_at_the_start_is_that_of_all_who_work_there(
    person: Person, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of agents, sessions and worktrees too, but of no other repository; another is refused."""
    other = person.repository(tmp_path / "other")
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    person.runs(other, "task", "add", "of the other repository")
    tree = tmp_path / "tree"
    person.git(app, "worktree", "add", "--quiet", str(tree))
    store = str(tmp_path / "named.lmdb")
    with serving(person, app, "--work", store) as server:
        server.calls("task.add", name="in the named store")
        found = person.asks(other, "serve", "--no-open")
        assert found["state"] == "running"
        named, elsewhere = ["in the named store"], ["of the other repository"]
        for who in ({}, {"HERDBOOK_SESSION": "s1"}, {"HERDBOOK_AGENT": "otter"}):
            with pytest.MonkeyPatch.context() as patch:
                for name, value in who.items():
                    patch.setenv(name, value)
                for folder, names in ((app, named), (tree, named), (other, elsewhere)):
                    for url in (None, server.url):
                        with Client.connect(folder, url=url) as herd:
                            tasks = [each["name"] for each in herd.call("task.list")]
                            assert tasks == names, (who, folder, url)
        told = person.tries(app, "serve", "--no-open", "--work", str(tmp_path / "third.lmdb"))
        assert told.returncode == 2
        assert "work" in told.stderr
        assert "herdbook serve --stop" in told.stderr


def test_the_feed_outlives_the_worktree_that_it_was_first_read_in(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """The other folders of its repository have the same journal."""
    person.runs(app, "task", "add", "before")
    tree = tmp_path / "tree"
    person.git(app, "worktree", "add", "--quiet", str(tree))
    with serving(person, tree) as server:
        person.asks(app, "serve", "--no-open")
        with server.feed() as feed:
            assert {each["folder"] for each in next(feed).data} == {str(tree)}
            person.runs(app, "task", "add", "with it")
            assert next(feed).data["entries"][0]["after"]["name"] == "with it"
            person.git(app, "worktree", "remove", str(tree))
            person.runs(app, "task", "add", "without it")
            assert next(feed).data["entries"][0]["after"]["name"] == "without it"
        with server.feed(path=f"/feed?folder={app}") as feed:
            assert {each["folder"] for each in next(feed).data} == {str(app)}
            person.runs(app, "task", "add", "later")
            assert next(feed).data["entries"][0]["after"]["name"] == "later"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_well_while_somebody_follows_and_waits(
    person: Person, app: Path, number: signal.Signals
) -> None:
    """Whoever waits is answered, and nothing is left of it but the token."""
    person.registers(app, "otter")
    server = Serving(person, app)
    answers: list[Any] = []
    waiting = threading.Thread(
        target=lambda: answers.append(
            server.calls("conversation.listen", agent="otter", wait="10m")
        )
    )
    with server.feed() as feed:
        next(feed)
        waiting.start()
        until(lambda: _waiting(server))
        assert server.ends(number) == (0, "")
        assert list(feed) == []
    waiting.join()
    assert answers == [None]
    assert sorted(each.name for each in server.state.iterdir()) == ["folders", "lock", "token"]
    assert person.asks(app, "serve", "--stop")["state"] == "absent"


def _waiting(server: Serving) -> bool:
    """Whether a request is being answered, besides this one."""
    text = server.asks("GET", "/metrics").body.decode()
    return "herdbook_rpc_waiting 1\n" in text


def test_it_can_be_stopped_by_a_command(person: Person, app: Path) -> None:
    """From any folder, and twice is no error."""
    server = Serving(person, app)
    until(lambda: server.asks("GET", "/healthz", {}).status == 200)
    assert person.asks(app.parent, "serve", "--stop")["state"] == "stopped"
    assert server.process.wait(SECONDS) == 0
    assert server.ends() == (0, "")
    assert person.asks(app, "serve", "--stop")["state"] == "absent"


def test_a_page_that_shows_a_part_prints_nothing_where_the_server_runs(
    person: Person, app: Path
) -> None:
    """What is left out is in the answer; a hint at options is for those who typed a command."""
    person.registers(app, "otter")
    for number in range(3):
        person.runs(app, "task", "add", f"task {number}")
        person.runs(app, "log", "add", f"line {number}", "--agent", "otter")
    server = Serving(person, app)
    assert len(server.calls("history", limit=1)["steps"]) == 1
    assert len(server.calls("journal.list", limit=1)) == 1
    assert len(server.calls("log.list", agent="otter", limit=1)) == 1
    assert person.asks(app, "serve", "--stop")["state"] == "stopped"
    assert server.process.wait(SECONDS) == 0
    assert server.ends() == (0, "")


def test_metrics_count_requests_errors_readers_and_positions(person: Person, app: Path) -> None:
    """In the text format of Prometheus."""
    person.runs(app, "task", "add", "one")
    with serving(person, app) as server, server.feed() as feed:
        next(feed)
        server.calls("task.show", id="tsk_nothing")
        server.asks("GET", "/nothing-there")
        server.asks("GET", "/spaces", {})
        text = server.asks("GET", "/metrics").body.decode()
        space = server.asks("GET", "/spaces").json[0]["space"]
    lines = text.splitlines()
    assert 'herdbook_requests_total{route="/rpc",status="200"} 1' in lines
    assert 'herdbook_requests_total{route="other",status="404"} 1' in lines
    assert 'herdbook_request_errors_total{route="/spaces"} 1' in lines
    assert 'herdbook_rpc_errors_total{code="3001"} 1' in lines
    assert "herdbook_feed_clients 1" in lines
    assert "herdbook_feed_overflows_total 0" in lines
    assert f'herdbook_journal_position{{space="{space}"}} 2' in lines
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    for line in lines:
        assert line.startswith("# ") or float(line.rpartition(" ")[2]) >= 0


def test_a_browser_exchanges_its_ticket_for_a_cookie(person: Person, app: Path) -> None:
    """It survives a restart of the server, and ends with a new token."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    server = Serving(person, app, "--port", port)
    page = server.browser()
    assert server.asks("GET", "/spaces", page).status == 200
    server.process.kill()
    server.process.communicate()
    with serving(person, app, "--port", port) as again:
        assert again.asks("GET", "/spaces", page).status == 200
    with serving(person, app, "--port", port, "--new-token") as renewed:
        assert renewed.token != server.token
        assert renewed.asks("GET", "/spaces", page).status == 401


@pytest.mark.parametrize("way", ["spawn", "socket", "http"])
def test_a_program_in_python_sees_no_difference_between_the_ways(
    person: Person, app: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who acts, rows, errors, waiting, cancelling and following the journal."""
    otter = person.asks(app, "agent", "add", "otter")["id"]
    person.variables["HERDBOOK_AGENT"] = "otter"
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        if way == "spawn":
            made = Client.spawn(app, variables=person.variables)
        else:
            server = stack.enter_context(serving(person, app))
            made = Client.connect(app, url=server.url if way == "http" else None)
        herd = stack.enter_context(made)
        assert herd.call("message.add", content="hello")["sender_id"] == otter
        task = herd.one(Task, "task.add", name="write the parser", priority="high")
        assert task in herd.many(Task, "task.ready", limit=5)
        with pytest.raises(NotFound):
            herd.call("task.show", id="tsk_nothing")
        with pytest.raises(InvalidValue):
            herd.call("task.add", name="x", priority="none")
        subscribed = herd.call("journal.subscribe", since=0)
        assert subscribed["seq"] == 0
        told = herd.notifications()
        changed = next(told)
        assert changed.method == "journal.changed"
        assert changed.params["entries"][0]["seq"] == 1
        seq = changed.params["seq"]
        herd.call("task.add", name="test it")
        later = next(told)
        assert later.params["subscription"] == subscribed["subscription"]
        assert later.params["entries"][0]["seq"] == seq + 1
        pending = herd.begin("conversation.listen", agent="otter", wait="10m")
        herd.call("task.list")
        herd.cancel(pending)
        with pytest.raises(Exception, match="cancelled"):
            pending.result(60)
        assert herd.call("journal.unsubscribe", subscription=subscribed["subscription"]) is True


def test_a_client_that_was_closed_writes_nowhere(
    person: Person, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its descriptor may be that of another file by now."""
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    with serving(person, app):
        herd = Client.connect(app)
        herd.close()
        with ExitStack() as stack:
            files = [tmp_path / f"file-{number}" for number in range(20)]
            for each in files:
                stack.enter_context(each.open("wb"))
            with pytest.raises(StoreUnavailable):
                herd.notify("$/cancelRequest", id=1)
        assert [each.stat().st_size for each in files] == [0] * len(files)


def test_who_asks_for_a_server_keeps_none_from_starting(
    person: Person, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many ask at once and all the time, as scripts do that wait for it."""
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    over = threading.Event()
    found: list[str] = []

    def ask() -> None:
        while not over.is_set():
            running = running_server.find_server()
            if running is not None:
                found.append(running.url)
                over.wait(0.01)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for each in threads:
        each.start()
    try:
        with serving(person, app) as server:
            until(lambda: found)
    finally:
        over.set()
        for each in threads:
            each.join()
    assert set(found) == {server.url}


@pytest.mark.parametrize("since", [None, 0])
def test_who_subscribes_to_a_journal_that_cannot_be_read_is_told_so(
    person: Person, app: Path, since: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once and over both ways, not never."""
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    person.runs(app, "task", "add", "one")
    store = app / ".git" / "herdbook" / "work.lmdb"
    with serving(person, app) as server:
        store.rename(store.with_name("away.lmdb"))
        for url in (None, server.url):
            with Client.connect(app, url=url) as herd:
                asked = herd.begin("journal.subscribe", since=since)
                with pytest.raises(StoreUnavailable, match="is gone"):
                    asked.result(60)


def test_a_program_is_told_when_no_server_runs_or_not_for_its_folder(
    person: Person, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence, over both ways."""
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreUnavailable, match="`herdbook serve` starts it"):
        Client.connect(app)
    with serving(person, app) as server:
        with pytest.raises(InvalidValue, match="not served"):
            Client.connect(tmp_path)
        with (
            Client.connect(tmp_path, url=server.url) as herd,
            pytest.raises(InvalidValue, match="not served"),
        ):
            herd.call("task.list")
        with (
            Client.connect(app, url=server.url, token="0" * 64) as herd,
            pytest.raises(Exception, match="show the token"),
        ):
            herd.call("task.list")


def test_a_long_home_has_its_socket_elsewhere(
    person: Person, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of a socket is short; it is as private there, and gone at the end."""
    person.variables["XDG_STATE_HOME"] = str(person.home / ("d" * 60) / ("e" * 60))
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    server = Serving(person, app)
    until((server.state / "server.json").exists)
    folder = Path(json.loads((server.state / "server.json").read_text())["socket"]).parent
    assert not folder.is_relative_to(person.home)
    assert folder.stat().st_mode & 0o777 == 0o700
    with Client.connect(app) as herd:
        herd.call("task.list")
    assert server.ends() == (0, "")
    assert not folder.exists()


BLOCK = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize("name", ["starlette", "uvicorn"])
def test_a_missing_package_is_one_sentence(
    person: Person, app: Path, tmp_path: Path, name: str
) -> None:
    """Which says what brings it; nothing else needs it."""
    (tmp_path / "sitecustomize.py").write_text(BLOCK.format(name=name))
    told = person.starts(app, "serve", "--no-open", PYTHONPATH=str(tmp_path))
    assert told.returncode == 5
    assert told.stderr.count("\n") == 1
    assert f"the package {name} is not installed" in told.stderr
    assert "pip install '.[serve]'" in told.stderr
    assert person.starts(app, "status", PYTHONPATH=str(tmp_path)).returncode == 0
    assert person.starts(app, "serve", "--stop", PYTHONPATH=str(tmp_path)).returncode == 0


def test_any_address_of_this_machine_is_a_name_of_the_server(person: Person, app: Path) -> None:
    """The address that is printed is one that is answered."""
    with serving(person, app, "--host", "127.0.0.2") as server:
        assert server.url.startswith("http://127.0.0.2:")
        assert server.asks("GET", "/spaces").status == 200


def test_options_that_would_not_be_safe_are_refused(person: Person, app: Path) -> None:
    """Before anything listens."""
    cases = [
        (("--host", "0.0.0.0"), "TLS is needed"),  # noqa: S104 - it is refused
        (("--host", "0.0.0.0", "--behind-proxy"), "by which names"),  # noqa: S104
        (("--host", "example.com"), "must be an address"),
        (("--tls-cert", "cert.pem"), "go together"),
        (("--tls-cert", "none.pem", "--tls-key", "none.pem"), "cannot be read: No such file"),
        (("--tls-cert", ".git/HEAD", "--tls-key", ".git/HEAD"), "no certificate with its key"),
        (("--port", "65536"), "must be 0, for any that is free, to 65535"),
        (("/nowhere/at/all",), "is no folder"),
    ]
    for words, reason in cases:
        told = person.starts(app, "serve", "--no-open", *words)
        assert told.returncode == 2, told
        assert reason in told.stderr
    assert os.listdir(person.home / ".local" / "state" / "herdbook" / "serve") == ["lock"]  # noqa: PTH208


def test_a_port_that_is_taken_is_named(person: Person, app: Path, tmp_path: Path) -> None:
    """By an option it must be that one; by default the next one is taken."""
    with serving(person, app) as server:
        other = Person(tmp_path / "other-home")
        other.home.mkdir()
        folder = other.repository(tmp_path / "other")
        told = other.starts(folder, "serve", "--no-open", "--port", str(server.port))
        assert told.returncode == 5
        assert f"port {server.port} is taken" in told.stderr
        with serving(other, folder) as second:
            assert second.port != server.port


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of our own for this machine, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    own = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(own, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    cert.write_bytes(made.public_bytes(pem))
    kind, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(own.private_bytes(pem, kind, secret))
    return cert, key


def test_with_a_certificate_it_speaks_tls_alone(
    person: Person, app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs and browsers get in as before; the cookie is for this host and TLS alone."""
    cert, key = certificate(tmp_path)
    for name, value in person.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    options = ("--tls-cert", str(cert), "--tls-key", str(key))
    with serving(person, app, *options) as server:
        assert server.url == f"https://127.0.0.1:{server.port}/"
        with Client.connect(app, url=server.url) as herd:
            assert herd.one(Task, "task.add", name="over TLS").name == "over TLS"
        secure = HTTPSConnection(server.host, context=ssl.create_default_context())
        page = {"Origin": server.url.rstrip("/"), **JSON}
        secure.request("POST", "/session", json.dumps({"ticket": server.ticket}), page)
        answer = secure.getresponse()
        cookie = answer.getheader("set-cookie") or ""
        assert cookie.startswith(f"__Host-herdbook-{server.port}=")
        assert "; Secure" in cookie
        secure.close()
        assert server.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")[:4] != b"HTTP"


def test_what_a_hook_tells_shows_without_a_flush(person: Person, app: Path) -> None:
    """As a pulse, to everybody who follows; and the next reader is not told of it again."""
    with serving(person, app) as server:
        space = server.asks("GET", "/spaces").json[0]["space"]
        with server.feed() as first, server.feed() as second:
            assert [next(first).kind, next(second).kind] == ["spaces"] * 2
            for event in ("SessionStart", "Stop"):
                subprocess.run(
                    shlex.split(local_command(event)),
                    input=json.dumps({"session_id": "s-1"}).encode(),
                    env={**person.variables, "HERDBOOK_AGENT": "otter"},
                    cwd=app,
                    check=True,
                )
            for feed in (first, second):
                told: list[Any] = []
                while len(told) < 2:
                    event_ = next(feed)
                    assert (event_.kind, event_.id) == ("pulse", "")
                    told += event_.data
                assert [each["kind"] for each in told] == ["started", "waiting"]
                assert {(each["agent"], each["cwd"]) for each in told} == {("otter", str(app))}
                assert {each["space"] for each in told} == {space}
        with server.feed() as third:
            next(third)
            person.runs(app, "task", "add", "later")
            assert next(third).kind == "journal"


def test_a_served_duckdb_file_has_its_broker_there(person: Person, app: Path) -> None:
    """Whether the file was there before the server or not; when the server ends, all go on."""
    person.chooses("duckdb")
    with serving(person, app) as server:
        person.runs(app, "task", "add", "one")
        until(lambda: _has_broker_socket(server))
        told = person.starts(app, "broker")
        assert f"process {server.process.pid} is its broker already" in told.stderr
        person.runs(app, "task", "add", "two")
        assert len(server.calls("task.list")) == 2
    assert len(person.asks(app, "task", "list")) == 2


def _has_broker_socket(server: Serving) -> bool:
    """Whether the process listens at another socket than that for local programs."""
    found = psutil.Process(server.process.pid).net_connections("unix")
    return any("broker" in str(each.laddr) for each in found)


def test_a_served_folder_that_has_gone_harms_no_other(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """It is named where it is asked for, and left out elsewhere."""
    other = person.repository(tmp_path / "other")
    with serving(person, app, str(other)) as server:
        assert len(server.asks("GET", "/spaces").json) == 3
        shutil.rmtree(other)
        gone = server.calls("task.list", other)
        assert "is not there any more" in gone["message"]
        assert len(server.asks("GET", "/spaces").json) == 2
        with server.feed() as feed:
            assert {each["folder"] for each in next(feed).data} == {str(app)}
            person.runs(app, "task", "add", "still here")
            assert next(feed).kind == "journal"
