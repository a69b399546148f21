"""A server in this process: its own methods, its editor's, and what it keeps of its place."""

import json
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from herdbook.domain.errors import InvalidValue, NotFound, StoreGone
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.client import Client
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.rpc import dispatcher
from herdbook.entrypoints.rpc.messages import RpcError
from herdbook.entrypoints.rpc.writer import MessageWriter
from herdbook.entrypoints.server_context import ServerContext
from herdbook.ports.engine.dictionary import TASKS
from herdbook.services import crud
from tests.cases import for_each

SECONDS = 30


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in no repository, and a home of its own."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HERDBOOK_AGENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    place = tmp_path / "app"
    place.mkdir()
    return place


@pytest.fixture
def herd(folder: Path) -> Iterator[Client]:
    """A client of a server that keeps everything in memory."""
    variables = {"HERDBOOK_STORE": "memory://", "USER": "somebody"}
    with Client.inside(folder, variables=variables) as client:
        yield client


def test_rows_come_as_what_they_are(herd: Client) -> None:
    """A client asks for tasks and gets tasks."""
    task = herd.one(Task, "task.add", name="parse", priority="high")
    assert isinstance(task, Task)
    assert herd.many(Task, "task.list") == [task] == herd.many(Task, "task.ready", limit=1)
    with pytest.raises(InvalidValue, match="no kind of rows"):
        herd.one(dict, "task.show", id=task.id)


def test_errors_are_raised_as_what_they_were(herd: Client) -> None:
    """Ours as ours, the protocol's as its own."""
    with pytest.raises(NotFound) as lost:
        herd.call("task.show", id="tsk_0000")
    assert (lost.value.entity, lost.value.key) == ("task", "tsk_0000")
    with pytest.raises(InvalidValue, match="name: is needed"):
        herd.call("task.add")
    with pytest.raises(RpcError, match="did you mean task.add"):
        herd.call("task.ad")


