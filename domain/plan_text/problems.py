"""Collects the problems in the text of a plan, so that all are reported at once."""

import re
from collections.abc import Iterator
from typing import Final

from herdbook.domain.errors import InvalidValue

MAX_PROBLEMS: Final = 20
"""How many problems are reported at once."""
_CONTROL_CHARACTERS: Final = re.compile("[\0-\x08\x0e-\x1f\ud800-\udfff]")


class Problems:
    """Collects problems by line; only the first twenty are reported."""

    def __init__(self) -> None:
        self._found: list[tuple[int, str]] = []

    def add(self, line: int, reason: str) -> None:
        """Add a problem of a line."""
        self._found.append((line, reason))
        if len(self._found) > MAX_PROBLEMS:
            self.check()

    def check(self) -> None:
        """Raise InvalidValue if there are problems."""
        if not self._found:
            return
        lines = [f"line {line}: {reason}" for line, reason in sorted(self._found)[:MAX_PROBLEMS]]
        if len(self._found) > MAX_PROBLEMS:
            lines.append("and there is more")
        raise InvalidValue("plan", "\n".join([*lines, "Nothing was written"]))


def split_lines(text: str | bytes) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers; raises InvalidValue for what is not text.

    Only line feeds and carriage returns end a line: to Python, other characters do too.
    """
    whole = _decode_utf8(text) if isinstance(text, bytes) else text
    strange = _CONTROL_CHARACTERS.search(whole)
    if strange:
        line = whole.count("\n", 0, strange.start()) + 1
        raise _not_text_error(line, f"it has the character U+{ord(strange[0]):04X}")
    whole = whole.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return enumerate(whole.split("\n"), start=1)


def _decode_utf8(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"byte {error.start} ({data[error.start]:#04x}) is not UTF-8"
        raise _not_text_error(line, reason) from error


def _not_text_error(line: int, reason: str) -> InvalidValue:
    return InvalidValue("plan", f"line {line}: is not text: {reason}\nNothing was written")
