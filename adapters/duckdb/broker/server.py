"""The loop of a broker: accepts connections, reads their messages and sends the answers.

One thread does all of it, so nothing here waits: sockets do not block, and what a slow client has
not taken yet is kept for it.
"""

import errno
import logging
import resource
import selectors
import socket
from contextlib import suppress
from time import monotonic
from typing import Any

from herdbook.adapters.duckdb.broker import wire
from herdbook.adapters.duckdb.broker.address import require_same_user
from herdbook.adapters.duckdb.broker.client import dictionary_mark
from herdbook.adapters.duckdb.broker.open_file import OpenFile, identity_of
from herdbook.adapters.duckdb.broker.turns import Turns
from herdbook.adapters.duckdb.store import DuckDBStore
from herdbook.adapters.locks.lock_file import plain_text
from herdbook.domain.errors import HerdbookError

_LOG = logging.getLogger(__name__)

MOST_CLIENTS = 1_000
RESERVED_DESCRIPTORS = 32
"""How many descriptors are left to the files themselves, whoever wants to connect."""
HELLO_SECONDS = 1.0
"""How long a new connection may take to say what it is."""
_CHUNK = 1 << 18


class ClientConnection:
    """The broker's end of a connection."""

    def __init__(self, opened: socket.socket, pid: int) -> None:
        self.socket = opened
        self.pid = pid
        self.command = ""
        self.since = monotonic()
        self.is_welcome = False
        self.is_closed = False
        self._received = bytearray()
        self._to_send = bytearray()

    @property
    def wants_to_send(self) -> bool:
        """Whether an answer has not gone out completely."""
        return bool(self._to_send)

    def answer(self, message: list[Any]) -> None:
        if self.is_closed:
            return
        try:
            self._to_send += wire.encode_frame(message)
        except wire.FrameTooLarge:
            limit = wire.LARGEST_FRAME >> 20
            reason = f"an answer is larger than the {limit} MiB that its broker sends"
            self._to_send += wire.encode_frame(["error", "StoreUnavailable", ["", reason]])
        self.flush()

    def flush(self) -> None:
        """Send what the other side takes at once."""
        try:
            while self._to_send:
                sent = self.socket.send(memoryview(self._to_send)[:_CHUNK])
                del self._to_send[:sent]
        except BlockingIOError:
            return
        except OSError:
            self.is_closed = True

    def receive(self) -> list[list[Any]]:
        """The messages that have arrived. Raises ValueError for what is none."""
        try:
            arrived = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            arrived = b""
        if not arrived:
            self.is_closed = True
            return []
        self._received += arrived
        messages = []
        while len(self._received) >= wire.LENGTH.size:
            (length,) = wire.LENGTH.unpack_from(self._received)
            if length > wire.LARGEST_FRAME:
                raise ValueError("a message is too large")
            end = wire.LENGTH.size + length
            if len(self._received) < end:
                break
            messages.append(wire.decode_frame(self._received[wire.LENGTH.size : end]))
            del self._received[:end]
        return messages