def test_a_defect_is_one_sentence(herd: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """No traceback leaves the process, and the next request is answered."""
    monkeypatch.setattr(crud, "find_row", lambda *_: 1 / 0)
    with pytest.raises(RpcError) as caught:
        herd.call("task.show", id="x")
    assert (caught.value.code, caught.value.data) == (-32603, {"type": "Defect"})
    assert "ZeroDivisionError" in caught.value.message
    assert "Traceback" not in str(caught.value)
    assert herd.call("task.list") == []


def test_an_id_that_is_under_way_is_refused(herd: Client) -> None:
    """The first request goes on, and the second is answered without an id."""
    herd.call("agent.add", name="otter")
    pending = herd.begin("conversation.listen", agent="otter", wait="1h")
    herd._transport.send({"jsonrpc": "2.0", "id": pending.id, "method": "where"})
    herd.call("where")
    assert not pending.answer.done()
    herd.cancel(pending)
    with pytest.raises(RpcError) as caught:
        pending.result(SECONDS)
    assert caught.value.code == -32800
    assert herd.call("where")


def test_a_question_that_was_asked_is_answered_though_nobody_waits_any_more(herd: Client) -> None:
    """What was done cannot be called off."""
    for name in ("otter", "lynx"):
        herd.call("agent.add", name=name)
    pending = herd.begin("conversation.add", question="?", to="lynx", agent="otter", wait="1h")
    while not herd.call("conversation.list"):
        pass
    herd.cancel(pending)
    assert pending.result(SECONDS)["question"] == "?"


def test_many_may_wait_and_one_is_too_many(herd: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others are answered meanwhile."""
    monkeypatch.setattr("herdbook.entrypoints.rpc.server.MOST_WAITING", 40)
    herd.call("agent.add", name="otter")
    waiting = [herd.begin("conversation.listen", agent="otter", wait="1h") for _ in range(40)]
    with pytest.raises(RpcError) as caught:
        herd.call("conversation.listen", agent="otter", wait=3600)
    assert caught.value.code == -32000
    assert herd.call("task.list") == []
    assert not any(each.answer.done() for each in waiting)
    herd.close()
    assert [each.result(SECONDS) for each in waiting] == [None] * 40


class LanguageServer:
    """A stand-in for the language server."""

    def __init__(self, app: AppContext, outlet: MessageWriter) -> None:
        self.app = app
        self.outlet = outlet
        self.seen: list[Any] = []
        self.methods = {
            "initialize": lambda _: {"capabilities": {}},
            "test/seen": lambda _: list(self.seen),
            "test/ask": lambda params: outlet.request("client/add", params).result(SECONDS),
            "test/lose": lambda _: self.app.read(Area.WORK, crud.find_row, TASKS, "nothing"),
            "test/forget": self._forget,
        }
        made.append(self)

    def _forget(self, _: Any) -> None:
        self.future = self.outlet.request("client/forget", None)

    def handle_notification(self, method: str, params: Any) -> None:
        self.seen.append([method, params])
        if method == "test/broken":
            raise RuntimeError("nobody waits for this")

    def close(self) -> None:
        self.seen.append("closed")


made: list[LanguageServer] = []


@pytest.fixture
def language(monkeypatch: pytest.MonkeyPatch) -> list[LanguageServer]:
    module = ModuleType(dispatcher.LANGUAGE)
    module.LanguageServer = LanguageServer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, dispatcher.LANGUAGE, module)
    made.clear()
    return made


def test_an_editor_is_served_behind_initialize(
    herd: Client, language: list[LanguageServer]
) -> None:
    """Before it its methods are refused by the code of the protocol, and its notices dropped."""
    with pytest.raises(RpcError) as caught:
        herd.call("test/seen")
    assert caught.value.code == -32002
    herd.notify("test/early")
    assert herd.call("initialize") == {"capabilities": {}}
    with pytest.raises(RpcError) as caught:
        herd.call("initialize")
    assert caught.value.code == -32600
    herd.notify("initialized")
    for number in range(50):
        herd.notify("test/did", number=number)
        assert len(herd.call("test/seen")) == number + 2
    herd.notify("test/broken")
    with pytest.raises(NotFound):
        herd.call("test/lose")
    with pytest.raises(RpcError) as caught:
        herd.call("test/unknown")
    assert caught.value.code == -32601
    herd.close()
    (only,) = language
    assert only.seen[-1] == "closed"


def test_an_editor_is_asked_in_turn(herd: Client, language: list[LanguageServer]) -> None:
    """By ids of our own; what it never answers is given up at the end."""
    herd.call("initialize")
    requests = herd.notifications()
    pending = herd.begin("test/ask", of=1)
    asked = next(requests)
    assert (asked.method, asked.params) == ("client/add", {"of": 1})
    herd.reply(asked._replace(id="another"), "lost")
    herd.reply(asked, [1, 2])
    assert pending.result(SECONDS) == [1, 2]
    pending = herd.begin("test/ask", of=2)
    refusal = {"code": 7, "message": "no"}
    herd._transport.send({"jsonrpc": "2.0", "id": next(requests).id, "error": refusal})
    assert isinstance(pending.answer.exception(SECONDS), RpcError)
    herd.call("test/forget")
    herd.close()
    with pytest.raises(CancelledError):
        language[0].future.result(SECONDS)


@for_each(("params", "said"), [(None, {}), ([], {"params": []}), ({}, {"params": {}})])
def test_what_has_no_parameters_says_nothing_of_them(params: Any, said: dict[str, Any]) -> None:
    """JSON-RPC leaves them out; it knows no null in their place."""
    reading, writing = os.pipe()
    with open(reading, "rb") as sent, open(writing, "wb") as end:  # noqa: PTH123 - descriptors
        outlet = MessageWriter(end.fileno(), lambda: pytest.fail("nobody asked where we are"))
        outlet.notify("told", params)
        outlet.request("asked", params)
        end.close()
        notice, request = map(json.loads, sent.read().splitlines())
    assert notice == {"jsonrpc": "2.0", "method": "told", **said}
    assert request == {"jsonrpc": "2.0", "id": request["id"], "method": "asked", **said}


def test_what_changes_around_a_server_is_seen(folder: Path) -> None:
    """Settings that are changed, and a store that is moved away."""
    server_context = ServerContext(folder, {"USER": "somebody"})
    assert server_context.call().workspace.facts is None
    config = folder.parent / "home" / ".config" / "herdbook" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('record = "first.lmdb"\n')
    assert server_context.call().workspace.locate(Area.RECORD).url.endswith("first.lmdb")
    config.write_text('record = "other.lmdb"\n')
    app = server_context.call()
    assert app.workspace.locate(Area.RECORD).url.endswith("other.lmdb")
    with app.open(Area.RECORD, create=True) as one, app.open(Area.RECORD) as same:
        assert one is same
    store = folder.parent / "home" / "other.lmdb"
    moved = store.with_name("moved.lmdb")
    store.rename(moved)
    with pytest.raises(StoreGone), server_context.call().open(Area.RECORD, create=True):
        pass
    app.workspace.forget_use(app.workspace.locate(Area.RECORD))
    with server_context.call().open(Area.RECORD, create=True) as another:
        assert another.uuid != one.uuid
    server_context.close()


def test_a_store_is_closed_when_the_last_has_left_it(folder: Path) -> None:
    """Not under somebody who reads it."""
    server_context = ServerContext(folder, {"USER": "somebody"})
    entered, leave = threading.Event(), threading.Event()
    seen: list[list[str]] = []

    def reader() -> None:
        with server_context.call().open(Area.WORK, create=True) as store:
            entered.set()
            leave.wait(SECONDS)
            seen.append(store.spaces())

    thread = threading.Thread(target=reader)
    thread.start()
    entered.wait(SECONDS)
    server_context.close()
    leave.set()
    thread.join()
    assert seen == [[]]
