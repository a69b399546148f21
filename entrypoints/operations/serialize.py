"""Answers as JSON data, for commands: without cattrs, which takes 40 ms to import.

Rows have every field by its name, also those that hold nothing. The wires use `wire_converter`
for the same; both give the same JSON, byte for byte.
"""

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from herdbook.domain.secret import HIDDEN, Secret

if TYPE_CHECKING:
    from herdbook.ports.engine.kinds import Kind

_UNCHANGED = frozenset({str, int, float, bool, type(None)})


def to_data(answer: Any) -> Any:
    """An answer as it goes into JSON; data of JSON stays as it is."""
    type_ = type(answer)
    if type_ in _UNCHANGED:
        return answer
    if hasattr(type_, "__declared__"):
        return row_to_data(answer)
    attributes: Any = getattr(type_, "__attrs_attrs__", ())
    if names := getattr(type_, "_fields", None) or [each.name for each in attributes]:
        return {name: to_data(getattr(answer, name)) for name in names}
    if isinstance(answer, dict):
        return {str(key): to_data(value) for key, value in answer.items()}
    if isinstance(answer, list | tuple | set | frozenset):
        return [to_data(each) for each in answer]
    return _value_to_data(answer)


def row_to_data(row: Any) -> dict[str, Any]:
    """A row with all its fields, in the order of their declaration; secrets read `***`."""
    from herdbook.ports.engine.codec import encode_row  # noqa: PLC0415 - many answers have no row

    kind = _kinds()[type(row)]
    values = encode_row(kind, row)
    return {name: values.get(name) for name in kind.columns}


@cache
def _kinds() -> "dict[type, Kind[Any]]":
    from herdbook.ports.engine.dictionary import ROW_KINDS  # noqa: PLC0415

    return {kind.entity: kind for kind in ROW_KINDS.values()}


def _value_to_data(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Secret):
        return HIDDEN
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "total_seconds"):
        return value.total_seconds()
    return value
