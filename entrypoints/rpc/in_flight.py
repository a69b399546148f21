"""Requests that are under way: which there are, and how one is called off."""

import threading
from collections.abc import Hashable

from herdbook.entrypoints.rpc.messages import CANCELLED, INVALID_REQUEST, Id, Request, RpcError
from herdbook.entrypoints.rpc.methods import Method

SHUTDOWN = "shutdown"


class Ticket:
    """One request under way; one that waits can be told to `stop`."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.method: Method | None = None
        self.cancelled = False
        self.refused: RpcError | None = None
        self.stop: threading.Event | None = None

    def refuse_cancelled(self) -> None:
        """Raise what is answered to a request that was called off."""
        if self.cancelled:
            raise RpcError(CANCELLED, "this request was cancelled")


class Flight:
    """All requests under way."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._tickets: dict[Hashable, Ticket] = {}
        self._unnamed: set[Ticket] = set()
        self._landed = threading.Condition(self._mutex)
        self._settling = False

    def begin(self, request: Request) -> Ticket:
        """Take a request in; one whose id is under way already is refused."""
        ticket = Ticket(request)
        with self._mutex:
            if request.is_notification or request.id is None:
                self._unnamed.add(ticket)
            elif request.id in self._tickets:
                data = {"id": request.id}
                raise RpcError(INVALID_REQUEST, "a request with this id is under way already", data)
            else:
                self._tickets[request.id] = ticket
        return ticket

    def end(self, ticket: Ticket) -> None:
        """Let a request go; from here on its id may come again."""
        with self._mutex:
            self._unnamed.discard(ticket)
            if self._tickets.get(ticket.request.id) is ticket:
                del self._tickets[ticket.request.id]
            if self._settling:
                self._landed.notify_all()

    def cancel(self, id_: Id) -> None:
        """Call a request off, if it is under way; a running one is told to stop."""
        with self._mutex:
            ticket = self._tickets.get(id_)
        if ticket is not None:
            ticket.cancelled = True
            if ticket.stop is not None:
                ticket.stop.set()

    def stop_waiting(self) -> None:
        """Let everything that waits answer as if its time had come."""
        with self._mutex:
            tickets = [*self._tickets.values(), *self._unnamed]
        for each in tickets:
            if each.stop is not None:
                each.stop.set()

    def settle(self) -> None:
        """Wait until all requests are answered, besides those that ask for just that."""
        with self._landed:
            self._settling = True
            self._landed.wait_for(
                lambda: all(
                    each.request.method == SHUTDOWN
                    for each in (*self._tickets.values(), *self._unnamed)
                )
            )
