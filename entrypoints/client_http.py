"""The client's way to a server over HTTP: each call is a request, the journal comes by the feed.

It makes HTTP look as pipes do: `journal.subscribe`, `journal.unsubscribe` and `$/cancelRequest`,
which need a connection that stays, are done here.
"""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from itertools import count
from typing import Any
from urllib.parse import urlencode, urlsplit

from herdbook.adapters.user_state import running_server
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.entrypoints.client_socket import acting_as
from herdbook.entrypoints.rpc.errors import to_described_rpc_error, to_rpc_error
from herdbook.entrypoints.rpc.messages import (
    CANCELLED,
    RpcError,
    encode,
    error_response,
    response,
)

MOST_CALLS = 32
REFUSED = -32001
"""The server did not let the request through."""
Receive = Callable[[Any], None]
_OK, _NO_CONTENT = 200, 204


class HttpTransport:
    """Carries messages to `herdbook serve` over HTTP, up to 32 at once."""

    def __init__(self, url: str, folder: str, token: str | None = None) -> None:
        self._url = urlsplit(url)
        if self._url.scheme not in ("http", "https") or not self._url.netloc:
            raise InvalidValue("url", "must be the address that `herdbook serve` prints")
        self._query = urlencode({"folder": folder, **acting_as()})
        self._headers = {"Authorization": f"Bearer {token or running_server.read_token()}"}
        self._calls = ThreadPoolExecutor(MOST_CALLS, "herdbook-client")
        self._mutex = threading.Lock()
        self._open: dict[Any, HTTPConnection] = {}
        self._cancelled: set[Any] = set()
        self._numbers = count(1)
        self._receive: Receive = lambda _: None
        self._end: Callable[[], None] = lambda: None

    def start(self, receive: Receive, end: Callable[[], None]) -> None:
        """Nothing is sent before the first call."""
        self._receive, self._end = receive, end

    def send(self, message: dict[str, Any]) -> None:
        """Send a message in a thread of its own; its answer is received there."""
        method, params = message["method"], message.get("params", {})
        if method == "$/cancelRequest":
            self._cancel(params["id"])
        elif method == "journal.unsubscribe":
            found = self._cancel(params["subscription"])
            self._receive(response(message["id"], found))
        elif method == "journal.subscribe":
            threading.Thread(
                target=self._follow, args=(message["id"], params.get("since")), daemon=True
            ).start()
        else:
            self._calls.submit(self._call, message)

    def close(self) -> None:
        """Wait for the answers, and end the subscriptions."""
        with self._mutex:
            subscriptions = [each for each in self._open if isinstance(each, str)]
        for each in subscriptions:
            self._cancel(each)
        self._calls.shutdown()
        self._end()

    def _call(self, message: dict[str, Any]) -> None:
        id_ = message.get("id")
        asked = object() if id_ is None else id_
        try:
            headers = {"Content-Type": "application/json"}
            answer = self._request(asked, "POST", "/rpc", encode(message), headers)
            data = answer.read()
            if answer.status != _NO_CONTENT:
                self._receive({**_parse(answer, data), "id": id_})
        except (OSError, HTTPException, ValueError) as error:
            if id_ is not None:
                self._receive(error_response(id_, self._describe(id_, error)))
        finally:
            self._forget(asked)

    def _follow(self, id_: int, since: int | None) -> None:
        """Answer a subscription, and turn the events of the feed into its notifications."""
        name = f"journal-{next(self._numbers)}"
        seq: int | None = None
        error: RpcError | None = None
        try:
            path = "/feed"
            if since is not None:
                path = f"/feed?since={self._work_key()}:{since}"
            answer = self._request(name, "GET", path)
            if answer.status != _OK:
                self._receive({**_parse(answer, answer.read()), "id": id_})
                return
            events = _events(answer)
            work = _find_work(_first_spaces(events))
            seq = work["seq"]
            self._receive(response(id_, {"subscription": name, "seq": seq}))
            for page in _pages(events, work["space"]):
                seq = page["seq"]
                changed = {"subscription": name, "entries": page["entries"], "seq": seq}
                self._notify("journal.changed", changed)
        except RpcError as told:
            error = told
        except (OSError, HTTPException, ValueError) as ended:
            error = self._describe(name, ended)
        finally:
            was_cancelled = self._forget(name)
        if seq is None and error is not None:
            self._receive(error_response(id_, error))
        elif not was_cancelled:
            self._notify("journal.behind", {"subscription": name, "seq": seq, "error": None})

    def _work_key(self) -> str:
        """The short name of the folder's work space in the ids of events."""
        asked = object()
        try:
            answer = self._request(asked, "GET", "/spaces")
            spaces = _parse(answer, answer.read())
        finally:
            self._forget(asked)
        return str(_find_work(spaces)["key"])

    def _request(
        self, id_: Any, method: str, path: str, body: bytes | None = None, more: Any = None
    ) -> HTTPResponse:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = kind(self._url.netloc)
        with self._mutex:
            self._open[id_] = connection
        target = f"{path}{'&' if '?' in path else '?'}{self._query}"
        connection.request(method, target, body, {**self._headers, **(more or {})})
        return connection.getresponse()

    def _cancel(self, id_: Any) -> bool:
        """End a request by leaving it; whether there was one."""
        with self._mutex:
            connection = self._open.get(id_)
            if connection is not None:
                self._cancelled.add(id_)
        if connection is None:
            return False
        with suppress(OSError, AttributeError):
            connection.sock.shutdown(2)
        return True

    def _forget(self, id_: Any) -> bool:
        """A request has ended; whether it was cancelled."""
        with self._mutex:
            connection = self._open.pop(id_, None)
            was_cancelled = id_ in self._cancelled
            self._cancelled.discard(id_)
        if connection is not None:
            connection.close()
        return was_cancelled

    def _describe(self, id_: Any, error: Exception) -> RpcError:
        if id_ in self._cancelled:
            return RpcError(CANCELLED, "this request was cancelled")
        return to_rpc_error(StoreUnavailable(self._url.netloc, str(error)))

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self._receive({"jsonrpc": "2.0", "method": method, "params": params})


