"""What several checks of `doctor` look at, read once and only when needed."""

import time
from functools import cached_property
from typing import TYPE_CHECKING

from herdbook.adapters.user_state import spool
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.doctor.store_facts import StoreFacts, read_store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.record import record_ingest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from herdbook.entrypoints.server_numbers import ServerNumbers


class Installation:
    """The stores and the spool of a user, as a workspace sees them."""

    def __init__(self, app: AppContext) -> None:
        self.app = app
        self.now = time.time()

    @cached_property
    def stores(self) -> "Sequence[StoreFacts]":
        """The store of each area."""
        return [read_store(self.app, area) for area in Area]

    def store(self, area: Area) -> StoreFacts:
        """The store of one area."""
        return next(each for each in self.stores if each.area is area)

    @cached_property
    def server_numbers(self) -> "ServerNumbers | None":
        """What the server that answers tells of itself; None in a command."""
        tell = self.app.server_numbers
        return None if tell is None else tell()

    @cached_property
    def waiting_events(self) -> int:
        """How many events wait in the spool."""
        return len(spool.read_buffered().events)

    @cached_property
    def halted_agents(self) -> list[str]:
        """The halted agents; none if the record cannot be read, which its own check tells."""
        record = self.store(Area.RECORD)
        if record.trouble is not None or record.space is None:
            return []
        try:
            return self.app.read(Area.RECORD, _agents_without_points)
        except HerdbookError:
            return []


def _agents_without_points(uow: UnitOfWork) -> list[str]:
    return [each.agent for each in record_ingest.standings_with(uow) if not each.active]
