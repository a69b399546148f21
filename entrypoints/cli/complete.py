"""Completions for shells: commands and options from the table, ids and names from the store."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from herdbook.entrypoints.cli.parser import SHELL, find_operation
from herdbook.entrypoints.operations.model import Operation, Parameter, option_name, parameters_of
from herdbook.entrypoints.operations.registry import OPERATIONS

COMMON = ("--json", "--help", "--agent", "-C", "--store", "--work", "--checkpoints", "--record")
NAMED_AS = {
    "after": "tasks",
    "agent": "agents",
    "agents": "agents",
    "initiative": "initiatives",
    "parent_task": "tasks",
    "phase": "phases",
    "project": "projects",
    "task": "tasks",
    "to": "agents",
    "acting agent": "agents",
    "acting agent or person": "agents",
    "agents or acting agent": "agents",
}
"""The kinds of rows that parameters name, by their own name where the table does not say it."""
MOST = 200
"""How many rows are looked at for their ids and names."""
_WORD = re.compile(r"[\w.@/-]+")
"""A name that a shell takes as it is; of other rows, the beginning of the id is offered."""


def candidates(words: Sequence[str]) -> list[str]:
    """The words that could stand where the last one is, in order."""
    *before, last = words or [""]
    operation, _ = find_operation(before)
    found = _commands(before) if operation is None else _options(operation, before, last)
    return sorted({each for each in found if each.startswith(last)})


def _commands(before: Sequence[str]) -> list[str]:
    place = len(before)
    fitting = [each for each in OPERATIONS if list(each.words[:place]) == list(before)]
    aliases = [each.alias for each in OPERATIONS if each.alias and not before]
    return [each.words[place] for each in fitting if len(each.words) > place] + aliases


def _options(operation: Operation, before: Sequence[str], last: str) -> list[str]:
    parameters = parameters_of(operation)
    for parameter in parameters:
        if before[-1] == f"--{option_name(parameter)}" and parameter.kind != "flag":
            choices = parameter.choices or (SHELL.flags if parameter.kind == "yesno" else ())
            return [*choices, *_rows(_kind_named(operation, parameter), before, last)]
    positional = [each for each in parameters if each.positional]
    choices = tuple(each for parameter in positional for each in parameter.choices)
    options = [f"--{option_name(each)}" for each in parameters if not each.positional]
    kinds = {_kind_named(operation, each) for each in positional} if last[:1] != "-" else set()
    rows = [word for kind in sorted(kinds) for word in _rows(kind, before, last)]
    return [*choices, *rows, *options, *COMMON]


def _kind_named(operation: Operation, parameter: Parameter) -> str:
    """The kind of rows that a parameter names; empty if it names none."""
    if parameter.name in ("id", "ids"):
        return operation.entity
    if parameter.refers:
        return NAMED_AS.get(parameter.refers, parameter.refers)
    return NAMED_AS.get(parameter.name, "")


def _rows(kind_name: str, before: Sequence[str], last: str) -> Iterator[str]:
    """The names and the short ids of rows; none where no store can be read."""
    if not kind_name:
        return
    from herdbook.domain.errors import HerdbookError  # noqa: PLC0415
    from herdbook.entrypoints.context import AppContext  # noqa: PLC0415
    from herdbook.ports.engine.dictionary import DICTIONARY  # noqa: PLC0415
    from herdbook.services.crud import complete_rows  # noqa: PLC0415

    folder = before[before.index("-C") + 1] if "-C" in before[:-1] else "."
    kind = DICTIONARY.kinds[kind_name]
    try:
        app = AppContext.at(Path(folder), os.environ)
        rows = app.read(kind.area, complete_rows, kind, last, limit=MOST)
    except (HerdbookError, OSError):
        return  # a prompt is no place for an error, and the command itself will tell it
    from herdbook.entrypoints.cli.text import short_id  # noqa: PLC0415

    for row in rows:
        key, name = str(kind.key_of(row)), str(vars(row).get("name") or "")
        if _WORD.fullmatch(name):
            yield name
        else:
            yield key if last.startswith(f"{kind.prefix}_") else short_id(key)