def _find_work(spaces: Any) -> Any:
    """The space of the plan among those that are served; ValueError if there is none."""
    found = isinstance(spaces, list) and [each for each in spaces if each["area"] == "work"]
    if not found:
        raise ValueError("it serves no plan for this folder")
    return found[0]


def _parse(answer: HTTPResponse, data: bytes) -> Any:
    """The JSON of an answer; a refusal before any method was called becomes an error."""
    try:
        parsed = json.loads(data)
    except ValueError:  # of a proxy, or of a server that has too many clients
        raise ValueError(f"it answered with HTTP status {answer.status}") from None
    if isinstance(parsed, dict) and isinstance(parsed.get("error"), str):
        return error_response(None, RpcError(REFUSED, parsed["error"], {"status": answer.status}))
    return parsed


def _events(answer: HTTPResponse) -> Any:
    """The events of a feed, as they come: their kinds and their data."""
    kind, data = "", ""
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            data = value
        elif not name and data:
            yield kind, json.loads(data)
            kind, data = "", ""


def _first_spaces(events: Any) -> Any:
    """The spaces that a feed begins with; raises the trouble that it has instead, or ValueError."""
    for kind, data in events:
        if kind == "spaces":
            return data
        if kind == "trouble":
            raise to_described_rpc_error(data)
    raise ValueError("it ended the feed before it began")


def _pages(events: Any, space: str) -> Any:
    """The pages of entries of a space, until the feed ends or is to be read from its begin."""
    for kind, data in events:
        if kind == "reset":
            return
        if kind == "journal" and data["space"] == space:
            yield data
