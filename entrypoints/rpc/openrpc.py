"""The OpenRPC document, generated from tables and annotations: the answer of `rpc.discover`."""

from functools import cache
from typing import Any, get_type_hints

from herdbook.domain.errors import HerdbookError
from herdbook.entrypoints.cli.help_text import version
from herdbook.entrypoints.operations.error_table import ERRORS
from herdbook.entrypoints.operations.json_schema import (
    Schema,
    answer_schema,
    parameter_schema,
    row_schema,
    type_schema,
)
from herdbook.entrypoints.operations.model import Operation, Parameter, has_past, json_name
from herdbook.entrypoints.rpc import messages
from herdbook.entrypoints.rpc.builtin_methods import BUILTIN_METHODS
from herdbook.entrypoints.rpc.dispatcher import Dispatcher
from herdbook.entrypoints.rpc.methods import Method, methods
from herdbook.ports.engine.dictionary import ROW_KINDS

OPENRPC = "1.3.2"
PAST = "x-past"
"""Of a method: whether `at` lets it answer for an earlier position of the work store."""
PROTOCOL = {
    "InvalidParams": (messages.INVALID_PARAMS, "parameters do not fit; `data.fields` says which"),
    "InternalError": (messages.INTERNAL_ERROR, "internal error"),
    "TooMany": (messages.TOO_MANY, "more is asked for at once than this server does"),
    "RequestCancelled": (messages.CANCELLED, "the request was cancelled"),
}


@cache
def document() -> dict[str, Any]:
    """Every method with its parameters, its answer and its errors."""
    return {
        "openrpc": OPENRPC,
        "info": {
            "title": "Herdbook",
            "description": "The plan, the agents, their grades and the journal of coding agents.",
            "version": version().split()[-1],
        },
        "methods": [
            *(
                _method(each, answer_schema(each.operation, _reference))
                for each in methods().values()
            ),
            *(_method(Method(each), _builtin_answer(each.name)) for each in BUILTIN_METHODS),
        ],
        "components": {
            "schemas": {kind.entity.__name__: row_schema(kind) for kind in ROW_KINDS.values()},
            "errors": {**_protocol(), **{each.__name__: _error(each) for each in ERRORS}},
        },
    }


def _builtin_answer(name: str) -> Schema:
    return type_schema(get_type_hints(Dispatcher.builtin_method(name))["return"])


def _reference(name: str) -> Schema:
    """A reference to the schema of a kind of rows."""
    return {"$ref": f"#/components/schemas/{ROW_KINDS[name].entity.__name__}"}


def _method(method: Method, answer: Schema) -> dict[str, Any]:
    operation: Operation = method.operation
    errors = [*PROTOCOL, *(each.__name__ for each in ERRORS)]
    return {
        "name": method.name,
        "summary": operation.help,
        "paramStructure": "either",
        "params": [_parameter(each) for each in method.parameters],
        "result": {"name": "answer", "schema": answer},
        PAST: has_past(operation),
        "errors": [{"$ref": f"#/components/errors/{name}"} for name in errors],
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": json_name(parameter),
        "description": _description(parameter),
        "required": parameter.required,
        "schema": parameter_schema(parameter),
    }


def _description(parameter: Parameter) -> str:
    """The help text, without what applies to the command line only."""
    return parameter.help.partition("; -")[0].partition("; only -")[0]


def _protocol() -> dict[str, Any]:
    return {name: {"code": code, "message": text} for name, (code, text) in PROTOCOL.items()}


def _error(error: type[HerdbookError]) -> dict[str, Any]:
    sentence = (error.__doc__ or "").partition("\n")[0]
    return {"code": ERRORS[error].code, "message": sentence, "data": {"type": error.__name__}}
