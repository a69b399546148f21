"""The MCP server: twenty-one tools and two resources over standard input and output.

It uses the official SDK, whose import takes a second: only the command that serves imports this.
"""

import json
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from mcp.server.context import ServerMiddleware
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.server.mcpserver.tools import Tool as SdkTool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from herdbook.domain.errors import HerdbookError, NotFound
from herdbook.entrypoints.mcp.ask_person import AskPerson
from herdbook.entrypoints.mcp.client_session import ClientSession, GetClient
from herdbook.entrypoints.mcp.invoke import call
from herdbook.entrypoints.mcp.roots import Roots
from herdbook.entrypoints.mcp.schemas import input_schema, output_schema
from herdbook.entrypoints.mcp.tool import Tool
from herdbook.entrypoints.mcp.tools import TOOLS, instructions
from herdbook.entrypoints.operations.board import handlers as boards
from herdbook.entrypoints.operations.crud import handlers as crud_handlers
from herdbook.entrypoints.operations.error_table import describe_error, describe_for_agent
from herdbook.entrypoints.operations.wire_converter import unstructure
from herdbook.ports.engine.wakeups import StopEvent
from herdbook.services.plan import dependencies

ERROR = "herdbook/error"
"""The key in `_meta` of the error of a failed call."""
MOST_WAITING = 100
"""How many calls of one tool may wait at once, in threads of their own."""
_JSON = "application/json"
_log = logging.getLogger(__name__)


class _OperationTool(SdkTool):
    """A tool that checks its arguments itself, so that its errors can say what to do next."""

    async def run(self, arguments: dict[str, Any], *_: Any, **__: Any) -> Any:
        """Answer one call; it never raises."""
        return await self.fn(arguments)


def create_server(
    get_client: GetClient,
    version: str,
    tools: Sequence[Tool] = TOOLS,
    *,
    full: bool = True,
    outer: Sequence[ServerMiddleware[Any]] = (),
) -> MCPServer[Any]:
    """A server of these tools, for the client that is there when a message comes.

    `full` is the same as that of its clients; `outer` sees each message first.
    """
    server: MCPServer[Any] = MCPServer(
        "herdbook",
        title="Herdbook",
        instructions=instructions(tools),
        version=version,
        tools=[_sdk_tool(each, get_client, full=full) for each in tools],
        resources=[_board(get_client)],
        middleware=[*outer, Roots(get_client), AskPerson(get_client)],
        subscriptions=False,
        log_level="ERROR",
    )

    @server.resource(
        "herdbook://task/{id}",
        name="task",
        title="A task",
        description="One task with all its fields, and what it waits for.",
        mime_type=_JSON,
    )
    async def read(id: str) -> str:  # noqa: A002 - the name in the address
        return await _read(partial(task, get_client(), id))

    return server


def _sdk_tool(tool: Tool, get_client: GetClient, *, full: bool) -> SdkTool:
    waiting = anyio.CapacityLimiter(MOST_WAITING) if tool.waits else None

    async def run(arguments: dict[str, Any]) -> CallToolResult:
        gone = StopEvent()
        try:
            answer = await to_thread.run_sync(
                partial(call, tool, get_client(), arguments, gone),
                # A write is finished even if the client has cancelled the call.
                abandon_on_cancel=tool.waits,
                limiter=waiting,
            )
            return _result(answer, full=full)
        except HerdbookError as error:
            return _error_result(describe_for_agent(error, tool.name), describe_error(error))
        except Exception as error:  # noqa: BLE001 - one defect must not end the session
            _log.exception("%s failed", tool.name)
            message = describe_defect(error)
            return _error_result(message, {"type": type(error).__name__, "message": message})
        finally:
            gone.set()

    return _OperationTool(
        fn=run,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        parameters=input_schema(tool),
        fn_metadata=FuncMetadata(
            arg_model=ArgModelBase, output_schema=output_schema(tool) if full else None
        ),
        is_async=True,
        context_kwarg=None,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=False,
            idempotent_hint=tool.read_only or tool.repeatable,
            open_world_hint=False,
        ),
    )


def _result(answer: dict[str, Any], *, full: bool) -> CallToolResult:
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=str)
    # Some hosts give both to the model, which would read everything twice.
    structured = json.loads(text) if full else None
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=structured
    )


def _error_result(message: str, data: dict[str, Any]) -> CallToolResult:
    # Not as structured content: clients validate that by the schema of successful answers.
    return CallToolResult(
        content=[TextContent(type="text", text=message)],
        is_error=True,
        _meta={ERROR: json.loads(json.dumps(data, default=str))},
    )


def describe_defect(error: Exception) -> str:
    """The message to a model about a defect: without its place, and with what to do next."""
    return (
        f"internal error ({type(error).__name__}). Your data was not changed by it, as far as is "
        "known; tell the person, and look with status before you do it again."
    )


def _board(get_client: GetClient) -> FunctionResource:
    async def read() -> str:
        return await _read(partial(board, get_client()))

    return FunctionResource(
        uri="herdbook://board",
        name="board",
        title="The board",
        description="Initiatives, phases and tasks by state, and who holds what.",
        mime_type=_JSON,
        fn=read,
    )


def board(client: ClientSession) -> Any:
    """The plan by state, with the agents that hold tasks."""
    return boards.board(client.get_context(), initiative=None, watch=False)


def task(client: ClientSession, named: str) -> dict[str, Any]:
    """One task, by its id or a prefix of it, with its dependencies."""
    app = client.get_context()
    row = crud_handlers.show(app, id=named, entity="tasks")
    return {"task": row, "waits_for": app.read(None, dependencies.task_dependencies, row.id)}


async def _read(question: Callable[[], Any]) -> str:
    try:
        answer = unstructure(await to_thread.run_sync(question))
        return json.dumps(answer, ensure_ascii=False, indent=1)
    except NotFound as error:
        raise ResourceNotFoundError(str(error)) from error
    except HerdbookError as error:
        raise ResourceError(f"{type(error).__name__}: {error}") from error
