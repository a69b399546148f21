"""Answers as JSON data, for commands: without cattrs, which takes 40 ms to import.

Rows have every field by its name, also those that hold nothing, unless a lean answer is asked for.
The wires use `wire_converter` for the same; both give the same JSON, byte for byte.
"""

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from herdbook.domain.secret import HIDDEN, Secret

if TYPE_CHECKING:
    from herdbook.ports.engine.kinds import Kind

_UNCHANGED = frozenset({str, int, float, bool, type(None)})


BOOKKEEPING = frozenset({"created_at", "updated_at", "version", "worktree_id"})
"""The fields of a row that the unit of work fills in; a lean answer goes without them."""


def to_data(answer: Any, *, lean: bool = False) -> Any:
    """An answer as it goes into JSON; data of JSON stays as it is.

    A `lean` one is without fields that hold nothing, and its rows without bookkeeping; what a field
    of a row holds is never changed.
    """
    type_ = type(answer)
    if type_ in _UNCHANGED:
        return answer
    if hasattr(type_, "__declared__"):
        return lean_row(row_to_data(answer)) if lean else row_to_data(answer)
    attributes: Any = getattr(type_, "__attrs_attrs__", ())
    if names := getattr(type_, "_fields", None) or [each.name for each in attributes]:
        answer = {name: getattr(answer, name) for name in names}
    if isinstance(answer, dict):
        shown = {str(key): to_data(value, lean=lean) for key, value in answer.items()}
        return {key: value for key, value in shown.items() if value is not None} if lean else shown
    if isinstance(answer, list | tuple | set | frozenset):
        return [to_data(each, lean=lean) for each in answer]
    return _value_to_data(answer)


def row_to_data(row: Any) -> dict[str, Any]:
    """A row with all its fields, in the order of their declaration; secrets read `***`."""
    from herdbook.ports.engine.codec import encode_row  # noqa: PLC0415 - many answers have no row

    kind = _kinds()[type(row)]
    values = encode_row(kind, row)
    data = {name: values.get(name) for name in kind.columns}
    return data | entry_times(row) if kind.name == "journal" else data


def entry_times(entry: Any) -> dict[str, Any]:
    """The time of a journal entry and its clock stamp, which orders it, as JSON has them."""
    from herdbook.ports.engine.codec import format_time  # noqa: PLC0415 - many answers have no row

    return {"at": format_time(entry.time), "stamp": str(entry.at)}


def lean_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row without fields that hold nothing and without bookkeeping."""
    return {
        name: value for name, value in row.items() if value is not None and name not in BOOKKEEPING
    }


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
