"""Converts Herdbook's errors to JSON-RPC errors and back; the table of errors has the codes."""

from typing import Any

from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.entrypoints.operations.error_table import (
    ERRORS,
    ERRORS_BY_NAME,
    describe_error,
    row_of,
)
from herdbook.entrypoints.rpc.messages import INTERNAL_ERROR, INVALID_PARAMS, RpcError


def to_rpc_error(error: HerdbookError) -> RpcError:
    """The JSON-RPC error for a HerdbookError: `data` has its type and its attributes."""
    return to_described_rpc_error(describe_error(error), row_of(error).code)


def to_described_rpc_error(described: dict[str, Any], code: int = INTERNAL_ERROR) -> RpcError:
    """The JSON-RPC error for an error as `describe_error` tells it, with the code of its type."""
    kind = ERRORS_BY_NAME.get(described.get("type", ""))
    data = {name: value for name, value in described.items() if name != "message"}
    return RpcError(code if kind is None else ERRORS[kind].code, str(described["message"]), data)


def invalid_params(problems: list[tuple[str, str]]) -> RpcError:
    """The answer to parameters that do not fit, field by field."""
    sentence = "; ".join(f"{field}: {reason}" for field, reason in problems)
    fields = [{"field": field, "reason": reason} for field, reason in problems]
    field, reason = problems[0]
    data = {"type": "InvalidValue", "field": field, "reason": reason, "fields": fields}
    return RpcError(INVALID_PARAMS, sentence, data)


def to_exception(error: RpcError) -> Exception:
    """The exception for a client to raise: the server's HerdbookError, else the RpcError."""
    data = error.data if isinstance(error.data, dict) else {}
    kind = ERRORS_BY_NAME.get(data.get("type", ""))
    if kind is None:
        return error
    if error.code == INVALID_PARAMS:
        return InvalidValue(str(data.get("field")), _reasons(data))
    import inspect  # noqa: PLC0415 - only clients need it

    from herdbook.entrypoints.operations.wire_converter import structure  # noqa: PLC0415

    wanted = inspect.signature(kind).parameters
    if not set(data) >= {name for name, each in wanted.items() if each.default is each.empty}:
        return error
    given = {name: each.annotation for name, each in wanted.items() if name in data}
    return kind(**{name: structure(data[name], type_) for name, type_ in given.items()})


def _reasons(data: dict[str, Any]) -> str:
    """The reason of the first field, then the other fields with theirs."""
    others = [f"{each['field']}: {each['reason']}" for each in data.get("fields", [])[1:]]
    return "; ".join([str(data.get("reason")), *others])
