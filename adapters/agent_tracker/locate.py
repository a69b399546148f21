"""Where the plugin leaves its database, and where its npm packages lie."""

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from herdbook.domain.errors import StoreUnavailable

DATABASE = Path(".config/opencode/agent-tracker.lmdb")
WORD_LIST = Path("node_modules/lmdb/dict/dict.txt")
KNOWN_WORDS = "7ce5943f129acb0603ee487a1f45b358b8ddf829a6814be32e42286d31928104"
"""The digest of the word list that lmdb-js has had since its version 2.0."""


def find_databases(folder: Path, home: Path) -> list[Path]:
    """The databases there are: one that a defect put below a folder called `~`, and the user's."""
    places = (folder / "~" / DATABASE, home / DATABASE)
    return [place for place in places if _exists(place)]


def find_word_list(
    database: Path, home: Path, variables: Mapping[str, str] | None = None
) -> bytes | None:
    """The word list of an lmdb package near the database or OpenCode's own, if there is one.

    Only the one that is known counts: another one would make other words of the same bytes.
    """
    for place in _places(database, home, variables or {}):
        found = _bytes(place)
        if found is not None and sha256(found).hexdigest() == KNOWN_WORDS:
            return found
    return None


def read_word_list(path: Path) -> bytes:
    """The word list that somebody named; StoreUnavailable if it cannot be read."""
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
