"""Parser of git config files, without starting git.

It knows git's grammar, and is strict: where versions of git differ, or anything is ambiguous, it
raises `NeedsGit`, and the caller asks git. Imports nothing heavy: see `facts`.
"""

import re
from typing import Final

_BLANK: Final = re.compile(r"(?:[ \t\n]+|[#;][^\n]*)*")
_SECTION: Final = re.compile(r'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=|\n)")
# Possessive, so that it never backtracks: a foreign file may hold any number of blanks.
_PLAIN_VALUE: Final = re.compile(r'([^"\\;#\n]*+)(?:[;#][^\n]*+)?\n')
_PIECE: Final = re.compile(r'(?P<space>[ \t]+)|(?P<text>[^ \t"\\;#\n]+)|(?P<mark>[\s\S])')
_ESCAPED: Final = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"', "\n": ""}
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class NeedsGit(Exception):
    """Something is not fully understood here, so git itself must be asked."""


def parse_config(data: bytes) -> list[tuple[str, str | None]]:
    """Every `section.subsection.key` of a config file with its value, in the file's order.

    Sections and keys are in lower case, as git compares them. The value is None for a key without
    `=`. Includes are entries like any other. Raises NeedsGit for what is not fully understood.
    """
    data = data.removeprefix(_BYTE_ORDER_MARK).replace(b"\r\n", b"\n")
    if b"\r" in data or b"\0" in data:
        raise NeedsGit
    text = data.decode("utf-8", "surrogateescape") + "\n"
    found: list[tuple[str, str | None]] = []
    section = ""
    at = _skip_blank(text, 0)
    while at < len(text):
        if match := _SECTION.match(text, at):
            section = match[1].lower()
            if match[2] is not None:
                section += "." + re.sub(r"\\(.)", r"\1", match[2])
            at = match.end()
        elif section and (match := _KEY.match(text, at)):
            at = match.end()
            value = None
            if match[2] == "=":
                value, at = _value(text, at)
            found.append((f"{section}.{match[1].lower()}", value))
        else:
            raise NeedsGit
        at = _skip_blank(text, at)
    return found


def parse_boolean(value: str | None) -> bool:
    """The boolean that git reads from a text; raises NeedsGit for other texts."""
    word = "true" if value is None else value.lower()
    if word in {"true", "yes", "on", "1"}:
        return True
    if word in {"false", "no", "off", "0", ""}:
        return False
    raise NeedsGit


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int) -> tuple[str, int]:
    """The value that begins at an offset, and the offset of the next line."""
    if match := _PLAIN_VALUE.match(text, at):
        plain = match[1].strip(" \t")
        if "\t" not in plain:
            return plain, match.end()
    return _value_in_pieces(text, at)


def _value_in_pieces(text: str, at: int) -> tuple[str, int]:
    """A value with quotes, escapes or tabs."""
    pieces: list[str] = []  # none of them is empty
    space = ""
    quoted = False
    while match := _PIECE.match(text, at):
        at = match.end()
        piece = match[0]
        if match["space"] and not quoted:
            # Leading and trailing blanks are dropped.
            space = piece if pieces else ""
            continue
        if piece == "\n" or (piece in {";", "#"} and not quoted):
            if quoted:
                break
            return "".join(pieces), at if piece == "\n" else text.index("\n", at) + 1
        if "\t" in space:
            raise NeedsGit  # older versions of git turn it into a blank
        if piece == '"':
            quoted = not quoted
            piece = ""
        elif piece == "\\":
            if text[at : at + 1] not in _ESCAPED:
                break
            piece = _ESCAPED[text[at]]
            at += 1
        pieces += filter(None, (space, piece))
        space = ""
    raise NeedsGit
