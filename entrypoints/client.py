"""Herdbook for Python programs: typed calls to a server, of their own or of the user.

    with Client.spawn(Path("/src/app")) as herd:
        task = herd.one(Task, "task.add", name="write the parser", priority="high")
        for each in herd.many(Task, "task.ready", limit=5):
            print(each.name)

`spawn` starts a server, `inside` runs one in this process, `connect` takes the `herdbook serve`
that runs, over its socket or over HTTP; all else is the same. Methods and parameters are those of
the command line (`rpc.discover` describes them all). What the server refuses is raised here as the
same error that it was there.
"""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from herdbook.domain.errors import StoreUnavailable
from herdbook.entrypoints.operations.wire_converter import check_row_type, structure
from herdbook.entrypoints.rpc.errors import to_exception
from herdbook.entrypoints.rpc.framing import Fault, Framer, add_framing
from herdbook.entrypoints.rpc.messages import RpcError, encode

E = TypeVar("E")

LARGEST_ANSWER = 1 << 30
CHUNK = 65_536


class Notification(NamedTuple):
    """A message that the server sends by itself; with an `id`, it waits for a reply."""

    method: str
    params: Any
    id: str | None = None


class Pending(NamedTuple):
    """A call in flight: its id and the future of its answer."""

    id: int
    answer: "Future[Any]"

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the answer; raises the error that the server answered with."""
        return self.answer.result(timeout)


class Transport(Protocol):
    """Carries messages to a server and back."""

    def start(self, receive: Callable[[Any], None], end: Callable[[], None]) -> None:
        """Begin; from now on each message is given to `receive`, and `end` is called at last."""

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; StoreUnavailable if the server has gone."""

    def close(self) -> None:
        """Let the server finish, and return when everything has come."""


