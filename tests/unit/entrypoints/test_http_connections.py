"""How long a connection may last, by what its client does."""

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from herdbook.entrypoints.http import lifecycle
from herdbook.entrypoints.http.lifecycle import BoundedProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
LIMIT = 0.4


@pytest.fixture(autouse=True)
def short_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a minute is too long for a test."""
    monkeypatch.setattr(lifecycle, "IDLE_SECONDS", LIMIT)


async def answer(_scope: Any, _receive: Any, send: Any) -> None:
    """An application that says yes."""
    headers = [(b"content-length", b"3")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"yes"})


async def talk(*, requests: int, pause: float, last: bytes) -> tuple[int, bytes]:
    """Send requests on one connection, then something else; how many were answered, and the end."""
    config = uvicorn.Config(answer, lifespan="off", log_config=None, timeout_keep_alive=60)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BoundedProtocol(config, state, {}), "127.0.0.1")
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    answered = 0
    for _ in range(requests):
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        answered += await reader.readexactly(3) == b"yes"
        await asyncio.sleep(pause)
    writer.write(last)
    try:
        rest = await asyncio.wait_for(reader.read(), 20 * LIMIT)
    except ConnectionResetError:
        rest = b""
    writer.close()
    server.close()
    return answered, rest


def test_a_client_that_goes_on_asking_keeps_its_connection() -> None:
    """However long it lasts: its time is that of each request's head alone."""
    close = REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    answered, rest = asyncio.run(talk(requests=8, pause=LIMIT / 4, last=close))
    assert answered == 8
    assert rest.endswith(b"yes")


@pytest.mark.parametrize(("requests", "head"), [(0, b""), (0, b"GET / HT"), (1, b"GET / HT")])
def test_a_head_that_does_not_come_to_its_end_ends_the_connection(
    requests: int, head: bytes
) -> None:
    """The first one, and one that follows on others."""
    assert asyncio.run(talk(requests=requests, pause=0, last=head)) == (requests, b"")


async def read_nothing(ask: bytes) -> bool:
    """Ask for more than fits, and read nothing; whether the server ends the connection."""
    body = b"x" * 4_000_000

    async def give_much(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    config = uvicorn.Config(give_much, lifespan="off", log_config=None, timeout_keep_alive=60)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BoundedProtocol(config, state, {}), "127.0.0.1")
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), limit=1)
    writer.write(ask)
    for _ in range(40):
        await asyncio.sleep(LIMIT / 4)
        if state.total_requests and not state.connections:
            break
    writer.transport.abort()
    server.close()
    assert reader is not None
    return not state.connections


@pytest.mark.parametrize("ask", [REQUEST, REQUEST * 50], ids=["once", "many"])
def test_a_client_that_does_not_read_is_disconnected(ask: bytes) -> None:
    """Else so many of them would be all that the server has room for."""
    assert asyncio.run(read_nothing(ask))
