"""MCP over streamable HTTP, by the client of the official SDK."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ListRootsResult, Root

from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import Desk, planned, told
from tests.e2e.rpc_process import until
from tests.e2e.serve_process import JSON, Serving, serving


class TextDesk(Desk):
    """A session whose answers are texts of JSON, as they are unless a client asks otherwise."""

    def does(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and read its answer; it must go well."""
        answer = self.tries(tool, **arguments)
        assert not answer.is_error, told(answer)
        return json.loads(told(answer))


@contextmanager
def session(
    server: Serving, query: str = "", *, roots: list[str] | None = None, mode: str = "auto"
) -> Iterator[Desk]:
    """A session with the server by the SDK's own client, which has these roots or none."""
    places = list(roots or ())

    async def told_roots(_: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=each) for each in places])  # type: ignore[arg-type]

    caller = httpx2.AsyncClient(headers=server.bearer, timeout=120)
    client = Client(
        streamable_http_client(f"{server.url}mcp{query}", http_client=caller),
        mode=mode,
        list_roots_callback=None if roots is None else told_roots,
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(caller),
        portal.wrap_async_context_manager(client) as entered,
    ):
        yield TextDesk(entered, portal, places)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_works_over_http(person: Person, app: Path, mode: str) -> None:
    """It introduces itself, claims and completes; when its session ends, so has it."""
    goal, _, (task,) = planned(person, app, "ship", "one")
    with serving(person, app) as server:
        with session(server, mode=mode) as desk:
            assert "introduce" in told(desk.tries("claim"))
            desk.does("introduce", name="otter")
            assert desk.does("claim", initiative=goal)["task"]["id"] == task
            desk.does("complete", summary="done")
            assert "ship" in desk.reads("herdbook://board")
        until(lambda: person.asks(app, "agent", "show", "otter")["status"] == "stopped")
    assert person.asks(app, "task", "show", task)["status"] == "completed"


def test_two_sessions_are_two_agents(person: Person, app: Path) -> None:
    """What one is, the other is not."""
    with (
        serving(person, app) as server,
        session(server) as first,
        session(server) as second,
    ):
        first.does("introduce", name="otter")
        assert "introduce" in told(second.tries("message", content="hello"))
        second.does("introduce", name="lynx")
        first.does("message", content="from the otter")
        second.does("message", content="from the lynx")
        inbox = person.asks(app, "message", "inbox")
        senders = {each["content"]: each["sender"] for each in inbox}
        assert senders == {"from the otter": "otter", "from the lynx": "lynx"}


def test_an_agent_works_in_the_store_of_the_folder_it_means(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """The store that was named at the start is that of its folder alone."""
    other = person.repository(tmp_path / "other")
    store = str(tmp_path / "named.lmdb")
    with serving(person, app, "--work", store) as server:
        person.asks(other, "serve", "--no-open")
        ways = [(f"?folder={app}", None), (f"?folder={other}", None), ("", [other.as_uri()])]
        for number, (query, roots) in enumerate(ways):
            with session(server, query, roots=roots) as desk:
                desk.does("introduce", name=f"otter-{number}")
        named = person.asks(app, "agent", "list", "--work", store)
        assert [each["name"] for each in named] == ["otter-0"]
        elsewhere = {each["name"] for each in person.asks(other, "agent", "list")}
        assert elsewhere == {"otter-1", "otter-2"}


def test_an_agent_works_in_the_served_folder_it_means(
    person: Person, app: Path, tmp_path: Path
) -> None:
    """By its address, its roots, or the folder it names; never in one that is not served."""
    other = person.repository(tmp_path / "other")
    secret = person.repository(tmp_path / "secret")
    with serving(person, app, str(other)) as server:
        ways = [
            (f"?folder={other}", None, {}),
            ("", [other.as_uri()], {}),
            ("", [secret.as_uri(), other.as_uri()], {}),
            ("", None, {"folder": str(other)}),
        ]
        for number, (query, roots, arguments) in enumerate(ways):
            with session(server, query, roots=roots) as desk:
                desk.does("introduce", name=f"otter-{number}", **arguments)
        known = {each["name"] for each in person.asks(other, "agent", "list")}
        assert known == {f"otter-{number}" for number in range(len(ways))}
        assert person.asks(app, "agent", "list") == []
        with session(server) as desk:
            assert "not served" in told(desk.tries("introduce", folder=str(secret)))
        start = {"protocolVersion": "2025-11-25", "capabilities": {}}
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {**start, "clientInfo": {"name": "x", "version": "1"}},
        }
        headers = {
            **server.bearer,
            **JSON,
            "Accept": "application/json, text/event-stream",
        }
        answer = server.asks("POST", f"/mcp?folder={secret}", headers, message)
        assert b"not served" in answer.body
    assert not (secret / ".git" / "herdbook").exists()


def test_agents_have_ended_when_the_server_has(person: Person, app: Path) -> None:
    """Their sessions are closed first, and it is written down."""
    server = Serving(person, app)
    headers = {**server.bearer, **JSON, "Accept": "application/json, text/event-stream"}

    def sends(method: str, number: int | None, **params: Any) -> dict[str, str]:
        known = {} if number is None else {"id": number}
        message = {"jsonrpc": "2.0", **known, "method": method, "params": params}
        answer = server.asks("POST", "/mcp", headers, message)
        assert answer.status in (200, 202), answer.body
        return answer.headers

    info = {"name": "a test", "version": "1"}
    begun = sends("initialize", 1, protocolVersion="2025-11-25", capabilities={}, clientInfo=info)
    headers["Mcp-Session-Id"] = begun["mcp-session-id"]
    sends("notifications/initialized", None)
    sends("tools/call", 2, name="introduce", arguments={"name": "otter"})
    assert person.asks(app, "agent", "show", "otter")["status"] == "idle"
    connection = HTTPConnection(server.host)
    connection.request("GET", "/mcp", headers={**headers, "Accept": "text/event-stream"})
    stream = connection.getresponse()
    assert stream.status == 200
    assert server.ends() == (0, "")
    stream.close()
    connection.close()
    assert person.asks(app, "agent", "show", "otter")["status"] == "stopped"
