"""Finds the client's folder by its roots, before the first call that needs to know it.

Until 2025 a server sent `roots/list`; since 2026-07-28 it answers that it needs the roots, and the
client calls again with them. Either way the roots hold until the client says that they changed.
"""

from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import InputRequiredResult, ListRootsRequest, ListRootsResult
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from herdbook.entrypoints.mcp.client_session import ClientSession, GetClient

PATIENCE = 5.0
"""Seconds that a client has to name its roots."""
_NEED_FOLDER = frozenset({"tools/call", "resources/read"})
_KEY = "roots"


class Roots:
    """Middleware that sets the client's folder before its first call.

    It sees every message, and also notes the name of the client's program.
    """

    def __init__(self, get_client: GetClient) -> None:
        self._get_client = get_client
        self._lock = anyio.Lock()

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Ask for the roots if they are not known yet, then pass the message on."""
        client = self._get_client()
        if (params := ctx.session.client_params) is not None:
            client.program = params.client_info.name
        if ctx.method == "notifications/roots/list_changed":
            client.forget_roots()
        elif ctx.method in _NEED_FOLDER and not client.has_folder:
            question = await self._set_folder(client, ctx)
            if question is not None:
                return question
        return await call_next(ctx)

    async def _set_folder(
        self, client: ClientSession, ctx: ServerRequestContext[Any, Any]
    ) -> InputRequiredResult | None:
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            client.set_roots([])
        elif ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            async with self._lock:
                if not client.has_folder:
                    client.set_roots(await _request_roots(ctx))
        elif (ctx.params or {}).get("inputResponses") is None:
            return InputRequiredResult(input_requests={_KEY: ListRootsRequest()})
        else:
            client.set_roots(_roots_in_params(ctx))
        return None


async def _request_roots(ctx: ServerRequestContext[Any, Any]) -> list[str]:
    with anyio.move_on_after(PATIENCE):
        try:
            answer = await ctx.session.send_request(ListRootsRequest(), ListRootsResult)
        except (MCPError, ValidationError):
            return []
        return [str(each.uri) for each in answer.roots]
    return []


def _roots_in_params(ctx: ServerRequestContext[Any, Any]) -> list[str]:
    responses = (ctx.params or {}).get("inputResponses")
    try:
        answer = ListRootsResult.model_validate(responses[_KEY]) if responses else None
    except (KeyError, TypeError, ValidationError):
        return []
    return [str(each.uri) for each in answer.roots] if answer else []
