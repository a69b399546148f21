"""The type of a tool: an operation of the table, described for a model."""

from typing import NamedTuple

from herdbook.entrypoints.operations.model import Operation, Parameter, parameters_of
from herdbook.entrypoints.operations.registry import OPERATIONS


class ToolParameter(NamedTuple):
    """A parameter of an operation that a model may give, with a description for it.

    Its type and its choices are those of the table, and so is its name unless it has an `alias`,
    and its default unless it has another. It may be `required` where the table does not say so.
    """

    parameter: str
    help: str
    alias: str = ""
    required: bool = False
    default: str = ""

    @property
    def name(self) -> str:
        """Its name for the model."""
        return self.alias or self.parameter


class Tool(NamedTuple):
    """One tool: its operation, and for the model when to use it and what it gives.

    An answer that is no object is wrapped in one under `answer_key`. A `read_only` tool changes
    nothing. A tool that `needs_agent` is refused until the client is an agent. The name of the
    acting agent is filled into the `agent_parameter`. A `repeatable` tool changes nothing when
    called twice. One that `takes_folder` may be told where the client works.
    """

    name: str
    operation: str
    title: str
    description: str
    parameters: tuple[ToolParameter, ...]
    answer_key: str = ""
    read_only: bool = False
    needs_agent: bool = True
    agent_parameter: str = ""
    repeatable: bool = False
    takes_folder: bool = False

    @property
    def waits(self) -> bool:
        """Whether it may wait."""
        return any(each.name == "wait" for each in self.parameters)


def operation_of(tool: Tool) -> Operation:
    """The row of a tool's operation."""
    return next(each for each in OPERATIONS if each.name == tool.operation)


def tool_parameters(tool: Tool) -> dict[str, tuple[ToolParameter, Parameter]]:
    """The parameters of a tool by their names for the model, each with its row of the table."""
    rows = {each.name: each for each in parameters_of(operation_of(tool))}
    return {
        each.name: (
            each,
            rows[each.parameter]._replace(default=each.default or rows[each.parameter].default),
        )
        for each in tool.parameters
    }
