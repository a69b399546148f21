"""Fold the beginning of a journal: entries that no reader needs any more leave, the rows stay.

The space's head remembers where its journal begins; positions keep their numbers. Folding goes in
batches, each a transaction of its own that ends with a whole transaction of the journal and that
commits only if there are as many other rows after it as before. What those rows hold is compared
between two batches, in snapshots that no writer waits for. It can be interrupted at any time, and
others write between two batches.
"""

from datetime import datetime, timedelta
from functools import partial

from attrs import frozen

from herdbook.domain.entity import evolve
from herdbook.domain.errors import CursorHolds, InvalidValue, StoreDamaged
from herdbook.domain.journal import Head, JournalCursor, JournalEntry
from herdbook.ports.engine.dictionary import HEADS, JOURNAL
from herdbook.ports.engine.long_work import long_work
from herdbook.ports.engine.paging import Progress, no_progress
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, retry
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.journal.state_proof import count_rows, measure_state, prove_unchanged
from herdbook.services.stores.transfer import refuse_unfinished

BATCH = 5_000
"""About how many entries one transaction folds."""


@frozen
class PrunePlan:
    """What folding would do: the entries up to `to` leave the journal, which ends at `last`.

    `cursor` is the one that has read least of those that hold the journal.
    """

    space: str
    pruned_to: int
    to: int
    last: int
    cursor: JournalCursor | None

    @property
    def entries(self) -> int:
        """How many entries would be folded."""
        return self.to - self.pruned_to


@frozen
class PruneReport:
    """What was folded. `digest` is that of all rows but the journal, before and after alike."""

    folded: int
    batches: int
    pruned_to: int
    since: datetime | None
    left: int
    digest: str


def plan_prune(
    uow: UnitOfWork, before: int | datetime | None = None, keep: int | timedelta | None = None
) -> PrunePlan:
    """What folding the entries before a number or a time would do, or all but the newest ones.

    `keep` is a number of entries or an age. Only whole transactions are folded. Raises InvalidValue
    unless exactly one of both is given, and CursorHolds if a cursor needs one of the entries.
    """
    if (before is None) == (keep is None):
        raise InvalidValue("before", "give either before or keep")
    if isinstance(keep, timedelta):
        before = uow.now - keep
    journal = uow.journal
    first, last = journal.pruned_to(), journal.last()
    if isinstance(before, datetime):
        to = _end_of_older(uow, before)
    else:
        to = before - 1 if before is not None else last - (keep if isinstance(keep, int) else 0)
        to = max(first, min(to, last))
    to = _whole_transactions(uow, first, to)
    live = uow.cursors.live()
    held = live[0] if live else None
    if held is not None and first < to > held.seq:
        raise CursorHolds(uow.space, held.id, held.holder, held.seq, to)
    return PrunePlan(uow.space, first, to, last, held)


@long_work()
def prune(
    store: Store,
    space: str,
    to: int,
    *,
    batch: int = BATCH,
    progress: Progress = no_progress,
) -> PruneReport:
    """Fold the entries up to this number, which ends a transaction; others may write meanwhile.

    Raises CursorHolds if a cursor came to need one of the entries, and StoreDamaged if another row
    is not the same as before; nothing is folded after that.
    """
    start: int = read(store, space, lambda uow: uow.journal.pruned_to())
    head, state = read(store, space, lambda uow: (uow.session.head, measure_state(uow)))
    done, batches = start, 0
    while done < to:
        earlier, head = head, retry(partial(_fold_batch, store, space, to, batch), store.patience)
        batches += earlier is None or head.pruned_to > earlier.pruned_to
        state = read(store, space, prove_unchanged, state)
        done = head.pruned_to
        progress(space, done - start, to - start)
    return PruneReport(
        folded=done - start,
        batches=batches,
        pruned_to=head.pruned_to if head else 0,
        since=head.pruned_at.wall if head and head.pruned_at else None,
        left=head.seq - head.pruned_to if head else 0,
        digest=state.digest.whole,
    )


def _fold_batch(store: Store, space: str, to: int, batch: int) -> Head:
    """Fold a batch; the head of the space then."""
    with unit_of_work(store, space) as uow:
        refuse_unfinished(uow.session, store, space)
        head = uow.session.head
        if head is None:
            raise InvalidValue("space", f"{space} was never written to. Nothing was folded")
        if head.pruned_to >= to:  # another process was faster, or our answer was lost
            return head
        end = min(to, head.pruned_to + batch)
        end = _whole_transactions(uow, head.pruned_to, end) if end < to else end
        if end == head.pruned_to:
            end = uow.journal.of_tx(_entry(uow, end + 1).tx)[-1].seq
        _refuse_held(uow, end)
        stamp = _entry(uow, end).at
        before = count_rows(uow)
        uow.session.delete(JOURNAL, list(range(head.pruned_to + 1, end + 1)))
        head = evolve(head, pruned_to=end, pruned_at=stamp)
        uow.session.replace(HEADS, [head])
        after = count_rows(uow)
        if differing := [name for name, number in before.items() if after[name] != number]:
            kinds = ", ".join(differing)
            reason = f"folding entries of {space} would have changed its {kinds}"
            raise StoreDamaged(store.url, reason)
        uow.session.commit()
        return head


def _refuse_held(uow: UnitOfWork, to: int) -> None:
    for each in uow.cursors.live():
        if each.seq < to:
            raise CursorHolds(uow.space, each.id, each.holder, each.seq, to)


def _entry(uow: UnitOfWork, seq: int) -> JournalEntry:
    """An entry that must be there; StoreDamaged is raised if it is not."""
    found = uow.journal.find(seq)
    if found is None:
        raise StoreDamaged(uow.space, f"entry #{seq} of its journal is missing")
    return found


def _whole_transactions(uow: UnitOfWork, first: int, to: int) -> int:
    """The last number up to this one that ends a transaction; `first` if there is none after it."""
    if first < to < uow.journal.last():
        following = _entry(uow, to + 1)
        if _entry(uow, to).tx == following.tx:
            return uow.journal.of_tx(following.tx)[0].seq - 1
    return to


def _end_of_older(uow: UnitOfWork, moment: datetime) -> int:
    """The number before the first entry that was not made before this time.

    By the clocks of the machines that wrote them, which need not agree: so entries are looked at
    one after the other.
    """
    for entry in uow.journal.all_entries():
        if entry.time >= moment:
            return entry.seq - 1
    return uow.journal.last()
