"""Writes messages to the client, one at a time, from any thread.

The contract for the language server, or any other part inside the server:

- On `initialize` the server imports `herdbook.entrypoints.lsp.server` and makes
  `LanguageServer(app, writer)` with a `MessageWriter`. `app` is an `AppContext` whose stores stay
  open: use `app.read` and `app.run` as any command does, from any thread. Its git facts and
  settings are from that moment; `writer.get_context()` gives a context with the current ones, and
  costs next to nothing.
- `writer.notify(method, params)` sends a notification; None means no parameters. It may be
  called from any thread. It waits while the client reads nothing, and does nothing once the client
  is gone (`writer.gone`).
- `writer.request(method, params)` sends a request under an id of our own and gives a
  `concurrent.futures.Future`. Its result is the client's `result`; its exception is an
  `messages.RpcError` with the client's `code`, `message` and `data`, or `CancelledError` when the
  server ends first. Never wait for it in `handle_notification`, or while holding a lock that
  `handle_notification` takes: the thread that calls that is the one that reads the answer.
- `language.methods[name](params)` is called in a worker thread for a request, several at once.
  What it returns is the result. It may raise a `HerdbookError`, which gets its own code, or an
  `RpcError` with any code. Anything else is answered as a defect, without its traceback.
- `language.handle_notification(name, params)` is called for a notification, in the order in which
  messages came and before the next one is read, so it must be quick; what it raises is logged.
- `params` are what the client sent: a dict, a list, or None where there were none.
- `language.close()` is called once, after all other calls; it ends all threads that were started.
"""

import os
import select
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from herdbook.entrypoints.rpc.framing import add_framing
from herdbook.entrypoints.rpc.messages import RpcError, encode_or_fail

if TYPE_CHECKING:
    from concurrent.futures import Future

    from herdbook.entrypoints.context import AppContext


class MessageWriter:
    """Writes messages to a descriptor, each whole, in the framing that the client speaks.

    `gone` tells whether the client has stopped reading.
    """

    def __init__(self, descriptor: int, get_context: "Callable[[], AppContext]") -> None:
        self.get_context = get_context
        self.headers = False
        self._descriptor = descriptor
        self._writing = threading.Lock()
        self.gone = False
        self._pending: dict[str, Future[Any]] = {}
        self._last_id = 0
        self._mutex = threading.Lock()
        self.when_gone: Callable[[], None] = lambda: None

    def send(self, message: Any) -> None:
        """Send a message; it waits while the client reads nothing."""
        data = add_framing(encode_or_fail(message), headers=self.headers)
        with self._writing:
            if self.gone or self._is_written(data):
                return
            self.gone = True
        self.when_gone()

    def _is_written(self, data: bytes) -> bool:
        """Whether all of it was written."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._descriptor, select.POLLOUT)
                poll.poll()
            except OSError:
                return False
        return True

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, **_params_member(params)})

    def request(self, method: str, params: Any) -> "Future[Any]":
        """Send a request."""
        from concurrent.futures import Future  # noqa: PLC0415 - 15 ms that only editors need

        future: Future[Any] = Future()
        with self._mutex:
            self._last_id += 1
            own = f"herdbook-{self._last_id}"
            self._pending[own] = future
        self.send({"jsonrpc": "2.0", "id": own, "method": method, **_params_member(params)})
        if self.gone:
            self.cancel_requests()
        return future

    def accept_response(self, response: dict[str, Any]) -> None:
        """Pass the client's answer to the future of its request; ignore an unknown one."""
        key = response.get("id")
        with self._mutex:
            future = self._pending.pop(key, None) if isinstance(key, str) else None
        if future is None or not future.set_running_or_notify_cancel():
            return
        if "error" in response:
            future.set_exception(RpcError.from_data(response["error"]))
        else:
            future.set_result(response.get("result"))

    def cancel_requests(self) -> None:
        """Cancel all requests to the client."""
        with self._mutex:
            waiting, self._pending = list(self._pending.values()), {}
        for future in waiting:
            future.cancel()


def _params_member(params: Any) -> dict[str, Any]:
    """The member `params` of a message; nothing where there are none."""
    return {} if params is None else {"params": params}
