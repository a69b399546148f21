"""The table of operations tells the truth about the code behind it."""

import inspect
import shlex
from importlib import import_module
from typing import Any

from herdbook.domain import errors
from herdbook.entrypoints.cli.parser import named, parameters_of, parser, shown
from herdbook.entrypoints.operations.call_use_case import ACTING
from herdbook.entrypoints.operations.error_table import EXIT_CODES, as_data, exit_code
from herdbook.entrypoints.operations.model import Operation
from herdbook.entrypoints.operations.registry import OPERATIONS
from herdbook.ports.engine.dictionary import DICTIONARY
from tests.cases import for_each

VERBS = ("add", "list", "set")
each_operation = for_each("operation", OPERATIONS, ids=lambda each: each.name)


def code(name: str) -> Any:
    """The function that a row names."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


@each_operation
def test_the_code_takes_the_parameters_that_the_table_lists(operation: Operation) -> None:
    """By name, behind the place, and nothing else."""
    first, *rest = inspect.signature(code(operation.code)).parameters.values()
    assert first.name == "here"
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
        _, *rest = inspect.signature(code(operation.use_case)).parameters.values()
        listed = {each.name for each in operation.parameters}
        assert listed <= {each.name for each in rest}
        assert {each.name for each in rest if each.default is each.empty} <= listed


@each_operation
def test_what_a_parameter_refers_to_is_kept(operation: Operation) -> None:
    """A kind of rows of the dictionary, or the agent that acts."""
    for parameter in operation.parameters:
        assert parameter.refers in {"", ACTING, *DICTIONARY.kinds}
    assert operation.entity in {"", *DICTIONARY.kinds}


@each_operation
def test_every_operation_has_a_screen_a_help_line_and_an_example(operation: Operation) -> None:
    """The example calls it by its words or its alias."""
    assert callable(code(operation.screen))
    assert operation.help[0].islower()
    assert not operation.help.endswith(".")
    calls = (f"herdbook {' '.join(operation.words)}", f"herdbook {operation.alias or '?'}")
    assert operation.example.startswith(calls)
    assert all(each.help for each in operation.parameters)


@each_operation
def test_every_command_explains_itself_with_an_example(operation: Operation) -> None:
    """Its help names every parameter and shows how it is called."""
    parameters = parameters_of(operation)
    text = parser(operation, parameters).format_help()
    assert f"example: {operation.example}" in text
    for parameter in parameters:
        name = shown(parameter)
        if not parameter.positional:
            assert f"--{name} " in f"{text} ".replace("\n", " ")
        elif not parameter.choices:
            assert name.upper() in text


@each_operation
def test_every_example_can_be_typed(operation: Operation) -> None:
    """The parser takes it as it is."""
    _, *words = shlex.split(operation.example)
    chosen, rest = named(words)
    assert chosen is operation
    parser(operation, parameters_of(operation)).parse_args(rest)


def test_names_are_unique_and_no_command_hides_another() -> None:
    """The first words of a line name one operation."""
    words = [each.words for each in OPERATIONS]
    assert len(set(words)) == len(words)
    assert not any(one != other and one == other[: len(one)] for one in words for other in words)


def test_every_error_has_an_exit_code() -> None:
    """None is left to chance."""
    known = {
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, errors.HerdbookError) and each is not errors.HerdbookError
    }
    assert set(EXIT_CODES) == known
    assert set(EXIT_CODES.values()) == {1, 2, 3, 4, 5}


def test_an_error_for_programs_has_its_type_its_sentence_and_its_fields() -> None:
    """A program need not read the sentence."""
    error = errors.NotFound("task", "tsk_1")
    assert as_data(error) == {
        "error": {
            "type": "NotFound",
            "message": "there is no task 'tsk_1'",
            "entity": "task",
            "key": "tsk_1",
        }
    }
    assert exit_code(error) == 3
