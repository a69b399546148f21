"""Clients of `herdbook mcp`: the SDK's own, and bare pipes; and a plan for them to work on."""

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult, ListRootsResult, Root, RootsListChangedNotification

from herdbook.entrypoints.mcp.schemas import input_schema
from herdbook.entrypoints.mcp.tool import Tool
from tests.e2e.conftest import PROGRAM, Person


class Desk:
    """One session with the server, for callers that are not asynchronous."""

    def __init__(self, client: Client, portal: BlockingPortal, roots: list[str]) -> None:
        self.client = client
        self.portal = portal
        self.roots = roots
        self.used: set[str] = set()

    def tries(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool, whatever comes of it."""
        self.used.add(tool)
        return self.portal.call(self.client.call_tool, tool, arguments)

    def does(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and read its structured answer; it must go well."""
        answer = self.tries(tool, **arguments)
        assert not answer.is_error, told(answer)
        return answer.structured_content

    def moves(self, *roots: str) -> None:
        """Have other roots from now on, and say so."""
        self.roots[:] = roots
        self.portal.call(self.client.session.send_notification, RootsListChangedNotification())

    def reads(self, uri: str) -> str:
        """Read a resource."""
        (content,) = self.portal.call(self.client.read_resource, uri).contents
        return str(content.text)  # type: ignore[union-attr]


def told(answer: CallToolResult) -> str:
    """What a model reads of an answer."""
    (content,) = answer.content
    return str(content.text)  # type: ignore[union-attr]


def some_arguments(tool: Tool) -> dict[str, object]:
    """A value for each argument that a tool requires, of the kind it takes."""
    schema = input_schema(tool)
    known = {name: schema["properties"][name] for name in schema.get("required", ())}
    return {name: _something(each) for name, each in known.items()}


def _something(schema: Mapping[str, Any]) -> object:
    return schema["enum"][0] if "enum" in schema else 1 if schema["type"] == "integer" else "a1b2"


@contextmanager
def desk(
    person: Person,
    folder: Path,
    *,
    roots: Sequence[str] | None = None,
    mode: str = "auto",
    answers: Any = None,
    command: Sequence[str] = (str(PROGRAM), "mcp", "--structured"),
    **variables: str,
) -> Iterator[Desk]:
    """Start a server in a folder, with a client that has these roots, or has no such thing."""
    places = list(roots or ())

    async def told_roots(_: object) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=each) for each in places])  # type: ignore[arg-type]

    program, *words = command
    parameters = StdioServerParameters(
        command=program, args=words, env={**person.variables, **variables}, cwd=folder
    )
    client = Client(
        parameters,
        mode=mode,
        list_roots_callback=None if roots is None else told_roots,
        elicitation_callback=answers,
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(client) as entered,
    ):
        yield Desk(entered, portal, places)


class Pipes:
    """The server as a bare process, one line of JSON each way."""

    def __init__(
        self, person: Person, folder: Path, *, client: str = "a test", **variables: str
    ) -> None:
        self.process = subprocess.Popen(
            [PROGRAM, "mcp", "--structured"],
            cwd=folder,
            env={**person.variables, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        who = {"name": client, "version": "1"}
        start = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who}
        self.sends("initialize", start, 0)
        self.answer()
        self.sends("notifications/initialized", {})

    def sends(self, method: str, params: dict[str, Any], number: int | None = None) -> None:
        known = {} if number is None else {"id": number}
        message = {"jsonrpc": "2.0", **known, "method": method, "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def calls(self, tool: str, number: int, **arguments: Any) -> None:
        self.sends("tools/call", {"name": tool, "arguments": arguments}, number)

    def ends(self) -> tuple[bytes, bytes]:
        """Close the pipe, as a client that leaves; what else was printed."""
        return self.process.communicate(timeout=120)


def planned(person: Person, app: Path, name: str, *tasks: str) -> tuple[str, str, list[str]]:
    """An initiative with an open phase and tasks, each after the one before; all their ids."""
    initiative = person.asks(app, "initiative", "add", name, "--execution-mode", "yolo")["id"]
    phase = person.asks(app, "phase", "add", "first", "--initiative", initiative)["id"]
    ids: list[str] = []
    for each in tasks:
        ids.append(person.asks(app, "task", "add", each, "--phase", phase)["id"])
        if len(ids) > 1:
            person.runs(app, "task", "after", ids[-1], ids[-2])
    return initiative, phase, ids
