"""JSON with comments and trailing commas, parsed with positions and edited in place.

It does only what is needed to change settings of other programs and keep every other byte; ADR 35
says why no library does it.
"""

import json
import re
from typing import Any, NamedTuple, NoReturn

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*[\s\S]*?\*/)*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_COMMENT = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)?(?=\r?\n)")
_WORD = re.compile(r"[-+.\w]+")


class JsonPart(NamedTuple):
    """A value, where its text begins and ends, and the members of an object or a list."""

    value: Any
    begin: int
    end: int
    members: tuple[tuple[str, "JsonPart"], ...] = ()

    def member(self, name: str) -> "JsonPart | None":
        """The member of an object by its name; the last one if there are several, as parsers do."""
        found = [part for key, part in self.members if key == name]
        return found[-1] if found and isinstance(self.value, dict) else None


def parse_jsonc(text: str) -> JsonPart:
    """Parse a text; ValueError with the line if it is not JSON."""
    part = _value(text, _skip_blank(text, 1 if text.startswith("\ufeff") else 0))
    if _skip_blank(text, part.end) != len(text):
        _raise_not_json(text, part.end)
    return part


def _value(text: str, at: int) -> JsonPart:
    if text[at : at + 1] in {"{", "["}:
        return _container(text, at)
    match = _STRING.match(text, at) or _WORD.match(text, at)
    if match is None:
        _raise_not_json(text, at)
    try:
        return JsonPart(json.loads(match[0], strict=False), at, match.end())
    except ValueError:
        _raise_not_json(text, at)


def _container(text: str, begin: int) -> JsonPart:
    is_object = text[begin] == "{"
    members: list[tuple[str, JsonPart]] = []
    at = _skip_blank(text, begin + 1)
    while text[at : at + 1] != ("}" if is_object else "]"):
        name = ""
        if is_object:
            match = _STRING.match(text, at)
            if match is None:
                _raise_not_json(text, at)
            name = json.loads(match[0], strict=False)
            at = _skip_blank(text, match.end())
            if text[at : at + 1] != ":":
                _raise_not_json(text, at)
            at = _skip_blank(text, at + 1)
        part = _value(text, at)
        members.append((name, part))
        at = _skip_blank(text, part.end)
        if text[at : at + 1] == ",":
            at = _skip_blank(text, at + 1)
        elif text[at : at + 1] not in {"}", "]"}:
            _raise_not_json(text, at)
    value = (
        {name: part.value for name, part in members}
        if is_object
        else [part.value for _, part in members]
    )
    return JsonPart(value, begin, at + 1, tuple(members))


def _skip_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _raise_not_json(text: str, at: int) -> NoReturn:
    raise ValueError(f"is not JSON at line {text.count(chr(10), 0, at) + 1}")


def add_member(text: str, part: JsonPart, name: str, value: Any) -> str:
    """The text with a new last member of an object, or of a list if `name` is empty."""
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent(text, part.begin)
    step = _indent_step(text)
    inner = _indent(text, part.members[-1][1].begin) if part.members else outer + step
    on_one_line = "\n" not in text[part.begin : part.end] and bool(part.members)
    new = json.dumps(value, indent=None if on_one_line else step, ensure_ascii=False)
    label = f"{json.dumps(name)}: " if name else ""
    if on_one_line:
        return _insert_after_last(text, part, f" {label}{new}")
    new = newline + inner + (label + new).replace("\n", newline + inner)
    if part.members:
        return _insert_after_last(text, part, new)
    rest = text[part.begin + 1 : part.end - 1].rstrip(" \t\r\n")
    return text[: part.begin + 1] + rest + new + newline + outer + text[part.end - 1 :]


def _insert_after_last(text: str, part: JsonPart, new: str) -> str:
    """Insert after the last member, with the comma it needs; an existing comma stays in place."""
    end = part.members[-1][1].end
    comma = _skip_blank(text, end)
    if text[comma] == ",":
        at, comma_there, comma_then = comma + 1, "", ","
    else:
        at, comma_there, comma_then = end, ",", ""
    # A comment on the same line belongs to what precedes it.
    comment = _COMMENT.match(text, at) if "\n" in new else None
    after = comment.end() if comment else at
    return text[:at] + comma_there + text[at:after] + new + comma_then + text[after:]


def remove_member(text: str, part: JsonPart, index: int) -> str:
    """The text without one member of an object or a list, and without its comma."""
    begin = _member_start(text, part, index)
    end = part.members[index][1].end
    comma = _skip_blank(text, end)
    if text[comma] == ",":
        end = comma + 1
    elif index:
        before = _skip_blank(text, part.members[index - 1][1].end)
        text = text[:before] + text[before + 1 :]
        begin, end = len(text[: begin - 1].rstrip(" \t")), end - 1
    line = text.rfind("\n", 0, begin)
    if line >= 0 and not text[line:begin].strip():
        begin = line - 1 if text[line - 1 : line] == "\r" else line
    return text[:begin] + text[end:]


def _member_start(text: str, part: JsonPart, index: int) -> int:
    if not isinstance(part.value, dict):
        return part.members[index][1].begin
    at = _skip_blank(text, part.members[index - 1][1].end if index else part.begin + 1)
    return _skip_blank(text, at + 1) if text[at] == "," else at


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_step(text: str) -> str:
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else "  "
