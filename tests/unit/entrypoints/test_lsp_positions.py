"""Lines and places as editors count them, whatever the text is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.entrypoints.lsp.positions import (
    Encoding,
    Point,
    content,
    line_index,
    point,
    split_lines,
    units,
)
from tests.cases import for_each

CHARACTERS = st.sampled_from(["a", "\r", "\n", "\r\n", "ä", "→", "🐄", "\ud83d", "\u2028", "\f"])
TEXTS = st.lists(CHARACTERS, max_size=12).map("".join)


@given(TEXTS)
def test_lines_put_together_are_the_text(text: str) -> None:
    """Only line feeds, carriage returns and both together end a line, and the last has no end."""
    lines = split_lines(text)
    assert "".join(lines) == text
    assert lines[-1] == content(lines[-1])
    assert all(line[len(content(line)) :] in ("\r", "\n", "\r\n") for line in lines[:-1])


@given(TEXTS, st.sampled_from(Encoding))
def test_every_place_between_two_characters_is_found_by_its_units(
    text: str, encoding: Encoding
) -> None:
    """Counting the units before a place and looking them up leads back to it."""
    lines = split_lines(text)
    for number, line in enumerate(lines):
        for column in range(len(content(line)) + 1):
            character = units(line[:column], encoding)
            assert point(lines, number, character, encoding) == Point(number, column)


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-32-le"])
@given(text=TEXTS)
def test_units_are_those_of_the_encoding(codec: str, text: str) -> None:
    """Also of half a surrogate pair."""
    width = {"utf-8": 1, "utf-16-le": 2, "utf-32-le": 4}[codec]
    encoding = Encoding(codec.removesuffix("-le"))
    # One by one, for two halves side by side are one character to the codec.
    expected = sum(len(each.encode(codec, "surrogatepass")) for each in text)
    assert units(text, encoding) == expected // width


def test_a_place_inside_a_character_is_the_one_before_it() -> None:
    """An editor that counts wrongly splits no character."""
    assert point(["🐄x"], 0, 1, Encoding.UTF16) == Point(0, 0)
    assert point(["🐄x"], 0, 3, Encoding.UTF8) == Point(0, 0)


def test_what_lies_behind_an_end_is_that_end() -> None:
    """Behind a line it is the end of its content, behind the text the end of the text."""
    assert point(["ab\r\n", ""], 0, 9, Encoding.UTF16) == Point(0, 2)
    assert point(["ab\n", "c"], 7, 0, Encoding.UTF16) == Point(1, 1)
    assert point([""], 0, 5, Encoding.UTF8) == Point(0, 0)


@for_each(
    ("text", "number", "line"),
    [
        ("", 1, 0),
        ("", 9, 0),
        ("a\nb\n", 2, 1),
        ("a\nb\n", 3, 1),
        ("a\nb", 3, 1),
        ("a\rb\nc\n", 2, 2),
        ("a\r\nb\r\n", 2, 1),
    ],
)
def test_git_counts_lines_by_line_feeds(text: str, number: int, line: int) -> None:
    """A number behind the last line stands for the last line."""
    assert line_index(split_lines(text), number) == line
