"""Marks in the margin go where their lines go, compared with characters that know their line."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.entrypoints.lsp.comment_positions import (
    Mark,
    apply_edit,
    edit_range,
    move_mark,
    replace_text,
)
from herdbook.entrypoints.lsp.line_matching import match_lines
from herdbook.entrypoints.lsp.positions import Point, content, split_lines
from tests.cases import for_each

ENDS = ("\n", "\r\n", "\r")


class Edit(NamedTuple):
    """An edit by offsets into the text."""

    start: int
    end: int
    text: str


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """A text and edits of it, in which no character but those that end lines comes twice.

    So there is one way only to tell what an edit has left.
    """
    fresh = iter(range(0x1F300, 0x1F300 + 5_000))

    def some(most: int) -> str:
        parts = draw(st.lists(st.sampled_from(["x", *ENDS]), max_size=most))
        return "".join(chr(next(fresh)) if part == "x" else part for part in parts)

    text = before = some(16)
    edits = []
    for _ in range(draw(st.integers(1, 4))):
        places = [n for n in range(len(before) + 1) if before[n - 1 : n + 1] != "\r\n"]
        start, end = sorted(draw(st.lists(st.sampled_from(places), min_size=2, max_size=2)))
        edits.append(Edit(start, end, some(6)))
        before = before[:start] + edits[-1].text + before[end:]
    return text, edits


def _place(lines: list[str], offset: int) -> Point:
    line = 0
    while line < len(lines) - 1 and offset >= len(lines[line]):
        offset -= len(lines[line])
        line += 1
    return Point(line, offset)


def _trimmed(text: str, edit: Edit) -> Edit:
    """The edit without what it takes away and puts back."""
    start, end, new = edit
    while start < end and new and text[start] == new[0]:
        start, new = start + 1, new[1:]
    while start < end and new and text[end - 1] == new[-1]:
        end, new = end - 1, new[:-1]
    return Edit(start, end, new)


class Expected(NamedTuple):
    """Where a line should stand, whether it is gone, and whether a character of it is left."""

    line: int
    removed: bool
    left: bool


def _slowly(text: str, edit: Edit) -> list[Expected]:
    """Where each line stands behind an edit, by following every character.

    A line is where the first character that is left of it is; an empty one is where its end is.
    Where nothing is left of lines and as many new ones stand there, they are those.
    """
    start, end, new = _trimmed(text, edit)
    after = split_lines(text[:start] + new + text[end:])
    names = [*range(start), *[-1] * len(new), *range(end, len(text) + 1)]
    at = {name: _place(after, offset).line for offset, name in enumerate(names) if name >= 0}
    lines = split_lines(text)
    last = _place(lines, end).line
    found: list[int | None] = []
    offset = 0
    for number, line in enumerate(lines):
        own = range(offset, offset + max(len(content(line)), 1))
        left = [at[each] for each in own if each in at]
        # An edit inside a line changes it and does not take it away.
        inside = _place(lines, start).line == number == last
        found.append(left[0] if left else _place(after, offset).line if inside else None)
        offset += len(line)
    fresh = sorted(set(range(len(after))) - set(found))
    gone = [number for number, place in enumerate(found) if place is None]
    if len(fresh) == len(gone):
        for number, place in zip(gone, fresh, strict=True):
            found[number] = place
    follows, column = _place(after, start)
    if column:
        tail = found[last]
        follows = follows + 1 if tail is None else min(follows + 1, tail)
    follows = min(follows, len(after) - 1)
    return [
        Expected(follows if place is None else place, place is None, number not in gone)
        for number, place in enumerate(found)
    ]


@given(programs())
def test_marks_go_where_the_characters_of_their_lines_go(program: tuple[str, list[Edit]]) -> None:
    """After every edit the lines are those of the text, and each mark stands where its line does.

    An empty line that was put in the place of one may count as that one, so where there is one
    only those lines are compared of which a character is left.
    """
    text, edits = program
    for edit in edits:
        lines = split_lines(text)
        change = edit_range(lines, _place(lines, edit.start), _place(lines, edit.end), edit.text)
        expected = _slowly(text, edit)
        text = text[: edit.start] + edit.text + text[edit.end :]
        assert apply_edit(lines, change) == split_lines(text)
        sure = "" not in map(content, change.lines)
        for number, line in enumerate(lines):
            mark = move_mark(Mark(number), lines, change)
            if sure or (content(line) and expected[number].left):
                assert (mark.line, mark.removed) == expected[number][:2]


def _marked(text: str, line: int, start: Point, end: Point, new: str) -> Mark:
    lines = split_lines(text)
    return move_mark(Mark(line), lines, edit_range(lines, start, end, new))


@for_each(
    ("line", "start", "end", "new", "expected"),
    [
        pytest.param(
            1, (1, 0), (2, 0), "", Mark(1, removed=True, removed_text="  b;"), id="a line taken out"
        ),
        pytest.param(2, (1, 0), (2, 0), "", Mark(1), id="below a line taken out"),
        pytest.param(
            1,
            (1, 2),
            (2, 2),
            "",
            Mark(1, removed=True, removed_text="  b;"),
            id="by the first difference",
        ),
        pytest.param(2, (1, 2), (2, 2), "", Mark(1), id="below, by the first difference"),
        pytest.param(1, (1, 2), (1, 2), "x;\n  ", Mark(2), id="a line put above"),
        pytest.param(0, (0, 4), (0, 4), "\n  a;", Mark(0), id="the same put below"),
        pytest.param(1, (1, 3), (1, 3), "\n", Mark(1), id="split"),
        pytest.param(1, (0, 4), (1, 2), " ", Mark(0), id="joined to the line above"),
        pytest.param(1, (1, 0), (2, 0), "  x;\n", Mark(1), id="changed as a whole line"),
        pytest.param(1, (0, 3), (2, 4), ",\n  b,\n  c,", Mark(1), id="changed with its neighbours"),
        pytest.param(2, (0, 0), (3, 0), "y\nz\n  c;\nw\n", Mark(2), id="found in what came"),
        pytest.param(
            2,
            (1, 4),
            (2, 4),
            "",
            Mark(2, removed=True, removed_text="  c;"),
            id="taken out by its end",
        ),
        pytest.param(
            1, (0, 3), (2, 3), "", Mark(0, removed=True, removed_text="  b;"), id="from between"
        ),
        pytest.param(3, (2, 4), (3, 0), "", Mark(2), id="the end of the text taken out"),
    ],
)
def test_what_editors_send_moves_marks_as_a_person_expects(
    line: int, start: tuple[int, int], end: tuple[int, int], new: str, expected: Mark
) -> None:
    """The way in which an editor words an edit does not matter."""
    text = "  a;\n  b;\n  c;\n"
    assert _marked(text, line, Point(*start), Point(*end), new) == expected


def test_a_mark_of_the_last_line_stays_inside_the_text() -> None:
    """Nothing follows a last line that is removed, so the mark stands at the line before."""
    assert _marked("a\nb", 1, Point(0, 1), Point(1, 1), "") == Mark(
        0, removed=True, removed_text="b"
    )


def test_a_mark_comes_back_with_its_line() -> None:
    """Taking the removal back brings every mark to its own line."""
    before = split_lines("a\nb\nc\nd\n")
    change = edit_range(before, Point(1, 0), Point(3, 0), "")
    marks = [move_mark(Mark(line), before, change) for line in (1, 2, 3)]
    assert [mark.removed for mark in marks] == [True, True, False]
    after = apply_edit(before, change)
    back = edit_range(after, Point(1, 0), Point(1, 0), "b\nc\n")
    assert [move_mark(mark, after, back) for mark in marks] == [Mark(1), Mark(2), Mark(3)]


def test_a_mark_knows_its_own_line_whatever_else_is_removed() -> None:
    """It stands at what follows, also when that is removed, and comes back with its line alone."""
    lines, mark = split_lines("a\nb\nc\nd\n"), Mark(1)
    for start, end, text in [((1, 0), (2, 0), ""), ((1, 0), (2, 0), ""), ((1, 0), (1, 0), "c\n")]:
        change = edit_range(lines, Point(*start), Point(*end), text)
        lines, mark = apply_edit(lines, change), move_mark(mark, lines, change)
    assert mark == Mark(2, removed=True, removed_text="b")
    back = edit_range(lines, Point(1, 0), Point(1, 0), "b\n")
    assert move_mark(mark, lines, back) == Mark(1)


@given(st.lists(st.integers(0, 30), unique=True), st.lists(st.integers(0, 30), unique=True))
def test_lines_of_a_whole_new_text_are_found_where_they_stand_in_one_order(
    old: list[int], new: list[int]
) -> None:
    """Each line is found at an equal one, in rising order, and as many are as can be."""
    found = match_lines([str(each) for each in old], [str(each) for each in new])
    pairs = [(n, place) for n, place in enumerate(found) if place is not None]
    assert all(old[n] == new[place] for n, place in pairs)
    places = [place for _, place in pairs]
    assert places == sorted(set(places))
    longest: dict[int, int] = {}
    for value in [each for each in old if each in new]:
        place = new.index(value)
        longest[place] = 1 + max((longest[p] for p in longest if p < place), default=0)
    assert len(pairs) == max(longest.values(), default=0)


def test_a_text_with_other_line_ends_has_the_same_lines() -> None:
    """What ends a line is no part of what it says."""
    old, new = split_lines("a\nb\n"), split_lines("x\r\na\r\nb\r\n")
    assert [move_mark(Mark(n), old, replace_text(old, new)).line for n in range(2)] == [1, 2]


def test_a_large_text_that_changes_all_over_is_matched_without_comparing_all_with_all() -> None:
    """Of a hundred thousand lines every second one goes, and the others are found again."""
    old = [f"line {n}\n" for n in range(100_000)]
    change = replace_text(old, old[1::2])
    assert move_mark(Mark(50_001), old, change) == Mark(25_000)
    assert move_mark(Mark(50_000), old, change) == Mark(
        25_000, removed=True, removed_text="line 50000"
    )
