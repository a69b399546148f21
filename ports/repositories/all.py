"""Every named repository under one roof, and the two that every space has."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from herdbook.domain.journal import JournalEntry, Operation
from herdbook.ports.engine import dictionary
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import above, find, up_to
from herdbook.ports.repositories import agents, conversation, plan, record
from herdbook.ports.repositories.base import PAGE, Repository

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

R = TypeVar("R")

OPERATIONS_KEPT = timedelta(days=7)


class Journal(Repository[JournalEntry]):
    """Every change of the space, in order."""

    def since(self, seq: int, *, limit: int = PAGE) -> list[JournalEntry]:
        """The entries after this number, in order.

        Who has seen entry n never later finds a smaller one: numbers are given and become visible
        in the same order.
        """
        return self.select(find(self.kind, {"seq": above(seq)}, limit=limit))

    def last(self) -> int:
        """The number of the last entry, 0 where there is none."""
        head = self.uow.session.head
        return head.seq if head else 0

    def of_row(self, kind: Kind[Any], key: Any) -> list[JournalEntry]:
        """What happened to one row, in order."""
        return self.select(find(self.kind, {"entity": kind.name, "key": str(key)}))

    def of_tx(self, tx: str) -> list[JournalEntry]:
        """What one transaction did, in order."""
        return self.select(find(self.kind, {"tx": tx}))

    def whole(self) -> Iterator[JournalEntry]:
        """All of it, fetched page by page."""
        return self.every(find(self.kind, limit=PAGE))


class Operations(Repository[Operation]):
    """What operations answered, so that asking twice does it once."""

    def prune(self, now: datetime, limit: int = 100) -> None:
        """Forget some of the answers nobody will ask for again."""
        old = self.select(find(self.kind, {"at": up_to(now - OPERATIONS_KEPT)}, limit=limit))
        self.remove_all([operation.operation_id for operation in old])


class Named(Generic[R]):
    """A repository that a unit of work makes when it is first asked for it."""

    def __init__(self, repository: Callable[["UnitOfWork", Kind[Any]], R], kind: Kind[Any]) -> None:
        self._repository = repository
        self._kind = kind
        self._name = ""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, uow: Any, _: type) -> R:
        made = self._repository(uow, self._kind)
        # From now on it is found there, before this descriptor is.
        vars(uow)[self._name] = made
        return made


class Repositories:
    """The named repositories of a unit of work."""

    initiatives = Named(plan.Initiatives, dictionary.INITIATIVES)
    phases = Named(plan.Phases, dictionary.PHASES)
    tasks = Named(plan.Tasks, dictionary.TASKS)
    openings = Named(plan.Openings, dictionary.OPENINGS)
    projects = Named(plan.Projects, dictionary.PROJECTS)
    pages = Named(plan.Pages, dictionary.PAGES)
    proposals = Named(plan.Proposals, dictionary.PROPOSALS)
    change_sets = Named(plan.ChangeSets, dictionary.CHANGE_SETS)
    review_comments = Named(plan.ReviewComments, dictionary.REVIEW_COMMENTS)
    errands = Named(plan.Errands, dictionary.ERRANDS)
    worktrees = Named(agents.Worktrees, dictionary.WORKTREES)
    agents = Named(agents.Agents, dictionary.AGENTS)
    messages = Named(conversation.Messages, dictionary.MESSAGES)
    conversations = Named(conversation.Conversations, dictionary.CONVERSATIONS)
    chat_sessions = Named(conversation.ChatSessions, dictionary.CHAT_SESSIONS)
    log_chunks = Named(conversation.LogChunks, dictionary.LOG_CHUNKS)
    accounts = Named(record.Accounts, dictionary.ACCOUNTS)
    ledger = Named(record.Ledger, dictionary.SCORE_EVENTS)
    standings = Named(record.Standings, dictionary.STANDINGS)
    commits = Named(record.Commits, dictionary.COMMITS)
    retrospectives = Named(record.Retrospectives, dictionary.RETROSPECTIVES)
    activities = Named(record.Activities, dictionary.ACTIVITIES)
    journal = Named(Journal, dictionary.JOURNAL)
    operations = Named(Operations, dictionary.OPERATIONS)
