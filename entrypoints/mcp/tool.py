"""What a tool is: an operation of the table, as a model sees it."""

from typing import NamedTuple

from herdbook.entrypoints.operations.model import Operation, Parameter, parameters_of
from herdbook.entrypoints.operations.registry import OPERATIONS


class Shown(NamedTuple):
    """A parameter of an operation that a model may give, with words made for it.

    Its type, its choices and its default are the table's. It has the name it has there, unless it
    is `called` something else, and may be `required` where the table does not say so.
    """

    parameter: str
    help: str
    called: str = ""
    required: bool = False

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.called or self.parameter


class Tool(NamedTuple):
    """One tool: its operation, when a model is to use it, and what it gives.

    What is no object by itself is given `under` a name. What only `reads` asks nobody who they are,
    unless it is `personal`. The name of the agent that acts is filled into the parameter `acts`.
    What is `repeatable` does no more when done twice.
    """

    name: str
    operation: str
    title: str
    description: str
    shown: tuple[Shown, ...]
    under: str = ""
    reads: bool = False
    personal: bool = True
    acts: str = ""
    repeatable: bool = False

    @property
    def waits(self) -> bool:
        """Whether it may take as long as it is told to."""
        return any(each.name == "wait" for each in self.shown)


def operation_of(tool: Tool) -> Operation:
    """The row of the table behind a tool."""
    return next(each for each in OPERATIONS if each.name == tool.operation)


def shown_parameters(tool: Tool) -> dict[str, tuple[Shown, Parameter]]:
    """What a model may give, by the name it gives it under, with what the table says of it."""
    listed = {each.name: each for each in parameters_of(operation_of(tool))}
    return {each.name: (each, listed[each.parameter]) for each in tool.shown}
