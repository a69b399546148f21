"""MCP over streamable HTTP: the tools of `herdbook mcp`, each session with its own agent.

A session of the protocol is what a process is on standard input: it has a folder, and the agent
that introduced itself in it. Version 2026-07-28 of the protocol has no sessions over HTTP, so two
agents could not be told apart; clients that offer it are told the earlier versions, and use one of
those.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.types import Receive, Scope, Send

from herdbook.adapters.system.extras import describe_missing
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.entrypoints.http.guard import LARGEST_BODY
from herdbook.entrypoints.http.served_folders import ServedFolders
from herdbook.entrypoints.mcp.client_session import ClientSession, folder_of

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

IDLE_SECONDS = 30 * 60
MOST_SESSIONS = 256
FOLDER = "folder"
UNSUPPORTED_VERSION = -32022
_STATE = "herdbook.client"
_current: ContextVar[ClientSession] = ContextVar("client")


class ServedClientSession(ClientSession):
    """A client of the server: it works in a folder that is served, or in none."""

    def __init__(
        self, folders: ServedFolders, folder: str | None, warn: Callable[[str], None]
    ) -> None:
        self._folders = folders
        _, context = folders.find(folder)
        super().__init__(context.call(), warn, full=False, pool=folders.pool)
        # Without a folder in its address, its roots say which of the served ones it means.
        self._is_fixed = self.has_folder = folder is not None

    def set_roots(self, uris: list[str]) -> None:
        """Work in the first root that is served, else in the first folder that is."""
        self._work_in(next(filter(None, map(self._find_served, uris)), None))

    def use_folder(self, given: object) -> None:
        """Work in a folder that the client names; InvalidValue if it is not served."""
        if not isinstance(given, str):
            raise InvalidValue(FOLDER, "must be the absolute path of a folder that is served")
        self._work_in(given)
        self._is_fixed = True

    def _find_served(self, uri: str) -> str | None:
        path = folder_of(uri, must_exist=False)
        try:
            return None if path is None else self._folders.find(str(path))[0]
        except InvalidValue:
            return None

    def _work_in(self, folder: str | None) -> None:
        _, context = self._folders.find(folder)
        self.folder = context.folder
        self._start = context.call().workspace
        self._server = self._server_at(self.folder)
        self.has_folder = True


class AgentTools:
    """The ASGI application of `/mcp`. Where the package `mcp` is missing, it says so."""

    def __init__(self, folders: ServedFolders, version: str, warn: Callable[[str], None]) -> None:
        self._folders = folders
        self._version = version
        self._warn = warn
        self._handle: Any = None
        self._versions: list[str] = []
        self._starting = anyio.Lock()
        self._group: TaskGroup

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Serve sessions within this context; they end with it."""
        async with anyio.create_task_group() as self._group:
            yield
            self._group.cancel_scope.cancel()

    def end(self) -> None:
        """End all sessions now."""
        self._group.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a message of a session, or the one that begins it."""
        async with self._starting:
            if self._handle is None:
                await self._group.start(self._serve)
        version = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode("latin-1")
        if self._handle is None:
            reason = describe_missing("mcp", "mcp")
            await _send_error(send, 501, None, {"code": -32601, "message": reason})
        elif version and version not in self._versions:
            data = {"supported": self._versions, "requested": version[:64]}
            error = {"code": UNSUPPORTED_VERSION, "message": "unsupported version", "data": data}
            await _send_error(send, 400, await _request_id(receive), error)
        else:
            await self._handle(scope, receive, send)

    async def _serve(self, *, task_status: TaskStatus[None]) -> None:
        """Serve sessions from the first message on: the import of the SDK takes a second."""
        try:
            server = await to_thread.run_sync(self._create)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("herdbook"):
                raise
            task_status.started()
            return
        async with server.session_manager.run():
            self._handle = server.session_manager.handle_request
            task_status.started()
            await anyio.sleep_forever()

    def _create(self) -> Any:
        from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415
        from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS  # noqa: PLC0415

        from herdbook.entrypoints.mcp.server import create_server  # noqa: PLC0415

        self._versions = list(HANDSHAKE_PROTOCOL_VERSIONS)
        server = create_server(_current.get, self._version, full=False, outer=[self._choose_client])
        # Makes the session manager; the guard has checked names and origins already.
        server.streamable_http_app(
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MOST_SESSIONS,
            max_request_body_size=LARGEST_BODY,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        return server

    async def _choose_client(
        self, ctx: "ServerRequestContext[Any, Any]", call_next: "CallNext"
    ) -> "HandlerResult":
        """Middleware: the client of this message is the one of its session."""
        connection = ctx.session._connection  # noqa: SLF001 - nothing else is there for a session
        client: ClientSession | None = connection.state.get(_STATE)
        if client is None:
            folder = ctx.request.query_params.get(FOLDER) if ctx.request else None
            client = await to_thread.run_sync(self._begin, folder)
            connection.state[_STATE] = client
            end = partial(to_thread.run_sync, self._end, client)
            connection.exit_stack.push_async_callback(end)
        _current.set(client)
        return await call_next(ctx)

    def _begin(self, folder: str | None) -> ClientSession:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415
        from mcp.types import INVALID_PARAMS  # noqa: PLC0415

        try:
            client = ServedClientSession(self._folders, folder, self._warn)
        except HerdbookError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        client.renewal.start()
        return client

    def _end(self, client: ClientSession) -> None:
        """Record that the agents of a session have ended with it."""
        from herdbook.entrypoints.mcp.invoke import stop_agents  # noqa: PLC0415

        try:
            stop_agents(client)
        except HerdbookError as error:
            names = ", ".join(client.names)
            self._warn(f"it could not be written down that {names} ended: {error}")
        client.close()


async def _request_id(receive: Receive) -> Any:
    """The id of the request in a body; None if there is none."""
    try:
        return json.loads((await receive()).get("body", b"")).get("id")
    except (ValueError, AttributeError, RecursionError):
        return None


async def _send_error(send: Send, status: int, id_: Any, error: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}).encode()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
