"""Herdbook for Python programs: typed calls to a server of their own, spawned or in-process.

    with Client.spawn(Path("/src/app")) as herd:
        task = herd.one(Task, "task.add", name="write the parser", priority="high")
        for each in herd.many(Task, "task.ready", limit=5):
            print(each.name)

Methods and parameters are those of the command line (`rpc.discover` describes them all). What the
server refuses is raised here as the same error that it was there.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Self, TypeVar

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


class Client:
    """A client of its own server; a context manager that ends the server.

    Calls may come from many threads, and one does not wait for another. `notifications` gives the
    entries of a journal subscription; until it is read they are queued here.
    """

    def __init__(
        self,
        incoming: int,
        outgoing: int,
        *,
        process: "subprocess.Popen[bytes] | None" = None,
        thread: threading.Thread | None = None,
    ) -> None:
        self.process = process
        self._thread = thread
        self._incoming = incoming
        self._outgoing = outgoing
        self._numbers = count(1)
        self._mutex = threading.Lock()
        self._waiting: dict[int, Future[Any]] = {}
        self._notifications: SimpleQueue[Notification | None] = SimpleQueue()
        self._ended = False
        self._closed = False
        self._reader = threading.Thread(target=self._read, name="herdbook-client", daemon=True)
        self._reader.start()

    @classmethod
    def spawn(
        cls,
        folder: str | os.PathLike[str] = ".",
        *,
        variables: Mapping[str, str] | None = None,
        program: str | None = None,
    ) -> Self:
        """Start a server that works for a folder, as a process of its own."""
        words = [program] if program else [sys.executable, "-m", "herdbook.entrypoints"]
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
        return cls(incoming, outgoing, process=process)

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
        return cls(incoming, outgoing, thread=thread)

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
                raise _server_ended()
            self._waiting[id_] = answer
        self._send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        return Pending(id_, answer)

    def notify(self, method: str, /, **params: Any) -> None:
        """Tell the server something; there is no answer."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

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
        self._send({"jsonrpc": "2.0", "id": asked.id, "result": result})

    def close(self) -> int | None:
        """Let the server finish and end; returns the exit code of its process."""
        if not self._closed:
            self._closed = True
            os.close(self._outgoing)
        self._reader.join()
        if self._thread is not None:
            self._thread.join()
        return None if self.process is None else self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send(self, message: Any) -> None:
        left = memoryview(add_framing(encode(message), headers=False))
        with self._mutex:
            try:
                while left:
                    left = left[os.write(self._outgoing, left) :]
            except OSError as error:
                raise _server_ended() from error

    def _read(self) -> None:
        framer = Framer(LARGEST_ANSWER)
        while data := os.read(self._incoming, CHUNK):
            for frame in framer.feed(data):
                if not isinstance(frame, Fault):
                    self._take(frame)
        with self._mutex:
            self._ended = True
            waiting, self._waiting = list(self._waiting.values()), {}
        os.close(self._incoming)
        for each in waiting:
            each.set_exception(_server_ended())
        self._notifications.put(None)

    def _take(self, frame: bytes) -> None:
        import json  # noqa: PLC0415

        message = json.loads(frame)
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


def _server_ended() -> StoreUnavailable:
    return StoreUnavailable("herdbook rpc", "it ended before it answered")
