"""The cattrs converter of the wires: answers become JSON data, JSON data becomes rows and values.

JSON-RPC, MCP and the Python client use it. Commands do not, because importing cattrs takes 40 ms:
`serialize.to_data` gives them the same JSON, byte for byte, which a test compares for every kind.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, TypeVar

from cattrs import Converter
from cattrs.cols import is_namedtuple, namedtuple_dict_unstructure_factory
from cattrs.gen import make_dict_unstructure_fn

from herdbook.domain.clock import Stamp
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry
from herdbook.domain.secret import HIDDEN, Secret
from herdbook.entrypoints.operations.serialize import entry_times
from herdbook.ports.engine.codec import decode_row, enum_value, format_time
from herdbook.ports.engine.dictionary import ROW_KINDS
from herdbook.ports.engine.kinds import Kind
from herdbook.services.listing import Listing

T = TypeVar("T")

_KINDS: Mapping[Any, Kind[Any]] = {kind.entity: kind for kind in ROW_KINDS.values()}
_AS_LISTS: Mapping[type, Any] = {AbstractSet: list, tuple: list}
_ROWS = Converter(detailed_validation=False, unstruct_collection_overrides=_AS_LISTS)
"""For the fields of a row: times have all their digits, and bytes are given by their number."""
_VALUES = Converter(detailed_validation=False, unstruct_collection_overrides=_AS_LISTS)
"""For everything else."""


def unstructure(answer: Any) -> Any:
    """An answer as it goes into JSON."""
    return _VALUES.unstructure(answer)


def structure(value: Any, type_: type[T]) -> T:
    """A value of a type, from JSON data; InvalidValue if it is not of that type."""
    try:
        return _VALUES.structure(value, type_)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        name = getattr(type_, "__name__", str(type_))
        raise InvalidValue(name, f"cannot be read from {value!r:.40} ({error})") from error


def check_row_type(type_: type) -> None:
    """Raise InvalidValue for a type that is no kind of rows."""
    if type_ not in _KINDS:
        raise InvalidValue("entity", f"{type_.__name__} is no kind of rows that Herdbook keeps")


def _identity(value: Any) -> Any:
    return value


def _is_choice(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, Enum)


def _is_document(type_: Any) -> bool:
    return type_ in (Any, dict[str, Any])


def _unstructure_listing(rows: Listing[Any]) -> list[Any]:
    return [_VALUES.unstructure(row) for row in rows]


def _configure() -> None:
    for converter in (_ROWS, _VALUES):
        converter.register_unstructure_hook_func(_is_choice, enum_value)
        converter.register_unstructure_hook(Secret, lambda _: HIDDEN)
        converter.register_unstructure_hook(timedelta, timedelta.total_seconds)
    _ROWS.register_unstructure_hook(datetime, format_time)
    _ROWS.register_unstructure_hook(Stamp, str)
    _ROWS.register_unstructure_hook(bytes, len)
    _ROWS.register_unstructure_hook_func(_is_document, _identity)
    _VALUES.register_unstructure_hook(datetime, datetime.isoformat)
    _VALUES.register_unstructure_hook_factory(is_namedtuple, namedtuple_dict_unstructure_factory)
    _VALUES.register_unstructure_hook_factory(
        _KINDS.__contains__, lambda entity: make_dict_unstructure_fn(entity, _ROWS)
    )
    entry_fields = make_dict_unstructure_fn(JournalEntry, _ROWS)
    _VALUES.register_unstructure_hook(
        JournalEntry, lambda entry: entry_fields(entry) | entry_times(entry)
    )
    _VALUES.register_unstructure_hook(Listing, _unstructure_listing)
    _VALUES.register_structure_hook(datetime, lambda text, _: datetime.fromisoformat(text))
    _VALUES.register_structure_hook_func(
        _KINDS.__contains__, lambda values, entity: decode_row(_KINDS[entity], values)
    )
    _VALUES.register_structure_hook(
        JournalEntry, lambda values, _: decode_row(_KINDS[JournalEntry], _with_stamp(values))
    )


def _with_stamp(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a journal entry, whose `at` is its stamp."""
    fields = dict(values)
    stamp = fields.pop("stamp")
    return {**fields, "at": stamp}


_configure()
