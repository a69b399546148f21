"""The record of a user's agents over all projects: accounts, the ledger, and its results."""

from datetime import datetime
from enum import StrEnum

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.entity import VersionedEntity, entity
from herdbook.domain.grading import FIRST_COMMUNICATION_SCORE, Grade
from herdbook.domain.secret import Secret
from herdbook.domain.values import Count, Id, Key, Name, PositiveInt, Text

UNKNOWN_PROVIDER = "unknown"
"""The provider of entries whose setup nobody told."""


class EventKind(StrEnum):
    TOOL = "tool"
    COMMAND = "command"
    COMMIT = "commit"
    GRADE = "grade"
    COMMUNICATION = "communication"
    BUG = "bug"
    REINSTATE = "reinstate"


@entity
class Account(VersionedEntity):
    """A login that agents run on, used in rotation."""

    email: Name
    provider: Name = "claude"
    config: Secret | None = None
    credentials: Secret | None = None
    is_exhausted: bool = False
    exhausted_until: datetime | None = None
    last_used_at: datetime | None = None
    sort_order: int = 0


@entity
class ScoreEvent:
    """A ledger entry: something an agent did or was given; it is never changed.

    `count` equal events make one entry with the sum of their `points`. The setup the agent ran with
    (provider, model, mode) is stored with it, because nothing else in the record knows it.
    """

    id: Key = ""
    agent: Name
    kind: EventKind
    count: PositiveInt = 1
    points: int
    session_id: Name | None = None
    project: Name | None = None
    provider: Name = UNKNOWN_PROVIDER
    model: Name | None = None
    mode: AgentMode | None = None
    at: datetime


@entity
class Standing:
    """The current numbers of an agent: the fold of its ledger in the order (at, id)."""

    id: Key
    agent: Name
    provider: Name = UNKNOWN_PROVIDER
    model: Name | None = None
    mode: AgentMode | None = None
    skill_points: int = 1
    experience_points: Count = 0
    communication_score: Count = FIRST_COMMUNICATION_SCORE
    commits: Count = 0
    bugs: Count = 0
    active: bool = True
    last_event_at: datetime | None = None
    last_event_id: Id | None = None


@entity
class Commit:
    """A commit an agent made; `event_id` is the hook event that told of it, if one did."""

    id: Key = ""
    agent: Name
    project: Name
    commit_hash: Id
    task: Text
    experience_gained: int
    at: datetime
    event_id: Id | None = None


@entity
class Retrospective:
    """Both parties' judgement of one commit."""

    id: Key = ""
    agent: Name
    project: Name
    commit_hash: Id
    task: Text
    agent_grade: Grade
    user_grade: Grade
    score_before: Count
    score_after: Count
    agent_note: Text = ""
    user_note: Text = ""
    at: datetime


@entity
class Activity:
    """What an agent did, how it went and what it decided."""

    id: Key = ""
    agent: Name
    project: Name | None = None
    task: Text
    actions: Text
    outcome: Text
    decisions: Text
    at: datetime


def texts_of(row: Commit | Retrospective | Activity) -> tuple[str, ...]:
    """What a row of the record says in words."""
    match row:
        case Retrospective():
            return row.task, row.user_note, row.agent_note
        case Activity():
            return row.task, row.actions, row.outcome, row.decisions
        case _:
            return (row.task,)


@entity
class SetupNote:
    """What a session of an agent runs as from a moment on, as far as the session has told it.

    Without a session it is what the agent was registered with.
    """

    id: Key = ""
    agent: Name
    session_id: Name | None = None
    provider: Name | None = None
    model: Name | None = None
    mode: AgentMode | None = None
    at: datetime
