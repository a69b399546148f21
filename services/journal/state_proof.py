"""Proves that folding a journal has changed no other row, without holding those who write.

The state of a space is measured in a snapshot: a digest of each row but those of the journal and
the head. After a batch it is measured again. If nobody else has written meanwhile, both must be the
same; else the rows that the journal says were changed are left out, and so are the kinds that are
not journalled.
"""

from hashlib import blake2b
from typing import Any

from attrs import frozen

from herdbook.domain.clock import Stamp
from herdbook.domain.errors import StoreDamaged
from herdbook.ports.engine.dictionary import HEADS, JOURNAL
from herdbook.ports.engine.digests import Digest, Digester, canonical_bytes, is_content
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import select_pages
from herdbook.ports.engine.query import above, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

RowDigests = dict[str, dict[Any, bytes]]
"""For each kind, a short digest of each row by its key."""


@frozen
class SpaceState:
    """All rows of a space but its journal and its head, by digests, and when they were read."""

    seq: int
    clock: Stamp | None
    rows: RowDigests
    digest: Digest


def counted_kinds(uow: UnitOfWork) -> list[Kind[Any]]:
    """The kinds that a fold leaves alone."""
    return [kind for kind in uow.dictionary if kind not in (JOURNAL, HEADS)]


def count_rows(uow: UnitOfWork) -> dict[str, int]:
    """How many rows of each kind there are: what can be told without reading them."""
    return {kind.name: uow.session.count(find(kind)) for kind in counted_kinds(uow)}


def measure_state(uow: UnitOfWork) -> SpaceState:
    """The state of the space that a unit of work reads."""
    digester, rows = Digester(), RowDigests()
    for kind in counted_kinds(uow):
        digests = rows.setdefault(kind.name, {})
        for page in select_pages(uow.session, kind):
            for row in page:
                if is_content(kind, row):
                    text = canonical_bytes(kind, row)
                    digester.add(kind, text)
                    digests[str(kind.key_of(row))] = blake2b(text, digest_size=8).digest()
    head = uow.session.head
    return SpaceState(
        seq=head.seq if head else 0,
        clock=head.clock if head else None,
        rows=rows,
        digest=digester.result(),
    )


def prove_unchanged(uow: UnitOfWork, before: SpaceState) -> SpaceState:
    """The state now; raises StoreDamaged if rows differ that nobody says to have changed."""
    after = measure_state(uow)
    if after.digest == before.digest:
        return after
    differing = _differing_kinds(uow, before, after)
    if differing:
        kinds = ", ".join(differing)
        raise StoreDamaged(uow.space, f"folding entries of its journal has changed its {kinds}")
    return after


def _differing_kinds(uow: UnitOfWork, before: SpaceState, after: SpaceState) -> list[str]:
    if after.clock == before.clock:
        return list(before.digest.differing_kinds(after.digest))
    told = _told_rows(uow, before.seq)
    if told is None:
        return []
    return [
        kind.name
        for kind in counted_kinds(uow)
        if kind.journalled
        and any(
            (kind.name, key) not in told
            for key, _ in before.rows[kind.name].items() ^ after.rows[kind.name].items()
        )
    ]


def _told_rows(uow: UnitOfWork, seq: int) -> set[tuple[str, str]] | None:
    """The rows that the journal says were changed since; None if others have folded that."""
    if uow.journal.pruned_to() > seq:
        return None
    query = find(JOURNAL, {"seq": above(seq)}, limit=1_000)
    return {(entry.entity, entry.key) for entry in uow.journal.select_all(query)}
