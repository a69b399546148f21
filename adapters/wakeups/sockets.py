"""Rings the sockets in a store's folder, and listens on one of them."""

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
from herdbook.adapters.wakeups.socket_folder import check_folder, make_folder
from herdbook.ports.engine.wakeups import LOOK

_LOG = logging.getLogger(__name__)
_MESSAGE = 512


def ring_sockets(folder: str, rings: Rings) -> None:
    """Send a datagram to whoever listens to one of these spaces, or to all; waits for nobody.

    A socket whose process is gone is removed. One that is full has been rung already.
    """
    try:
        check_folder(folder)
        names = os.listdir(folder)  # noqa: PTH208 - writers count microseconds
        if not names:
            os.rmdir(folder)  # noqa: PTH106 - the last listener was killed
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)  # noqa: FBT003 - that is its signature
            for space, seq in rings.items():
                message, wanted = f"{space} {seq}".encode()[:_MESSAGE], _space_mark(space)
                for name in names:
                    if name.rpartition("-")[2] in (wanted, _ANY):
                        _ring(sender, f"{folder}/{name}", message)
    except OSError as error:
        _LOG.debug("nobody can be woken in %s: %s", folder, error)


def _ring(sender: socket.socket, path: str, message: bytes) -> None:
    try:
        sender.sendto(message, path)
    except ConnectionRefusedError:
        with suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)  # noqa: PTH108 - as above
    except OSError:  # full, or gone since the folder was read
        return


_ANY = "all"


def _space_mark(space: str | None) -> str:
    """The end of the name of a socket on which rings for a space are wanted."""
    return _ANY if space is None else f"{crc32(space.encode()):08x}"


class SocketListener:
    """Listens on a socket of its own; where it can have none, every wait lasts for a look."""

    def __init__(
        self, folder: str | None, space: str | None = None, look: float | None = None
    ) -> None:
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
        for each in (self._socket, self._waker):
            each.setblocking(False)  # noqa: FBT003 - that is its signature
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
            # A writer that met it between its making and its use would take it for a dead one.
            os.rename(f"{path}-new", f"{path}-{_space_mark(space)}")  # noqa: PTH104 - as above
        except BaseException:
            listening.close()
            waker.close()
            raise
        self._path = f"{path}-{_space_mark(space)}"
        return listening, waker

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
            return bool(self.receive())
        if self._path is not None and seconds >= self._look:
            with suppress(OSError):
                os.utime(self._path)  # programs that tidy `/tmp` leave alone what is young
        return False

    def receive(self) -> list[bytes]:
        """The rings until now, each as it was sent."""
        messages = []
        with suppress(BlockingIOError):
            while True:
                messages.append(self._socket.recv(_MESSAGE))
        return [each for each in messages if each]  # an empty one is from `wake`

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
