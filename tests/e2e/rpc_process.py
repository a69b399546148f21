"""`herdbook rpc` as a client has it: two pipes, and bytes that go through them."""

import json
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.e2e.conftest import PROGRAM, Person

SECONDS = 120
"""Far longer than anything takes; whoever waits so long has found a fault."""


def request(method: str, id_: Any = None, **params: Any) -> dict[str, Any]:
    """A request; a notification without an id."""
    said = {"jsonrpc": "2.0", "method": method, "params": params}
    return said if id_ is None else {**said, "id": id_}


def until(condition: Callable[[], object], pause: float = 0.01) -> None:
    """Wait until something is so, with a pause between two looks, in seconds."""
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(pause)


class Pipes:
    """A server, and what is written to it and read from it."""

    def __init__(
        self, person: Person, folder: Path, *, headers: bool = False, **variables: str
    ) -> None:
        self.headers = headers
        self._held = b""
        self.process = subprocess.Popen(
            [PROGRAM, "rpc"],
            cwd=folder,
            env={**person.variables, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.into, self.out, self.err = (
            self.process.stdin,
            self.process.stdout,
            self.process.stderr,
        )

    def send(self, *messages: Any) -> None:
        """Send messages, or bytes as they are."""
        for each in messages:
            data = each if isinstance(each, bytes) else json.dumps(each).encode()
            if isinstance(each, bytes) or not self.headers:
                data = data if data.endswith(b"\n") or self.headers else data + b"\n"
            else:
                data = b"Content-Length: %d\r\n\r\n%b" % (len(data), data)
            self.into.write(data)
        self.into.flush()

    def receive(self) -> Any:
        """The next message, in the framing that was spoken."""
        if not self.headers:
            return json.loads(self._line())
        size = int(self._line().removeprefix(b"Content-Length: "))
        assert self._line() == b"\r\n"
        while len(self._held) < size:
            self._more()
        message, self._held = self._held[:size], self._held[size:]
        return json.loads(message)

    def call(self, method: str, id_: Any = 0, **params: Any) -> Any:
        """Ask, and read the answer, which must be the next message."""
        self.send(request(method, id_, **params))
        answer = self.receive()
        assert answer["id"] == id_, answer
        return answer["result"] if "result" in answer else answer["error"]

    def told(self, method: str) -> Any:
        """What the next notification of a method says."""
        message = self.receive()
        assert message.get("method") == method, message
        return message["params"]

    def _line(self) -> bytes:
        while b"\n" not in self._held:
            self._more()
        line, end, self._held = self._held.partition(b"\n")
        return line + end

    def _more(self) -> None:
        readable, _, _ = select.select([self.out], [], [], SECONDS)
        assert readable, "the server says nothing"
        data = os.read(self.out.fileno(), 1 << 16)
        assert data, f"the server has ended: {self.err.read().decode()}"
        self._held += data

    def has_sent(self) -> bool:
        """Whether the server has sent something that was not read yet."""
        return bool(self._held or select.select([self.out], [], [], 0)[0])

    def rest(self) -> list[Any]:
        """End the input; all that is answered until the server ends."""
        self.into.close()
        data = self._held + self.out.read()
        return [json.loads(line) for line in data.splitlines()]

    def end(self) -> int:
        """End the input and wait for the server; its exit code."""
        if not self.into.closed:
            self.into.close()
        reading = threading.Thread(target=self.out.read)
        reading.start()
        code = self.process.wait(SECONDS)
        reading.join()
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.into, self.out, self.err):
            if not stream.closed:
                stream.close()
