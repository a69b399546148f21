"""All named repositories of a unit of work, created on first use."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from herdbook.ports.engine import dictionary
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.repositories import agents, conversation, plan, record
from herdbook.ports.repositories.journal import Cursors, Journal, Operations

if TYPE_CHECKING:
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

R = TypeVar("R")


class LazyRepository(Generic[R]):
    """A descriptor that creates a repository when it is first accessed."""

    def __init__(self, repository: Callable[["UnitOfWork", Kind[Any]], R], kind: Kind[Any]) -> None:
        self._repository = repository
        self._kind = kind
        self._name = ""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, uow: Any, _: type) -> R:
        made = self._repository(uow, self._kind)
        # From now on the instance attribute is found before this descriptor.
        vars(uow)[self._name] = made
        return made


class Repositories:
    """The named repositories of a unit of work."""

    initiatives = LazyRepository(plan.Initiatives, dictionary.INITIATIVES)
    phases = LazyRepository(plan.Phases, dictionary.PHASES)
    tasks = LazyRepository(plan.Tasks, dictionary.TASKS)
    openings = LazyRepository(plan.Openings, dictionary.OPENINGS)
    projects = LazyRepository(plan.Projects, dictionary.PROJECTS)
    pages = LazyRepository(plan.Pages, dictionary.PAGES)
    proposals = LazyRepository(plan.Proposals, dictionary.PROPOSALS)
    change_sets = LazyRepository(plan.ChangeSets, dictionary.CHANGE_SETS)
    review_comments = LazyRepository(plan.ReviewComments, dictionary.REVIEW_COMMENTS)
    errands = LazyRepository(plan.Errands, dictionary.ERRANDS)
    worktrees = LazyRepository(agents.Worktrees, dictionary.WORKTREES)
    agents = LazyRepository(agents.Agents, dictionary.AGENTS)
    messages = LazyRepository(conversation.Messages, dictionary.MESSAGES)
    conversations = LazyRepository(conversation.Conversations, dictionary.CONVERSATIONS)
    chat_sessions = LazyRepository(conversation.ChatSessions, dictionary.CHAT_SESSIONS)
    log_chunks = LazyRepository(conversation.LogChunks, dictionary.LOG_CHUNKS)
    accounts = LazyRepository(record.Accounts, dictionary.ACCOUNTS)
    ledger = LazyRepository(record.Ledger, dictionary.SCORE_EVENTS)
    standings = LazyRepository(record.Standings, dictionary.STANDINGS)
    commits = LazyRepository(record.Commits, dictionary.COMMITS)
    retrospectives = LazyRepository(record.Retrospectives, dictionary.RETROSPECTIVES)
    activities = LazyRepository(record.Activities, dictionary.ACTIVITIES)
    setup_notes = LazyRepository(record.SetupNotes, dictionary.SETUP_NOTES)
    journal = LazyRepository(Journal, dictionary.JOURNAL)
    cursors = LazyRepository(Cursors, dictionary.CURSORS)
    operations = LazyRepository(Operations, dictionary.OPERATIONS)
