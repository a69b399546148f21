"""Git: its hooks, and the commit that a payload names."""

import re
from collections.abc import Mapping
from typing import Final

from herdbook.domain.record.events import Meaning

MEANINGS: Final[Mapping[str, Meaning]] = {
    "post-commit": Meaning.COMMIT,
    "post-rewrite": Meaning.REWRITE,
    "pre-push": Meaning.UNCOUNTED,
}

_HASH: Final = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_PAIR: Final = re.compile(
    r"^([0-9a-f]{64}|[0-9a-f]{40}) ([0-9a-f]{64}|[0-9a-f]{40})\b", re.MULTILINE
)
_HASH_KEYS: Final = ("commit_hash", "commit", "arguments", "input")


def commit_hash(raw: object) -> str | None:
    """The hash of the commit, if the hook stored it as text or under its name."""
    if isinstance(raw, Mapping):
        raw = " ".join(str(raw[key]) for key in _HASH_KEYS if key in raw)
    found = _HASH.search(raw) if isinstance(raw, str) else None
    return None if found is None else found[0]


def rewritten_commits(raw: object) -> tuple[tuple[str, str], ...]:
    """The pairs of an old and a new commit that git tells a hook on its standard input."""
    given = raw.get("input") if isinstance(raw, Mapping) else raw
    found = _PAIR.findall(given) if isinstance(given, str) else []
    return tuple((old, new) for old, new in found if old != new)
