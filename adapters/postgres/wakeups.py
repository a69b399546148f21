"""Wake-ups through a server: sockets on this machine, NOTIFY to all others.

A writer rings the sockets of its own machine, as with a store in files, and then sends one NOTIFY
with a pooled connection, after its commit: in the transaction it would make all commits of the
server wait for one another. It does not wait for the answer. Of all listening processes of a user
on a machine one is the relay: it holds a lock, has the only LISTEN connection, and when another
machine has written, it reads the entries once and rings the others with them. When it ends, another
one finds the lock free at its next look.
"""

import logging
from collections.abc import Sequence

import psycopg
from psycopg import sql

from herdbook.adapters.postgres.connection_pool import ConnectionPool
from herdbook.adapters.postgres.wakeup_relay import ReadEntries, Relay
from herdbook.adapters.wakeups.coalesce import Coalescer, PendingRing, Rings
from herdbook.adapters.wakeups.sockets import SocketListener
from herdbook.adapters.wakeups.wakeups import SocketWakeups
from herdbook.domain.errors import HerdbookError
from herdbook.domain.journal import JournalEntry
from herdbook.ports.engine.wakeups import Listener

_LOG = logging.getLogger(__name__)

INTERVAL = 0.01
"""The least time in seconds between two NOTIFYs of a writer."""


class PostgresWakeups(SocketWakeups):
    """Wakes processes of this machine by their sockets, and those of others by the server."""

    def __init__(
        self, uuid: str, node: str, connections: ConnectionPool, read_entries: ReadEntries
    ) -> None:
        super().__init__(uuid, node)
        self._connections = connections
        self._channel = f"herdbook_{uuid}"
        self._notify = Coalescer(self._send, INTERVAL)
        self._relay = (
            Relay(self._folder, node, self._channel, connections, read_entries)
            if self._folder
            else None
        )

    def ring(self, space: str, seq: int, entries: Sequence[JournalEntry] = ()) -> None:
        super().ring(space, seq, entries)
        # Other machines read the entries: the server's messages have to be short.
        self._notify(space, PendingRing(seq))

    def _send(self, rings: Rings) -> None:
        messages = [f"{space} {ring.seq}" for space, ring in rings.items()]
        statement = (
            "SELECT pg_catalog.pg_notify({}, message) "
            "FROM pg_catalog.unnest({}::pg_catalog.text[]) AS message"
        )
        query = sql.SQL(statement).format(self._channel, messages).as_string()
        # One message is one transaction. Nothing is lost with it, so the disk is not waited for.
        script = f"SET LOCAL synchronous_commit TO off; {query}"
        try:
            self._connections.send_unanswered(script.encode())
        except (HerdbookError, psycopg.Error) as error:
            _LOG.debug("nobody on other machines can be woken: %s", error)

    def listen(self, space: str | None = None, *, look: float | None = None) -> Listener:
        return RelayedListener(self._folder, self._node, space, look, self._relay)

    def close(self) -> None:
        super().close()
        self._notify.flush()


class RelayedListener(SocketListener):
    """Listens on a socket, and takes over the relay when nobody has it."""

    def __init__(
        self,
        folder: str | None,
        node: str,
        space: str | None,
        look: float | None,
        relay: Relay | None,
    ) -> None:
        super().__init__(folder, node, space, look)
        self._relay = relay if self.has_socket else None
        if self._relay is not None:
            self._relay.join()

    def wait(self, timeout: float | None = None) -> bool:
        is_rung = super().wait(timeout)
        if not is_rung and self._relay is not None:
            self._relay.take_over()
        return is_rung

    def close(self) -> None:
        relay, self._relay = self._relay, None
        if relay is not None:
            relay.leave()
        super().close()
