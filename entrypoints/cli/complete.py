"""Completions for shells, from the table alone, so that they take no time."""

from collections.abc import Sequence

from herdbook.entrypoints.cli.parser import SHELL, find_operation
from herdbook.entrypoints.operations.model import Operation, option_name, parameters_of
from herdbook.entrypoints.operations.registry import OPERATIONS

COMMON = ("--json", "--help", "-C", "--store", "--work", "--checkpoints", "--record")


def candidates(words: Sequence[str]) -> list[str]:
    """The words that could stand where the last one is, in order."""
    *before, last = words or [""]
    operation, _ = find_operation(before)
    found = _commands(before) if operation is None else _options(operation, before)
    return sorted({each for each in found if each.startswith(last)})


def _commands(before: Sequence[str]) -> list[str]:
    place = len(before)
    fitting = [each for each in OPERATIONS if list(each.words[:place]) == list(before)]
    aliases = [each.alias for each in OPERATIONS if each.alias and not before]
    return [each.words[place] for each in fitting if len(each.words) > place] + aliases


def _options(operation: Operation, before: Sequence[str]) -> list[str]:
    parameters = parameters_of(operation)
    for parameter in parameters:
        if before[-1] == f"--{option_name(parameter)}" and parameter.kind != "flag":
            return list(parameter.choices or (SHELL.flags if parameter.kind == "yesno" else ()))
    choices = [
        each for parameter in parameters if parameter.positional for each in parameter.choices
    ]
    options = [f"--{option_name(each)}" for each in parameters if not each.positional]
    return [*choices, *options, *COMMON]
