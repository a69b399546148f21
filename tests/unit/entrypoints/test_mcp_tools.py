"""The tools for models tell the truth about the table behind them."""

import inspect
import re
from datetime import timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from herdbook.domain import errors
from herdbook.domain.errors import AgentHalted, HerdbookError, InvalidValue, NotFound
from herdbook.entrypoints.mcp.arguments import values_of
from herdbook.entrypoints.mcp.schemas import input_schema, output_schema
from herdbook.entrypoints.mcp.server import describe_defect
from herdbook.entrypoints.mcp.tool import Tool, operation_of
from herdbook.entrypoints.mcp.tools import INSTRUCTIONS, TOOLS
from herdbook.entrypoints.operations.call_use_case import ACTING, ACTING_OR_PERSON
from herdbook.entrypoints.operations.error_table import describe_error, describe_for_agent
from herdbook.entrypoints.operations.model import parameters_of
from tests.cases import for_each

RISKY = re.compile(r"\b(delet|reset|re-?creat|wip(e|ing)|rm|drop|force|overwrit)", re.IGNORECASE)
each_tool = for_each("tool", TOOLS, ids=lambda each: each.name)


def the(name: str) -> Tool:
    return next(each for each in TOOLS if each.name == name)


def test_there_are_at_most_twenty_one_tools_with_names_of_their_own() -> None:
    """A model chooses among few, by names that every client takes."""
    names = [each.name for each in TOOLS]
    assert len(set(names)) == len(names) <= 21
    assert all(re.fullmatch(r"[a-z_]{3,20}", name) for name in names)


@each_tool
def test_a_tool_is_an_operation_that_is_offered_to_programs(tool: Tool) -> None:
    """And what only reads is what the table says only reads."""
    operation = operation_of(tool)
    assert not operation.local
    if operation.use_case:
        assert operation.reads is tool.read_only
    assert tool.needs_agent or tool.read_only, "who writes must say who they are"


@each_tool
def test_all_that_an_operation_needs_is_given_by_the_model_or_known(tool: Tool) -> None:
    """And nothing is shown or filled in that the operation does not know."""
    parameters = {each.name: each for each in parameters_of(operation_of(tool))}
    shown = {each.parameter for each in tool.parameters}
    known = {tool.agent_parameter} if tool.agent_parameter else set()
    assert shown | known <= set(parameters)
    assert not shown & known
    needed = {name for name, each in parameters.items() if each.required}
    assert needed <= shown | known
    agents = {
        name for name, each in parameters.items() if each.refers in (ACTING, ACTING_OR_PERSON)
    }
    assert agents <= known


@each_tool
def test_what_a_tool_takes_and_gives_is_a_schema_of_an_object(tool: Tool) -> None:
    """One that says what may not be given as well."""
    taken, given = input_schema(tool), output_schema(tool)
    for schema in (taken, given):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert taken["additionalProperties"] is False
    assert all(each["description"] for each in taken["properties"].values())
    assert set(taken.get("required", ())) <= set(taken["properties"])
    assert given["required"]


@each_tool
def test_a_choice_of_the_table_is_a_choice_of_the_model(tool: Tool) -> None:
    """With the same default, unless the tool has one of its own: its server renews leases."""
    parameters = {each.name: each for each in parameters_of(operation_of(tool))}
    for shown in tool.parameters:
        schema = input_schema(tool)["properties"][shown.name]
        row = parameters[shown.parameter]
        assert tuple(schema.get("enum", ())) == row.choices
        assert schema.get("default") == (shown.default or row.default)
        assert bool(shown.default) == (shown.parameter == "ttl")


@each_tool
def test_a_description_says_when_to_use_a_tool_and_never_tempts_to_destroy(tool: Tool) -> None:
    """Models do as they are told."""
    words = [tool.description, tool.title, *(each.help for each in tool.parameters)]
    assert not any(RISKY.search(each) for each in words)
    assert tool.description.endswith(".")
    assert len(tool.description) < 600
    assert not RISKY.search(INSTRUCTIONS)


def some(error: type[HerdbookError]) -> HerdbookError:
    """An error of this type about something."""
    values: dict[str, Any] = {"cycle": ("a", "b"), "kinds": ("tasks",), "fields": ("name",)}
    numbers = {"fence", "current", "version", "skill_points", "waited", "schema_version", "known"}
    numbers |= {"seq", "first", "wanted"}
    names = [name for name in inspect.signature(error).parameters if name != "since"]
    return error(
        **{name: values.get(name, 1 if name in numbers else "brisk-otter") for name in names}
    )


