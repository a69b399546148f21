"""One table of the codes that Herdbook's errors have over JSON-RPC, and the way back.

A code's thousands are the exit code that the command line ends with. The range that JSON-RPC keeps
for itself is left alone, and a number never changes its meaning.
"""

from datetime import datetime
from typing import Any

from herdbook.domain import errors
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.entrypoints.operations import error_table
from herdbook.entrypoints.rpc.messages import INVALID_PARAMS, RpcError

CODES: dict[type[HerdbookError], int] = {
    errors.CycleRefused: 1001,
    errors.AgentHalted: 1002,
    errors.WorktreeInUse: 1003,
    errors.CopyDiffers: 1004,
    errors.DecodingRefused: 1005,
    errors.InvalidValue: 2001,
    errors.NotFound: 3001,
    errors.UnknownReference: 3002,
    errors.AlreadyExists: 4001,
    errors.StaleWrite: 4002,
    errors.StaleFence: 4003,
    errors.StoreBusy: 4004,
    errors.SpaceRefused: 4005,
    errors.StoreDamaged: 5001,
    errors.StoreFull: 5002,
    errors.StoreTooNew: 5003,
    errors.StoreUnavailable: 5004,
    errors.StoreUntrusted: 5005,
    errors.StoreGone: 5006,
}
OTHER = 1000
"""For an error that has no row yet."""


def told(error: HerdbookError) -> RpcError:
    """An error of ours as a client gets it: `data` says its type and what it speaks of."""
    known = next((each for each in type(error).__mro__ if each in CODES), None)
    about = error_table.as_data(error)["error"]
    about.pop("message")
    if known is not None:
        about["type"] = known.__name__
    return RpcError(CODES[known] if known else OTHER, str(error), about)


def invalid(problems: list[tuple[str, str]]) -> RpcError:
    """The answer to parameters that do not fit, field by field."""
    sentence = "; ".join(f"{field}: {reason}" for field, reason in problems)
    fields = [{"field": field, "reason": reason} for field, reason in problems]
    field, reason = problems[0]
    data = {"type": "InvalidValue", "field": field, "reason": reason, "fields": fields}
    return RpcError(INVALID_PARAMS, sentence, data)


def rebuilt(error: RpcError) -> Exception:
    """The error that a client raises: one of ours as it was on the other side, or as it came."""
    data = error.data if isinstance(error.data, dict) else {}
    kind = _BY_NAME.get(data.get("type", ""))
    if kind is None:
        return error
    if error.code == INVALID_PARAMS:
        return InvalidValue(str(data.get("field")), _reasons(data))
    import inspect  # noqa: PLC0415 - for clients; a server has no need to wait for it

    wanted = inspect.signature(kind).parameters
    if not set(data) >= {name for name, each in wanted.items() if each.default is each.empty}:
        return error
    return kind(**{name: _value(name, data[name]) for name in wanted if name in data})


def _reasons(data: dict[str, Any]) -> str:
    """Why the first field does not fit, and what else does not."""
    others = [f"{each['field']}: {each['reason']}" for each in data.get("fields", [])[1:]]
    return "; ".join([str(data.get("reason")), *others])


def _value(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if name == "since" and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value


_BY_NAME = {kind.__name__: kind for kind in CODES}
