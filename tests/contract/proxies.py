"""A network between a client and a server that can fall silent or slow, on this machine."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

BLOCK = 16_384


class Network:
    """Passes bytes on between those who connect to `port` and a server."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._listener = socket.socket()
        # Little is under way at a time, so that who sends much has to wait.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BLOCK)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = [self._listener]
        self._drops = threading.Event()
        self._drops_answers_from: bytes | None = None
        self.bytes_per_second: float | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self) -> None:
        """Pass nothing on any more, and tell nobody."""
        self._drops.set()

    def drop_behind(self, word: bytes) -> None:
        """Pass on what a client says up to this word, and nothing that is said after it."""
        self._drops_answers_from = word

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to_port))
                self._sockets += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(
                        target=self._pass_on, args=(source, target, source is client), daemon=True
                    ).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := source.recv(BLOCK):
                if self._drops.is_set():
                    continue
                if self.bytes_per_second is not None:
                    time.sleep(len(data) / self.bytes_per_second)
                if from_client and self._drops_answers_from and self._drops_answers_from in data:
                    self._drops.set()
                target.sendall(data)
            if not self._drops.is_set():
                target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Hang up on everybody."""
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def network(to_port: int) -> Iterator[Network]:
    """A network to a server of this machine, until the block ends."""
    made = Network(to_port)
    try:
        yield made
    finally:
        made.close()
