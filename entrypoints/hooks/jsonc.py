"""JSON as people write it, with comments and trailing commas, and where in the text each part is.

Only what is needed to change somebody's settings without touching another byte of them.
"""

import json
import re
from typing import Any, NamedTuple, NoReturn

_NOTHING = re.compile(r"(?:\s+|//[^\n]*|/\*[\s\S]*?\*/)*")
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_REMARK = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*)?(?=\r?\n)")
_WORD = re.compile(r"[-+.\w]+")


class Part(NamedTuple):
    """A value and where its text begins and ends; of an object or a list also what it holds."""

    value: Any
    begin: int
    end: int
    members: tuple[tuple[str, "Part"], ...] = ()

    def member(self, name: str) -> "Part | None":
        """The member of an object by its name; the last one, as JSON readers have it."""
        found = [part for key, part in self.members if key == name]
        return found[-1] if found and isinstance(self.value, dict) else None


def parsed(text: str) -> Part:
    """Read a whole text; ValueError says on which line it is not JSON."""
    part = _value(text, _after_nothing(text, 1 if text.startswith("\ufeff") else 0))
    if _after_nothing(text, part.end) != len(text):
        _refuse(text, part.end)
    return part


def _value(text: str, at: int) -> Part:
    if text[at : at + 1] in {"{", "["}:
        return _container(text, at)
    match = _STRING.match(text, at) or _WORD.match(text, at)
    if match is None:
        _refuse(text, at)
    try:
        return Part(json.loads(match[0], strict=False), at, match.end())
    except ValueError:
        _refuse(text, at)


def _container(text: str, begin: int) -> Part:
    is_object = text[begin] == "{"
    members: list[tuple[str, Part]] = []
    at = _after_nothing(text, begin + 1)
    while text[at : at + 1] != ("}" if is_object else "]"):
        name = ""
        if is_object:
            match = _STRING.match(text, at)
            if match is None:
                _refuse(text, at)
            name = json.loads(match[0], strict=False)
            at = _after_nothing(text, match.end())
            if text[at : at + 1] != ":":
                _refuse(text, at)
            at = _after_nothing(text, at + 1)
        part = _value(text, at)
        members.append((name, part))
        at = _after_nothing(text, part.end)
        if text[at : at + 1] == ",":
            at = _after_nothing(text, at + 1)
        elif text[at : at + 1] not in {"}", "]"}:
            _refuse(text, at)
    value = (
        {name: part.value for name, part in members}
        if is_object
        else [part.value for _, part in members]
    )
    return Part(value, begin, at + 1, tuple(members))


def _after_nothing(text: str, at: int) -> int:
    match = _NOTHING.match(text, at)
    return match.end() if match else at


def _refuse(text: str, at: int) -> NoReturn:
    raise ValueError(f"is not JSON at line {text.count(chr(10), 0, at) + 1}")


def with_member(text: str, part: Part, name: str, value: Any) -> str:
    """The text with one more member at the end of an object, or of a list if it has no name."""
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = _indent(text, part.begin)
    step = _step(text)
    inner = _indent(text, part.members[-1][1].begin) if part.members else outer + step
    on_one_line = "\n" not in text[part.begin : part.end] and bool(part.members)
    told = json.dumps(value, indent=None if on_one_line else step, ensure_ascii=False)
    label = f"{json.dumps(name)}: " if name else ""
    if on_one_line:
        return _after_last(text, part, f" {label}{told}")
    told = newline + inner + (label + told).replace("\n", newline + inner)
    if part.members:
        return _after_last(text, part, told)
    rest = text[part.begin + 1 : part.end - 1].rstrip(" \t\r\n")
    return text[: part.begin + 1] + rest + told + newline + outer + text[part.end - 1 :]


def _after_last(text: str, part: Part, told: str) -> str:
    """Behind the last member, with the comma it needs; one that was there stays where it was."""
    end = part.members[-1][1].end
    comma = _after_nothing(text, end)
    if text[comma] == ",":
        at, comma_there, comma_then = comma + 1, "", ","
    else:
        at, comma_there, comma_then = end, ",", ""
    # A remark on the same line belongs to what stands before it.
    remark = _REMARK.match(text, at) if "\n" in told else None
    behind = remark.end() if remark else at
    return text[:at] + comma_there + text[at:behind] + told + comma_then + text[behind:]


def without_member(text: str, part: Part, index: int) -> str:
    """The text without one member of an object or a list, and without the comma it needed."""
    begin = _name_begins(text, part, index)
    end = part.members[index][1].end
    comma = _after_nothing(text, end)
    if text[comma] == ",":
        end = comma + 1
    elif index:
        before = _after_nothing(text, part.members[index - 1][1].end)
        text = text[:before] + text[before + 1 :]
        begin, end = len(text[: begin - 1].rstrip(" \t")), end - 1
    line = text.rfind("\n", 0, begin)
    if line >= 0 and not text[line:begin].strip():
        begin = line - 1 if text[line - 1 : line] == "\r" else line
    return text[:begin] + text[end:]


def _name_begins(text: str, part: Part, index: int) -> int:
    if not isinstance(part.value, dict):
        return part.members[index][1].begin
    at = _after_nothing(text, part.members[index - 1][1].end if index else part.begin + 1)
    return _after_nothing(text, at + 1) if text[at] == "," else at


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _step(text: str) -> str:
    match = re.search(r"\n([ \t]+)\S", text)
    return match[1] if match else "  "
