"""Named queries for the journal and the stored results of operations."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from herdbook.domain.journal import JournalEntry, OperationResult
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import above, find, up_to
from herdbook.ports.repositories.base import PAGE, Repository

OPERATIONS_KEPT = timedelta(days=7)


class Journal(Repository[JournalEntry]):
    """The journal of a space: every change, in order."""

    def since(self, seq: int, *, limit: int = PAGE) -> list[JournalEntry]:
        """The entries after this number, in order.

        A reader that has seen entry n never later finds a smaller one: numbers are assigned and
        become visible in the same order.
        """
        return self.select(find(self.kind, {"seq": above(seq)}, limit=limit))

    def last(self) -> int:
        """The number of the last entry, 0 where there is none."""
        head = self.uow.session.head
        return head.seq if head else 0

    def of_row(self, kind: Kind[Any], key: Any) -> list[JournalEntry]:
        """The changes of one row, in order."""
        return self.select(find(self.kind, {"entity": kind.name, "key": str(key)}))

    def of_tx(self, tx: str) -> list[JournalEntry]:
        """The changes of one transaction, in order."""
        return self.select(find(self.kind, {"tx": tx}))

    def all_entries(self) -> Iterator[JournalEntry]:
        """The whole journal, fetched page by page."""
        return self.select_all(find(self.kind, limit=PAGE))


class Operations(Repository[OperationResult]):
    """The stored results of operations, so that repeating one applies it once."""

    def prune(self, now: datetime, limit: int = 100) -> None:
        """Remove some of the results that nobody will ask for again."""
        old = self.select(find(self.kind, {"at": up_to(now - OPERATIONS_KEPT)}, limit=limit))
        self.remove_all([operation.operation_id for operation in old])