class BrokerServer:
    """Serves one file on a listening socket until `stop`."""

    def __init__(self, store: DuckDBStore, listening: socket.socket) -> None:
        self._store = store
        self._listening = listening
        self._mark = dictionary_mark(store.dictionary)
        self._waker, self._woken = socket.socketpair()
        self._spare: socket.socket | None = _open_spare()
        for each in (self._waker, self._woken, listening):
            each.setblocking(False)  # noqa: FBT003 - that is its signature
        self._file = OpenFile(store, self._wake)
        self._turns = Turns(store, self._file)
        self._clients: set[ClientConnection] = set()
        self._selector = selectors.DefaultSelector()
        self._stopping = False

    def stop(self) -> None:
        """End the loop, from another thread or a signal handler."""
        self._stopping = True
        self._wake()

    def forget_inherited(self) -> None:
        """In a forked child: close its copies, so that clients see when the broker is gone."""
        for each in (self._listening, self._waker, self._woken):
            each.close()
        for client in self._clients:
            client.socket.close()

    def run(self) -> None:
        """Serve; what was sent completely before the end is written and answered."""
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        try:
            while not self._stopping:
                timeout = self._turns.advance()
                self._drop_closed()
                for key, events in self._selector.select(timeout):
                    self._serve(key.fileobj, events)
            self._turns.end_all()
        finally:
            self._end()

    def _serve(self, ready: Any, events: int) -> None:
        if ready is self._listening:
            self._accept()
            return
        if ready is self._woken:
            with suppress(BlockingIOError):
                self._woken.recv(4096)
            return
        client: ClientConnection = self._selector.get_key(ready).data
        if events & selectors.EVENT_WRITE:
            client.flush()
        if events & selectors.EVENT_READ:
            try:
                for message in client.receive():
                    self._handle(client, message)
            except (LookupError, TypeError, ValueError, HerdbookError) as error:
                _LOG.warning("process %d sent what no client sends: %s", client.pid, error)
                client.is_closed = True
        self._watch(client)

    def _accept(self) -> None:
        try:
            opened, _ = self._listening.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._turn_away(error)
            return
        try:
            opened.setblocking(False)  # noqa: FBT003 - as above
            client = ClientConnection(opened, require_same_user(opened))
        except OSError as error:
            _LOG.warning("a connection was refused: %s", error)
            opened.close()
            return
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        is_room = limit == resource.RLIM_INFINITY or opened.fileno() < limit - RESERVED_DESCRIPTORS
        if len(self._clients) >= MOST_CLIENTS or not is_room:
            _LOG.warning("a connection was turned away: there are %d", len(self._clients))
            opened.close()
            return
        self._clients.add(client)
        self._selector.register(opened, selectors.EVENT_READ, client)

    def _turn_away(self, error: OSError) -> None:
        """End a connection for which there is no descriptor: it would be announced for ever."""
        _LOG.warning("a connection was turned away: %s", error)
        if self._spare is not None:
            self._spare.close()
            with suppress(OSError):
                self._listening.accept()[0].close()
        self._spare = _open_spare()

    def _handle(self, client: ClientConnection, message: list[Any]) -> None:
        if client.is_welcome:
            self._turns.handle(client, message)
            return
        match message:
            case ["hello", protocol, path, identity, mark, str(command)]:
                reason = self._reason_to_refuse(protocol, path, identity, mark)
            case _:
                raise ValueError("the first message is a hello")
        if reason:
            client.answer(["refused", reason])
            return
        client.is_welcome, client.command = True, plain_text(command)
        client.answer(["ok", self._store.uuid, self._store.schema_version])

    def _reason_to_refuse(self, protocol: Any, path: Any, identity: Any, mark: Any) -> str:
        if protocol != wire.PROTOCOL:
            return f"it speaks version {wire.PROTOCOL} of the protocol, and this program another"
        if mark != self._mark:
            return "it runs another version of Herdbook than this program"
        try:
            there = list(identity_of(self._store.file_path.stat()))
        except OSError:
            there = []
        if path != str(self._store.file_path) or identity != there:
            return "it serves another file"
        return ""

    def _watch(self, client: ClientConnection) -> None:
        if client.is_closed:
            return
        wanted = selectors.EVENT_READ
        if client.wants_to_send:
            wanted |= selectors.EVENT_WRITE
        if self._selector.get_key(client.socket).events != wanted:
            self._selector.modify(client.socket, wanted, client)

    def _drop_closed(self) -> None:
        late = monotonic() - HELLO_SECONDS
        for client in list(self._clients):
            if client.is_closed or (not client.is_welcome and client.since < late):
                client.is_closed = True
                self._clients.discard(client)
                self._selector.unregister(client.socket)
                client.socket.close()
                self._turns.forget(client)
            elif client.wants_to_send:
                self._watch(client)

    def _wake(self) -> None:
        with suppress(OSError):
            self._waker.send(b".")

    def _end(self) -> None:
        """Close everything; clients within a transaction learn that the broker is gone."""
        self._listening.close()
        for client in self._clients:
            client.flush()
            client.socket.close()
            client.is_closed = True
        try:
            self._file.end()
        finally:
            self._selector.close()
            self._waker.close()
            self._woken.close()
            if self._spare is not None:
                self._spare.close()


def _open_spare() -> socket.socket | None:
    """A descriptor to give up when there is no other; none if there is none even now."""
    try:
        return socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    except OSError:
        return None
