"""The start and the end of the server: its sockets, its limits, its signals."""

import asyncio
import contextlib
import errno
import logging
import os
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, NamedTuple, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from herdbook.adapters.user_state import running_server
from herdbook.adapters.user_state.running_server import RunningServer
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.entrypoints.http.access import Access
from herdbook.entrypoints.http.agent_tools import AgentTools
from herdbook.entrypoints.http.app import HttpApp
from herdbook.entrypoints.http.brokers import Brokers
from herdbook.entrypoints.http.guard import LARGEST_HEADERS, Guard
from herdbook.entrypoints.http.local_socket import LocalSocket
from herdbook.entrypoints.http.served_folders import ServedFolders

FIRST_PORT, PORTS = 8420, 100
LAST_PORT = 65_535
IDLE_SECONDS = 30
"""How long a connection may be silent between requests, or take to send the head of one."""
MOST_CONNECTIONS = 512
END_SECONDS = 5
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class ServeOptions(NamedTuple):
    """Where to serve, and under which names; see the row of `serve`."""

    host: str = "127.0.0.1"
    port: int | None = None
    names: tuple[str, ...] = ()
    certificate: str | None = None
    key: str | None = None
    behind_proxy: bool = False
    renew_token: bool = False


class HttpServer:
    """The server of this user, from the moment that its port is taken."""

    def __init__(
        self,
        options: ServeOptions,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None],
        version: str,
        warn: Callable[[str], None],
    ) -> None:
        _refuse_unsafe(options)
        self._listener = _listen(options)
        port = self._listener.getsockname()[1]
        is_secure = options.certificate is not None or options.behind_proxy
        token = running_server.read_token(renew=options.renew_token)
        self._access = Access(token, f"herdbook-{port}", secure=is_secure)
        self._folders = ServedFolders(variables, arguments)
        tools = AgentTools(self._folders, version, warn)
        self._app = HttpApp(self._folders, self._access, tools)
        hosts = _hosts(options, port)
        scheme = "https" if is_secure else "http"
        self.url = f"{scheme}://{_shown_host(options, port)}/"
        guard = Guard(
            self._app.application(),
            self._access,
            hosts=hosts,
            origins=[f"{scheme}://{each}" for each in hosts],
            public=self._app.public,
            pages=self._app.pages,
            count=self._app.metrics.count,
        )
        if not variables.get("HERDBOOK_DEBUG"):
            logging.getLogger().addHandler(logging.NullHandler())  # what clients do is no news
        config = uvicorn.Config(
            guard,
            http=BoundedProtocol,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            h11_max_incomplete_event_size=LARGEST_HEADERS,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=END_SECONDS,
            ssl_certfile=options.certificate,
            ssl_keyfile=options.key,
        )
        self._server = _EndingServer(config, self._app.end)
        for each in SIGNALS:  # until there is a loop to handle them
            signal.signal(each, self._server.handle_exit)

    def make_link(self, folder: str | None = None) -> str:
        """The address of the page, with a ticket that is accepted once.

        Of several repositories it shows that of the folder, or the first one.
        """
        key = self._folders.choice_key(folder)
        shown = "" if key is None else f"&repo={key}"
        return f"{self.url}#t={self._access.issue_ticket()}{shown}"

    def __enter__(self) -> Self:
        """Open the socket for local programs, and say where this server is."""
        self._path = running_server.socket_path()
        self._local = LocalSocket(self._path, self._folders, self.make_link)
        self._brokers = Brokers(self._folders)
        running_server.announce(RunningServer(os.getpid(), self.url, self._path))
        return self

    def run(self) -> None:
        """Serve until a signal ends it; who waits is answered first."""
        asyncio.run(self._server.serve(sockets=[self._listener]))

    def __exit__(self, *_: object) -> None:
        """Be no longer there: everything is answered, written and closed."""
        running_server.announce(None)
        self._listener.close()
        self._local.close()
        running_server.remove_socket(self._path)
        self._brokers.close()
        self._folders.close()


