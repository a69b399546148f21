"""JSON-RPC 2.0 messages: parsing, validation and encoding.

Nothing here knows Herdbook. Bytes become requests, notifications and responses, or the error
response that says what is wrong with them.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
TOO_MANY = -32000
"""More requests at once than this server accepts."""
NOT_INITIALIZED, CANCELLED = -32002, -32800
"""Two codes of the Language Server Protocol."""
DEEPEST, LONGEST_BATCH = 100, 9_999
_HALVES = "a text in it holds half a character (a lone surrogate), which no UTF-8 can say"

Id = str | int | float | None


class RpcError(Exception):
    """A JSON-RPC error: a code, a sentence, and data about it."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"

    def to_data(self) -> dict[str, Any]:
        """The error as it goes into a response."""
        data: dict[str, Any] = {"code": self.code, "message": self.message}
        return data if self.data is None else {**data, "data": self.data}

    @classmethod
    def from_data(cls, error: Any) -> "RpcError":
        """The error in a response; an ill-formed one becomes an internal error."""
        if not isinstance(error, Mapping):
            return cls(INTERNAL_ERROR, f"the other side answered with an error: {error!r}")
        code = error.get("code")
        code = code if type(code) is int else INTERNAL_ERROR
        return cls(code, str(error.get("message")), error.get("data"))


class Request(NamedTuple):
    """A request, or a notification, which gets no answer."""

    method: str
    params: Any
    id: Id = None
    is_notification: bool = False


class Response(NamedTuple):
    """The answer to a request of ours."""

    values: dict[str, Any]


class Refusal(NamedTuple):
    """The error response to something that is no valid request."""

    id: Id
    error: RpcError


Incoming = Request | Response | Refusal


class Batch(NamedTuple):
    """Messages that are answered together."""

    messages: list[Incoming]


def parse_message(payload: bytes) -> Incoming | Batch:
    """Parse what was received: a message, a batch, or the Refusal of it."""
    try:
        value = _parse(payload)
    except RpcError as error:
        return Refusal(None, error)
    suspicious = b"\\ud" in payload or b"\\uD" in payload
    if not isinstance(value, list):
        return _message(value, suspicious=suspicious)
    if not value:
        return _refusal("a batch must hold something")
    if len(value) > LONGEST_BATCH:
        return _refusal(
            f"a batch may hold {LONGEST_BATCH:,} messages; this one holds {len(value):,}"
        )
    return Batch([_message(each, suspicious=suspicious) for each in value])


def encode(message: Any) -> bytes:
    """A message as bytes, on one line."""
    try:
        return _OPEN.encode(message).encode()
    except UnicodeEncodeError:
        return _PLAIN.encode(message).encode()


def encode_or_fail(message: Any) -> bytes:
    """A message as bytes; an answer that JSON cannot express becomes an error response."""
    try:
        return encode(message)
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(message, list):
            return b"[" + b",".join(encode_or_fail(each) for each in message) + b"]"
        reason = f"the answer cannot be encoded as JSON ({error})"
        return encode(error_response(message.get("id"), RpcError(INTERNAL_ERROR, reason)))


def response(id_: Id, result: Any) -> dict[str, Any]:
    """The response to a successful request."""
    return {"jsonrpc": "2.0", "id": id_, "result": result}


def error_response(id_: Id, error: RpcError) -> dict[str, Any]:
    """The response to a failed request."""
    return {"jsonrpc": "2.0", "id": id_, "error": error.to_data()}


def _parse(payload: bytes) -> Any:
    try:
        value = _DECODER.decode(payload.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise RpcError(PARSE_ERROR, f"this is no UTF-8 ({error.reason})") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise RpcError(PARSE_ERROR, f"this is no JSON: {error}") from None
    if payload.count(b"[") + payload.count(b"{") > DEEPEST:
        _refuse_depth(value)
    return value


def _refuse_depth(value: Any) -> None:
    """Raise RpcError for a value that is nested too deeply; without recursion."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> RpcError:
    return RpcError(INVALID_REQUEST, f"a message may be nested {DEEPEST} levels deep, not more")


def _message(value: Any, *, suspicious: bool) -> Incoming:
    if not isinstance(value, dict):
        return _refusal("a message must be an object")
    id_ = value.get("id")
    if type(id_) not in (str, int, float, type(None)):
        return _refusal("an id must be a text, a number or null")
    if "method" not in value and ("result" in value or "error" in value):
        return Response(value)
    method, params = value.get("method"), value.get("params")
    reason = ""
    if value.get("jsonrpc") != "2.0":
        reason = '"jsonrpc" must be "2.0"'
    elif type(method) is not str:
        reason = '"method" must be the name of a method'
    elif type(params) not in (dict, list, type(None)):
        reason = '"params" must be an object or an array'
    elif suspicious and _has_surrogates(value):
        reason = _HALVES
    if reason:
        return _refusal(reason, id_)
    return Request(str(method), params, id_, "id" not in value)


def _has_surrogates(value: Any) -> bool:
    try:
        _OPEN.encode(value).encode()
    except UnicodeEncodeError:
        return True
    return False


def _refusal(reason: str, id_: Id = None) -> Refusal:
    return Refusal(id_, RpcError(INVALID_REQUEST, reason))


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_constant, parse_float=_float)


def _encoder(*, ensure_ascii: bool) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=ensure_ascii, separators=(",", ":"), default=str, allow_nan=False
    )


_OPEN, _PLAIN = _encoder(ensure_ascii=False), _encoder(ensure_ascii=True)
