"""The paths of the plugin's databases and of its npm packages."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from herdbook.domain.errors import StoreUnavailable

DATABASE = Path(".config/opencode/agent-tracker.lmdb")
WORD_LIST = Path("node_modules/lmdb/dict/dict.txt")
KNOWN_WORDS = "7ce5943f129acb0603ee487a1f45b358b8ddf829a6814be32e42286d31928104"
"""The SHA-256 of the word list that lmdb-js has had since its version 2.0."""


def find_databases(folder: Path, home: Path) -> list[Path]:
    """The existing databases: the user's, and before it one below a folder called `~`.

    A defect of the plugin puts the latter there.
    """
    places = (folder / "~" / DATABASE, home / DATABASE)
    return [place for place in places if _exists(place)]


def find_word_list(
    database: Path, home: Path, variables: Mapping[str, str] | None = None
) -> bytes | None:
    """The word list of an lmdb package near the database or of OpenCode's own; None without one.

    Only the known list is accepted: another one would decode the same bytes to other words.
    """
    for place in _places(database, home, variables or {}):
        found = _bytes(place)
        if found is not None and sha256(found).hexdigest() == KNOWN_WORDS:
            return found
    return None


def read_word_list(path: Path) -> bytes:
    """The word list at a given path; raises StoreUnavailable if it cannot be read."""
    found = _bytes(path)
    if found is None:
        raise StoreUnavailable(str(path), "the word list cannot be read")
    return found


def _places(database: Path, home: Path, variables: Mapping[str, str]) -> Iterator[Path]:
    roots: Iterable[Path] = (
        *database.absolute().parents,
        Path(variables.get("XDG_CONFIG_HOME") or home / ".config") / "opencode",
        Path(variables.get("XDG_CACHE_HOME") or home / ".cache") / "opencode",
    )
    for root in roots:
        yield root / WORD_LIST
        if root.name == "opencode":
            yield from sorted(root.glob(f"packages/*/{WORD_LIST}"))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None
