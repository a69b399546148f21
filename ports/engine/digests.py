"""The content of a space in a few letters: spaces that hold the same rows have the same digest.

Every row of every kind counts, derived ones and the journal too, as canonical JSON in the order of
the keys; secrets count as what they are, for nothing but a hash comes out, and bytes by a hash of
theirs. What two stores say differently of the same content does not count: the note that a copy
leaves about itself, and the head of a space in which nobody has written.
"""

import json
from hashlib import blake2b
from typing import Any

from attrs import Factory, define, frozen

from herdbook.ports.engine.codec import encode
from herdbook.ports.engine.dictionary import HEADS, OPERATIONS
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.paging import pages
from herdbook.ports.unit_of_work.changes import Reads

COPY_NOTE = "herdbook:copy-note"
"""The operation under which a space keeps where it was copied from."""


def _content(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


_write = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_content
).encode


def counts(kind: Kind[Any], row: Any) -> bool:
    """Whether a row is content."""
    if kind is OPERATIONS:
        return bool(row.operation_id != COPY_NOTE)
    return kind is not HEADS or row.clock is not None


def canonical(kind: Kind[Any], row: Any) -> bytes:
    """A row as the one text that all equal rows have; it shows secrets."""
    return _write(encode(kind, row, revealed=True)).encode()


@frozen
class Digest:
    """The digests of the kinds of which a space has rows."""

    kinds: dict[str, str]

    @property
    def whole(self) -> str:
        """The digest of it all."""
        lines = "".join(f"{name} {each}\n" for name, each in sorted(self.kinds.items()))
        return blake2b(lines.encode(), digest_size=16).hexdigest()

    def differing(self, other: "Digest") -> tuple[str, ...]:
        """The kinds in which two spaces are not the same."""
        names = sorted({*self.kinds, *other.kinds})
        return tuple(n for n in names if self.kinds.get(n) != other.kinds.get(n))


@define
class Digesting:
    """A digest in the making; rows of a kind come in the order of their keys."""

    _hashes: dict[str, Any] = Factory(dict)

    def take(self, kind: Kind[Any], text: bytes) -> None:
        """Count a row in, by its canonical text."""
        if kind.name not in self._hashes:
            self._hashes[kind.name] = blake2b(digest_size=16)
        self._hashes[kind.name].update(text + b"\n")

    def result(self) -> Digest:
        """The digest of what was counted in."""
        return Digest({name: each.hexdigest() for name, each in self._hashes.items()})


def digest_of(read: Reads, dictionary: Dictionary) -> Digest:
    """The digest of the space that a session reads."""
    digesting = Digesting()
    for kind in dictionary:
        for page in pages(read, kind):
            for row in page:
                if counts(kind, row):
                    digesting.take(kind, canonical(kind, row))
    return digesting.result()
