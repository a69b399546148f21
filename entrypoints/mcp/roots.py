"""Where the client works, as its roots say: asked for before the first tool that needs to know.

Until 2025 a server sent `roots/list`; since 2026-07-28 it answers that it needs the roots, and the
client calls again with them. Either way the roots stand until the client says that they changed.
"""

from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import InputRequiredResult, ListRootsRequest, ListRootsResult
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from herdbook.entrypoints.mcp.client_session import ClientSession

PATIENCE = 5.0
"""For how many seconds a client is given to name its roots."""
_NEED_FOLDER = frozenset({"tools/call", "resources/read"})
_KEY = "roots"


class Roots:
    """Puts a caller where its client works, before its first call; every message passes here.

    On the way it learns what program the client is.
    """

    def __init__(self, caller: ClientSession) -> None:
        self._caller = caller
        self._lock = anyio.Lock()

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Ask for the roots if nobody knows them yet, then let the message pass."""
        if (told := ctx.session.client_params) is not None:
            self._caller.program = told.client_info.name
        if ctx.method == "notifications/roots/list_changed":
            self._caller.forget_roots()
        elif ctx.method in _NEED_FOLDER and not self._caller.has_folder:
            question = await self._set_folder(ctx)
            if question is not None:
                return question
        return await call_next(ctx)

    async def _set_folder(self, ctx: ServerRequestContext[Any, Any]) -> InputRequiredResult | None:
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            self._caller.set_roots([])
        elif ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            async with self._lock:
                if not self._caller.has_folder:
                    self._caller.set_roots(await _request_roots(ctx))
        elif (ctx.params or {}).get("inputResponses") is None:
            return InputRequiredResult(input_requests={_KEY: ListRootsRequest()})
        else:
            self._caller.set_roots(_roots_in_params(ctx))
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
