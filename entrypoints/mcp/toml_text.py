"""Adds our server to a TOML file of another program, and removes it; every other byte stays.

The result is parsed and compared with what was meant; a text that cannot be changed that way is
refused. ADR 35 says why tomlkit does not do this.
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
_TOKEN = re.compile(
    rf"(?P<text>{_QUOTED})|(?P<remark>#[^\n]*)"
    r"|(?P<open>[\[{])|(?P<close>[\]}])|(?P<end>\n)|(?P<other>.)",
    re.DOTALL,
)


class TableSpan(NamedTuple):
    """A table of a text: the keys of its header, and where its header begins and its values end."""

    keys: tuple[str, ...]
    begin: int
    end: int


def add_server(text: str, name: str, wanted: Mapping[str, Any], ours: Ours) -> str:
    """The text with our server as its last table; ValueError with the reason if not possible."""
    there = _servers(text).get(name)
    if there is not None:
        if not ours(there):
            raise ValueError(f"has a server `{name}` of somebody else")
        wanted = {**there, **wanted}  # what somebody added to it stays
        if wanted == there:
            return text
        text = remove_server(text, name, ours)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [
        f"[{_SERVERS}.{name}]",
        *(f"{key} = {_format_value(each)}" for key, each in wanted.items()),
    ]
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    after = text + gap + newline.join([*lines, ""])
    expected = _parse(text)
    expected[_SERVERS] = {**_servers(text), name: dict(wanted)}
    return _verify(after, expected)


def find_server(text: str, name: str) -> Any:
    """The server of this name; None if there is none. ValueError if the text is not TOML."""
    return _servers(text).get(name)


def remove_server(text: str, name: str, ours: Ours) -> str:
    """The text without our server and the empty line before it.

    ValueError if it is written in a way that only a person can take apart.
    """
    servers = _servers(text)
    if not ours(servers.get(name)):
        return text
    after = text
    for table in reversed(list(_table_spans(text))):
        if table.keys[:2] == (_SERVERS, name):
            begin = table.begin
            blank = re.search(r"(?:^|\n)(\r?\n)$", after[:begin])
            after = after[: begin - len(blank[1]) if blank else begin] + after[table.end :]
    del servers[name]
    expected = {**_parse(text), _SERVERS: servers}
    if not servers and _SERVERS not in _parse_or_empty(after):
        del expected[_SERVERS]
    return _verify(after, expected)


def _table_spans(text: str) -> Iterator[TableSpan]:
    """The tables of a valid text, in order; statements before the first belong to none."""
    table: TableSpan | None = None
    for begin, end in _statement_spans(text):
        if text[begin] == "[":
            if table is not None:
                yield table
            table = TableSpan(_header_keys(text[begin:end]), begin, end)
        elif table is not None:
            table = table._replace(end=end)
    if table is not None:
        yield table


def _statement_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each header and each key with its value begins, and where its last line ends."""
    begin, depth = None, 0
    for piece in _TOKEN.finditer(text):
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


def _header_keys(header: str) -> tuple[str, ...]:
    """The keys of a header, as a parser reads them."""
    keys: list[str] = []
    found: Any = tomllib.loads(header)
    while found and isinstance(found, dict):
        ((key, found),) = found.items()
        keys.append(key)
    return tuple(keys)


def _servers(text: str) -> dict[str, Any]:
    servers = _parse(text).get(_SERVERS, {})
    if not isinstance(servers, dict):
        raise ValueError(f"has `{_SERVERS}` that are not a table")  # noqa: TRY004 - what somebody wrote
    return servers


def _parse(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {error}") from error


def _parse_or_empty(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _verify(after: str, expected: dict[str, Any]) -> str:
    if _parse_or_empty(after) != expected:
        raise ValueError(f"has `{_SERVERS}` written in a way that can only be changed by hand")
    return after


def _format_value(value: Any) -> str:
    """A value as TOML, on one line."""
    if isinstance(value, dict):
        pairs = (f"{_format_value(key)} = {_format_value(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    if not isinstance(value, str | int | float):
        return str(value)  # a time, which TOML writes as ISO 8601 does
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
