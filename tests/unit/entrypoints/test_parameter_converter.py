"""One converter for the parameters of the command line, JSON-RPC and MCP."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from herdbook.domain.errors import InvalidValue
from herdbook.domain.secret import Secret
from herdbook.entrypoints.cli.parser import SHELL, find_operation, parse
from herdbook.entrypoints.mcp.arguments import values_of
from herdbook.entrypoints.mcp.tools import TOOLS
from herdbook.entrypoints.operations.model import Parameter
from herdbook.entrypoints.operations.parameter_converter import MCP, RPC, Wire, convert
from herdbook.entrypoints.rpc.messages import RpcError
from herdbook.entrypoints.rpc.methods import methods

TYPED = SHELL._replace(read_input=lambda name: f"what was typed as {name}")
WIRES = {"shell": TYPED, "rpc": RPC, "mcp": MCP}


def on_the_command_line(words: list[str]) -> tuple[str, str]:
    operation, rest = find_operation(words)
    assert operation is not None
    with pytest.raises(InvalidValue) as refused:
        parse(operation, rest)
    return refused.value.field, refused.value.reason


def over_rpc(method: str, params: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(RpcError) as refused:
        methods()[method].arguments(params)
    return refused.value.data["field"], refused.value.data["reason"]


def by_a_model(tool: str, given: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(InvalidValue) as refused:
        values_of(next(each for each in TOOLS if each.name == tool), given)
    return refused.value.field, refused.value.reason


@pytest.mark.parametrize(
    ("words", "tool", "given"),
    [
        (["task", "ready", "--limit", "many"], "ready", {"limit": "many"}),
        (["task", "ready", "--limit", "0"], "ready", {"limit": 0}),
        (["task", "ready", "--limit", str(2**63)], "ready", {"limit": 2**63}),
        (["agent", "add", "--mode", "sleep"], "introduce", {"mode": "sleep"}),
        (["task", "claim", "--ttl", "soon"], "claim", {"ttl": "soon"}),
        (["conversation", "listen", "--wait", "-3s"], "listen", {"wait": "-3s"}),
        (["status", "--worktree", "a\0b"], "status", {"worktree": "a\0b"}),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_the_same_mistake_gets_the_same_words(
    words: list[str], tool: str, given: dict[str, Any]
) -> None:
    """From a shell, a program and a model."""
    words = [*words[:-2], f"{words[-2]}={words[-1]}"]
    method = ".".join(words[:-1])
    said = on_the_command_line(words)
    assert said == over_rpc(method, given) == by_a_model(tool, given)
    assert said[0] in given


def text(kind: str, **more: Any) -> Parameter:
    return Parameter("it", "what it is", kind=kind, **more)


@pytest.mark.parametrize("name", WIRES)
@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("text", "a text", "a text"),
        ("moment", "2026-05-01T12:00Z", datetime(2026, 5, 1, 12, tzinfo=UTC)),
        ("duration", "90s", timedelta(seconds=90)),
        ("position", "7", 7),
        ("position", "#7", 7),
        ("position", 8, 8),
        ("position", "2026-05-01T14:00+02:00", datetime(2026, 5, 1, 12, tzinfo=UTC)),
        ("number", 7, 7),
        ("flag", True, True),
    ],
)
def test_every_wire_takes_a_value_of_the_right_type(
    name: str, kind: str, given: object, value: object
) -> None:
    """A time and a length of time are written the same way everywhere."""
    assert convert(text(kind), given, WIRES[name], "it") == value


@pytest.mark.parametrize(
    ("kind", "given", "values"),
    [
        ("text", "-", ("what was typed as it", "-", "-")),
        ("number", "7", (7, InvalidValue, 7)),
        ("yesno", "yes", (True, InvalidValue, InvalidValue)),
        ("yesno", "True", (InvalidValue, InvalidValue, True)),
        ("duration", 90, (InvalidValue, timedelta(seconds=90), InvalidValue)),
        ("path", "/src/app", ("/src/app", InvalidValue, InvalidValue)),
        ("secret", "s3cret", (InvalidValue, Secret("s3cret"), Secret("s3cret"))),
        ("secret", "-", (Secret("what was typed as it"), Secret("-"), Secret("-"))),
        ("texts", "which port?", (["which port?"], "which port?", "which port?")),
        ("texts", '["a", "b"]', (["a", "b"], '["a", "b"]', '["a", "b"]')),
        ("json", '{"a": 1}', ({"a": 1}, '{"a": 1}', '{"a": 1}')),
        ("text", "\ud800", ("\ud800", "\ud800", InvalidValue)),
    ],
)
def test_wires_differ_in_what_they_accept_and_in_nothing_else(
    kind: str, given: object, values: tuple[Any, Any, Any]
) -> None:
    """What each takes is a column of its row."""
    for wire, value in zip(WIRES.values(), values, strict=True):
        if value is InvalidValue:
            with pytest.raises(InvalidValue) as refused:
                convert(text(kind), given, wire, "it")
            assert refused.value.field == "it"
        else:
            assert convert(text(kind), given, wire, "it") == value


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_what_is_no_position_is_refused(wire: Wire) -> None:
    """A time needs its zone and a place in the calendar, a number a length that one can have."""
    wrong = ("", "#", "-1", "seven", "7.0", "7 ", "2026-05-01T12:00", "٣", "9" * 19, "9" * 5_000)
    for given in (*wrong, "0001-01-01T00:00+14:00", -1, True, 1.5, [7], 10**30):
        with pytest.raises(InvalidValue) as refused:
            convert(text("position"), given, wire, "it")
        assert refused.value.field == "it"


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_several_values_are_converted_one_by_one(wire: Wire) -> None:
    """None of them reads standard input, and none at all is refused."""
    several = text("text", many=True)
    assert convert(several, ["a", "-"], wire, "it") == ["a", "-"]
    for wrong in ([], "a", ["a", 7], ["a\0"]):
        with pytest.raises(InvalidValue):
            convert(several, wrong, wire, "it")
