"""Answers that are made from the values of use cases."""

from typing import NamedTuple, NotRequired, TypedDict

import pytest

from herdbook.entrypoints.operations.answer_fields import answer_from


class Owner(NamedTuple):
    """Something with a name."""

    name: str
    size: int


class Shape(TypedDict):
    """What an answer has."""

    size: int
    name: str | None
    note: NotRequired[str]


def test_fields_come_in_the_order_of_the_answer() -> None:
    """What is given counts before what a value has, and the answer has its own order."""
    answer = answer_from(Shape, Owner("a", 1), name="b")
    assert list(answer.items()) == [("size", 1), ("name", "b")]


def test_what_is_not_required_is_only_there_if_it_is_given() -> None:
    """An optional field is no attribute of a value."""
    assert answer_from(Shape, Owner("a", 1), note="n")["note"] == "n"
    assert "note" not in answer_from(Shape, Owner("a", 1))


def test_a_value_that_is_not_there_leaves_its_fields_empty() -> None:
    """None stands for a row that there is not."""
    assert answer_from(Shape, None, size=1) == {"size": 1, "name": None}


def test_a_field_that_nobody_has_is_a_mistake() -> None:
    """No field is left out in silence."""
    with pytest.raises(AttributeError, match="size"):
        answer_from(Shape, name="a")
