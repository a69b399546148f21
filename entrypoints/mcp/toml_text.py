"""A server in somebody's TOML: put in and taken out without touching another byte.

What was meant is compared with what a parser reads afterwards; what cannot be changed that way is
refused.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

Ours = Callable[[object], bool]
_SERVERS = "mcp_servers"
_QUOTED = (
    r'"{3}(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'{3}(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
)
_PIECE = re.compile(
    rf"(?P<text>{_QUOTED})|(?P<remark>#[^\n]*)"
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<end>\n)|(?P<other>.)",
    re.DOTALL,
)


class Table(NamedTuple):
    """A table of a text: the keys of its header, and where header and values begin and end."""

    keys: tuple[str, ...]
    begin: int
    end: int


def with_server(text: str, name: str, wanted: Mapping[str, Any], ours: Ours) -> str:
    """The text with a server at its end, replacing ours; ValueError says what is in the way."""
    there = _servers(text).get(name)
    if there is not None:
        if not ours(there):
            raise ValueError(f"has a server `{name}` of somebody else")
        wanted = {**there, **wanted}  # what somebody added to it stays
        if wanted == there:
            return text
        text = without_server(text, name, ours)
    newline = "\r\n" if "\r\n" in text else "\n"
    told = [f"[{_SERVERS}.{name}]", *(f"{key} = {_told(each)}" for key, each in wanted.items())]
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    after = text + gap + newline.join([*told, ""])
    expected = _read(text)
    expected[_SERVERS] = {**_servers(text), name: dict(wanted)}
    return _checked(after, expected)


def without_server(text: str, name: str, ours: Ours) -> str:
    """The text without our server and the empty line before it."""
    servers = _servers(text)
    if not ours(servers.get(name)):
        return text
    after = text
    for table in reversed(list(_tables(text))):
        if table.keys[:2] == (_SERVERS, name):
            begin = table.begin
            blank = re.search(r"(?:^|\n)(\r?\n)$", after[:begin])
            after = after[: begin - len(blank[1]) if blank else begin] + after[table.end :]
    del servers[name]
    expected = {**_read(text), _SERVERS: servers}
    if not servers and _SERVERS not in _read_or_nothing(after):
        del expected[_SERVERS]
    return _checked(after, expected)


def _tables(text: str) -> Iterator[Table]:
    """The tables of a text that a parser has read, in order; what precedes them belongs to none."""
    table: Table | None = None
    for begin, end in _statements(text):
        if text[begin] == "[":
            if table is not None:
                yield table
            table = Table(_keys(text[begin:end]), begin, end)
        elif table is not None:
            table = table._replace(end=end)
    if table is not None:
        yield table


def _statements(text: str) -> Iterator[tuple[int, int]]:
    """Where each header and each key with its value begins, and where its last line ends."""
    begin, depth = None, 0
    for piece in _PIECE.finditer(text):
        match piece.lastgroup:
            case "open":
                depth += 1
            case "close":
                depth -= 1
            case "end" if depth == 0 and begin is not None:
                yield begin, piece.end()
                begin = None
        if begin is None and piece.lastgroup not in ("end", "remark") and piece[0].strip(" \t\r"):
            begin = piece.start()
    if begin is not None:
        yield begin, len(text)


def _keys(header: str) -> tuple[str, ...]:
    """The keys of a header, as a parser reads them."""
    keys: list[str] = []
    found: Any = tomllib.loads(header)
    while found and isinstance(found, dict):
        ((key, found),) = found.items()
        keys.append(key)
    return tuple(keys)


def _servers(text: str) -> dict[str, Any]:
    servers = _read(text).get(_SERVERS, {})
    if not isinstance(servers, dict):
        raise ValueError(f"has `{_SERVERS}` that are not a table")  # noqa: TRY004 - what somebody wrote
    return servers


def _read(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {error}") from error


def _read_or_nothing(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _checked(after: str, expected: dict[str, Any]) -> str:
    if _read_or_nothing(after) != expected:
        raise ValueError(f"has `{_SERVERS}` written in a way that can only be changed by hand")
    return after


def _told(value: Any) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_told(key)} = {_told(each)}' for key, each in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_told, value))}]"
    if not isinstance(value, str | int | float):
        return str(value)  # a time, which TOML writes as ISO 8601 does
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
