"""Every named repository under one roof, and the two that every space has."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from herdbook.domain.journal import JournalEntry, Operation
from herdbook.ports import agents, dictionary, plan, record, talk
from herdbook.ports.kinds import Kind
from herdbook.ports.query import above, find, up_to
from herdbook.ports.repository import PAGE, Repository

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work import UnitOfWork

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


class Repositories:
    """The named repositories of a unit of work."""

    def __init__(self, uow: "UnitOfWork") -> None:
        self.initiatives = plan.Initiatives(uow, dictionary.INITIATIVES)
        self.phases = plan.Phases(uow, dictionary.PHASES)
        self.tasks = plan.Tasks(uow, dictionary.TASKS)
        self.openings = plan.Openings(uow, dictionary.OPENINGS)
        self.projects = plan.Projects(uow, dictionary.PROJECTS)
        self.pages = plan.Pages(uow, dictionary.PAGES)
        self.proposals = plan.Proposals(uow, dictionary.PROPOSALS)
        self.change_sets = plan.ChangeSets(uow, dictionary.CHANGE_SETS)
        self.review_comments = plan.ReviewComments(uow, dictionary.REVIEW_COMMENTS)
        self.errands = plan.Errands(uow, dictionary.ERRANDS)
        self.worktrees = agents.Worktrees(uow, dictionary.WORKTREES)
        self.agents = agents.Agents(uow, dictionary.AGENTS)
        self.messages = talk.Messages(uow, dictionary.MESSAGES)
        self.conversations = talk.Conversations(uow, dictionary.CONVERSATIONS)
        self.chat_sessions = talk.ChatSessions(uow, dictionary.CHAT_SESSIONS)
        self.log_chunks = talk.LogChunks(uow, dictionary.LOG_CHUNKS)
        self.accounts = record.Accounts(uow, dictionary.ACCOUNTS)
        self.ledger = record.Ledger(uow, dictionary.SCORE_EVENTS)
        self.standings = record.Standings(uow, dictionary.STANDINGS)
        self.commits = record.Commits(uow, dictionary.COMMITS)
        self.retrospectives = record.Retrospectives(uow, dictionary.RETROSPECTIVES)
        self.activities = record.Activities(uow, dictionary.ACTIVITIES)
        self.journal = Journal(uow, dictionary.JOURNAL)
        self.operations = Operations(uow, dictionary.OPERATIONS)
