"""JSON Schemas: of parameters from the table, of rows from the dictionary, of answers from types.

The schema of an answer follows from the return annotation of the handler or the use case. A caller
decides how a row is described in it: with all its fields, or by reference.
"""

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from enum import Enum
from typing import (
    Annotated,
    Any,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from herdbook.domain.values import INTEGERS, LABELS
from herdbook.entrypoints.operations.model import Operation, Parameter, code_of
from herdbook.ports.engine.codec import choices_by_value
from herdbook.ports.engine.dictionary import JOURNAL, ROW_KINDS
from herdbook.ports.engine.kinds import Column, Kind

Schema = dict[str, Any]
RowSchema = Callable[[str], Schema]
"""Gives the schema of a row by the name of its kind."""

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
WHOLE: Schema = {"type": "integer", "minimum": INTEGERS[0], "maximum": INTEGERS[-1]}
FLAG: Schema = {"type": "boolean"}
NULL: Schema = {"type": "null"}
MOMENT: Schema = {"type": "string", "format": "date-time"}
_TYPES = ("object", "array", "string", "number", "boolean", "null")
ANYTHING: Schema = {"anyOf": [{"type": each} for each in _TYPES]}
_OF_PARAMETERS: Mapping[str, Schema] = {
    "number": WHOLE,
    "fence": {"anyOf": [INTEGER, TEXT]},
    "flag": FLAG,
    "yesno": FLAG,
    "moment": MOMENT,
    "duration": {"type": ["string", "number"], "description": "90s, 5m, 2h, or so many seconds"},
    "position": {"anyOf": [TEXT, INTEGER]},
    "json": ANYTHING,
    "texts": ANYTHING,
}
_OF_COLUMNS: Mapping[str, Schema] = {
    "integer": INTEGER,
    "flag": FLAG,
    "moment": MOMENT,
    "document": ANYTHING,
    "secret": {"const": "***"},
    "bytes": {**INTEGER, "description": "how many there are"},
}
_PLAIN: Mapping[Any, Schema] = {
    str: TEXT,
    int: INTEGER,
    float: NUMBER,
    bool: FLAG,
    datetime: MOMENT,
    date: {"type": "string", "format": "date"},
    timedelta: {**NUMBER, "description": "seconds"},
    type(None): NULL,
    Any: {},
}


def parameter_schema(parameter: Parameter) -> Schema:
    """The values that a parameter takes."""
    schema = dict(_OF_PARAMETERS.get(parameter.kind, TEXT))
    if parameter.choices:
        schema["enum"] = list(parameter.choices)
    if parameter.name == "limit":
        schema["minimum"] = 1
    if parameter.default is not None:
        schema["default"] = parameter.default
    return {"type": "array", "items": schema, "minItems": 1} if parameter.many else schema


def row_schema(kind: Kind[Any]) -> Schema:
    """A row with all its fields."""
    fields = {name: _column_schema(each) for name, each in kind.columns.items()}
    if kind is JOURNAL:  # `serialize.entry_times`
        fields |= {"at": MOMENT, "stamp": TEXT}
    return object_schema(fields)


def whole_row_schema(name: str) -> Schema:
    """A row with all its fields, by the name of its kind."""
    return row_schema(ROW_KINDS[name])


def _column_schema(column: Column) -> Schema:
    choices = choices_by_value(column)
    schema = {"enum": list(choices)} if choices else _OF_COLUMNS.get(column.type_name, TEXT)
    if column.rule is LABELS:
        schema = {"type": "array", "items": TEXT}
    return _or_null(schema) if column.optional else schema


def object_schema(fields: Mapping[str, Schema]) -> Schema:
    """An object that has all these fields."""
    return {"type": "object", "properties": dict(fields), "required": list(fields)}


def _or_null(schema: Schema) -> Schema:
    return schema if schema is ANYTHING else {"anyOf": [schema, NULL]}


def answer_schema(operation: Operation, row: RowSchema) -> Schema:
    """What an operation answers: rows of its entity, or what its code is annotated to return."""
    if operation.entity:
        one = row(operation.entity)
        if not operation.code.startswith("crud.") and operation.words[-1] == "show":
            return _merge_objects(one, type_schema(_return_hint(operation.code), row))
        is_list = operation.words[-1] in ("list", "rm")
        return {"type": "array", "items": one} if is_list else one
    return type_schema(_return_hint(operation.use_case or operation.code), row)


def _return_hint(name: str) -> Any:
    return get_type_hints(code_of(name), include_extras=True)["return"]


def _merge_objects(one: Schema, more: Schema) -> Schema:
    """An object with the fields of two."""
    if "properties" not in one:
        return {"allOf": [one, more]}
    fields = {**one["properties"], **more["properties"]}
    required = dict.fromkeys((*one["required"], *more["required"]))
    return {**object_schema(fields), "required": list(required)}


def type_schema(hint: Any, row: RowSchema = whole_row_schema) -> Schema:
    """What a value of a type is in JSON; anything where the type does not tell.

    Where JSON has another shape than the value, `Annotated` names the type of that shape.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Annotated, NotRequired):
        shapes = [each for each in inner[1:] if get_origin(each)]
        return type_schema((shapes or inner)[0], row)
    if origin in (Union, types.UnionType):
        # What is iterated over comes whole, as a list, when it is asked for by a program.
        kept = [each for each in inner if get_origin(each) is not Iterator]
        schemas = [type_schema(each, row) for each in kept]
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if origin in (list, set, frozenset, tuple, Sequence, Iterator):
        items = [type_schema(each, row) for each in inner if each is not ...]
        is_fixed = origin is tuple and ... not in inner
        return {"type": "array", "items": items if is_fixed else items[0]}
    if origin in (dict, Mapping):
        values: Schema | bool = True if inner[1] is Any else type_schema(inner[1], row)
        return {"type": "object", "additionalProperties": values}
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    return _class_schema(hint, row) if isinstance(hint, type) else {}


def _class_schema(hint: type, row: RowSchema) -> Schema:
    for kind in ROW_KINDS.values():
        if kind.entity is hint:
            return row(kind.name)
    if issubclass(hint, Enum):
        return {"enum": [each.value for each in hint]}
    if is_typeddict(hint) or hasattr(hint, "_fields") or hasattr(hint, "__attrs_attrs__"):
        fields = get_type_hints(hint, include_extras=True).items()
        schema = object_schema({name: type_schema(each, row) for name, each in fields})
        optional = getattr(hint, "__optional_keys__", ())
        return {**schema, "required": [each for each in schema["required"] if each not in optional]}
    return {}
