r"""One line of a plan in Markdown: what is its name, and what is said about the item beside it.

A name may be followed by a priority, an id, attributes and what to wait for:
`Drop the column (high) ^a1 {category: verify} after: ^b2, Test it`. A backslash before a
punctuation mark takes its meaning away.
"""

import json
import re
from typing import Final, NamedTuple

_STRING = r'"(?:[^"\\]|\\.)*"'
_PAIR = rf'[a-z_]+[ \t]*:[ \t]*(?:{_STRING}|[^,{{}}"]+)'
_BEGINS = r"(?:^|(?<=[ \t]))"
_ATTRIBUTES: Final = re.compile(rf"{_BEGINS}\{{[ \t]*({_PAIR}(?:,[ \t]*{_PAIR})*)\}}$")
_EACH: Final = re.compile(rf'([a-z_]+)[ \t]*:[ \t]*({_STRING}|[^,{{}}"]+)')
_REF: Final = re.compile(rf"{_BEGINS}\^({_STRING}|[\w.\-]+)$")
_PRIORITY: Final = re.compile(rf"{_BEGINS}\((low|medium|high)\)$", re.IGNORECASE)
_AFTER: Final = re.compile(rf"{_BEGINS}(\()?after:", re.IGNORECASE)
_BARE_REF: Final = re.compile(r"[\w.\-]+")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_MEANT: Final = re.compile(
    rf"{_BEGINS}(?:(\^)|(\{{)(?=[ \t]*[a-z_]+[ \t]*:)|(\()(?=(?:low|medium|high)\)))"
    rf"|(?<=after)(:)",
    re.IGNORECASE,
)
_UNEVEN: Final = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")
_ENTRY: Final = re.compile(rf"(?:\^{_STRING}|\\.|[^,\\]|\\$)+")


class Head(NamedTuple):
    """What the line of an item says."""

    name: str
    ref: str
    attributes: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, bool], ...]


def read_head(text: str) -> Head:
    """Take the line of an item apart."""
    said: dict[str, str] = {}
    marked = bool(_AFTER.search(text))
    rest = _take(text.strip(" \t"), said, with_ref=not marked)
    after: tuple[tuple[str, bool], ...] = ()
    found = _AFTER.search(rest)
    if found:
        waits, rest = rest[found.end() :], rest[: found.start()].rstrip(" \t")
        if found[1]:
            waits, _, behind = waits.rpartition(")")
            rest = f"{rest} {behind}".strip(" \t")
        after = read_after(waits)
        rest = _take(rest, said, with_ref=True)
    attributes = tuple(_pairs(said.pop("attributes", "")))
    if "priority" in said:
        attributes += (("priority", said["priority"].lower()),)
    return Head(unescaped(rest), said.get("ref", ""), attributes, after)


def _take(text: str, said: dict[str, str], *, with_ref: bool) -> str:
    """Take from the end what is said beside the name, each sort once."""
    patterns = {"attributes": _ATTRIBUTES, "priority": _PRIORITY}
    if with_ref:
        patterns["ref"] = _REF
    while True:
        for what, pattern in patterns.items():
            found = pattern.search(text) if what not in said else None
            if found:
                said[what] = value_of(found[1]) if what == "ref" else found[1]
                text = text[: found.start()].rstrip(" \t")
                break
        else:
            return text


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(found[1], value_of(found[2].strip(" \t"))) for found in _EACH.finditer(text)]


def value_of(text: str) -> str:
    """A value as it is meant: one in quotes is a JSON string, any other stands for itself."""
    if len(text) > 1 and text[0] == text[-1] == '"':
        try:
            value = json.loads(text)
        except ValueError:
            return text
        return str(value)
    return text


def read_after(text: str) -> tuple[tuple[str, bool], ...]:
    """What to wait for: names, and ids (True), divided by commas."""
    entries = [found[0].strip(" \t") for found in _ENTRY.finditer(text)]
    return tuple(
        (value_of(entry[1:]), True) if entry.startswith("^") else (unescaped(entry), False)
        for entry in entries
        if entry
    )


def unescaped(text: str) -> str:
    """The text without the backslashes that only guard a punctuation mark."""
    return _ESCAPED.sub(r"\1", text)


def is_even(text: str) -> bool:
    """Whether a text can stand in a line as it is: not empty, nothing invisible, no loose ends."""
    return bool(text) and text == text.strip() and not _UNEVEN.search(text)


def written_name(name: str) -> str:
    """A name as it is read as a name and nothing else; only for an even one."""
    guarded = name.replace("\\", "\\\\")
    return _MEANT.sub(lambda found: f"\\{found[0]}", guarded)


def written_ref(ref: str) -> str:
    """A ref as it stands in a line."""
    return f"^{ref}" if _BARE_REF.fullmatch(ref) else f"^{quoted(ref)}"


def written_value(value: str) -> str:
    """A value as it stands in a line of its own."""
    return value if is_even(value) and not value.startswith('"') else quoted(value)


def quoted(text: str) -> str:
    """A text as a JSON string on one line."""
    return json.dumps(text, ensure_ascii=False)
