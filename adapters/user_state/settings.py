"""Settings from arguments, environment variables, and TOML files with line numbers."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from herdbook.adapters.stores.registry import engine_schemes
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.settings import (
    VARIABLES,
    WORKFLOW_VARIABLE,
    Layer,
    Origin,
    Scope,
    Setting,
    check_setting,
)

REPOSITORY_FILE, PROJECT_FILE = "herdbook.toml", "pyproject.toml"
PROJECT_TABLE = ("tool", "herdbook")
SQLITE_RULE = f"{WORKFLOW_VARIABLE} names a SQLite database, which is only read"
_SQLITE = b"SQLite format 3\0"
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]")


def from_arguments(arguments: Mapping[str, str | None], base: str) -> Layer:
    """The settings given as command-line options, by key."""
    return {
        key: _check(key, value, Origin(f"--{key}"), base)
        for key, value in arguments.items()
        if value
    }


def from_environment(variables: Mapping[str, str], base: str) -> list[Layer]:
    """The settings of the environment; an empty variable counts as unset."""
    ours = {
        key: _check(key, variables[name], Origin(name), base)
        for name, key in VARIABLES.items()
        if variables.get(name)
    }
    theirs = variables.get(WORKFLOW_VARIABLE)
    return [ours, _workflow_layer(theirs, base)] if theirs else [ours]


def _workflow_layer(path: str, base: str) -> Layer:
    """The checkpoints store at another program's path, if nothing or a store of ours is there.

    An existing SQLite database stays that program's own.
    """
    value, rule = path, WORKFLOW_VARIABLE
    if _is_sqlite(workflow_path(path, base)):
        value, rule = Scope.WORKTREE, SQLITE_RULE
    return {"checkpoints": _check("checkpoints", value, Origin(rule), base)}


def workflow_path(path: str, base: str) -> Path:
    """The path that another program's variable names."""
    return Path(base, Path(path).expanduser())


def _is_sqlite(path: Path) -> bool:
    """Whether a file is a SQLite database; an empty one is, to which nothing was written yet.

    Raises InvalidValue if it cannot be read.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) in (_SQLITE, b"")
    except OSError as error:
        reason = f"{path} cannot be read: {error.strerror}"
        raise InvalidValue(WORKFLOW_VARIABLE, reason) from error


def repository_file(root: Path) -> Path | None:
    """The file with the repository's settings: its own, else a pyproject.toml that has some."""
    own, project = root / REPOSITORY_FILE, root / PROJECT_FILE
    if own.exists():
        return own
    # Most projects have the file without a table of Herdbook, and parsing TOML takes time.
    return project if project.is_file() and b"herdbook" in read_bytes(project) else None


def read_bytes(path: Path) -> bytes:
    """The content of a settings file; raises InvalidValue if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidValue(str(path), f"cannot be read: {error.strerror}") from error


def from_file(path: Path, base: str, name: str = "") -> Layer:
    """The settings in a file, each with its line; raises InvalidValue for any that is invalid."""
    import tomllib  # noqa: PLC0415 - 20 ms, only for users with such a file

    name = name or path.name
    try:
        text = read_bytes(path).decode()
        table: Any = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValue(name, f"is not TOML: {error}") from None
    within = PROJECT_TABLE if path.name == PROJECT_FILE else ()
    for key in within:
        table = table.get(key, {})
    if not isinstance(table, dict):
        raise InvalidValue(name, f"[{'.'.join(within)}] must be a table of settings")
    lines = _lines(text, within)
    return {
        key: _check(key, value, Origin(name, lines.get(key)), base) for key, value in table.items()
    }


def _lines(text: str, within: tuple[str, ...]) -> dict[str, int]:
    """The line of each key of a table, for keys written in the usual form."""
    lines: dict[str, int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            table = tuple(part.strip(" \t\"'") for part in header[1].split("."))
            continue
        words, equals, _ = line.partition("=")
        key = tuple(part.strip(" \t\"'") for part in words.split("."))
        if equals and (*table, *key)[:-1] == within:
            lines.setdefault(key[-1], number)
    return lines


def _check(key: str, value: object, origin: Origin, base: str) -> Setting:
    return check_setting(key, value, origin, base, engines=engine_schemes())
