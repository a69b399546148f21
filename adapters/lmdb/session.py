"""A transaction on one space: rows and lookup entries."""

import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from herdbook.adapters.lmdb.keys import (
    OUT_OF_ORDER,
    encode_values,
    encoder,
    entries,
    key_encoder,
    lookup_tag,
    prefix_end,
    row_prefix,
    seek,
)
from herdbook.domain.errors import AlreadyExists, NotFound, StoreDamaged, StoreUnavailable
from herdbook.domain.journal import Head
from herdbook.ports.engine.codec import decode_row, encode_row
from herdbook.ports.engine.dictionary import HEADS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, find
from herdbook.ports.engine.store import IntegrityFinding

if TYPE_CHECKING:
    from herdbook.adapters.lmdb.integrity import IndexChecker

E = TypeVar("E")

ROWS, LOOKUPS = "rows", "lookups"
SHORT = 16_384
"""Decoded rows of up to this many bytes are cached."""

_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""What decoding raises for a value that Herdbook has not written."""

write_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False
).encode
_read_json = json.JSONDecoder().raw_decode


def _encode_row(kind: Kind[Any], row: Any) -> bytes:
    """A row with its checksum: JSON, and after a NUL the raw bytes whose lengths the JSON has."""
    values = encode_row(kind, row, reveal=True)
    if not kind.bytes_fields:
        text = write_json(values).encode()
        return zlib.crc32(text).to_bytes(4, "big") + text
    raw = [values[name] for name in kind.bytes_fields if name in values]
    values.update((name, len(values[name])) for name in kind.bytes_fields if name in values)
    text = b"".join([write_json(values).encode(), b"\0", *raw])
    return zlib.crc32(text).to_bytes(4, "big") + text


def _decode_row(kind: Kind[E], value: bytes, place: str) -> E:
    text = memoryview(value)[4:] if kind.bytes_fields else value[4:]
    if zlib.crc32(text) != int.from_bytes(value[:4], "big"):
        raise StoreDamaged(place, f"a row of {kind.name} does not match its checksum")
    try:
        if not kind.bytes_fields:
            row = decode_row(kind, _read_json(str(text, "utf-8"))[0])
        else:
            end = value.index(b"\0", 4)
            values, start = _read_json(value[4:end].decode())[0], end + 1
            for name in kind.bytes_fields:
                if name in values:
                    end = start + values[name]
                    values[name], start = value[start:end], end
            row = decode_row(kind, values)
        if len(vars(row)) < len(kind.columns):
            raise LookupError("a field is missing")
    except _UNREADABLE as error:
        raise StoreDamaged(place, f"a row of {kind.name} cannot be read") from error
    return row


# The same bytes are the same row, which nobody can change. Only for kinds that are read over and
# over unchanged: a checkpoint is, by the next put and by every listing.
_decode_row_cached = lru_cache(maxsize=256)(_decode_row)


class LmdbSession:
    """One LMDB transaction on one space."""

    def __init__(
        self,
        txn: Any,
        databases: dict[str, Any],
        space: bytes | None,
        now: datetime,
        place: str,
        *,
        before_commit: Callable[[], object] | None = None,
    ) -> None:
        self.now = now
        self._before_commit = before_commit
        self._txn = txn
        self._rows = databases[ROWS]
        self._lookups = databases[LOOKUPS]
        # Nobody has written in a space without a number: no key begins with these bytes.
        self._space = space if space is not None else b"\xff\xff\xff\xff"
        self._place = place
        self._pid = os.getpid()

    @cached_property
    def head(self) -> Head | None:
        return self.get(HEADS, ["head"])[0]

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StoreUnavailable(
                self._place, "this transaction belongs to the process that was forked"
            )

    def _key(self, kind: Kind[Any]) -> Any:
        self._check_process()
        prefix, encode_key = row_prefix(kind.name, self._space), key_encoder(kind)
        return lambda key: prefix + encode_key(key)

    def decode_row(self, kind: Kind[E], value: bytes) -> E:
        """The row that `_encode_row` encoded; StoreDamaged if it is not as it was written."""
        if kind.bytes_fields and len(value) < SHORT:
            row: E = _decode_row_cached(kind, value, self._place)
            return row
        return _decode_row(kind, value, self._place)

    def get(self, kind: Kind[E], keys: Sequence[Any]) -> list[E | None]:
        at = self._key(kind)
        values = (self._txn.get(at(key), db=self._rows) for key in keys)
        return [None if value is None else self.decode_row(kind, value) for value in values]

    def select(self, query: Query[E]) -> list[E]:
        kind = query.kind
        found = islice(self._scan_query(query), query.limit)
        if not query.lookup:
            return [self.decode_row(kind, value) for _, value in found]
        prefix = row_prefix(kind.name, self._space)
        rows = []
        for _, key in found:
            value = self._txn.get(prefix + key, db=self._rows)
            if value is None:
                raise StoreDamaged(self._place, f"a lookup of {kind.name} leads to no row")
            rows.append(self.decode_row(kind, value))
        return rows

    def count(self, query: Query[Any]) -> int:
        self._check_process()
        whole = query._replace(after=None, limit=None)
        cursor = self._txn.cursor(db=self._lookups if query.lookup else self._rows)
        total = 0
        for prefix in self._prefixes(whole):
            low, high, _ = self._bounds(whole, prefix)
            if seek(cursor, low, self._place):
                # Only keys are read, and compared without a step of Python: 100,000 in 40 ms.
                keys = takewhile(high.__gt__, cursor.iternext(keys=True, values=False))
                total += sum(1 for _ in keys)
        return total

    def _scan_query(self, query: Query[Any]) -> Iterator[tuple[bytes, bytes]]:
        """The stored pairs that a query admits, in its order, as (order, value)."""
        self._check_process()
        ranges = [self._bounds(query, prefix) for prefix in self._prefixes(query)]
        # One scan after the other, so that one cursor is enough for all.
        cursor = self._txn.cursor(db=self._lookups if query.lookup else self._rows)
        scans = [self._scan(cursor, query, *bounds) for bounds in ranges]
        if len(scans) == 1:
            return scans[0]
        # The order within each range is that of the bytes after its prefix.
        hits = [hit for scan in scans for hit in islice(scan, query.limit)]
        return iter(sorted(hits, key=lambda hit: hit[0], reverse=query.descending))

    def _prefixes(self, query: Query[Any]) -> list[bytes]:
        kind = query.kind
        if not query.lookup:
            return [row_prefix(kind.name, self._space)]
        fixed = dict(query.equals)
        leading = query.lookup[: len(fixed) + (query.several is not None)]
        start = self._space + lookup_tag(kind.name, query.lookup)
        if query.several is None:
            return [start + encode_values(kind, leading, (fixed[name] for name in leading))]
        name, values = query.several
        at = leading.index(name)
        before = start + encode_values(kind, leading[:at], (fixed[each] for each in leading[:at]))
        after_value = encode_values(
            kind, leading[at + 1 :], (fixed[each] for each in leading[at + 1 :])
        )
        encode_value = encoder(kind.columns[name])
        return [before + encode_value(value) + after_value for value in values]

    def _bounds(self, query: Query[Any], prefix: bytes) -> tuple[bytes, bytes, int]:
        low, high = prefix, prefix_end(prefix)
        if query.within is not None:
            name, bounds = query.within
            encode_value = encoder(query.kind.columns[name])
            if query.kind.columns[name].optional:
                high = prefix + b"\x02"
            if bounds.low is not None:
                low = prefix + encode_value(bounds.low)
                low = prefix_end(low) if bounds.above else low
            if bounds.high is not None:
                high = prefix + encode_value(bounds.high)
                high = prefix_end(high) if bounds.through else high
        if query.after is not None:
            last = prefix + encode_values(query.kind, query.order, query.after)
            low, high = (
                (low, min(high, last)) if query.descending else (max(low, last + b"\0"), high)
            )
        return low, high, len(prefix)

    def _scan(
        self, cursor: Any, query: Query[Any], low: bytes, high: bytes, skip: int
    ) -> Iterator[tuple[bytes, bytes]]:
        if query.descending:
            there = cursor.prev() if seek(cursor, high, self._place) else cursor.last()
            if there and cursor.key() >= high:
                raise StoreDamaged(self._place, OUT_OF_ORDER)
            items = cursor.iterprev() if there else ()
            for key, value in items:
                if key < low:
                    return
                yield key[skip:], value
        elif seek(cursor, low, self._place):
            for key, value in cursor.iternext():
                if key >= high:
                    return
                yield key[skip:], value

    def insert(self, kind: Kind[E], rows: Sequence[E]) -> None:
        at, encode_key = self._key(kind), key_encoder(kind)
        put, index = self._txn.put, []
        for done, row in enumerate(rows):
            key = kind.key_of(row)
            if not put(at(key), _encode_row(kind, row), overwrite=False, db=self._rows):
                for earlier in rows[:done]:
                    self._txn.delete(at(kind.key_of(earlier)), db=self._rows)
                raise AlreadyExists(kind.title, str(key))
            if kind.all_lookups:
                found_by = encode_key(key)
                index += [(entry, found_by) for entry in entries(kind, row, self._space)]
        self.put_entries(index)

    def replace(self, kind: Kind[E], rows: Sequence[E]) -> None:
        at, encode_key = self._key(kind), key_encoder(kind)
        before = [self._txn.get(at(kind.key_of(row)), db=self._rows) for row in rows]
        for row, value in zip(rows, before, strict=True):
            if value is None:
                raise NotFound(kind.title, str(kind.key_of(row)))
        index = []
        for row, value in zip(rows, before, strict=True):
            key = kind.key_of(row)
            self._txn.put(at(key), _encode_row(kind, row), db=self._rows)
            if not kind.all_lookups:
                continue
            old = self.decode_row(kind, value)
            stale, fresh = entries(kind, old, self._space), entries(kind, row, self._space)
            for one, other in zip(stale, fresh, strict=True):
                if one != other:
                    self._txn.delete(one, db=self._lookups)
                    index.append((other, encode_key(key)))
        self.put_entries(index)

    def put_entries(self, index: list[tuple[bytes, bytes]]) -> None:
        if index:
            self._txn.cursor(db=self._lookups).putmulti(index)

    def delete(self, kind: Kind[Any], keys: Sequence[Any]) -> None:
        at = self._key(kind)
        for key, row in zip(keys, self.get(kind, keys), strict=True):
            if row is not None:
                self._txn.delete(at(key), db=self._rows)
                for entry in entries(kind, row, self._space):
                    self._txn.delete(entry, db=self._lookups)

    def update_lookups(self, kind: Kind[Any], known: set[tuple[str, ...]]) -> None:
        """Write entries of new lookups for the existing rows; delete those of dropped ones."""
        declared = {each: at for at, each in enumerate(kind.all_lookups)}
        cursor = self._txn.cursor(db=self._lookups)
        for lookup in known - set(declared):
            prefix = self._space + lookup_tag(kind.name, lookup)
            there = seek(cursor, prefix, self._place)
            while there and cursor.key().startswith(prefix):
                there = cursor.delete()
        new = [at for lookup, at in declared.items() if lookup not in known]
        encode_key = key_encoder(kind)
        for _, value in self._scan_query(find(kind)) if new else ():
            row = self.decode_row(kind, value)
            fresh = entries(kind, row, self._space)
            found_by = encode_key(kind.key_of(row))
            self.put_entries([(fresh[at], found_by) for at in new])

    def readable_rows(self, kind: Kind[E]) -> Iterator[E]:
        return self._index_checker().readable_rows(kind)

    def find_flaws(self, kinds: Iterable[Kind[Any]]) -> Iterator[IntegrityFinding]:
        return self._index_checker().find_flaws(kinds)

    def repair_lookups(self, kinds: Iterable[Kind[Any]]) -> int:
        return self._index_checker().repair_lookups(kinds)

    def _index_checker(self) -> "IndexChecker":
        from herdbook.adapters.lmdb.integrity import IndexChecker  # noqa: PLC0415 - only checks need it

        self._check_process()
        return IndexChecker(
            self._txn, self._rows, self._lookups, self._space, self._place, self.decode_row
        )

    def end(self) -> None:
        """Drop the ended transaction: only then is its slot among the readers free.

        Whoever keeps the session, such as a cycle of references that waits for the garbage
        collector, keeps no slot that way. In a forked child the slot is the parent's.
        """
        if os.getpid() == self._pid:
            self._txn = None

    def commit(self) -> None:
        self._check_process()
        if self._before_commit is not None:
            self._before_commit()
        self._txn.commit()
