"""The table of operations tells the truth about the code behind it."""

import inspect
from importlib import import_module
from typing import Any

import pytest

from herdbook.domain import errors
from herdbook.entrypoints.failures import EXIT_CODES, as_data, exit_code
from herdbook.entrypoints.operations import OPERATIONS, Operation

each_operation = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)


def code(name: str) -> Any:
    """The function that a row names."""
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)


@each_operation
def test_the_code_takes_the_parameters_that_the_table_lists(operation: Operation) -> None:
    """In their order, by name, behind the place."""
    first, *rest = inspect.signature(code(operation.code)).parameters.values()
    assert first.name == "here"
    assert [each.name for each in rest] == [each.name for each in operation.parameters]
    assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in rest)


@each_operation
def test_every_operation_has_a_screen_a_help_line_and_an_example(operation: Operation) -> None:
    """The example calls it by its words."""
    assert callable(code(operation.screen))
    assert operation.help[0].islower()
    assert not operation.help.endswith(".")
    assert operation.example.startswith(f"herdbook {' '.join(operation.words)}")
    assert all(each.help for each in operation.parameters)


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
