"""The table of operations tells the truth about the code behind it."""

import inspect
import shlex
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from herdbook.domain import errors
from herdbook.domain.clock import Stamp
from herdbook.entrypoints.cli.parser import argument_parser, find_operation
from herdbook.entrypoints.cli.reference import error_reference
from herdbook.entrypoints.operations.call_use_case import (
    ACTING,
    ACTING_OR_PERSON,
    AGENT_OR_ACTING,
)
from herdbook.entrypoints.operations.error_table import ERRORS, describe_error, row_of
from herdbook.entrypoints.operations.model import (
    AT,
    Operation,
    code_of,
    option_name,
    parameters_of,
)
from herdbook.entrypoints.operations.registry import OPERATIONS
from herdbook.ports.engine.dictionary import DICTIONARY
from tests.cases import for_each

VERBS = ("add", "list", "set")
each_operation = for_each("operation", OPERATIONS, ids=lambda each: each.name)


@each_operation
def test_the_code_takes_the_parameters_that_the_table_lists(operation: Operation) -> None:
    """By name, behind the place, and nothing else."""
    first, *rest = inspect.signature(code_of(operation.code)).parameters.values()
    assert first.name == "app"
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in rest)
    if not operation.use_case:
        wanted = [each.name for each in operation.parameters]
        if operation.entity:
            wanted += ["entity", *(["values"] if operation.words[-1] in VERBS else [])]
        assert [each.name for each in rest] == wanted


@each_operation
def test_a_use_case_takes_the_parameters_that_the_table_lists(operation: Operation) -> None:
    """All that it needs is listed, and it knows all that is listed."""
    if operation.use_case:
        _, *rest = inspect.signature(code_of(operation.use_case)).parameters.values()
        listed = {each.name for each in operation.parameters if each is not AT}
        assert listed <= {each.name for each in rest}
        assert {each.name for each in rest if each.default is each.empty} <= listed


TYPES = {"number": int, "flag": bool, "yesno": bool, "moment": datetime, "duration": timedelta}
EITHER = {"position": {int, datetime}, "fence": {int, Stamp}}
"""The kinds of parameters that are one of two types."""


@each_operation
def test_a_row_says_of_a_parameter_what_its_annotation_says(operation: Operation) -> None:
    """Its type, its choices, and whether there may be none."""
    code = code_of(operation.use_case or operation.code)
    hints, taken = get_type_hints(code), inspect.signature(code).parameters
    for each in operation.parameters:
        if operation.use_case and each is AT:
            assert operation.reads, "the past is read, and by no use case itself"
            continue
        hint = hints[each.name]
        kinds = set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}
        may_be_none = NoneType in kinds
        if either := EITHER.get(each.kind):
            assert kinds - {NoneType} == either, each.name
            kinds = kinds - either | {str}
        (kind,) = kinds - {NoneType}
        if each.many:
            assert get_args(kind) == (str,), each.name
        elif each.kind in ("json", "texts"):
            assert kind is Any, each.name
        elif isinstance(kind, type) and issubclass(kind, Enum):
            assert set() < set(each.choices) <= {choice.value for choice in kind}, each.name
        else:
            assert kind is TYPES.get(each.kind, str), each.name
        is_none = not each.required and each.default is None and each.kind != "flag"
        if not operation.use_case:
            assert is_none == may_be_none, each.name
        elif is_none and each.refers not in (ACTING, AGENT_OR_ACTING):
            assert taken[each.name].default is not inspect.Parameter.empty, each.name


@each_operation
def test_what_a_parameter_refers_to_is_kept(operation: Operation) -> None:
    """A kind of rows of the dictionary, or the agent that acts."""
    for parameter in operation.parameters:
        known = {"", ACTING, ACTING_OR_PERSON, AGENT_OR_ACTING, *DICTIONARY.kinds}
        assert parameter.refers in known
    assert operation.entity in {"", *DICTIONARY.kinds}


@each_operation
def test_every_operation_has_a_screen_a_help_line_and_an_example(operation: Operation) -> None:
    """The example calls it by its words or its alias."""
    assert callable(code_of(operation.view))
    assert operation.help[0].islower()
    assert not operation.help.endswith(".")
    calls = (f"herdbook {' '.join(operation.words)}", f"herdbook {operation.alias or '?'}")
    assert operation.example.startswith(calls)
    assert all(each.help for each in operation.parameters)


@each_operation
def test_every_command_explains_itself_with_an_example(operation: Operation) -> None:
    """Its help names every parameter and shows how it is called."""
    parameters = parameters_of(operation)
    text = argument_parser(operation, parameters).format_help()
    assert f"example: {operation.example}" in text
    for parameter in parameters:
        name = option_name(parameter)
        if not parameter.positional:
            assert f"--{name} " in f"{text} ".replace("\n", " ")
        elif not parameter.choices:
            assert name.upper() in text


@each_operation
def test_every_example_can_be_typed(operation: Operation) -> None:
    """The parser takes it as it is."""
    _, *words = shlex.split(operation.example)
    chosen, rest = find_operation(words)
    assert chosen is operation
    argument_parser(operation, parameters_of(operation)).parse_args(rest)


def test_names_are_unique_and_no_command_hides_another() -> None:
    """The first words of a line name one operation.

    One name may begin with another if the shorter one is looked for later, and its first argument
    has choices of which the longer one's next word is none: `backup work` and `backup list`.
    """
    words = [each.words for each in OPERATIONS]
    assert len(set(words)) == len(words)
    for short, one in enumerate(OPERATIONS):
        for long, other in enumerate(OPERATIONS):
            if one is not other and one.words == other.words[: len(one.words)]:
                assert long < short
                first = next(each for each in one.parameters if each.positional)
                assert first.choices
                assert other.words[len(one.words)] not in first.choices


def test_every_error_has_one_row() -> None:
    """With an exit code, an RPC code of its own, a status of HTTP and an advice."""
    known = {
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, errors.HerdbookError) and each is not errors.HerdbookError
    }
    assert set(ERRORS) == known
    rows = ERRORS.values()
    assert {each.exit_code for each in rows} == {1, 2, 3, 4, 5}
    assert len({each.code for each in rows}) == len(rows)
    for each in rows:
        assert not -32_768 <= each.code <= -32_000, "JSON-RPC keeps these for itself"
        assert 400 <= each.http_status <= 599
        assert each.advice


def test_the_page_of_errors_is_up_to_date() -> None:
    """`make docs` writes it."""
    page = Path(__file__).parents[3] / "docs" / "errors.md"
    assert page.read_text() == error_reference()


def test_an_error_for_programs_has_its_type_its_sentence_and_its_fields() -> None:
    """A program need not read the sentence."""
    error = errors.NotFound("task", "tsk_1")
    assert describe_error(error) == {
        "type": "NotFound",
        "message": "there is no task 'tsk_1'",
        "entity": "task",
        "key": "tsk_1",
    }
    assert row_of(error).exit_code == 3
