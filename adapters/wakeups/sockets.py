"""Rings the sockets in a store's folder, and listens on one of them."""

import errno
import logging
import os
import select
import socket
import stat
from contextlib import suppress
from math import ceil
from typing import Self
from zlib import crc32

from herdbook.adapters.wakeups.coalesce import Rings
from herdbook.adapters.wakeups.messages import (
    LONGEST_MESSAGE,
    decode_ring,
    encode_hint,
    encode_ring,
    limit_entries,
)
from herdbook.adapters.wakeups.socket_folder import check_folder, make_folder
from herdbook.ports.engine.wakeups import LOOK, Ring

_LOG = logging.getLogger(__name__)
_MOST_PROBES = 256
_TOO_LONG = frozenset({errno.EMSGSIZE, errno.ENOBUFS})


def ring_sockets(folder: str, node: str, rings: Rings) -> None:
    """Send a datagram to whoever listens to one of these spaces, or to all; waits for nobody.

    A socket whose process is gone is removed. One that is full has been rung already.
    """
    try:
        check_folder(folder)
        names = os.listdir(folder)  # noqa: PTH208 - writers count microseconds
        if not names:
            os.rmdir(folder)  # noqa: PTH106 - the last listener was killed
            return
        with _Sender() as sender:
            for space, (seq, entries) in rings.items():
                message = encode_ring(node, space, seq, limit_entries(entries))
                wanted, hint = _space_mark(space), encode_hint(space, seq)
                for name in names:
                    if name.rpartition("-")[2] in (wanted, _ANY):
                        sender.send(f"{folder}/{name}", message, hint)
    except OSError as error:
        _LOG.debug("nobody can be woken in %s: %s", folder, error)


def has_listeners(folder: str, space: str) -> bool:
    """Whether somebody listens to this space alone."""
    mark = _space_mark(space)
    with suppress(OSError):
        return any(name.endswith(f"-{mark}") for name in os.listdir(folder))  # noqa: PTH208 - as above
    return False


class _Sender:
    """Sends to many sockets, none of which uses up the kernel's buffer for the others.

    What its receiver has not read yet counts against the socket that it was sent from.
    """

    def __init__(self) -> None:
        self._open()

    def _open(self) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)  # noqa: FBT003 - that is its signature
        self._left = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

    def send(self, path: str, message: bytes, hint: bytes) -> None:
        """Send a message, or only the hint where messages have to be shorter."""
        size = 2 * len(message) + 1_024  # the kernel rounds up
        if self._left < size:
            self._socket.close()
            self._open()
        self._left -= size
        try:
            self._socket.sendto(message, path)
        except ConnectionRefusedError:
            with suppress(OSError):
                if stat.S_ISSOCK(os.lstat(path).st_mode):
                    os.unlink(path)  # noqa: PTH108 - as above
        except OSError as error:  # full, or gone since the folder was read
            if error.errno in _TOO_LONG:
                with suppress(OSError):
                    self._socket.sendto(hint, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


_ANY = "all"


def _space_mark(space: str | None) -> str:
    """The end of the name of a socket on which rings for a space are wanted."""
    return _ANY if space is None else f"{crc32(space.encode()):08x}"


class SocketListener:
    """Listens on a socket of its own; where it can have none, every wait lasts for a look."""

    def __init__(
        self, folder: str | None, node: str, space: str | None = None, look: float | None = None
    ) -> None:
        self._node = node
        self._messages: list[bytes] = []
        self._may_have_missed = False
        self._look = LOOK if look is None else look
        self._pid = os.getpid()
        self._path: str | None = None
        try:
            if folder is None:
                raise OSError("the store has no folder")  # noqa: TRY301 - one way to have none
            self._socket, self._waker = self._open(folder, space)
        except OSError as error:
            _LOG.warning("changes show up to %g s later: %s", self._look, error)
            self._socket, self._waker = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._set_up(self._socket, self._waker)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)

    def _open(self, folder: str, space: str | None) -> tuple[socket.socket, socket.socket]:
        """A socket in the folder, and another that is connected to it."""
        listening, waker = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
        path = f"{folder}/{self._pid}-{os.urandom(4).hex()}"
        try:
            while True:
                make_folder(folder)
                # A last listener may remove the folder meanwhile.
                with suppress(FileNotFoundError):
                    listening.bind(f"{path}-new")
                    break
            waker.connect(f"{path}-new")
            self._set_up(listening, waker)
            # A writer that met it between its making and its use would take it for a dead one.
            os.rename(f"{path}-new", f"{path}-{_space_mark(space)}")  # noqa: PTH104 - as above
        except BaseException:
            listening.close()
            waker.close()
            raise
        self._path = f"{path}-{_space_mark(space)}"
        return listening, waker

    def _set_up(self, listening: socket.socket, waker: socket.socket) -> None:
        """Let neither wait, and find out how many messages can be there at once."""
        for each in (listening, waker):
            each.setblocking(False)  # noqa: FBT003 - that is its signature
        self._most_bytes = listening.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
        self._most_messages = 0
        with suppress(OSError):  # full
            while self._most_messages < _MOST_PROBES:
                waker.send(b"")
                self._most_messages += 1
        for _ in range(self._most_messages):
            listening.recv(1)

    @property
    def has_socket(self) -> bool:
        """Whether it can be rung at all."""
        return self._path is not None

    def fileno(self) -> int:
        return self._socket.fileno()

    def wait(self, timeout: float | None = None) -> bool:
        seconds = self._look if timeout is None else min(timeout, self._look)
        # Rounded up: a wait that ends before its time would only be repeated.
        if self._poll.poll(ceil(max(0.0, seconds) * 1_000)):
            self._messages = self.receive()
            return bool(self._messages)
        self._messages, self._may_have_missed = [], False
        if self._path is not None and seconds >= self._look:
            with suppress(OSError):
                os.utime(self._path)  # programs that tidy `/tmp` leave alone what is young
        return False

    def receive(self) -> list[bytes]:
        """The rings until now, each as it was sent."""
        messages = []
        with suppress(BlockingIOError):
            while True:
                messages.append(self._socket.recv(LONGEST_MESSAGE))
        # Of what comes while it is full nothing is left. What is there then is here now.
        is_full = len(messages) >= self._most_messages
        self._may_have_missed = is_full or sum(map(len, messages)) > self._most_bytes
        return [each for each in messages if each]  # an empty one is from `wake`

    def rings(self) -> list[Ring] | None:
        if self._may_have_missed:
            return None
        rings = [decode_ring(each, self._node) for each in self._messages]
        heard = [each for each in rings if each is not None]
        return heard if len(heard) == len(rings) else None

    def wake(self) -> None:
        with suppress(OSError):  # full, so it wakes anyway, or closed
            self._waker.send(b"")

    def close(self) -> None:
        path, self._path = self._path, None
        self._socket.close()
        self._waker.close()
        if path is not None and self._pid == os.getpid():  # else it is the parent's
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108 - as above
                os.rmdir(os.path.dirname(path))  # noqa: PTH106, PTH120 - if it was the last

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
