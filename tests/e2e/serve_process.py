"""`herdbook serve` as its clients have it: an address, a token, a socket, and bytes."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.e2e.conftest import PROGRAM, Person

SECONDS = 120
"""Far longer than anything takes; whoever waits so long has found a fault."""
JSON = {"Content-Type": "application/json"}


class Event(NamedTuple):
    """One event of a feed."""

    kind: str
    id: str
    data: Any


class Answer(NamedTuple):
    """An answer over HTTP."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body, parsed."""
        return json.loads(self.body)


class Serving:
    """A server in a process of its own.

    Unless a port is named it has one that no other test is given when this server has ended: a
    page that is still open would ask that server then.
    """

    def __init__(
        self,
        person: Person,
        folder: Path,
        *words: str,
        terminal: int | None = None,
        any_port: bool = True,
        **variables: str,
    ) -> None:
        self.person = person
        self.folder = folder
        if any_port and "--port" not in words:
            words = (*words, "--port", "0")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--no-open", "--json", *words],
            cwd=folder,
            env={**person.variables, **variables},
            stdin=terminal,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if terminal is None else terminal,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.told = json.loads(line)
        self.url: str = self.told["url"]
        place = urlsplit(self.url)
        self.host, self.port = place.netloc, place.port
        self.ticket: str = parse_qs(urlsplit(self.told["link"]).fragment)["t"][0]
        self.state = self.find_state()
        self.token = (self.state / "token").read_text()
        self.bearer = {"Authorization": f"Bearer {self.token}"}

    def find_state(self) -> Path:
        """The folder with everything about the server."""
        named = self.person.variables.get("XDG_STATE_HOME")
        return Path(named or self.person.home / ".local" / "state") / "herdbook" / "serve"

    def asks(
        self, method: str, path: str, headers: dict[str, str] | None = None, body: Any = None
    ) -> Answer:
        """Send a request as a program does, with the token unless other headers are given."""
        connection = HTTPConnection(self.host, timeout=SECONDS)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, self.bearer if headers is None else headers)
        answer = connection.getresponse()
        known = {name.lower(): value for name, value in answer.getheaders()}
        found = Answer(answer.status, known, answer.read())
        connection.close()
        return found

    def calls(self, method: str, folder: Path | None = None, **params: Any) -> Any:
        """Call a method by the token; its result, or its error."""
        where = "" if folder is None else f"?folder={folder}"
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = self.asks("POST", f"/rpc{where}", {**self.bearer, **JSON}, message).json
        return answer["result"] if "result" in answer else answer["error"]

    @contextmanager
    def feed(
        self, since: str = "", path: str = "/feed", **headers: str
    ) -> Iterator[Iterator[Event]]:
        """Follow the feed; what it sends, comments left out."""
        connection = HTTPConnection(self.host, timeout=SECONDS)
        last = {"Last-Event-ID": since} if since else {}
        connection.request("GET", path, headers={**(headers or self.bearer), **last})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        try:
            yield events(answer)
        finally:
            if connection.sock is not None:
                connection.sock.close()
            answer.close()
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """Send bytes as they are, and read until the server closes or has answered."""
        with socket.create_connection(("127.0.0.1", self.port or 0), timeout=SECONDS) as sock:
            sock.sendall(data)
            return sock.recv(65_536)

    def browser(self) -> dict[str, str]:
        """The headers of a page of ours, after its ticket was exchanged for a cookie."""
        page = {"Origin": self.url.rstrip("/"), "Sec-Fetch-Site": "same-origin", **JSON}
        answer = self.asks("POST", "/session", page, {"ticket": self.ticket})
        assert answer.status == 204, answer.body
        cookie = answer.headers["set-cookie"].partition(";")[0]
        return {**page, "Cookie": cookie}

    def ends(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """End it by a signal; its exit code, and what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, err


def events(answer: HTTPResponse) -> Iterator[Event]:
    """The events of a feed, as they come."""
    fields: dict[str, str] = {}
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            yield Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))
            fields = {}
        else:
            fields = {}


def entries(feed: Iterator[Event], number: int) -> list[dict[str, Any]]:
    """The next entries of journals in a feed, so many or more."""
    found: list[dict[str, Any]] = []
    while len(found) < number:
        event = next(feed)
        found += event.data["entries"] if event.kind == "journal" else []
    return found


@contextmanager
def serving(
    person: Person, folder: Path, *words: str, any_port: bool = True, **variables: str
) -> Iterator[Serving]:
    """A server that ends well."""
    server = Serving(person, folder, *words, any_port=any_port, **variables)
    try:
        yield server
    except BaseException:
        server.process.kill()
        sys.stderr.write(server.process.communicate()[1])
        raise
    code, err = server.ends()
    assert (code, err) == (0, "")
