"""What the server does for its client: the methods of the table, its own, and an editor's."""

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.rpc import codes, internal_errors, messages
from herdbook.entrypoints.rpc.builtin_methods import OWN
from herdbook.entrypoints.rpc.in_flight import SHUTDOWN, Flight, Ticket
from herdbook.entrypoints.rpc.messages import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    TOO_MANY,
    Message,
    Refusal,
    Request,
    Response,
    RpcError,
)
from herdbook.entrypoints.rpc.methods import Method, methods, unknown
from herdbook.entrypoints.rpc.subscriptions import Subscriptions
from herdbook.entrypoints.rpc.writer import Outlet
from herdbook.entrypoints.server_context import ServerContext

LANGUAGE = "herdbook.entrypoints.lsp.server"
"""Where the language server is; imported when an editor asks for it."""


class Service:
    """Takes messages in, in their order, and gives what is to be done about them."""

    def __init__(self, server: ServerContext, outlet: Outlet) -> None:
        self.flight = Flight()
        self.exit_code = 0
        self.when_over: Callable[[], None] = lambda: None
        self._server = server
        self._outlet = outlet
        self._subscriptions = Subscriptions(server.call, outlet)
        self._language: Any = None
        self._is_shut = False
        self._own = {each.name: Method(each) for each in OWN}

    def accept(self, message: Message) -> "Entry | None":
        """Take a message in; what needs no answer and no time is done with at once."""
        if isinstance(message, Response):
            self._outlet.settle(message.values)
            return None
        if isinstance(message, Refusal):
            return Entry(self, None, message)
        if message.is_notification and self._noticed(message):
            return None
        try:
            ticket = self.flight.begin(message)
        except RpcError as error:
            return Entry(self, None, Refusal(None, error))
        try:
            if message.method == "initialize":
                self._initialize()
            ticket.method = methods().get(message.method)
            if ticket.method is not None and ticket.method.waits(message.params):
                ticket.stop = threading.Event()
        except RpcError as error:
            ticket.refused = error
        except Exception as error:  # noqa: BLE001 - whatever it is, there is an answer
            ticket.refused = internal_errors.noted(error)
        return Entry(self, ticket, None)

    def _noticed(self, notice: Request) -> bool:
        """Whether a notification was one of the protocol's own."""
        method, params = notice.method, notice.params
        if method == "$/cancelRequest":
            id_ = params.get("id") if isinstance(params, dict) else None
            if type(id_) in (str, int, float):
                self.flight.cancel(id_)
        elif method == "exit":
            self.exit_code = 0 if self._is_shut else 1
            self.when_over()
        elif "/" in method or method == "initialized":
            if self._language is not None:
                self._tell_language(method, params)
        else:
            return False
        return True

    def _tell_language(self, method: str, params: Any) -> None:
        try:
            self._language.notice(method, params)
        except Exception as error:  # noqa: BLE001 - nobody waits for an answer
            internal_errors.noted(error)

    def _initialize(self) -> None:
        if self._language is not None:
            raise RpcError(INVALID_REQUEST, "this server was initialized before")
        if not self._is_shut:
            module = import_module(LANGUAGE)
            self._language = module.Language(self._server.call(), self._outlet)

    def call(self, ticket: Ticket) -> Any:
        """Do what a request asks for; its result."""
        if ticket.refused is not None:
            raise ticket.refused
        ticket.refuse_cancelled()
        name, params = ticket.request.method, ticket.request.params
        if self._is_shut:
            raise RpcError(INVALID_REQUEST, "this server was told to shut down")
        if ticket.method is not None:
            here = self._server.call()
            if ticket.stop is None:
                return ticket.method(here, params)
            here.enough, here.pause = ticket.stop.is_set, ticket.stop.wait
            answer = ticket.method(here, params)
            if answer is None:
                ticket.refuse_cancelled()
            return answer
        if own := self._own.get(name):
            return getattr(self, f"_{name.replace('.', '_')}")(ticket, **own.arguments(params))
        return self._language_method(name)(params)

    def _language_method(self, name: str) -> Callable[[Any], Any]:
        if self._language is not None and name in self._language.methods:
            method: Callable[[Any], Any] = self._language.methods[name]
            return method
        if self._language is None and "/" in name and not name.startswith("$/"):
            raise RpcError(NOT_INITIALIZED, f"{name} can be asked for behind initialize")
        raise RpcError(METHOD_NOT_FOUND, unknown(name))

    def _rpc_discover(self, _: Ticket) -> Any:
        from herdbook.entrypoints.rpc.openrpc import document  # noqa: PLC0415

        return document()

    def _journal_subscribe(self, _: Ticket, *, since: int | None) -> dict[str, Any]:
        return self._subscriptions.subscribe(since)

    def _journal_unsubscribe(self, _: Ticket, *, subscription: str) -> bool:
        return self._subscriptions.unsubscribe(subscription)

    def _shutdown(self, _: Ticket) -> None:
        """Finish what was begun, and take nothing new."""
        self._is_shut = True
        self.flight.stop_waiting()
        self._subscriptions.close()
        self.flight.settle()
        self._flush()

    def begun(self, ticket: Ticket, result: Any) -> None:
        """Go on with what begins when its answer is out."""
        if ticket.request.method == "journal.subscribe" and isinstance(result, dict):
            self._subscriptions.start(result["subscription"])

    def stop(self) -> None:
        """Let what waits answer now: nobody will come to ask for more."""
        self.flight.stop_waiting()

    def close(self) -> None:
        """Let go of everything, behind the last answer."""
        self._subscriptions.close()
        self._outlet.break_off()
        if self._language is not None:
            self._language.close()
        if not self._is_shut:
            self._flush()
        self._server.close()

    def _flush(self) -> None:
        """Write what the hooks have left into the record, if it has waited for too long."""
        from herdbook.entrypoints.hooks import spool_flush  # noqa: PLC0415

        here = self._server.call()
        try:
            spool_flush.flush_if_due(here)
        except (HerdbookError, OSError) as error:
            here.warn(f"{error}. What the hooks left is safe and waits in the spool")


