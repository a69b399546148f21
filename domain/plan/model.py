"""The plan: initiatives, their phases and tasks, and everything that belongs to them."""

from datetime import datetime
from enum import StrEnum

from herdbook.domain.clock import Stamp
from herdbook.domain.entity import WorkEntity, entity
from herdbook.domain.values import Count, Id, JsonObject, Labels, Name, PositiveInt, Text


class InitiativeStatus(StrEnum):
    ACTIVE = "active"
    PENDING_REVIEW = "pending_review"
    COMPLETED = "completed"
    ARCHIVED = "archived"


OPEN_INITIATIVES = (InitiativeStatus.ACTIVE, InitiativeStatus.PENDING_REVIEW)
"""The statuses of initiatives that are under way."""


class ExecutionMode(StrEnum):
    YOLO = "yolo"
    REVIEW_PER_PHASE = "review_per_phase"


class PhaseStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"
    PENDING_REVIEW = "pending_review"


class TaskType(StrEnum):
    AUTO = "auto"


class TaskCategory(StrEnum):
    EXECUTE = "execute"
    RESEARCH = "research"
    DISCUSS = "discuss"
    PLAN = "plan"
    DETAIL = "detail"
    REFINE = "refine"
    VERIFY = "verify"
    MERGE = "merge"
    REVIEW = "review"


class Priority(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"

    @property
    def rank(self) -> int:
        """The position in a queue: the most urgent comes first."""
        return {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}[self]


class TaskStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    QUALITY_REVIEW = "quality_review"
    COMPLETED = "completed"
    BLOCKED = "blocked"


UNFINISHED = tuple(status for status in TaskStatus if status is not TaskStatus.COMPLETED)
"""The statuses of tasks that are still to be done."""


class ProposalTarget(StrEnum):
    PAGE = "page"
    PHASE = "phase"
    TASK = "task"


class ProposalStatus(StrEnum):
    PENDING = "pending"
    ACCEPTED = "accepted"
    DISMISSED = "dismissed"


class ChangeSetStatus(StrEnum):
    APPLIED = "applied"
    REVERTED = "reverted"


class LineType(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    CONTEXT = "context"


class ErrandStatus(StrEnum):
    ACTIVE = "active"
    PENDING_REVIEW = "pending_review"
    CONFLICT = "conflict"
    MERGED = "merged"
    ABANDONED = "abandoned"


@entity
class Initiative(WorkEntity):
    """A goal that several agents work towards, in phases or in tasks without a phase."""

    name: Name
    status: InitiativeStatus = InitiativeStatus.ACTIVE
    branch: Name | None = None
    execution_mode: ExecutionMode = ExecutionMode.REVIEW_PER_PHASE
    quality_review: bool = False


@entity
class Phase(WorkEntity):
    """A part of an initiative that is opened, worked on and reviewed as a whole."""

    initiative_id: Id
    name: Name
    content: Text | None = None
    status: PhaseStatus = PhaseStatus.PENDING
    merge_base: Name | None = None


@entity
class PhaseDependency(WorkEntity):
    """One phase waits until another is completed."""

    phase_id: Id
    depends_on_phase_id: Id


@entity
class Task(WorkEntity):
    """A piece of work that one agent can hold at a time.

    `claim_stamp` identifies the current claim, wherever it was made; `fence` is its number for
    people. `lease_until` is the end of the lease as the claim set it: renewals are stored in the
    task's opening only.
    """

    phase_id: Id | None = None
    initiative_id: Id | None = None
    parent_task_id: Id | None = None
    name: Name
    description: Text | None = None
    type: TaskType = TaskType.AUTO
    category: TaskCategory = TaskCategory.EXECUTE
    priority: Priority = Priority.MEDIUM
    status: TaskStatus = TaskStatus.PENDING
    order: int = 0
    summary: Text | None = None
    acceptance: Text | None = None
    labels: Labels | None = None
    retry_count: Count = 0
    assignee_id: Id | None = None
    fence: Count = 0
    claim_stamp: Stamp | None = None
    lease_until: datetime | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the task is completed, so that nothing waits for it any more."""
        return self.status is TaskStatus.COMPLETED


@entity
class TaskDependency(WorkEntity):
    """One task waits until another is completed."""

    task_id: Id
    depends_on_task_id: Id


@entity
class Project(WorkEntity):
    """A repository that initiatives and errands work on."""

    name: Name
    url: Name
    default_branch: Name = "main"
    last_fetched_at: datetime | None = None


@entity
class InitiativeProject(WorkEntity):
    """An initiative touches a project."""

    initiative_id: Id
    project_id: Id


@entity
class Page(WorkEntity):
    """A page of an initiative's notes; the one without a parent is the root."""

    initiative_id: Id
    parent_page_id: Id | None = None
    title: Name
    content: Text | None = None
    sort_order: int = 0


@entity
class Proposal(WorkEntity):
    """A change or an addition to the plan that an agent suggests."""

    agent_id: Id
    initiative_id: Id
    target_type: ProposalTarget
    target_id: Id | None = None
    title: Name
    summary: Text
    content: Text
    metadata: JsonObject | None = None
    status: ProposalStatus = ProposalStatus.PENDING
    sort_order: int = 0


@entity
class ChangeSet(WorkEntity):
    """What one journal transaction did to an initiative, so that it can be reverted as a whole."""

    initiative_id: Id
    agent_id: Id | None = None
    summary: Text
    tx: Id
    status: ChangeSetStatus = ChangeSetStatus.APPLIED


@entity
class ReviewComment(WorkEntity):
    """A comment on lines of a phase's diff; removed lines are counted on the old side.

    It is about the lines until `last_line`, by default one. `line_text` has them as they were, and
    `commit_hash` names the commit in which they have these numbers, as far as that is known. The
    message of `message_id` told an agent of it.
    """

    phase_id: Id
    parent_comment_id: Id | None = None
    file_path: Text
    line_number: PositiveInt
    line_type: LineType
    body: Text
    author: Name = "you"
    resolved: bool = False
    last_line: PositiveInt | None = None
    line_text: Text | None = None
    commit_hash: Name | None = None
    message_id: Id | None = None


@entity
class Errand(WorkEntity):
    """A small change to a project outside any initiative."""

    description: Text
    branch: Name
    base_branch: Name = "main"
    agent_id: Id | None = None
    project_id: Id
    status: ErrandStatus = ErrandStatus.ACTIVE
