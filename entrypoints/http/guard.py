"""Decides about every request before any route sees it.

Any page in any browser can send requests to this machine, and DNS can make a foreign name mean it.
So a request is answered only if it calls us by a name of ours (`Host`), comes from no other site
(`Origin`, `Sec-Fetch-Site`), carries nothing that a plain form can send, and shows who it is. There
are no CORS headers: no other origin may read an answer.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from herdbook.domain.location.areas import KIB, MIB
from herdbook.entrypoints.http.access import Access

LARGEST_BODY = 16 * MIB
LARGEST_TICKET = 4 * KIB
LARGEST_HEADERS = 16 * KIB
BODY_SECONDS = 30.0
METHODS = frozenset({"GET", "HEAD", "POST", "DELETE"})
UNSAFE = frozenset({"POST", "DELETE"})
OWN_SITE = frozenset({"same-origin", "none"})
EXCHANGE = "/session"
HEALTH = "/healthz"
SECURITY_HEADERS = tuple(
    (name.encode(), value.encode())
    for name, value in {
        "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; object-src 'none'",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }.items()
)
CALLER = "herdbook.caller"
"""The key in the scope under which a browser's session is named; None for a program."""


class RequestRefused(Exception):
    """A request that is not answered any further: the status, and a sentence for its sender."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason


class Guard:
    """ASGI middleware around the whole application.

    `hosts` are the names, with their ports, by which this server may be called, `origins` those of
    its own pages. Files in `public` are for everybody who may send a request at all: they hold
    nothing of anybody; nor do the paths that begin with one of `pages`. `count` is told the path
    and the status of each answer.
    """

    def __init__(
        self,
        app: ASGIApp,
        access: Access,
        *,
        hosts: Iterable[str],
        origins: Iterable[str],
        public: Iterable[str],
        pages: Iterable[str] = (),
        count: Callable[[str, int], None],
    ) -> None:
        self._app = app
        self._access = access
        self._hosts = frozenset(hosts)
        self._origins = frozenset(origins)
        self._public = frozenset(public)
        self._pages = frozenset(pages)
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        path = scope["path"]

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(path, message["status"])
                message = {**message, "headers": _headers(message)}
            await send(message)

        try:
            scope[CALLER] = self._admit(scope, path)
            if scope["method"] == "POST":
                largest = LARGEST_TICKET if path == EXCHANGE else LARGEST_BODY
                receive = await _read_body(scope, receive, largest)
        except RequestRefused as error:
            await _send_refusal(send_guarded, error)
            return
        await self._app(scope, receive, send_guarded)

    def _admit(self, scope: Scope, path: str) -> str | None:
        """The browser's session that asks, None for a program; raises RequestRefused."""
        headers = _Headers(scope)
        if headers.size + len(scope["raw_path"]) + len(scope["query_string"]) > LARGEST_HEADERS:
            raise RequestRefused(431, "the head of a request may have 16 KB")
        if headers.all("host") != [headers.one("host")] or headers.one("host") not in self._hosts:
            raise RequestRefused(421, "this server has no such name; call it by the printed one")
        if headers.all("transfer-encoding") and headers.all("content-length"):
            # A proxy that believes the other of both would see another request than we do.
            raise RequestRefused(400, "a message has one length: Content-Length, or its chunks")
        method = scope["method"]
        if method not in METHODS:
            raise RequestRefused(405, f"{method[:20]} is not a method of this server")
        self._refuse_other_sites(headers, method, path)
        if method == "POST" and _media_type(headers.one("content-type")) != "application/json":
            raise RequestRefused(415, "a POST must be application/json")
        is_public = path in self._public or self._is_page(path)
        if (is_public and method in ("GET", "HEAD")) or path == EXCHANGE:
            return None
        return self._identify(headers, method)

    def _refuse_other_sites(self, headers: "_Headers", method: str, path: str) -> None:
        origin, site = headers.one("origin"), headers.one("sec-fetch-site")
        if origin is not None and origin not in self._origins:
            raise RequestRefused(403, "requests of other origins are refused")
        # A link or a bookmark may lead to the page itself, which holds nothing of anybody.
        is_navigation = method == "GET" and headers.one("sec-fetch-mode") == "navigate"
        is_visit = is_navigation and (path == "/" or self._is_page(path))
        if site is not None and site not in OWN_SITE and not is_visit:
            raise RequestRefused(403, "requests of other sites are refused")

    def _is_page(self, path: str) -> bool:
        """Whether a path shows a page: its name, or its name and the id of what it shows."""
        parts = path.split("/")
        return len(parts) in (2, 3) and parts[1] in self._pages

    def _identify(self, headers: "_Headers", method: str) -> str | None:
        if self._access.knows_token(headers.one("authorization")):
            return None
        session = self._access.session_of(headers.one("cookie"))
        if session is None:
            reason = "show the token, or open the link that `herdbook serve` prints"
            raise RequestRefused(401, reason)
        if method in UNSAFE and headers.one("origin") is None:
            raise RequestRefused(403, "a page must say its origin")
        return session


class _Headers:
    """The headers of a request."""

    def __init__(self, scope: Scope) -> None:
        self._pairs: list[tuple[bytes, bytes]] = scope["headers"]
        self.size = sum(len(name) + len(value) + 4 for name, value in self._pairs)

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        wanted = name.encode()
        return [value.decode("latin-1") for key, value in self._pairs if key == wanted]

    def one(self, name: str) -> str | None:
        """The value of a header; of several that differ, one that nothing is equal to."""
        values = set(self.all(name))
        return values.pop() if len(values) == 1 else None if not values else "\0"


def _media_type(value: str | None) -> str:
    return (value or "").partition(";")[0].strip().lower()


def _headers(message: Message) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, with those that every answer has."""
    given = list(message.get("headers", ()))
    names = {name for name, _ in given}
    cache = [] if b"cache-control" in names else [(b"cache-control", b"no-store")]
    return [*given, *cache, *SECURITY_HEADERS]


async def _read_body(scope: Scope, receive: Receive, largest: int) -> Receive:
    """Read the body of a request, and return what gives it to the application.

    Raises RequestRefused if it is too large or takes too long.
    """
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if not declared.isdigit() or int(declared) > largest:
        raise RequestRefused(413, f"a message may have {largest} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise RequestRefused(400, "the message did not come to its end")
                body += message.get("body", b"")
                if len(body) > largest:
                    raise RequestRefused(413, f"a message may have {largest} bytes")
                if not message.get("more_body"):
                    break
    except TimeoutError:
        raise RequestRefused(408, "the message took too long to come") from None
    whole: list[Any] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

    async def replay() -> Message:
        return whole.pop() if whole else await receive()

    return replay


async def _send_refusal(send: Send, refusal: RequestRefused) -> None:
    body = json.dumps({"error": refusal.reason}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    start = {"type": "http.response.start", "status": refusal.status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})
