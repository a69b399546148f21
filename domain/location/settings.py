"""The settings, their sources, and which setting counts.

Settings come in layers: the command line, the environment, the repository's file, the user's file.
The first layer that has a key decides. A repository's file was written by somebody else: a setting
in it that reaches out of the repository counts only after the user has trusted the file.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache, partial
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import GIB, KIB, MIB, SIZES, TIB, Area, SizeRange


class Scope(StrEnum):
    """Who shares a store: one worktree, all worktrees of a repository, or everything of a user."""

    WORKTREE = "worktree"
    REPO = "repo"
    GLOBAL = "global"


DEFAULT_SCOPES: Mapping[Area, Scope] = {
    Area.WORK: Scope.REPO,
    Area.CHECKPOINTS: Scope.WORKTREE,
    Area.RECORD: Scope.GLOBAL,
}
USER_AREAS = frozenset({Area.RECORD})
"""The areas that belong to the user alone, in whichever repository they are used."""
VARIABLES = {
    "HERDBOOK_STORE": "store",
    **{f"HERDBOOK_{area.upper()}": str(area) for area in Area},
    "HERDBOOK_CHECKPOINTS_SPACE": "checkpoints_space",
    "HERDBOOK_BACKUP": "backup",
}
"""The environment variables, and the keys they set."""
WORKFLOW_VARIABLE = "AGENTOS_WORKFLOW_DB"
"""Another program's variable for where workflows keep their checkpoints."""

OWN_SPACE = "worktree"
"""The value of `checkpoints_space` by which each worktree has its own threads."""

DAILY, OFF = "daily", "off"
"""The values of `backup`: a copy of each space at its first write of a day, or none."""
MOST_COPIES = 1_000
"""The most copies of a space that may be kept."""

MOST_POINTS = 1_000_000
"""The most points a success may be worth, and the most a skill point may take."""

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://", re.DOTALL)
_SIZE = re.compile(r"(\d{1,15})\s*([KMGT]i?B?|B)?", re.IGNORECASE)
_SPACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_UNITS = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": GIB, "t": TIB}


class Origin(NamedTuple):
    """Where a setting was made: the source, and for a file its line."""

    rule: str
    line: int | None = None

    def __str__(self) -> str:
        return self.rule if self.line is None else f"{self.rule}, line {self.line}"


DEFAULT = Origin("default")


class Setting(NamedTuple):
    """One value that was set.

    `base` is the folder that a path in it is relative to. A setting that comes with a repository is
    `of_repository`, and not `trusted` until the user has said so.
    """

    key: str
    value: Any
    origin: Origin
    base: str = ""
    of_repository: bool = False
    trusted: bool = True


Layer = Mapping[str, Setting]
"""The settings of one source, by key."""


class EngineSchemes(NamedTuple):
    """The engines that settings may name, by the schemes of their URLs; the registry has them."""

    files: tuple[str, ...]
    servers: tuple[str, ...]
    memory: tuple[str, ...]