class PipeTransport:
    """Two descriptors that the messages go through as lines; they may be the same socket."""

    def __init__(
        self, incoming: int, outgoing: int, shut: Callable[[], None] | None = None
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._shut = shut
        self._mutex = threading.Lock()
        self._closed = False
        self._reader: threading.Thread | None = None

    def start(self, receive: Callable[[Any], None], end: Callable[[], None]) -> None:
        """Read in a thread of its own."""
        self._reader = threading.Thread(
            target=self._read, args=(receive, end), name="herdbook-client", daemon=True
        )
        self._reader.start()

    def send(self, message: dict[str, Any]) -> None:
        """Write one line."""
        left = memoryview(add_framing(encode(message), headers=False))
        with self._mutex:
            if self._closed:
                raise server_ended()
            try:
                while left:
                    left = left[os.write(self._outgoing, left) :]
            except OSError as error:
                raise server_ended() from error

    def close(self) -> None:
        """Send no more, and read to the end."""
        with self._mutex:
            if not self._closed:
                self._closed = True
                if self._shut is not None:
                    self._shut()
                os.close(self._outgoing)
        if self._reader is not None:
            self._reader.join()

    def _read(self, receive: Callable[[Any], None], end: Callable[[], None]) -> None:
        framer = Framer(LARGEST_ANSWER)
        while data := self._read_some():
            for frame in framer.feed(data):
                if not isinstance(frame, Fault):
                    receive(json.loads(frame))
        os.close(self._incoming)
        end()

    def _read_some(self) -> bytes:
        try:
            return os.read(self._incoming, CHUNK)
        except ConnectionResetError:  # a socket whose other side was killed
            return b""


class Client:
    """A client of a server; a context manager that ends the server if it is its own.

    Calls may come from many threads, and one does not wait for another. `notifications` gives the
    entries of a journal subscription; until it is read they are queued here.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        process: "subprocess.Popen[bytes] | None" = None,
        thread: threading.Thread | None = None,
    ) -> None:
        self.process = process
        self._thread = thread
        self._transport = transport
        self._numbers = count(1)
        self._mutex = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._notifications: SimpleQueue[Notification | None] = SimpleQueue()
        self._ended = False
        transport.start(self._take, self._end)

    @classmethod
    def spawn(
        cls,
        folder: str | os.PathLike[str] = ".",
        *,
        variables: Mapping[str, str] | None = None,
        program: str | None = None,
    ) -> Self:
        """Start a server that works for a folder, as a process of its own."""
        # Without -P a module in that folder could replace one of ours.
        ours = [sys.executable, "-P", "-m", "herdbook.entrypoints"]
        words = [program] if program else ours
        process = subprocess.Popen(  # noqa: S603 - our own program
            [*words, "rpc"],
            cwd=folder,
            env=None if variables is None else dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if process.stdin is None or process.stdout is None:
            raise StoreUnavailable("herdbook rpc", "it was started without pipes")
        # The descriptors are ours to close; the files around them must not do it again.
        incoming, outgoing = os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())
        process.stdin.close()
        process.stdout.close()
        return cls(PipeTransport(incoming, outgoing), process=process)

    @classmethod
    def inside(
        cls, folder: str | os.PathLike[str] = ".", *, variables: Mapping[str, str] | None = None
    ) -> Self:
        """Start a server that works for a folder, in threads of this process."""
        from herdbook.entrypoints.operations.servers.rpc import server_at  # noqa: PLC0415

        theirs, outgoing = os.pipe()
        incoming, ours = os.pipe()
        known = dict(os.environ if variables is None else variables)
        server = server_at(Path(folder).absolute(), known, theirs, ours)

        def serve() -> None:
            server.run()
            os.close(theirs)
            os.close(ours)

        thread = threading.Thread(target=serve, name="herdbook-rpc", daemon=True)
        thread.start()
        return cls(PipeTransport(incoming, outgoing), thread=thread)

    @classmethod
    def connect(
        cls,
        folder: str | os.PathLike[str] = ".",
        *,
        url: str | None = None,
        token: str | None = None,
    ) -> Self:
        """Connect to the `herdbook serve` that runs, about a folder that it serves.

        By default over its socket. With a `url` over HTTP, and with the user's own token unless
        another is given. Raises StoreUnavailable if no server runs, and InvalidValue if it does not
        serve the folder.
        """
        from herdbook.entrypoints import client_http, client_socket  # noqa: PLC0415

        named = os.path.realpath(folder)
        if url is not None:
            return cls(client_http.HttpTransport(url, named, token))
        connection = client_socket.open_folder(named)
        incoming, outgoing = os.dup(connection.fileno()), os.dup(connection.fileno())

        def shut() -> None:
            with suppress(OSError):  # the other side has gone
                connection.shutdown(socket.SHUT_WR)
            connection.close()

        return cls(PipeTransport(incoming, outgoing, shut))

    def call(self, method: str, /, **params: Any) -> Any:
        """Call a method and wait for its answer, as it came in JSON."""
        return self.begin(method, **params).result()

    def one(self, entity: type[E], method: str, /, **params: Any) -> E:
        """Call a method that answers with a row."""
        check_row_type(entity)
        return structure(self.call(method, **params), entity)

    def many(self, entity: type[E], method: str, /, **params: Any) -> list[E]:
        """Call a method that answers with rows."""
        check_row_type(entity)
        return structure(self.call(method, **params), list[entity])  # type: ignore[valid-type]

    def begin(self, method: str, /, **params: Any) -> Pending:
        """Call a method without waiting for its answer."""
        id_, answer = next(self._numbers), Future[Any]()
        with self._mutex:
            if self._ended:
                raise server_ended()
            self._waiting[id_] = answer
        self._transport.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return Pending(id_, answer)

    def notify(self, method: str, /, **params: Any) -> None:
        """Tell the server something; there is no answer."""
        self._transport.send({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel(self, pending: Pending) -> None:
        """Cancel a call; it is answered with an error if it could still be stopped."""
        self.notify("$/cancelRequest", id=pending.id)

    def notifications(self) -> Iterator[Notification]:
        """The messages that the server sends by itself, until it has ended."""
        while (each := self._notifications.get()) is not None:
            yield each
        self._notifications.put(None)  # for the next call

    def reply(self, asked: Notification, result: Any) -> None:
        """Answer a request of the server."""
        self._transport.send({"jsonrpc": "2.0", "id": asked.id, "result": result})

    def close(self) -> int | None:
        """Let the server finish and end; returns the exit code of its process."""
        self._transport.close()
        if self._thread is not None:
            self._thread.join()
        return None if self.process is None else self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end(self) -> None:
        with self._mutex:
            self._ended = True
            waiting, self._waiting = list(self._waiting.values()), {}
        for each in waiting:
            each.set_exception(server_ended())
        self._notifications.put(None)

    def _take(self, message: Any) -> None:
        if "method" in message:
            told = Notification(message["method"], message.get("params"), message.get("id"))
            self._notifications.put(told)
            return
        with self._mutex:
            waiting = self._waiting.pop(message["id"], None)
        if waiting is None:
            return
        if "error" in message:
            waiting.set_exception(to_exception(RpcError.from_data(message["error"])))
        else:
            waiting.set_result(message["result"])


def server_ended() -> StoreUnavailable:
    """The error of a call whose server has gone."""
    return StoreUnavailable("herdbook rpc", "it ended before it answered")
