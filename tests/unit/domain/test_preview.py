"""The laws of pictures: two that differ are told apart, place by place."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.checkpoints.preview import (
    Difference,
    ObjectPreview,
    differences,
    preview_bytes,
    previews_equal,
)
from tests.cases import for_each

leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text(max_size=2)
pictures = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=1), inner, max_size=3)
        | st.builds(ObjectPreview, st.sampled_from("ab"), inner)
    ),
    max_leaves=12,
)


@given(pictures, pictures)
def test_two_pictures_have_differences_if_they_are_not_the_same(one: Any, other: Any) -> None:
    """None is invented and none is missed, whichever of the two comes first."""
    assert previews_equal(one, one)
    assert (list(differences(one, other)) == []) is previews_equal(one, other)
    assert (list(differences(other, one)) == []) is previews_equal(one, other)


@for_each(("one", "other"), [(1, 1.0), (1, True), ("", None), ([], {}), (0.0, "0")])
def test_what_only_python_takes_for_equal_is_different(one: Any, other: Any) -> None:
    """A number is no truth value, and nothing is no empty text."""
    assert list(differences([one], [other])) == [Difference("[0]", "changed", one, other)]


def test_a_difference_is_told_by_the_path_that_leads_to_it() -> None:
    """Names, numbers and odd keys are written as Python would, objects are looked into."""
    before = {"a": [1, ObjectPreview("m.C", {"x": 1, "y": 2})], "b c": {0: "n"}, "gone": None}
    after = {"a": [1, ObjectPreview("m.C", {"x": 9, "y": 2})], "b c": {0: "m"}, "new": []}
    assert list(differences(before, after)) == [
        Difference("a[1].x", "changed", 1, 9),
        Difference("['b c'][0]", "changed", "n", "m"),
        Difference("gone", "removed", None),
        Difference("new", "added", after=[]),
    ]


def test_an_object_of_another_class_is_another_object() -> None:
    """Even if it is made of the same."""
    one, other = ObjectPreview("m.C", 1), ObjectPreview("m.D", 1)
    assert list(differences(one, other)) == [Difference("", "changed", one, other)]


@for_each(
    ("before", "after", "found"),
    [
        ([1, 2], [1, 2, 3], [("[2]", "added")]),
        ([1, 2, 3], [2, 3], [("[0]", "removed")]),
        ([1, 2, 3, 4], [1, 9, 9, 4], [("[1]", "changed"), ("[2]", "changed")]),
        ([1, 4], [1, 2, 3, 4], [("[1]", "added"), ("[2]", "added")]),
    ],
)
def test_what_two_lists_begin_and_end_with_is_left_aside(
    before: list[int], after: list[int], found: list[tuple[str, str]]
) -> None:
    """Something put in or taken out does not make all behind it look changed."""
    assert [each[:2] for each in differences(before, after)] == found


def test_bytes_are_told_by_their_size_and_a_digest() -> None:
    """Equal ones are equal, and others are not."""
    assert (
        preview_bytes("bytes", b"abc")
        == preview_bytes("bytes", b"abc")
        != preview_bytes("bytes", b"abd")
    )
    assert preview_bytes("bytes", b"abc").size == 3