@for_each(
    "error",
    [
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, HerdbookError) and each is not HerdbookError
    ],
)
def test_every_refusal_says_what_to_do_next(error: type[HerdbookError]) -> None:
    """After what happened, in a sentence of its own, and never to destroy something."""
    raised = some(error)
    begin = f"{error.__name__}: {raised}"
    assert describe_error(raised)["type"] == error.__name__
    for tool in TOOLS:
        said = describe_for_agent(raised, tool.name)
        assert said.startswith(begin)
        assert re.fullmatch(r"\. [A-Z].*[^.]\.", said.removeprefix(begin))
        assert not RISKY.search(said.removeprefix(begin))
        assert "{" not in said


def test_a_halted_agent_is_told_whom_to_turn_to() -> None:
    """To the person, with the command that lets it go on."""
    said = describe_for_agent(AgentHalted("brisk-otter", 0), "claim")
    assert "`herdbook reinstate brisk-otter`" in said


def test_a_defect_is_told_without_its_details() -> None:
    """They are for the log."""
    said = describe_defect(RuntimeError("at /people/me/secret.py"))
    assert "RuntimeError" in said
    assert "secret" not in said


def test_a_text_is_taken_as_it_is() -> None:
    """Also the one that reads standard input on the command line."""
    values = values_of(the("message"), {"content": "-"})
    assert values["content"] == "-"


def test_what_is_not_given_is_as_the_table_has_it() -> None:
    """Lengths of time too; and null counts as not given."""
    values = values_of(the("claim"), {"initiative": None})
    named = dict.fromkeys(("task", "agent", "initiative", "phase"))
    assert values == {**named, "ttl": timedelta(minutes=5)}
    assert values_of(the("message"), {"content": "hello"})["requires_response"] is False


@for_each(
    ("given", "taken"),
    [("90s", 90), ("5m", 300), ("2h", 7_200), ("1d", 86_400), ("7", 7), (" 1.5 m ", 90)],
)
def test_a_length_of_time_is_written_as_on_the_command_line(given: str, taken: int) -> None:
    """A number and a unit."""
    assert values_of(the("listen"), {"wait": given})["wait"] == timedelta(seconds=taken)


@for_each(
    ("tool", "given", "field"),
    [
        ("ready", {"limt": 3}, "limt"),
        ("ready", {"limit": "many"}, "limit"),
        ("ready", {"limit": True}, "limit"),
        ("ready", {"limit": 1.5}, "limit"),
        ("listen", {"wait": "soon"}, "wait"),
        ("listen", {"wait": 30}, "wait"),
        ("ready", {"limit": 2**63}, "limit"),
        ("status", {"worktree": "a\0b"}, "worktree"),
        ("status", {"worktree": "\ud800"}, "worktree"),
        ("introduce", {"mode": "sleep"}, "mode"),
        ("message", {"content": "a", "requires_response": "maybe"}, "requires_response"),
        ("message", {"content": ["a"]}, "content"),
        ("message", {"to": "quick-lynx"}, "content"),
        ("complete", {}, "summary"),
        ("answer", {"text": "8080"}, "question"),
    ],
)
def test_what_does_not_fit_is_refused_by_the_name_the_model_knows(
    tool: str, given: dict[str, Any], field: str
) -> None:
    """Nothing is guessed, and nothing is passed over."""
    with pytest.raises(InvalidValue) as refused:
        values_of(the(tool), given)
    assert refused.value.field == field


def test_a_number_may_come_as_text() -> None:
    """Some clients send everything as text."""
    assert values_of(the("ready"), {"limit": "3"}) == values_of(the("ready"), {"limit": 3})


def test_a_truth_value_may_come_as_text() -> None:
    """As a number may."""
    given = {"content": "may I merge?", "requires_response": "True"}
    assert values_of(the("message"), given)["requires_response"] is True


def test_nothing_ready_is_no_reason_to_look_an_id_up() -> None:
    """The same error means something else to another tool."""
    error = NotFound("ready task", "for this agent")
    assert "call status" in describe_for_agent(error, "claim")
    assert "Look up its id" in describe_for_agent(NotFound("task", "a1b2"), "show_task")
