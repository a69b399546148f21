"""Asks the person at the client at once, when an agent writes that it needs an answer from them.

A client that can show a form (elicitation) shows the question; the answer is recorded as the reply
to the agent's message and comes back with it. Until 2025 a server sent `elicitation/create`; since
2026-07-28 it answers that it needs input, and the client calls again with it. Whoever declines or
does not answer in time finds the message in the inbox, as without such a client.
"""

import json
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from herdbook.domain.location.areas import Area
from herdbook.entrypoints.mcp.client_session import GetClient
from herdbook.services import messaging

PATIENCE = 300.0
"""Seconds that a person has to answer before the agent goes on."""
NOTE = "answered in the client"
_KEY, _ANSWER = "person", "answer"
_FORM = {
    "type": "object",
    "properties": {_ANSWER: {"type": "string", "title": "Your answer"}},
    "required": [_ANSWER],
}


class AskPerson:
    """Middleware that shows a question to the person where the client can."""

    def __init__(self, get_client: GetClient) -> None:
        self._get_client = get_client

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Pass the call on; ask the person before or after it, as the protocol has it."""
        question = _question(ctx)
        capabilities = ctx.session.client_capabilities
        if question is None or capabilities is None or capabilities.elicitation is None:
            return await call_next(ctx)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            given = (ctx.params or {}).get("inputResponses")
            if not isinstance(given, dict) or _KEY not in given:
                return InputRequiredResult(input_requests={_KEY: _request(question)})
            result = await call_next(ctx)
            return await self._add_answer(result, _parse(given[_KEY]))
        result = await call_next(ctx)
        if _message_id(result) is None:
            return result
        return await self._add_answer(result, await _elicit(ctx, question))

    async def _add_answer(self, result: HandlerResult, answer: str | None) -> HandlerResult:
        """Record the answer as the reply to the message, and add it to the result."""
        message_id = _message_id(result)
        if answer is None or message_id is None or not isinstance(result, dict):
            return result
        await to_thread.run_sync(partial(self._reply, message_id, answer))
        text = json.loads(result["content"][0]["text"])
        text["answer"] = answer
        shown = json.dumps(text, ensure_ascii=False, separators=(",", ":"))
        return {**result, "content": [{"type": "text", "text": shown}]}

    def _reply(self, message_id: str, answer: str) -> None:
        app = self._get_client().get_context()
        app.note = NOTE
        app.run(Area.WORK, messaging.reply, message_id, answer)


def _question(ctx: ServerRequestContext[Any, Any]) -> str | None:
    """What an agent asks the person with this call; None if it asks nothing of them."""
    params = ctx.params or {}
    arguments = params.get("arguments")
    if ctx.method != "tools/call" or params.get("name") != "message":
        return None
    if not isinstance(arguments, dict) or arguments.get("to") or arguments.get("in_reply_to"):
        return None
    content = arguments.get("content")
    asks = arguments.get("requires_response") is True
    return content if asks and isinstance(content, str) and content.strip() else None


def _request(question: str) -> ElicitRequest:
    message = f"An agent asks: {question}"
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=_FORM))


async def _elicit(ctx: ServerRequestContext[Any, Any], question: str) -> str | None:
    with anyio.move_on_after(PATIENCE):
        try:
            answer = await ctx.session.send_request(_request(question), ElicitResult)
        except (MCPError, ValidationError):
            return None
        return _parse(answer.model_dump())
    return None


def _parse(given: object) -> str | None:
    """The text that the person answered; None if they declined."""
    try:
        result = ElicitResult.model_validate(given)
    except ValidationError:
        return None
    answer = (result.content or {}).get(_ANSWER) if result.action == "accept" else None
    return answer if isinstance(answer, str) and answer.strip() else None


def _message_id(result: HandlerResult) -> str | None:
    """The id of the message that a call has written; None if it was refused."""
    if not isinstance(result, dict) or result.get("isError"):
        return None
    try:
        found = json.loads(result["content"][0]["text"])["id"]
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    return str(found)
