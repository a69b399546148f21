"""Git: its hooks, and the commit that a payload names."""

import re
from collections.abc import Mapping
from typing import Final

from herdbook.domain.record.events import Meaning

MEANINGS: Final[Mapping[str, Meaning]] = {
    "post-commit": Meaning.COMMIT,
    "post-rewrite": Meaning.UNCOUNTED,
    "pre-push": Meaning.UNCOUNTED,
}

_HASH: Final = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_HASH_KEYS: Final = ("commit_hash", "commit", "arguments", "input")


def commit_hash(raw: object) -> str | None:
    """The hash of the commit, if the hook stored it as text or under its name."""
    if isinstance(raw, Mapping):
        raw = " ".join(str(raw[key]) for key in _HASH_KEYS if key in raw)
    found = _HASH.search(raw) if isinstance(raw, str) else None
    return None if found is None else found[0]
