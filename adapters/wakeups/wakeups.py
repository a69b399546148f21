"""The wake-ups of a store in files: rings whoever listens on this machine."""

import os
from typing import TYPE_CHECKING

from herdbook.adapters.wakeups.socket_folder import socket_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from herdbook.adapters.wakeups.coalesce import Coalescer
    from herdbook.domain.journal import JournalEntry
    from herdbook.ports.engine.wakeups import Listener

INTERVAL = 0.002
"""The least time in seconds between two rings of a writer."""


class SocketWakeups:
    """Wakes processes of this user on this machine; without listeners it costs one `lstat`."""

    def __init__(self, uuid: str, node: str) -> None:
        self._folder = socket_folder(uuid)
        self._node = node
        self._coalescer: Coalescer | None = None

    def ring(self, space: str, seq: int, entries: "Sequence[JournalEntry]" = ()) -> None:
        if self._folder is None:
            return
        try:
            os.lstat(self._folder)
        except OSError:
            return  # nobody listens
        from herdbook.adapters.wakeups.coalesce import Coalescer, PendingRing  # noqa: PLC0415 - only with listeners
        from herdbook.adapters.wakeups.messages import encode_entries  # noqa: PLC0415

        if self._coalescer is None:
            from functools import partial  # noqa: PLC0415

            from herdbook.adapters.wakeups.sockets import ring_sockets  # noqa: PLC0415

            self._coalescer = Coalescer(partial(ring_sockets, self._folder, self._node), INTERVAL)
        # Encoded now: who has committed a document may change it a moment later.
        self._coalescer(space, PendingRing(seq, encode_entries(entries)))

    def listen(self, space: str | None = None, *, look: float | None = None) -> "Listener":
        from herdbook.adapters.wakeups.sockets import SocketListener  # noqa: PLC0415 - as above

        return SocketListener(self._folder, self._node, space, look)

    def close(self) -> None:
        if self._coalescer is not None:
            self._coalescer.flush()