class Entry:
    """One message, and its answer; `waits` if that may take as long as the client said."""

    def __init__(self, service: Service, ticket: Ticket | None, refusal: Refusal | None) -> None:
        self._service = service
        self._ticket = ticket
        self._refusal = refusal
        self._result: Any = None
        self.waits = ticket is not None and ticket.stop is not None

    @property
    def comes_last(self) -> bool:
        """Whether it waits for all others, and so is done behind those that came with it."""
        return self._ticket is not None and self._ticket.request.method == SHUTDOWN

    def refuse_waiting(self, most: int) -> None:
        """Answer that too many wait already, if this one is to wait."""
        if self._ticket is not None and self.waits:
            self._ticket.refused = RpcError(TOO_MANY, f"{most} requests wait already, and no more")

    def answer(self) -> dict[str, Any] | None:
        """Do what is asked for; the response, where one is wanted."""
        if self._refusal is not None:
            return messages.failure(self._refusal.id, self._refusal.error)
        ticket = self._ticket
        if ticket is None:
            return None
        request = ticket.request
        try:
            self._result = self._service.call(ticket)
            response = messages.answer(request.id, self._result)
        except RpcError as error:
            response = messages.failure(request.id, error)
        except HerdbookError as error:
            response = messages.failure(request.id, codes.told(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, there is an answer
            response = messages.failure(request.id, internal_errors.noted(error))
        finally:
            # Before the answer is out: the client may use the id again as soon as it has it.
            self._service.flight.end(ticket)
        return None if request.is_notification else response

    def answered(self) -> None:
        """Go on with what begins behind the answer."""
        if self._ticket is not None:
            self._service.begun(self._ticket, self._result)
