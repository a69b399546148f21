"""The routes: JSON-RPC, the feed, MCP, the page with its files, and what watches the server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from importlib import resources
from mimetypes import guess_type
from typing import Any, NamedTuple

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.http.access import Access
from herdbook.entrypoints.http.agent_tools import AgentTools
from herdbook.entrypoints.http.feed import FeedHub
from herdbook.entrypoints.http.feed_reader import FeedReader
from herdbook.entrypoints.http.guard import CALLER, EXCHANGE, HEALTH
from herdbook.entrypoints.http.metrics import Metrics
from herdbook.entrypoints.http.rpc_call import RpcCall
from herdbook.entrypoints.http.served_folders import ServedFolders, ServedSpace
from herdbook.entrypoints.operations.error_table import row_of
from herdbook.entrypoints.rpc.errors import to_rpc_error
from herdbook.entrypoints.rpc.internal_errors import report_defect
from herdbook.entrypoints.rpc.messages import TOO_MANY, RpcError, encode, error_response
from herdbook.entrypoints.server_numbers import ServerNumbers

PAGE = "index.html"
PAGES = "/static/pages/"
"""Each folder in it is a page of the dashboard: `board` is shown at `/board` and `/board/ID`."""
MOST_BUSY = 32
MOST_WAITING = 256
MOST_FEEDS = 4
"""Feeds of one browser: it opens six connections to a server, and the others are for requests."""
Handler = Callable[[Request], Awaitable[Any]]


class StaticFile(NamedTuple):
    """A file of the page: its bytes and its media type."""

    content: bytes
    media_type: str


def static_files() -> dict[str, StaticFile]:
    """Every file of the page by its path; read once, so that no request opens anything."""
    found: dict[str, StaticFile] = {}

    def add(folder: Any, path: str) -> None:
        for each in folder.iterdir():
            if each.is_dir():
                add(each, f"{path}{each.name}/")
            else:
                kind = guess_type(each.name)[0] or "application/octet-stream"
                found[f"{path}{each.name}"] = StaticFile(each.read_bytes(), kind)

    add(resources.files(__package__) / "static", "/static/")
    found["/"] = found.pop(f"/static/{PAGE}")
    return found


def page_names(files: Iterable[str]) -> frozenset[str]:
    """The names of the pages, which are the folders that their files are in."""
    inside = (path.removeprefix(PAGES) for path in files if path.startswith(PAGES))
    return frozenset(path.partition("/")[0] for path in inside if "/" in path)


class HttpApp:
    """The application, and what its routes share; `agent_tools` is the one for MCP, if any."""

    def __init__(self, folders: ServedFolders, access: Access, agent_tools: AgentTools) -> None:
        self.metrics = Metrics()
        self.feed = FeedHub(folders, self.metrics)
        self._files = static_files()
        self.pages = page_names(self._files)
        self._folders = folders
        folders.numbers = self.describe
        self._access = access
        self._agent_tools = agent_tools
        self._waiting: set[RpcCall] = set()
        self._busy = anyio.CapacityLimiter(MOST_BUSY)

    @property
    def public(self) -> set[str]:
        """The paths that hold nothing of anybody."""
        return {*self._files, HEALTH}

    def application(self) -> Starlette:
        """The application without its guard."""
        routes = [
            *(Route(path, self._show_file, methods=["GET"]) for path in self._files),
            *(Route(f"/{each}", self._show_page, methods=["GET"]) for each in sorted(self.pages)),
            *(
                Route(f"/{each}/{{key}}", self._show_page, methods=["GET"])
                for each in sorted(self.pages)
            ),
            Route("/rpc", _answer_errors(self._call), methods=["POST"]),
            Route("/feed", _answer_errors(self._open_feed), methods=["GET"]),
            Route("/spaces", _answer_errors(self._list_spaces), methods=["GET"]),
            Route("/metrics", _answer_errors(self._show_metrics), methods=["GET"]),
            Route(EXCHANGE, self._exchange, methods=["POST"]),
            Route(HEALTH, _is_healthy, methods=["GET"]),
            Route("/mcp", self._agent_tools),
        ]

        @asynccontextmanager
        async def run(_: Starlette) -> AsyncIterator[None]:
            async with self._agent_tools.run():
                yield

        return Starlette(routes=routes, lifespan=run)

    def describe(self) -> ServerNumbers:
        """How this server is; for a thread other than that of the event loop."""
        return self.metrics.describe(
            readers=self.feed.count_readers(),
            waiting=len(self._waiting),
            behind=self.feed.most_behind(),
            most_queued=self.feed.most_queued(),
        )

    def end(self) -> None:
        """Let everything that lasts come to its end."""
        self.feed.end()
        self._agent_tools.end()
        for each in self._waiting:
            each.stop()

    async def _show_file(self, request: Request) -> Response:
        file = self._files[request.url.path]
        return Response(file.content, media_type=file.media_type)

    async def _show_page(self, _: Request) -> Response:
        file = self._files["/"]
        return Response(file.content, media_type=file.media_type)

    async def _exchange(self, request: Request) -> Response:
        try:
            ticket = json.loads(await request.body())["ticket"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return JSONResponse({"error": "a ticket is needed"}, 400)
        cookie = self._access.exchange(ticket) if isinstance(ticket, str) else None
        if cookie is None:
            reason = "this link was used before, or is too old; `herdbook serve` prints a new one"
            return JSONResponse({"error": reason}, 401)
        return Response(status_code=204, headers={"set-cookie": cookie})

    async def _call(self, request: Request) -> Response:
        named = [request.query_params.get(each) for each in ("folder", "agent", "session")]
        payload = await request.body()

        def begin() -> RpcCall:
            return RpcCall(self._folders.find_for(*named), payload)

        call = await to_thread.run_sync(begin, limiter=self._busy)
        answer = partial(call.answer, self.metrics.count_rpc_error)
        if not call.waits:
            data = await to_thread.run_sync(answer, limiter=self._busy)
        else:
            data = await self._wait(request, call, answer)
        if data is None:
            return Response(status_code=204)
        return Response(data, media_type="application/json")

    async def _wait(
        self, request: Request, call: RpcCall, answer: Callable[[], bytes | None]
    ) -> bytes | None:
        """The answer to a call that may wait, in a thread of its own; it ends with its client."""
        if len(self._waiting) >= MOST_WAITING:
            refusal = RpcError(TOO_MANY, f"{MOST_WAITING} requests wait already, and no more")
            return encode(error_response(None, refusal))
        self._waiting.add(call)
        leaving = asyncio.create_task(_stop_when_gone(request, call))
        try:
            return await to_thread.run_sync(answer, limiter=anyio.CapacityLimiter(1))
        finally:
            leaving.cancel()
            self._waiting.discard(call)

    async def _open_feed(self, request: Request) -> "FeedResponse | Response":
        browser = request.scope[CALLER]
        if browser is not None and self.feed.count_readers(browser) >= MOST_FEEDS:
            reason = f"a browser may have {MOST_FEEDS} feeds, and this one has them"
            return JSONResponse({"error": reason}, 429)
        named = request.query_params.getlist("folder")
        spaces = await to_thread.run_sync(self._folders.spaces, named)
        since = request.headers.get("last-event-id") or request.query_params.get("since", "")
        return FeedResponse(self.feed, spaces, since)

    async def _list_spaces(self, request: Request) -> Response:
        named = request.query_params.getlist("folder")
        spaces = await to_thread.run_sync(self._folders.spaces, named)
        return JSONResponse([{**each._asdict(), "key": each.key} for each in spaces])

    async def _show_metrics(self, _: Request) -> Response:
        positions = await to_thread.run_sync(self._folders.positions)
        behind = await to_thread.run_sync(self.feed.most_behind)
        readers, waiting = self.feed.count_readers(), len(self._waiting)
        text = self.metrics.render(readers, waiting, behind, positions)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


class FeedResponse:
    """The feed as an answer that lasts until one of both sides ends it."""

    def __init__(self, feed: FeedHub, spaces: list[ServedSpace], since: str) -> None:
        self._feed = feed
        self._spaces = spaces
        self._since = since

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events; a reader that does not read is disconnected."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        async with anyio.create_task_group() as group:

            async def notice_end() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(notice_end)
            reader = FeedReader(scope[CALLER], group.cancel_scope.cancel)
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for data in self._feed.follow(reader, self._spaces, self._since):
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
            group.cancel_scope.cancel()


async def _stop_when_gone(request: Request, call: RpcCall) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    call.stop()


async def _is_healthy(_: Request) -> Response:
    return JSONResponse({"ok": True})


def _answer_errors(handler: Handler) -> Handler:
    """The handler, whose errors become answers with the status of the table of errors."""

    async def handle(request: Request) -> Any:
        try:
            return await handler(request)
        except HerdbookError as error:
            described = error_body(error)
            return Response(described, row_of(error).http_status, media_type="application/json")
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            data = encode(error_response(None, report_defect(error)))
            return Response(data, 500, media_type="application/json")

    return handle


def error_body(error: HerdbookError) -> bytes:
    """An error as JSON-RPC has it, without the id of a request."""
    return encode(error_response(None, to_rpc_error(error)))