class _EndingServer(uvicorn.Server):
    """Ends what lasts when a signal comes, and returns as if nothing had happened."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], None]) -> None:
        super().__init__(config)
        self._end = end

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals on the event loop; they are not raised again."""
        loop = asyncio.get_running_loop()
        for each in SIGNALS:
            loop.add_signal_handler(each, self._on_signal)
        yield

    def _on_signal(self) -> None:
        self.should_exit = True
        self._end()


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 whose clients have a time for the head of each request, from the first byte on.

    And one to read: who leaves what is sent to it unread is disconnected after one or two of them.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._is_full = self._was_stuck = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect the first request."""
        super().connection_made(transport)
        self._expect_request()
        self._look = self.loop.call_later(IDLE_SECONDS, self._close_if_stuck)

    def pause_writing(self) -> None:
        """What was written is not read."""
        super().pause_writing()
        self._is_full = True

    def resume_writing(self) -> None:
        """It was read."""
        super().resume_writing()
        self._is_full = self._was_stuck = False

    def data_received(self, data: bytes) -> None:
        """Take some bytes; the beginning of a head starts its time, and its end stops it."""
        super().data_received(data)
        if not self._is_between_requests:
            self._expect_nothing()
        elif not self.transport.is_closing():
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        super().connection_lost(exc)
        self._expect_nothing()
        if self._look is not None:
            self._look.cancel()

    @property
    def _is_between_requests(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _expect_request(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(IDLE_SECONDS, self._close_if_late)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_if_late(self) -> None:
        self._deadline = None
        if self._is_between_requests:
            self.transport.abort()

    def _close_if_stuck(self) -> None:
        """End the connection if since the last look it could not be written to, or not end."""
        is_stuck = self._is_full or self.transport.is_closing()
        if is_stuck and self._was_stuck:
            self.transport.abort()
            return
        self._was_stuck = is_stuck
        self._look = self.loop.call_later(IDLE_SECONDS, self._close_if_stuck)


def _refuse_unsafe(options: ServeOptions) -> None:
    """Raise InvalidValue for what would show this server to a network without TLS, or nowhere."""
    try:
        is_loopback = _is_loopback(options.host)
    except ValueError:
        reason = "must be an address of this machine, such as 127.0.0.1 or ::1"
        raise InvalidValue("host", reason) from None
    if options.port is not None and not 0 <= options.port <= LAST_PORT:
        raise InvalidValue("port", f"must be 0, for any that is free, to {LAST_PORT}")
    if (options.certificate is None) != (options.key is None):
        raise InvalidValue("tls-cert", "--tls-cert and --tls-key go together")
    if options.certificate is not None:
        _require_certificate(options.certificate, options.key)
    is_safe = options.certificate is not None or options.behind_proxy
    if not is_loopback and not is_safe:
        reason = (
            "is not of this machine alone, so TLS is needed: --tls-cert and --tls-key, or "
            "--behind-proxy if a proxy does that"
        )
        raise InvalidValue("host", reason)
    if (not is_loopback or options.behind_proxy) and not options.names:
        raise InvalidValue("allow-host", "say by which names others call this server")


def _require_certificate(certificate: str, key: str | None) -> None:
    """Raise InvalidValue unless these files are a certificate and its key."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        reason = "this file and that of --tls-key are no certificate with its key, in PEM"
        raise InvalidValue("tls-cert", reason) from error
    except OSError as error:
        reason = f"this file or that of --tls-key cannot be read: {error.strerror}"
        raise InvalidValue("tls-cert", reason) from error


def _listen(options: ServeOptions) -> socket.socket:
    """A socket at the given port, else at the first free one; raises StoreUnavailable."""
    wanted = [options.port] if options.port is not None else range(FIRST_PORT, FIRST_PORT + PORTS)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    for port in wanted:
        listener = socket.socket(family)
        # Else a server that was killed could not come back at its port for a minute.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((options.host, port))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                reason = f"it cannot listen at {options.host}: {error.strerror}"
                raise StoreUnavailable("herdbook serve", reason) from error
        else:
            return listener
    what = f"port {wanted[0]} is" if len(wanted) == 1 else f"{PORTS} ports from {wanted[0]} on are"
    raise StoreUnavailable("herdbook serve", f"{what} taken; --port 0 takes any that is free")


def _is_loopback(host: str) -> bool:
    return ip_address(host).is_loopback


def _hosts(options: ServeOptions, port: int) -> list[str]:
    """What the `Host` of a request may be."""
    own = [_bracket(options.host)] if _is_loopback(options.host) else []
    given = [name if _has_port(name) else f"{name}:{port}" for name in options.names]
    standard = [name for name in options.names if not _has_port(name)]
    return [f"{name}:{port}" for name in dict.fromkeys([*LOOPBACK, *own])] + given + standard


def _bracket(host: str) -> str:
    """An address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdigit() and not name.endswith("]")


def _shown_host(options: ServeOptions, port: int) -> str:
    if options.behind_proxy:
        return options.names[0]
    name = options.names[0] if options.names else _bracket(options.host)
    return name if _has_port(name) else f"{name}:{port}"
