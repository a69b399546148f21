"""What is wrong with the text of a plan, gathered so that it can be told at once."""

import re
from collections.abc import Iterator
from typing import Final

from herdbook.domain.errors import InvalidValue

MOST: Final = 20
"""How many problems are told at once."""
_NO_TEXT: Final = re.compile("[\0-\x08\x0e-\x1f\ud800-\udfff]")


class Problems:
    """Gathers what is wrong, line by line; nobody reads more than the first twenty."""

    def __init__(self) -> None:
        self._found: list[tuple[int, str]] = []

    def add(self, line: int, reason: str) -> None:
        """Note what is wrong with a line."""
        self._found.append((line, reason))
        if len(self._found) > MOST:
            self.check()

    def check(self) -> None:
        """Raise InvalidValue if anything was wrong."""
        if not self._found:
            return
        told = [f"line {line}: {reason}" for line, reason in sorted(self._found)[:MOST]]
        if len(self._found) > MOST:
            told.append("and there is more")
        raise InvalidValue("plan", "\n".join([*told, "Nothing was written"]))


def lines_of(text: str | bytes) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers; InvalidValue where it is no text.

    Only line feeds and carriage returns end a line: to Python, other characters do too.
    """
    whole = _decoded(text) if isinstance(text, bytes) else text
    strange = _NO_TEXT.search(whole)
    if strange:
        line = whole.count("\n", 0, strange.start()) + 1
        raise _no_text(line, f"it has the character U+{ord(strange[0]):04X}")
    whole = whole.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return enumerate(whole.split("\n"), start=1)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"byte {error.start} ({data[error.start]:#04x}) is not UTF-8"
        raise _no_text(line, reason) from error


def _no_text(line: int, reason: str) -> InvalidValue:
    return InvalidValue("plan", f"line {line}: is not text: {reason}\nNothing was written")
