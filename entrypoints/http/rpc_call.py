"""One JSON-RPC message, or a batch, that came by itself and is answered by itself.

The methods, the parameters and the errors are those of `herdbook rpc`. What needs a connection that
stays is refused here, with what to use instead.
"""

from collections.abc import Callable
from typing import Any

from herdbook.entrypoints.rpc import messages
from herdbook.entrypoints.rpc.dispatcher import AcceptedMessage, Dispatcher
from herdbook.entrypoints.rpc.messages import METHOD_NOT_FOUND, Batch, Incoming, RpcError
from herdbook.entrypoints.rpc.writer import MessageWriter
from herdbook.entrypoints.server_context import ServerContext

USE_FEED = "the feed has the changes: GET /feed"
NEEDS_CONNECTION = {
    "journal.subscribe": USE_FEED,
    "journal.unsubscribe": USE_FEED,
    "initialize": "editors use `herdbook rpc`",
    "shutdown": "this server serves others too",
    "exit": "this server serves others too",
}
"""Methods that are about one client's connection, with what to say instead."""


class RpcCall:
    """A message and its answer; it `waits` if the client allows it to take long."""

    def __init__(self, server: ServerContext, payload: bytes) -> None:
        writer = MessageWriter(-1, server.call)
        writer.gone = True  # nothing is ever sent unasked
        self._dispatcher = Dispatcher(server, writer)
        message = messages.parse_message(payload)
        self._is_batch = isinstance(message, Batch)
        received = message.messages if isinstance(message, Batch) else [message]
        accepted = [self._dispatcher.accept(_refuse_lasting(each)) for each in received]
        self._entries: list[AcceptedMessage] = [each for each in accepted if each is not None]
        self.waits = any(each.waits for each in self._entries)

    def answer(self, count_error: Callable[[int], None]) -> bytes | None:
        """Call the methods in their order; returns the responses, or None if there are none."""
        answers = [each.answer() for each in self._entries]
        responses: list[dict[str, Any]] = [each for each in answers if each is not None]
        for each in responses:
            if "error" in each:
                count_error(each["error"]["code"])
        if not responses:
            return None
        return messages.encode_or_fail(responses if self._is_batch else responses[0])

    def stop(self) -> None:
        """Let what waits answer now: the client has left, or the server ends."""
        self._dispatcher.stop()


def _refuse_lasting(message: Incoming) -> Incoming:
    """The message, or its refusal if it is about a connection."""
    if not isinstance(message, messages.Request) or message.method not in NEEDS_CONNECTION:
        return message
    reason = f"{message.method} is not available here; {NEEDS_CONNECTION[message.method]}"
    return messages.Refusal(message.id, RpcError(METHOD_NOT_FOUND, reason))
