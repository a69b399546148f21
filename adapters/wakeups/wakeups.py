"""The wake-ups of a store in files: rings whoever listens on this machine."""

import os
from typing import TYPE_CHECKING

from herdbook.adapters.wakeups.socket_folder import socket_folder

if TYPE_CHECKING:
    from herdbook.adapters.wakeups.coalesce import Coalescer
    from herdbook.ports.engine.wakeups import Listener

INTERVAL = 0.002
"""The least time in seconds between two rings of a writer."""


class SocketWakeups:
    """Wakes processes of this user on this machine; without listeners it costs one `lstat`."""

    def __init__(self, uuid: str) -> None:
        self._folder = socket_folder(uuid)
        self._coalescer: Coalescer | None = None

    def ring(self, space: str, seq: int) -> None:
        if self._folder is None:
            return
        try:
            os.lstat(self._folder)
        except OSError:
            return  # nobody listens
        if self._coalescer is None:
            from functools import partial  # noqa: PLC0415 - only with listeners

            from herdbook.adapters.wakeups.coalesce import Coalescer  # noqa: PLC0415
            from herdbook.adapters.wakeups.sockets import ring_sockets  # noqa: PLC0415

            self._coalescer = Coalescer(partial(ring_sockets, self._folder), INTERVAL)
        self._coalescer(space, seq)

    def listen(self, space: str | None = None, *, look: float | None = None) -> "Listener":
        from herdbook.adapters.wakeups.sockets import SocketListener  # noqa: PLC0415 - as above

        return SocketListener(self._folder, space, look)

    def close(self) -> None:
        if self._coalescer is not None:
            self._coalescer.flush()
