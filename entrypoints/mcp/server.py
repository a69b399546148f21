"""The server: twenty tools and two resources over standard input and output, with the official SDK.

Only the command that serves may import this: the SDK takes a second.
"""

import json
import logging
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import Any

import anyio
from anyio import to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.resources import FunctionResource
from mcp.server.mcpserver.tools import Tool as SdkTool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from herdbook.domain.errors import HerdbookError, NotFound
from herdbook.entrypoints.mcp.client_session import Caller
from herdbook.entrypoints.mcp.invoke import call
from herdbook.entrypoints.mcp.resources import board, task
from herdbook.entrypoints.mcp.roots import Roots
from herdbook.entrypoints.mcp.schemas import input_schema, output_schema
from herdbook.entrypoints.mcp.tool import Tool
from herdbook.entrypoints.mcp.tools import INSTRUCTIONS, TOOLS
from herdbook.entrypoints.operations.error_table import describe_error, describe_for_agent
from herdbook.entrypoints.operations.wire_converter import unstructure

ERROR = "herdbook/error"
"""The key in `_meta` of the error of a failed call."""
MOST_WAITING = 100
"""How many calls of one tool may wait at once, in threads of their own."""
_JSON = "application/json"
_log = logging.getLogger(__name__)


class _Tool(SdkTool):
    """A tool that checks its arguments itself, so that its errors can say what to do next."""

    async def run(self, arguments: dict[str, Any], *_: Any, **__: Any) -> Any:
        """Answer one call; it never raises."""
        return await self.fn(arguments)


def create_server(caller: Caller, version: str) -> MCPServer[Any]:
    """A server for one client."""
    made: MCPServer[Any] = MCPServer(
        "herdbook",
        title="Herdbook",
        instructions=INSTRUCTIONS,
        version=version,
        tools=[_sdk_tool(each, caller) for each in TOOLS],
        resources=[_board(caller)],
        middleware=[Roots(caller)],
        subscriptions=False,
        log_level="ERROR",
    )

    @made.resource(
        "herdbook://task/{id}",
        name="task",
        title="A task",
        description="One task with all its fields, and what it waits for.",
        mime_type=_JSON,
    )
    async def read(id: str) -> str:  # noqa: A002 - the name in the address
        return await _read(partial(task, caller, id))

    return made


def _sdk_tool(tool: Tool, caller: Caller) -> SdkTool:
    waiting = anyio.CapacityLimiter(MOST_WAITING) if tool.waits else None

    async def run(arguments: dict[str, Any]) -> CallToolResult:
        gone = Event()
        try:
            return _result(
                await to_thread.run_sync(
                    partial(call, tool, caller, arguments, gone),
                    # A write is finished even if the client has cancelled the call.
                    abandon_on_cancel=tool.waits,
                    limiter=waiting,
                )
            )
        except HerdbookError as error:
            return _error_result(describe_for_agent(error, tool.name), describe_error(error))
        except Exception as error:  # noqa: BLE001 - one defect must not end the session
            _log.exception("%s failed", tool.name)
            said = describe_defect(error)
            return _error_result(said, {"type": type(error).__name__, "message": said})
        finally:
            gone.set()

    return _Tool(
        fn=run,
        name=tool.name,
        title=tool.title,
        description=tool.description,
        parameters=input_schema(tool),
        fn_metadata=FuncMetadata(arg_model=ArgModelBase, output_schema=output_schema(tool)),
        is_async=True,
        context_kwarg=None,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.reads,
            destructive_hint=False,
            idempotent_hint=tool.reads or tool.repeatable,
            open_world_hint=False,
        ),
    )


def _result(answer: dict[str, Any]) -> CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=json.loads(text)
    )


def _error_result(said: str, data: dict[str, Any]) -> CallToolResult:
    # Not as structured content: clients hold that against the schema of what went well.
    return CallToolResult(
        content=[TextContent(type="text", text=said)],
        is_error=True,
        _meta={ERROR: json.loads(json.dumps(data, default=str))},
    )


def describe_defect(error: Exception) -> str:
    """What a model is told of a defect: not where it was, but that nothing is known to be lost."""
    return (
        f"internal error ({type(error).__name__}). Your data was not changed by it, as far as is "
        "known; tell the person, and look with status before you do it again."
    )


def _board(caller: Caller) -> FunctionResource:
    async def read() -> str:
        return await _read(partial(board, caller))

    return FunctionResource(
        uri="herdbook://board",
        name="board",
        title="The board",
        description="Initiatives, phases and tasks by state, and who holds what.",
        mime_type=_JSON,
        fn=read,
    )


async def _read(question: Callable[[], Any]) -> str:
    try:
        answer = unstructure(await to_thread.run_sync(question))
        return json.dumps(answer, ensure_ascii=False, indent=1)
    except NotFound as error:
        raise ResourceNotFoundError(str(error)) from error
    except HerdbookError as error:
        raise ResourceError(f"{type(error).__name__}: {error}") from error
