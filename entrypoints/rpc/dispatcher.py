"""Dispatches messages to the methods of the table, the built-in ones, and the editor's."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.rpc import internal_errors, messages
from herdbook.entrypoints.rpc.builtin_methods import BUILTIN_METHODS
from herdbook.entrypoints.rpc.errors import to_rpc_error
from herdbook.entrypoints.rpc.in_flight import SHUTDOWN, InFlight, InFlightRequest, refused_request
from herdbook.entrypoints.rpc.messages import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    TOO_MANY,
    Incoming,
    Refusal,
    Request,
    Response,
    RpcError,
)
from herdbook.entrypoints.rpc.methods import Method, describe_unknown, methods
from herdbook.entrypoints.rpc.subscriptions import Subscription, Subscriptions
from herdbook.entrypoints.rpc.writer import MessageWriter
from herdbook.entrypoints.server_context import ServerContext
from herdbook.ports.engine.wakeups import StopEvent

LANGUAGE = "herdbook.entrypoints.lsp.server"
"""The module of the language server; imported on `initialize`."""


class Dispatcher:
    """Accepts messages in their order and calls their methods."""

    def __init__(self, server: ServerContext, writer: MessageWriter) -> None:
        self.in_flight = InFlight()
        self.exit_code = 0
        self.when_over: Callable[[], None] = lambda: None
        self._server = server
        self._writer = writer
        self._subscriptions = Subscriptions(server.call, writer)
        self._language: Any = None
        self._is_shut = False
        self._builtin = {each.name: Method(each) for each in BUILTIN_METHODS}

    def accept(self, message: Incoming) -> "AcceptedMessage | None":
        """Accept a message; None if it needs no answer and is done with."""
        if isinstance(message, Response):
            self._writer.accept_response(message.values)
            return None
        if isinstance(message, Refusal):
            return AcceptedMessage(self, refused_request(message.error, message.id))
        if message.is_notification and self._handle_notification(message):
            return None
        try:
            ticket = self.in_flight.begin(message)
        except RpcError as error:
            return AcceptedMessage(self, refused_request(error))
        try:
            if message.method == "initialize":
                self._initialize()
            ticket.method = methods().get(message.method)
            if ticket.method is not None and ticket.method.waits(message.params):
                ticket.stop = StopEvent()
        except RpcError as error:
            ticket.refusal = error
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            ticket.refusal = internal_errors.report_defect(error)
        return AcceptedMessage(self, ticket)

    def _handle_notification(self, notice: Request) -> bool:
        """Handle a notification of the protocol; whether it was one."""
        method, params = notice.method, notice.params
        if method == "$/cancelRequest":
            id_ = params.get("id") if isinstance(params, dict) else None
            if type(id_) in (str, int, float):
                self.in_flight.cancel(id_)
        elif method == "exit":
            self.exit_code = 0 if self._is_shut else 1
            self.when_over()
        elif "/" in method or method == "initialized":
            if self._language is not None:
                self._notify_language(method, params)
        else:
            return False
        return True

    def _notify_language(self, method: str, params: Any) -> None:
        try:
            self._language.handle_notification(method, params)
        except Exception as error:  # noqa: BLE001 - nobody waits for an answer
            internal_errors.report_defect(error)

    def _initialize(self) -> None:
        if self._language is not None:
            raise RpcError(INVALID_REQUEST, "this server was initialized before")
        if not self._is_shut:
            module = import_module(LANGUAGE)
            self._language = module.LanguageServer(self._server.call(), self._writer)

    def call(self, ticket: InFlightRequest) -> Any:
        """Call the method of a request; returns its result."""
        if ticket.refusal is not None:
            raise ticket.refusal
        ticket.refuse_cancelled()
        name, params = ticket.request.method, ticket.request.params
        if self._is_shut:
            raise RpcError(INVALID_REQUEST, "this server was told to shut down")
        if ticket.method is not None:
            app = self._server.call()
            if ticket.stop is None:
                return ticket.method(app, params)
            app.stop = ticket.stop
            answer = ticket.method(app, params)
            if answer is None:
                ticket.refuse_cancelled()
            return answer
        if own := self._builtin.get(name):
            return self.builtin_method(name)(self, **own.arguments(params))
        return self._language_method(name)(params)

    @classmethod
    def builtin_method(cls, name: str) -> Callable[..., Any]:
        """The function of a built-in method."""
        code: Callable[..., Any] = getattr(cls, f"_{name.replace('.', '_')}")
        return code

    def _language_method(self, name: str) -> Callable[[Any], Any]:
        if self._language is not None and name in self._language.methods:
            method: Callable[[Any], Any] = self._language.methods[name]
            return method
        if self._language is None and "/" in name and not name.startswith("$/"):
            raise RpcError(NOT_INITIALIZED, f"{name} can be asked for after initialize")
        raise RpcError(METHOD_NOT_FOUND, describe_unknown(name))

    def _rpc_discover(self) -> dict[str, Any]:
        from herdbook.entrypoints.rpc.openrpc import document  # noqa: PLC0415

        return document()

    def _journal_subscribe(self, *, since: int | None) -> Subscription:
        return self._subscriptions.subscribe(since)

    def _journal_unsubscribe(self, *, subscription: str) -> bool:
        return self._subscriptions.unsubscribe(subscription)

    def _shutdown(self) -> None:
        """Finish what was begun, and accept nothing new."""
        self._is_shut = True
        self.in_flight.stop_waiting()
        self._subscriptions.close()
        self.in_flight.settle()
        self._flush()

    def start_after_answer(self, ticket: InFlightRequest, result: Any) -> None:
        """Start what begins after the answer is sent."""
        if ticket.request.method == "journal.subscribe" and isinstance(result, dict):
            self._subscriptions.start(result["subscription"])

    def stop(self) -> None:
        """Make waiting requests answer now, because the client has ended."""
        self.in_flight.stop_waiting()

    def close(self) -> None:
        """Close everything, after the last answer."""
        self._subscriptions.close()
        self._writer.cancel_requests()
        if self._language is not None:
            self._language.close()
        if not self._is_shut:
            self._flush()
        self._server.close()

    def _flush(self) -> None:
        """Flush the spool into the record if that is due."""
        from herdbook.entrypoints.hooks import spool_flush  # noqa: PLC0415

        app = self._server.call()
        try:
            spool_flush.flush_if_due(app)
        except (HerdbookError, OSError) as error:
            app.warn(f"{error}. What the hooks left is safe and waits in the spool")


class AcceptedMessage:
    """One message and its answer; `waits` if the client allows it to take long."""

    def __init__(self, service: Dispatcher, ticket: InFlightRequest) -> None:
        self._service = service
        self._ticket = ticket
        self._result: Any = None
        self.waits = ticket.stop is not None

    @property
    def comes_last(self) -> bool:
        """Whether it waits for all others, and so comes after those of its batch."""
        return self._ticket.request.method == SHUTDOWN

    def refuse_waiting(self, most: int) -> None:
        """Refuse this message, if it waits, because too many wait already."""
        if self.waits:
            self._ticket.refusal = RpcError(TOO_MANY, f"{most} requests wait already, and no more")

    def answer(self) -> dict[str, Any] | None:
        """Call the method; returns the response, or None for a notification."""
        ticket, request = self._ticket, self._ticket.request
        try:
            self._result = self._service.call(ticket)
            response = messages.response(request.id, self._result)
        except RpcError as error:
            response = messages.error_response(request.id, error)
        except HerdbookError as error:
            response = messages.error_response(request.id, to_rpc_error(error))
        except Exception as error:  # noqa: BLE001 - every request gets an answer
            response = messages.error_response(request.id, internal_errors.report_defect(error))
        finally:
            # Before the answer is out: the client may use the id again as soon as it has it.
            self._service.in_flight.end(ticket)
        return None if request.is_notification else response

    def after_answer(self) -> None:
        """Start what begins after the answer is sent."""
        self._service.start_after_answer(self._ticket, self._result)
