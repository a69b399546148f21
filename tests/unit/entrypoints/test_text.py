"""Text for terminals: aligned, short, and obeyed by none."""

from hypothesis import given
from hypothesis import strategies as st

from herdbook.entrypoints.cli.text import columns, duration, plain, size
from tests.cases import for_each


@given(st.text())
def test_no_text_makes_a_terminal_do_anything(text: str) -> None:
    """It stays in its line, and no control character is left in it."""
    shown = plain(text)
    assert len(shown.splitlines()) <= 1
    assert all(character >= " " and not "\x7f" <= character <= "\x9f" for character in shown)


@for_each(
    ("seconds", "said"),
    [
        (0, "0s"),
        (0.4, "0s"),
        (-5, "0s"),
        (59, "59s"),
        (60, "1m 0s"),
        (3_725, "1h 2m"),
        (86_400 * 3 + 7_200, "3d 2h"),
    ],
)
def test_a_length_of_time_is_said_in_two_units(seconds: float, said: str) -> None:
    """Nobody wants to know the seconds of a day."""
    assert duration(seconds) == said


@for_each(
    ("amount", "said"),
    [
        (None, "unknown size"),
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1.0 KiB"),
        (5 * 2**30, "5.0 GiB"),
        (2**60, "1048576.0 TiB"),
    ],
)
def test_a_size_is_said_in_its_unit(amount: int | None, said: str) -> None:
    """As people say it."""
    assert size(amount) == said


def test_columns_are_as_wide_as_they_have_to_be() -> None:
    """No line ends with spaces."""
    assert columns(("A", "LONG"), [("xyz", "1"), ("x", "")]) == "A    LONG\nxyz  1\nx"
