"""Check the integrity of a space: its references, its unique values, its journal.

Every check reads page by page and continues after a finding. Damage that an engine can read around
is reported by the engine itself, and skipped here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from itertools import islice
from typing import Any, TypeVar

from herdbook.domain.errors import StoreDamaged
from herdbook.domain.journal import Head, JournalEntry, Op
from herdbook.ports.engine.codec import construct_unchecked, encode_row
from herdbook.ports.engine.dictionary import CURSORS, JOURNAL
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.paging import PAGE, select_pages
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.engine.store import IntegrityFinding, Session, SupportsExamine
from herdbook.ports.unit_of_work.integrity import unique_values

E = TypeVar("E")
V = TypeVar("V")


def readable_pages(session: Session, kind: Kind[E]) -> Iterator[list[E]]:
    """All rows of a kind in select_pages, without those that the engine reports as damaged."""
    if not isinstance(session, SupportsExamine):
        yield from select_pages(session, kind)
        return
    rows = session.readable_rows(kind)
    while page := list(islice(rows, PAGE)):
        yield page


def _ask_around_damage(
    session: Session, ask: Callable[[Sequence[Any]], dict[Any, V]], keys: Sequence[Any]
) -> dict[Any, V]:
    """The answers for these keys, without keys that damage makes unreadable."""
    try:
        return ask(keys) if keys else {}
    except StoreDamaged:
        if not isinstance(session, SupportsExamine):
            raise
        if len(keys) == 1:
            return {}
        half = len(keys) // 2
        return _ask_around_damage(session, ask, keys[:half]) | _ask_around_damage(
            session, ask, keys[half:]
        )


def _missing_keys(session: Session, kind: Kind[Any], keys: Iterable[Any]) -> list[Any]:
    """Those of these keys that no row has."""

    def ask(part: Sequence[Any]) -> dict[Any, bool]:
        return {key: row is None for key, row in zip(part, session.get(kind, part), strict=True)}

    lost = _ask_around_damage(session, ask, list(dict.fromkeys(keys)))
    return [key for key, is_lost in lost.items() if is_lost]


def _entries_of_rows(
    session: Session, kind: Kind[Any], keys: Sequence[Any]
) -> dict[Any, list[JournalEntry]]:
    """The journal entries of each of these rows, in order."""

    def ask(part: Sequence[Any]) -> dict[Any, list[JournalEntry]]:
        entries: dict[Any, list[JournalEntry]] = {str(key): [] for key in part}
        for entry in session.select(find(JOURNAL, {"entity": kind.name, "key": any_of(entries)})):
            entries[entry.key].append(entry)
        return entries

    return _ask_around_damage(session, ask, keys)


def examine_rows(
    session: Session,
    kind: Kind[Any],
    dictionary: Dictionary,
    tell: Callable[[int], None],
) -> Iterator[IntegrityFinding]:
    """Findings about the rows of a kind: references, unique values, agreement with the journal."""
    uniques: list[set[bytes]] = [set() for _ in kind.uniques]
    is_pruned = session.head is not None and session.head.pruned_to > 0
    for page in readable_pages(session, kind):
        yield from _dangling_references(session, kind, dictionary, page)
        yield from _duplicate_values(kind, page, uniques)
        if kind.journalled and not kind.derived:
            entries = _entries_of_rows(session, kind, [kind.key_of(row) for row in page])
            for row in page:
                key = str(kind.key_of(row))
                if key not in entries:
                    continue
                what = _difference_from_journal(kind, row, entries[key], is_pruned=is_pruned)
                if what is not None:
                    yield kind.name, key, what
        tell(len(page))


def _dangling_references(
    session: Session, kind: Kind[Any], dictionary: Dictionary, page: list[Any]
) -> Iterator[IntegrityFinding]:
    for reference in kind.references:
        names = {kind.key_of(row): getattr(row, reference.field) for row in page}
        target = dictionary.kinds[reference.target]
        lost = set(
            _missing_keys(session, target, (each for each in names.values() if each is not None))
        )
        for key, name in names.items():
            if name in lost:
                what = f"its {reference.field} names {target.title} {name!r}, which is not there"
                yield kind.name, str(key), what


def _duplicate_values(
    kind: Kind[Any], page: list[Any], uniques: list[set[bytes]]
) -> Iterator[IntegrityFinding]:
    for unique, seen in zip(kind.uniques, uniques, strict=True):
        for row in page:
            values = unique_values(unique, row)
            if values is None:
                continue
            mark = blake2b(repr(values).encode(), digest_size=16).digest()
            if mark in seen:
                what = f"another {kind.title} has the same {' and '.join(unique.fields)}"
                yield kind.name, str(kind.key_of(row)), what
            seen.add(mark)


@cache
def _defaults(kind: Kind[Any]) -> dict[str, Any]:
    """The encoded defaults of the fields, for rows that were written without them."""
    values = {n: each.default if each.has_default else None for n, each in kind.columns.items()}
    return encode_row(kind, construct_unchecked(kind, values))


def _difference_from_journal(
    kind: Kind[Any], row: object, entries: Sequence[JournalEntry], *, is_pruned: bool
) -> str | None:
    """How a row differs from its journal entries, except for secrets, which those do not have.

    Of a row whose first entries were folded, the fields that changed since are compared.
    """
    if not entries:
        return None if is_pruned else "the journal knows nothing of it"
    if entries[-1].op is Op.REMOVE:
        return "the journal says that it was removed"
    recorded: dict[str, Any] | None = {} if is_pruned else None
    is_whole = False
    for entry in entries:
        if entry.op is Op.ADD:
            recorded, is_whole = dict(entry.after or {}), True
        elif recorded is not None:
            recorded.update(entry.after or {})
    if recorded is None:
        return "the journal does not tell how it came"
    if kind.append_only:
        return None
    expected, held = {**_defaults(kind), **recorded}, encode_row(kind, row)
    wrong = [
        name
        for name in (kind.columns if is_whole else recorded)
        if name not in kind.secrets and expected.get(name) != held.get(name)
    ]
    return f"its {', '.join(wrong)} is not what the journal says" if wrong else None


def examine_journal(
    session: Session, dictionary: Dictionary, tell: Callable[[int], None]
) -> Iterator[IntegrityFinding]:
    """Findings about the journal: gaps, times out of order, rows missing from the space."""
    name, last = JOURNAL.name, None
    head = session.head
    yield from _check_cursors(session, head)
    for page in readable_pages(session, JOURNAL):
        for entry in page:
            yield from _check_order(last, entry, head)
            last = entry
        yield from _missing_rows(session, dictionary, page)
        tell(len(page))
    seq = last.seq if last else head.pruned_to if head else 0
    if head is None:
        if seq:
            yield name, None, "the space has a journal and no head"
        return
    if head.seq != seq:
        yield name, None, f"it ends with {seq}, and the head says {head.seq}"
    if last is not None and (head.clock is None or head.clock < last.at):
        yield name, None, "the clock of the head is behind the last entry"


def _check_cursors(session: Session, head: Head | None) -> Iterator[IntegrityFinding]:
    """Findings about cursors that stand where the journal has no entry after them."""
    first, last = (head.pruned_to, head.seq) if head else (0, 0)
    for page in readable_pages(session, CURSORS):
        for cursor in page:
            if cursor.seq > last:
                what = f"it stands at {cursor.seq}, and the journal ends with {last}"
                yield CURSORS.name, cursor.id, what
            elif cursor.is_live(session.now) and cursor.seq < first:
                what = f"it has read up to {cursor.seq}, and entries up to {first} were folded"
                yield CURSORS.name, cursor.id, what


def _check_order(
    before: JournalEntry | None, entry: JournalEntry, head: Head | None
) -> Iterator[IntegrityFinding]:
    """Findings about the number and the time of an entry after the one before it."""
    expected = before.seq + 1 if before else head.pruned_to + 1 if head else 1
    if before is None and head is not None and head.pruned_at and entry.at <= head.pruned_at:
        yield JOURNAL.name, str(entry.seq), "its time is not after that of the folded entries"
    if entry.seq != expected:
        gone = f"{expected}" if entry.seq == expected + 1 else f"{expected} to {entry.seq - 1}"
        yield JOURNAL.name, str(entry.seq), f"before it, {gone} is missing"
    if before is not None and entry.at <= before.at:
        yield JOURNAL.name, str(entry.seq), "its time is not after that of the previous entry"


def _missing_rows(
    session: Session, dictionary: Dictionary, page: Sequence[JournalEntry]
) -> Iterator[IntegrityFinding]:
    """The rows that these entries added, that no entry removed, and that do not exist."""
    added: dict[str, list[str]] = {}
    for entry in page:
        if entry.op is Op.ADD:
            added.setdefault(entry.entity, []).append(entry.key)
    for entity, keys in added.items():
        kind = dictionary.kinds.get(entity)
        if kind is None:
            yield JOURNAL.name, None, f"it speaks of {entity}, which nobody knows"
            continue
        lost = _missing_keys(session, kind, keys)
        for key, entries in _entries_of_rows(session, kind, lost).items():
            # A row that was added twice is reported at the last of both.
            adds = [entry.seq for entry in entries if entry.op is Op.ADD]
            if (
                entries
                and entries[-1].op is not Op.REMOVE
                and page[0].seq <= adds[-1] <= page[-1].seq
            ):
                yield entity, key, "the journal says that it was added, and it is missing"
