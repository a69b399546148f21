"""Rewrites the rows of a space whose form an older version left behind.

Engines upgrade their layout by themselves when a store is opened. What changes in the rows is done
here, once for all engines: in a transaction of its own before the first one that writes, and
journalled like any other change, so that the journal still tells how every row came to be.
"""

from typing import TYPE_CHECKING, Any

from herdbook.domain.entity import evolve
from herdbook.domain.journal import Cause
from herdbook.domain.record.events import commit_event_id, entry_id
from herdbook.domain.record.model import Commit
from herdbook.ports.engine.derived_ids import with_derived_id
from herdbook.ports.engine.dictionary import COMMITS, ROWS_VERSION, SCORE_EVENTS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import select_pages

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def rewrite_rows(uow: "UnitOfWork") -> None:
    """Bring all rows of a space to the current version and commit."""
    uow.reactions.disable()
    uow.cause = Cause.UPGRADE
    uow.add_note("rows of an older version were rewritten")
    for kind in uow.dictionary:
        if kind.identity and kind.area is uow.area:
            _derive_ids(uow, kind)
    uow.head_changes["rows_version"] = ROWS_VERSION
    uow.commit()


def _derive_ids(uow: "UnitOfWork", kind: Kind[Any]) -> None:
    """Give rows that have a random id the one that follows from their values."""
    rows = [row for page in select_pages(uow.session, kind) for row in page]
    stale = [row for row in rows if with_derived_id(kind, row) is not row]
    if not stale:
        return
    fresh = _keep_event_ids(uow, stale) if kind is COMMITS else stale
    uow.replace_verbatim(kind, stale, [with_derived_id(kind, row) for row in fresh])


def _keep_event_ids(uow: "UnitOfWork", commits: list[Commit]) -> list[Commit]:
    """Commits of hooks had the id of their event, by which they find their ledger entry."""
    event_ids = [commit_event_id(each) for each in commits]
    entries = uow.session.get(SCORE_EVENTS, [entry_id(each) for each in event_ids])
    return [
        commit if entry is None else evolve(commit, event_id=event_id)
        for commit, event_id, entry in zip(commits, event_ids, entries, strict=True)
    ]