def _check_location(engines: EngineSchemes, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError
    if (url := _URL.match(value)) and not any(url[1].lower() in known for known in engines):
        raise ValueError
    return value


def _check_backend(engines: EngineSchemes, value: object) -> str:
    url = _URL.match(value) if isinstance(value, str) else None
    if value not in engines.files and (url is None or url[1].lower() not in engines.servers):
        raise ValueError
    return str(value)


def _parse_size(value: object) -> int:
    if isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        return int(match[1]) * _UNITS[(match[2] or "")[:1].lower()]
    if type(value) is not int or value < 1:
        raise ValueError
    return value


def _check_size(sizes: SizeRange, value: object) -> int:
    size = _parse_size(value)
    if size not in sizes:
        raise ValueError
    return size


def _check_seconds(value: object) -> float:
    if type(value) not in (int, float) or not 0 < float(str(value)) <= 86_400:  # noqa: PLR2004 - a day
        raise ValueError
    return float(str(value))


def _check_number(least: int, most: int, value: object) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError
    return value


def _check_flag(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError
    return value


def _check_backup(value: object) -> str:
    if value not in (DAILY, OFF):
        raise ValueError
    return str(value)


def _check_space_name(value: object) -> str:
    if not isinstance(value, str) or not _SPACE_NAME.fullmatch(value):
        raise ValueError
    return value


Check = tuple[Callable[[object], Any], str]
"""The check of a setting, and a description of what is allowed."""


def _size_check(sizes: SizeRange, what: str) -> Check:
    allowed = f"how large an LMDB store of {what} may grow: {sizes}, or a text such as '1 GiB'"
    return partial(_check_size, sizes), allowed


_CHECKS: Mapping[str, Check] = {
    "size_limit": _size_check(SIZES[Area.WORK], "work or checkpoints"),
    **{f"{area}_size_limit": _size_check(sizes, str(area)) for area, sizes in SIZES.items()},
    "patience": (
        _check_seconds,
        "how long to wait for a store that others hold: 0 to 86400 seconds",
    ),
    "checkpoints_space": (
        _check_space_name,
        "'worktree', or a name for shared threads: 1 to 64 letters, digits, '.', '_' or '-'",
    ),
    "exports": (_check_flag, "whether a flush writes .agent/ and .journal/: true or false"),
    "enforce_halt": (_check_flag, "whether halted agents are kept from tools: true or false"),
    "flush_after": (_check_seconds, "how old what hooks left may become: 0 to 86400 seconds"),
    "flush_size": (_parse_size, "how large it may become: bytes, or a text such as '1 MiB'"),
    "message_limit": (
        _parse_size,
        "how large a message to `herdbook rpc` may be: bytes, or '16 MiB'",
    ),
    "backup": (_check_backup, "whether each space is copied once a day: 'daily' or 'off'"),
    "backup_every": (
        _check_seconds,
        "how old the last segment may become before a write starts another: 0 to 86400 seconds",
    ),
    "backup_keep": (
        partial(_check_number, 1, MOST_COPIES),
        f"how many daily copies are kept: 1 to {MOST_COPIES}",
    ),
    "backup_size": (
        _parse_size,
        "how much room the daily copies of one space may take: bytes, or a text such as '1 GiB'",
    ),
    "merge_legacy": (_check_flag, "whether an agent-tracker's database is merged: true or false"),
    **{
        f"experience_{what}": (
            partial(_check_number, 0, MOST_POINTS),
            f"what a {what} that succeeds is worth: 0 to {MOST_POINTS}",
        )
        for what in ("tool", "command", "commit")
    },
    "experience_per_skill_point": (
        partial(_check_number, 1, MOST_POINTS),
        f"how much a skill point takes: 1 to {MOST_POINTS}",
    ),
}
KEYS = ("store", *map(str, Area), "backend", *_CHECKS)
"""The keys of all settings."""
DEFAULTS: Mapping[str, object] = {
    **{str(area): str(scope) for area, scope in DEFAULT_SCOPES.items()},
    "backend": "lmdb",
    "size_limit": SIZES[Area.WORK].default,
    "work_size_limit": None,
    "checkpoints_size_limit": None,
    "record_size_limit": SIZES[Area.RECORD].default,
    "patience": 30.0,
    "checkpoints_space": OWN_SPACE,
    "exports": False,
    "enforce_halt": True,
    "flush_after": 300.0,
    "flush_size": MIB,
    "message_limit": 16 * MIB,
    "backup": DAILY,
    "backup_every": 600.0,
    "backup_keep": 7,
    "backup_size": GIB,
    "merge_legacy": True,
    "experience_tool": 1,
    "experience_command": 2,
    "experience_commit": 5,
    "experience_per_skill_point": 10_000,
}
USER_ONLY_KEYS = frozenset(
    {"enforce_halt", "flush_size", "merge_legacy", "record_size_limit"}
    | {key for key in KEYS if key.startswith(("backup", "experience_"))}
)
"""The keys that are the user's own, so that no single repository may set them."""


@lru_cache(maxsize=4)
def setting_checks(engines: EngineSchemes) -> Mapping[str, Check]:
    """The check of every setting, if these are the engines."""
    urls = ", ".join(f"{scheme}://" for schemes in engines for scheme in schemes)
    places = f"a scope ({', '.join(Scope)}), a path, or a URL ({urls})"
    names = " or ".join(map(repr, engines.files))
    servers = ", ".join(f"{scheme}://" for scheme in engines.servers)
    return {
        **dict.fromkeys(("store", *map(str, Area)), (partial(_check_location, engines), places)),
        "backend": (
            partial(_check_backend, engines),
            f"{names}, or the URL of a server ({servers})",
        ),
        **_CHECKS,
    }


def check_setting(
    key: str, value: object, origin: Origin, base: str = "", *, engines: EngineSchemes
) -> Setting:
    """A validated setting; raises InvalidValue with its origin, its key and what is allowed.

    The error does not repeat the value: it may contain a password.
    """
    if key not in KEYS:
        from difflib import get_close_matches  # noqa: PLC0415 - seldom needed

        near = get_close_matches(key, KEYS, n=1)
        known = f"did you mean {near[0]}?" if near else f"the settings are {', '.join(KEYS)}"
        reason = f"unknown setting {key!r}; {known}"
        raise InvalidValue(str(origin), reason)
    check, allowed = setting_checks(engines)[key]
    try:
        return Setting(key, check(value), origin, base)
    except ValueError:
        raise InvalidValue(f"{origin}: {key}", f"must be {allowed}") from None


def shared_space(layers: Sequence[Layer]) -> str | None:
    """The name of the checkpoints' space that the user shares; None for each worktree's own.

    A repository has no say in it until the user has trusted its file: by a name it could read the
    threads of another one.
    """
    for layer in layers:
        setting = layer.get("checkpoints_space")
        if setting is not None and setting.trusted:
            return None if setting.value == OWN_SPACE else str(setting.value)
    return None


def effective_setting(layers: Sequence[Layer], *keys: str) -> Setting | None:
    """The setting that counts: the first of the keys in the first layer that has any of them.

    Keys that are the user's own cannot be set by a repository.
    """
    for layer in layers:
        for key in keys:
            if key in layer and not (key in USER_ONLY_KEYS and layer[key].of_repository):
                return layer[key]
    return None


def size_limit_keys(area: Area) -> tuple[str, ...]:
    """The keys that say how large the store of an area may grow, the more special one first.

    A limit for the stores of a repository does not hold for what belongs to the user alone.
    """
    own = f"{area}_size_limit"
    return (own,) if area in USER_AREAS else (own, "size_limit")


def is_url(value: str) -> bool:
    """Whether a value is the URL of a store."""
    return _URL.match(value) is not None
