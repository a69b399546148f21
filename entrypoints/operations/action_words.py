"""How an operation that answers what waits for a person is typed on the command line."""

from collections.abc import Mapping
from typing import Any

from herdbook.entrypoints.operations.model import json_name, option_name, parameters_of
from herdbook.entrypoints.operations.registry import OPERATIONS


def action_words(action: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The options of an action, and the values that stand without a name, in their order."""
    operation = next(each for each in OPERATIONS if each.name == action["method"])
    options: list[str] = []
    values: list[str] = []
    for parameter in parameters_of(operation):
        given = action["params"].get(json_name(parameter))
        words = [str(each) for each in (given if isinstance(given, list) else [given])]
        if given is None:
            continue
        if parameter.positional:
            values += words
        else:
            options += [word for each in words for word in (f"--{option_name(parameter)}", each)]
    return options, values
