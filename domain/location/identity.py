"""Which repository, which worktree, which agent: pure functions of facts a port collects from git.

Ids computed here are pinned by whoever writes first, so a first commit or a new remote does not
orphan what is kept under them. No credential of a remote's URL ever reaches an id.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple
from urllib.parse import unquote

from herdbook.domain.errors import InvalidValue

_HEX_DIGITS: Final = 12
_SLUG_LENGTH: Final = 40
_REPOSITORY_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORKTREE_ID: Final = re.compile(rf"[0-9a-f]{{{_HEX_DIGITS}}}")

# Ways to reach one remote that a server usually offers side by side, with their usual ports.
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
# Git reads it as host:path when a colon comes before the first slash.
_SCP: Final = re.compile(r"(?=[^/]*:)(?:.*@)?(\[[^\]]*\]|[^/:@]+):(.*)", re.DOTALL)


class GitFacts(NamedTuple):
    """What git says about the place we are in; paths are real paths."""

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
        # The origin may hold a password, and the machine's id is nobody else's business.
        hidden = ("origin_url", "machine_id")
        said = ", ".join(f"{n}={v!r}" for n, v in self._asdict().items() if n not in hidden)
        return f"GitFacts({said})"


def repository_id(facts: GitFacts) -> str:
    """Name the repository alike in all its worktrees and clones: `<slug>-<12 hex>`, or its pin."""
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
    """Name this worktree on this machine with 12 hex characters, or its pin.

    It comes from the worktree's own git directory, which `git worktree move` leaves in place.
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
    not known to be ways to one place are kept. Empty when the URL says nothing.
    """
    url = url.strip()
    if match := _URL.fullmatch(url):
        scheme, rest = match[1].lower(), match[2]
        if scheme == "file":
            return _local(unquote(f"/{rest}", errors="surrogateescape"))
        return _network(scheme, rest)
    if match := _SCP.fullmatch(url):
        return _remote(match[1], match[2])
    return _local(url)


def who(
    agent_variable: str | None, session_agent: str | None, running_here: Sequence[str]
) -> str | None:
    """Tell which agent acts: the one named, the session's, the only one running here, or nobody."""
    for named in (agent_variable, session_agent):
        if named and named.strip():
            return named.strip()
    return running_here[0] if len(set(running_here)) == 1 else None


def _network(scheme: str, rest: str) -> str:
    """Reduce what follows `scheme://`."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    path = rest[len(authority) :]
    match = _HOST.fullmatch(authority.rpartition("@")[2])
    if match is None:
        if "@" in path:
            # A password with a bare / ? or #: the true authority follows the last @.
            return _network(scheme, path.rpartition("@")[2])
        # Neither a host nor safe to quote: what stands there may be a password cut short.
        host, port = "", None
    else:
        host, port = match.groups()
    if scheme in _WITH_QUERY:
        path = re.split(r"[?#]", path, maxsplit=1)[0]
    if port and port != _USUAL_PORTS.get(scheme):
        host = f"{host}:{port}"
    origin = _remote(host, unquote(path, errors="surrogateescape"))
    return origin if scheme in _USUAL_PORTS else f"{scheme}://{origin}"


def _remote(host: str, path: str) -> str:
    """Join host and path, taking the root and the home of a server for the same place."""
    path = _bare(path).lstrip("/").removeprefix("~/")
    return f"{host.lower()}/{path}" if path else host.lower()


def _local(path: str) -> str:
    """Keep a path, marked so that it cannot be taken for a host."""
    path = _bare(path)
    return path if not path or path.startswith(("/", ".", "~")) else f"./{path}"


def _bare(path: str) -> str:
    """Drop what git adds or forgives: doubled and trailing slashes and one `.git`."""
    path = re.sub(r"/+", "/", path).rstrip("/")
    return path.removesuffix(".git").rstrip("/")


def _slug(origin: str) -> str:
    """Make the readable part of a repository's id from the last component of its origin."""
    last = origin.rpartition("/")[2].lower()
    return re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:_SLUG_LENGTH].rstrip("-") or "repo"


def _digest(source: str, *parts: str) -> str:
    """Hash parts under the name of their source, so that two sources never give one id by chance.

    Paths may hold bytes that are no text, which Python carries as lone surrogates.
    """
    text = "\0".join((source, *parts))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HEX_DIGITS]
