"""Identities of repositories and worktrees, computed from facts about git.

Computed ids are pinned by the first writer, so that a first commit or a new remote does not orphan
rows stored under them. No credential in a remote's URL ever reaches an id.
"""

import re
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import unquote

from herdbook.domain.errors import InvalidValue

_HEX_DIGITS: Final = 12
_SLUG_LENGTH: Final = 40
_REPOSITORY_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORKTREE_ID: Final = re.compile(rf"[0-9a-f]{{{_HEX_DIGITS}}}")

# Schemes by which a server usually offers the same remote, with their usual ports.
_USUAL_PORTS: Final = {
    "http": "80",
    "https": "443",
    "ssh": "22",
    "git+ssh": "22",
    "ssh+git": "22",
    "git": "9418",
    "ftp": "21",
    "ftps": "990",
}
_WITH_QUERY: Final = ("http", "https", "ftp", "ftps")
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]*)://(.*)", re.DOTALL)
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::(\d*))?")
# Git parses it as host:path when a colon comes before the first slash.
_SCP: Final = re.compile(r"(?=[^/]*:)(?:.*@)?(\[[^\]]*\]|[^/:@]+):(.*)", re.DOTALL)


class GitFacts(NamedTuple):
    """What git says about a folder; paths are real paths."""

    origin_url: str | None
    root_commits: tuple[str, ...]
    common_dir: str
    git_dir: str
    machine_id: str
    top_level: str | None
    branch: str | None
    is_main: bool
    is_bare: bool
    pinned_repository_id: str | None
    pinned_worktree_id: str | None

    def __repr__(self) -> str:
        # The origin may contain a password, and the machine's id is private.
        hidden = ("origin_url", "machine_id")
        parts = ", ".join(f"{n}={v!r}" for n, v in self._asdict().items() if n not in hidden)
        return f"GitFacts({parts})"


def repository_id(facts: GitFacts) -> str:
    """The repository's id, the same in all its worktrees and clones: `<slug>-<12 hex>`, or its pin.

    Raises InvalidValue for a pin that cannot be an id.
    """
    if facts.pinned_repository_id is not None:
        if not _REPOSITORY_ID.fullmatch(facts.pinned_repository_id):
            reason = "the pinned id must be 1 to 64 letters, digits, dots, underscores or dashes"
            raise InvalidValue("repository_id", reason)
        return facts.pinned_repository_id
    origin = normalise_origin(facts.origin_url or "")
    if origin:
        digest = _digest("origin", origin)
    elif facts.root_commits:
        digest = _digest("root", min(facts.root_commits))
    else:
        digest = _digest("common_dir", facts.machine_id, facts.common_dir)
    return f"{_slug(origin)}-{digest}"


def worktree_id(facts: GitFacts) -> str:
    """The id of this worktree on this machine: 12 hex digits, or its pin.

    It is computed from the worktree's own git directory, which `git worktree move` leaves in place.
    Raises InvalidValue for a pin that cannot be an id.
    """
    if facts.pinned_worktree_id is not None:
        if not _WORKTREE_ID.fullmatch(facts.pinned_worktree_id):
            reason = f"the pinned id must be {_HEX_DIGITS} hexadecimal digits"
            raise InvalidValue("worktree_id", reason)
        return facts.pinned_worktree_id
    return _digest("worktree", facts.machine_id, facts.git_dir)


def normalise_origin(url: str) -> str:
    """Reduce all spellings of one remote to one text without credentials: `host/path`.

    A path on this machine stays a path, beginning with a slash, a dot or a tilde. Schemes that are
    not known to reach the same place are kept. Empty when the URL says nothing.
    """
    url = url.strip()
    if match := _URL.fullmatch(url):
        scheme, rest = match[1].lower(), match[2]
        if scheme == "file":
            return _normalise_local_path(unquote(f"/{rest}", errors="surrogateescape"))
        return _normalise_network_url(scheme, rest)
    if match := _SCP.fullmatch(url):
        return _join_host_path(match[1], match[2])
    return _normalise_local_path(url)


def _normalise_network_url(scheme: str, rest: str) -> str:
    """Normalise what follows `scheme://`."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :]
    match = _HOST.fullmatch(authority.rpartition("@")[2])
    if match is None:
        if "@" in path:
            # A password with an unescaped / ? or #: the real authority follows the last @.
            return _normalise_network_url(scheme, path.rpartition("@")[2])
        # Neither a host nor safe to quote: it may be part of a password.
        host, port = "", None
    else:
        host, port = match.groups()
    if scheme in _WITH_QUERY:
        path = re.split(r"[?#]", path, maxsplit=1)[0]
    if port and port != _USUAL_PORTS.get(scheme):
        host = f"{host}:{port}"
    origin = _join_host_path(host, unquote(path, errors="surrogateescape"))
    return origin if scheme in _USUAL_PORTS else f"{scheme}://{origin}"


def _join_host_path(host: str, path: str) -> str:
    """Join host and path, treating the root and the home directory of a server as one place."""
    path = _strip_git_suffix(path).lstrip("/").removeprefix("~/")
    return f"{host.lower()}/{path}" if path else host.lower()


def _normalise_local_path(path: str) -> str:
    """Keep a local path, marked so that it cannot be read as a host."""
    path = _strip_git_suffix(path)
    return path if not path or path.startswith(("/", ".", "~")) else f"./{path}"


def _strip_git_suffix(path: str) -> str:
    """Drop what git adds or tolerates: doubled and trailing slashes and one `.git`."""
    path = re.sub(r"/+", "/", path).rstrip("/")
    return path.removesuffix(".git").rstrip("/")


def _slug(origin: str) -> str:
    """The readable part of a repository's id, from the last component of its origin."""
    last = origin.rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:_SLUG_LENGTH].rstrip("-") or "repo"


def _digest(source: str, *parts: str) -> str:
    """Hash parts under the name of their source, so that two sources never give the same id.

    Paths may contain bytes that are not text, which Python represents as lone surrogates.
    """
    text = "\0".join((source, *parts))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX_DIGITS]
