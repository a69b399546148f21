"""Parameters of commands that follow from the fields of an entity.

The dictionary says what a row of each kind holds; a new field of an entity is a new option here and
a new key in the JSON without another word.
"""

from typing import Any

from herdbook.entrypoints.operations.model import Operation, Parameter
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import Column, Kind

KEPT = frozenset({"id", "created_at", "updated_at", "version", "worktree_id"})
"""What the unit of work fills in."""
MANAGED = {
    "tasks": frozenset({"fence", "retry_count", "assignee_id", "type"}),
    "accounts": frozenset({"last_used_at"}),
    "change_sets": frozenset({"tx", "status"}),
    "log_chunks": frozenset({"agent_name"}),
}
"""What only use cases set."""
BY_HAND = {("tasks", "status"): ("pending", "blocked", "completed")}
"""The choices that a person may make; the others come about by claims."""
_KINDS = {
    "integer": "number",
    "number choice": "number",
    "flag": "yesno",
    "moment": "moment",
    "document": "json",
    "secret": "secret",
}


def kind_of(operation: Operation) -> Kind[Any]:
    """The kind of rows that an operation is about."""
    return DICTIONARY.kinds[operation.entity]


def entity_parameters(operation: Operation) -> tuple[Parameter, ...]:
    """The parameters that follow from the entity: what may be added, changed or asked for."""
    kind, verb = kind_of(operation), operation.words[-1]
    left_out = KEPT | MANAGED.get(kind.name, frozenset())
    columns = [column for name, column in kind.columns.items() if name not in left_out]
    if verb == "list":
        looked_up = {name for lookup in kind.all_lookups for name in lookup}
        columns = [
            kind.columns[name]
            for name in kind.columns
            if name in looked_up and kind.columns[name].type_name not in ("moment", "integer")
        ]
    return tuple(_parameter(kind, column, operation) for column in columns)


def _parameter(kind: Kind[Any], column: Column, operation: Operation) -> Parameter:
    positional = operation.words[-1] == "add" and column.name == operation.positional
    needed = operation.words[-1] == "add" and not column.has_default and not column.optional
    choices: tuple[str, ...] = ()
    if column.type_name == "choice":
        every = tuple(str(each.value) for each in column.rule.python_type)  # type: ignore[attr-defined]
        by_hand = BY_HAND.get((kind.name, column.name), every)
        choices = every if operation.words[-1] == "list" else by_hand
    return Parameter(
        column.name if positional else option_of(kind, column.name),
        _help(kind, column),
        kind=_KINDS.get(column.type_name, "text"),
        positional=positional,
        required=needed,
        choices=choices,
        field=column.name,
    )


def option_of(kind: Kind[Any], name: str) -> str:
    """What a field is called on the command line: `phase` for `phase_id`."""
    refers = any(each.field == name for each in kind.references)
    return name.removesuffix("_id") if refers else name


def _help(kind: Kind[Any], column: Column) -> str:
    for reference in kind.references:
        if reference.field == column.name:
            return f"the id of a {DICTIONARY.kinds[reference.target].title}, or the beginning of it"
    words = column.name.replace("_", " ")
    return {
        "text": f"{words}; - reads it from standard input",
        "moment": f"{words}, such as 2026-05-01T12:00Z",
        "document": f"{words}, as JSON",
        "secret": f"{words}; only - is taken, which reads it from standard input",
    }.get(column.type_name, words)
