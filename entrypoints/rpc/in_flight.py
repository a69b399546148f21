"""In-flight requests and their cancellation."""

import threading
from collections.abc import Hashable

from herdbook.entrypoints.rpc.messages import CANCELLED, INVALID_REQUEST, Id, Request, RpcError
from herdbook.entrypoints.rpc.methods import Method
from herdbook.ports.engine.wakeups import StopEvent

SHUTDOWN = "shutdown"


class InFlightRequest:
    """One request in flight; one that waits ends when `stop` is set."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.method: Method | None = None
        self.cancelled = False
        self.refusal: RpcError | None = None
        self.stop: StopEvent | None = None

    def refuse_cancelled(self) -> None:
        """Raise the RpcError for a cancelled request."""
        if self.cancelled:
            raise RpcError(CANCELLED, "this request was cancelled")


def refused_request(error: RpcError, id_: Id = None) -> InFlightRequest:
    """What stands for a message that is no valid request: it is answered with the error."""
    ticket = InFlightRequest(Request("", None, id_))
    ticket.refusal = error
    return ticket


class InFlight:
    """All requests in flight."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._tickets: dict[Hashable, InFlightRequest] = {}
        self._notifications: set[InFlightRequest] = set()
        self._ended = threading.Condition(self._mutex)
        self._settling = False

    def begin(self, request: Request) -> InFlightRequest:
        """Add a request; RpcError if its id is in flight already."""
        ticket = InFlightRequest(request)
        with self._mutex:
            if request.is_notification or request.id is None:
                self._notifications.add(ticket)
            elif request.id in self._tickets:
                data = {"id": request.id}
                raise RpcError(INVALID_REQUEST, "a request with this id is under way already", data)
            else:
                self._tickets[request.id] = ticket
        return ticket

    def end(self, ticket: InFlightRequest) -> None:
        """Remove a request; from now on its id may be used again."""
        with self._mutex:
            self._notifications.discard(ticket)
            if self._tickets.get(ticket.request.id) is ticket:
                del self._tickets[ticket.request.id]
            if self._settling:
                self._ended.notify_all()

    def cancel(self, id_: Id) -> None:
        """Cancel a request if it is in flight; one that waits is stopped."""
        with self._mutex:
            ticket = self._tickets.get(id_)
        if ticket is not None:
            ticket.cancelled = True
            if ticket.stop is not None:
                ticket.stop.set()

    def stop_waiting(self) -> None:
        """Make every waiting request answer as if its time were over."""
        with self._mutex:
            tickets = [*self._tickets.values(), *self._notifications]
        for each in tickets:
            if each.stop is not None:
                each.stop.set()

    def settle(self) -> None:
        """Wait until all requests but `shutdown` are answered."""
        with self._ended:
            self._settling = True
            self._ended.wait_for(
                lambda: all(
                    each.request.method == SHUTDOWN
                    for each in (*self._tickets.values(), *self._notifications)
                )
            )
