"""Digests of a space's content: spaces that hold the same rows have the same digest.

Every row of every kind counts, projections and the journal too, as canonical JSON in the order of
the keys; secrets count with their values, because only a hash comes out, and bytes by a hash of
them. What two stores may say differently about the same content does not count: the note that a
copy leaves about itself, the head of a space that was never written to, and the cursors of
processes that follow one of them.
"""

import json
from collections.abc import Container, Mapping
from hashlib import blake2b
from typing import Any

from attrs import Factory, define, frozen

from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import CURSORS, HEADS, OPERATIONS
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.paging import select_pages
from herdbook.ports.unit_of_work.changes import RowReader

COPY_NOTE = "herdbook:copy-note"
"""The operation id under which a space records where it was copied from."""


def _digest_bytes(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


_write = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_digest_bytes
).encode


def canonical_json(values: Mapping[str, Any]) -> bytes:
    """The values of a row as the one text that all equal rows have; bytes by their hash."""
    return _write(values).encode()


def is_content(kind: Kind[Any], row: Any) -> bool:
    """Whether a row counts as content."""
    if kind is OPERATIONS:
        return bool(row.operation_id != COPY_NOTE)
    if kind is CURSORS:
        return not row.is_follower
    return kind is not HEADS or row.clock is not None


def canonical_bytes(kind: Kind[Any], row: Any) -> bytes:
    """A row as the one text that all equal rows have; it shows secrets."""
    return canonical_json(encode_row(kind, row, reveal=True))


@frozen
class Digest:
    """The digests of the kinds that a space has rows of."""

    kinds: dict[str, str]

    @property
    def whole(self) -> str:
        """The digest of all kinds together."""
        lines = "".join(f"{name} {each}\n" for name, each in sorted(self.kinds.items()))
        return blake2b(lines.encode(), digest_size=16).hexdigest()

    def differing_kinds(self, other: "Digest") -> tuple[str, ...]:
        """The kinds in which two spaces differ."""
        names = sorted({*self.kinds, *other.kinds})
        return tuple(n for n in names if self.kinds.get(n) != other.kinds.get(n))


@define
class Digester:
    """Computes a digest; rows of a kind must come in the order of their keys."""

    _hashes: dict[str, Any] = Factory(dict)

    def add(self, kind: Kind[Any], text: bytes) -> None:
        """Add a row by its canonical text."""
        if kind.name not in self._hashes:
            self._hashes[kind.name] = blake2b(digest_size=16)
        self._hashes[kind.name].update(text + b"\n")

    def result(self) -> Digest:
        """The digest of the rows that were added."""
        return Digest({name: each.hexdigest() for name, each in self._hashes.items()})


def digest_space(
    reader: RowReader, dictionary: Dictionary, without: Container[Kind[Any]] = ()
) -> Digest:
    """The digest of the space that a session reads, or of all but some of its kinds."""
    digesting = Digester()
    for kind in dictionary:
        if kind in without:
            continue
        for page in select_pages(reader, kind):
            for row in page:
                if is_content(kind, row):
                    digesting.add(kind, canonical_bytes(kind, row))
    return digesting.result()
