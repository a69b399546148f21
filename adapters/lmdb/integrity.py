"""Checks a space: rows that are damaged, and lookup entries that lead nowhere."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from attrs import frozen

from herdbook.adapters.lmdb.keys import (
    entries,
    key_encoder,
    lookup_tag,
    prefix_end,
    row_prefix,
    seek,
)
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.store import IntegrityFinding

_UNREADABLE = (StoreDamaged, ValueError, LookupError, TypeError)
_MARK = slice(4, 8)
"""The bytes of an entry that name its lookup, after the number of its space."""


@frozen
class IndexChecker:
    """Checks the rows of a space against its lookup entries, in one transaction."""

    txn: Any
    rows: Any
    lookups: Any
    space: bytes
    place: str
    decode_row: Callable[[Kind[Any], bytes], Any]

    def under(self, prefix: bytes, database: Any) -> Iterator[tuple[bytes, bytes]]:
        """Everything whose key begins with a prefix, as (key, value)."""
        cursor = self.txn.cursor(db=database)
        if seek(cursor, prefix, self.place):
            for key, value in cursor.iternext():
                if not key.startswith(prefix):
                    return
                yield key, value

    def row(self, kind: Kind[Any], key: bytes, value: bytes) -> Any:
        """The row stored under a key, or None if it cannot be read or has another key."""
        try:
            row = self.decode_row(kind, value)
            return row if key_encoder(kind)(kind.key_of(row)) == key else None
        except _UNREADABLE:
            return None

    def of_kind(self, kind: Kind[Any]) -> Iterator[tuple[bytes, Any]]:
        """All rows of a kind by their keys, with None for a row that cannot be read."""
        prefix = row_prefix(kind.name, self.space)
        for key, value in self.under(prefix, self.rows):
            own = key[len(prefix) :]
            yield own, self.row(kind, own, value)

    def names(self) -> Iterator[str]:
        """The names of the kinds that have rows."""
        cursor = self.txn.cursor(db=self.rows)
        there = seek(cursor, self.space, self.place)
        while there and cursor.key().startswith(self.space):
            name = cursor.key()[len(self.space) :].partition(b"\0")[0]
            yield name.decode(errors="replace")
            there = seek(cursor, prefix_end(self.space + name + b"\0"), self.place)

    def readable_rows(self, kind: Kind[Any]) -> Iterator[Any]:
        """The rows of a kind that can be read."""
        return (row for _, row in self.of_kind(kind) if row is not None)

    def find_flaws(self, kinds: Iterable[Kind[Any]]) -> Iterator[IntegrityFinding]:
        """Find everything that differs from what writing the rows has left."""
        known = {kind.name: kind for kind in kinds}
        for name in self.names():
            if name not in known:
                yield name, None, "are rows of a kind that nobody knows"
        leading = 0
        for kind in known.values():
            for key, row in self.of_kind(kind):
                if row is None:
                    yield (
                        kind.name,
                        _format_key(kind, key),
                        "does not match its checksum or its key",
                    )
                    continue
                for lookup, entry in zip(
                    kind.all_lookups, entries(kind, row, self.space), strict=True
                ):
                    if self.txn.get(entry, db=self.lookups) == key:
                        leading += 1
                    else:
                        what = f"the lookup by {', '.join(lookup)} does not lead to it"
                        yield kind.name, _format_key(kind, key), what
        # Each entry ends with its row's key, so more entries than valid ones means strays.
        if sum(1 for _ in self.under(self.space, self.lookups)) > leading:
            yield from (finding for _, finding in self._stray_entries(known))

    def repair_lookups(self, kinds: Iterable[Kind[Any]]) -> int:
        """Write the missing lookup entries and delete the stray ones; how many there were.

        Entries that lead to a row that cannot be read stay: nobody knows which values that row has.
        """
        known = {kind.name: kind for kind in kinds}
        strays = {entry for entry, _ in self._stray_entries(known)}
        lacking = [
            (entry, key)
            for kind in known.values()
            for key, row in self.of_kind(kind)
            if row is not None
            for entry in entries(kind, row, self.space)
            if self.txn.get(entry, db=self.lookups) != key
        ]
        for entry in strays:
            self.txn.delete(entry, db=self.lookups)
        for entry, key in lacking:
            self.txn.put(entry, key, db=self.lookups)
        return len(strays | {entry for entry, _ in lacking})

    def _stray_entries(
        self, known: dict[str, Kind[Any]]
    ) -> Iterator[tuple[bytes, IntegrityFinding]]:
        """The entries that should not exist, each with its finding."""
        marks = {
            lookup_tag(kind.name, each): kind
            for kind in known.values()
            for each in kind.all_lookups
        }
        for entry, key in self.under(self.space, self.lookups):
            kind = marks.get(entry[_MARK])
            if kind is None:
                yield entry, ("lookups", None, "an entry belongs to no lookup")
                continue
            value = self.txn.get(row_prefix(kind.name, self.space) + key, db=self.rows)
            if value is None:
                what = "a lookup leads to it, and it is not there"
                yield entry, (kind.name, _format_key(kind, key), what)
                continue
            row = self.row(kind, key, value)
            if row is not None and entry not in entries(kind, row, self.space):
                what = "a lookup leads to it by values that it does not have"
                yield entry, (kind.name, _format_key(kind, key), what)


def _format_key(kind: Kind[Any], key: bytes) -> str:
    """A key as people write it, as far as it can be decoded."""
    if kind.columns[kind.key].type_name == "integer":
        return str(int.from_bytes(key, "big") - 2**63)
    return key.rstrip(b"\0").decode(errors="replace")
