r"""Parses and formats one line of a plan in Markdown: the name of an item and its markup.

A name may be followed by a priority, an id, attributes and dependencies: `Drop the column (high)
^a1 {category: verify} after: ^b2, Test it`. A backslash before a punctuation mark takes its meaning
away.
"""

import json
import re
from typing import Final, NamedTuple

_STRING = r'"(?:[^"\\]|\\.)*"'
_PAIR = rf'[a-z_]+[ \t]*:[ \t]*(?:{_STRING}|[^,{{}}"]+)'
_WORD_START = r"(?:^|(?<=[ \t]))"
_ATTRIBUTES: Final = re.compile(rf"{_WORD_START}\{{[ \t]*({_PAIR}(?:,[ \t]*{_PAIR})*)\}}$")
_PAIRS: Final = re.compile(rf'([a-z_]+)[ \t]*:[ \t]*({_STRING}|[^,{{}}"]+)')
_REF: Final = re.compile(rf"{_WORD_START}\^({_STRING}|[\w.\-]+)$")
_PRIORITY: Final = re.compile(rf"{_WORD_START}\((low|medium|high)\)$", re.IGNORECASE)
_AFTER: Final = re.compile(rf"{_WORD_START}(\()?after:", re.IGNORECASE)
_BARE_REF: Final = re.compile(r"[\w.\-]+")
_ESCAPE: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_MARKUP: Final = re.compile(
    rf"{_WORD_START}(?:(\^)|(\{{)(?=[ \t]*[a-z_]+[ \t]*:)|(\()(?=(?:low|medium|high)\)))"
    rf"|(?<=after)(:)",
    re.IGNORECASE,
)
_INVISIBLE: Final = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_ENTRY: Final = re.compile(rf"(?:\^{_STRING}|\\.|[^,\\]|\\$)+")


class ItemLine(NamedTuple):
    """The parsed line of an item."""

    name: str
    ref: str
    attributes: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, bool], ...]


def parse_item_line(text: str) -> ItemLine:
    """Parse the line of an item."""
    markup: dict[str, str] = {}
    marked = bool(_AFTER.search(text))
    rest = _take_suffixes(text.strip(" \t"), markup, with_ref=not marked)
    after: tuple[tuple[str, bool], ...] = ()
    found = _AFTER.search(rest)
    if found:
        waits, rest = rest[found.end() :], rest[: found.start()].rstrip(" \t")
        if found[1]:
            waits, _, behind = waits.rpartition(")")
            rest = f"{rest} {behind}".strip(" \t")
        after = parse_after(waits)
        rest = _take_suffixes(rest, markup, with_ref=True)
    attributes = tuple(_parse_pairs(markup.pop("attributes", "")))
    if "priority" in markup:
        attributes += (("priority", markup["priority"].lower()),)
    return ItemLine(unescape(rest), markup.get("ref", ""), attributes, after)


def _take_suffixes(text: str, markup: dict[str, str], *, with_ref: bool) -> str:
    """Take the markup from the end of the line, each kind once; return the rest."""
    patterns = {"attributes": _ATTRIBUTES, "priority": _PRIORITY}
    if with_ref:
        patterns["ref"] = _REF
    while True:
        for what, pattern in patterns.items():
            found = pattern.search(text) if what not in markup else None
            if found:
                markup[what] = parse_value(found[1]) if what == "ref" else found[1]
                text = text[: found.start()].rstrip(" \t")
                break
        else:
            return text


def _parse_pairs(text: str) -> list[tuple[str, str]]:
    return [(found[1], parse_value(found[2].strip(" \t"))) for found in _PAIRS.finditer(text)]


def parse_value(text: str) -> str:
    """Parse a value: one in quotes is a JSON string, any other is taken as it is."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return str(value)
    return text


def parse_after(text: str) -> tuple[tuple[str, bool], ...]:
    """Parse dependencies separated by commas: names, and ids (True)."""
    entries = [found[0].strip(" \t") for found in _ENTRY.finditer(text)]
    return tuple(
        (parse_value(entry[1:]), True) if entry.startswith("^") else (unescape(entry), False)
        for entry in entries
        if entry
    )


def unescape(text: str) -> str:
    """The text without the backslashes that only escape a punctuation mark."""
    return _ESCAPE.sub(r"\1", text)


def fits_on_line(text: str) -> bool:
    """Whether a text can be written on a line as it is.

    It must not be empty, contain invisible characters, or have white space at its ends.
    """
    return bool(text) and text == text.strip() and not _INVISIBLE.search(text)


def escape_name(name: str) -> str:
    """Escape a name so that it is read as a name only; the name must `fits_on_line`."""
    guarded = name.replace("\\", "\\\\")
    return _MARKUP.sub(lambda found: f"\\{found[0]}", guarded)


def format_ref(ref: str) -> str:
    """A ref as it is written on a line."""
    return f"^{ref}" if _BARE_REF.fullmatch(ref) else f"^{quote(ref)}"


def format_value(value: str) -> str:
    """A value as it is written on a line of its own."""
    return value if fits_on_line(value) and not value.startswith('"') else quote(value)


def quote(text: str) -> str:
    """A text as a JSON string on one line."""
    return json.dumps(text, ensure_ascii=False)
