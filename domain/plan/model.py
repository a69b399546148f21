"""The plan: initiatives, their phases and tasks, and all that hangs on them."""

from datetime import datetime
from enum import StrEnum

from herdbook.domain.entity import Worked, entity
from herdbook.domain.values import Count, Id, Line, Mapped, Name, Text


class InitiativeStatus(StrEnum):
    ACTIVE = "active"
    PENDING_REVIEW = "pending_review"
    COMPLETED = "completed"
    ARCHIVED = "archived"


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
        """The place in a queue: what is urgent stands first."""
        return {Priority.HIGH: 0, Priority.MEDIUM: 1, Priority.LOW: 2}[self]


class TaskStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    QUALITY_REVIEW = "quality_review"
    COMPLETED = "completed"
    BLOCKED = "blocked"


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
class Initiative(Worked):
    """A goal that several agents work towards, in phases or in loose tasks."""

    name: Name
    status: InitiativeStatus = InitiativeStatus.ACTIVE
    branch: Name | None = None
    execution_mode: ExecutionMode = ExecutionMode.REVIEW_PER_PHASE
    quality_review: bool = False


@entity
class Phase(Worked):
    """A stretch of an initiative that opens, is worked on and is reviewed as a whole."""

    initiative_id: Id
    name: Name
    content: Text | None = None
    status: PhaseStatus = PhaseStatus.PENDING
    merge_base: Name | None = None


@entity
class PhaseDependency(Worked):
    """One phase waits until another is completed."""

    phase_id: Id
    depends_on_phase_id: Id


@entity
class Task(Worked):
    """A piece of work that one agent can hold at a time."""

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
    retry_count: Count = 0
    assignee_id: Id | None = None
    fence: Count = 0

    @property
    def finished(self) -> bool:
        """Whether nothing waits for this task any more."""
        return self.status is TaskStatus.COMPLETED


@entity
class TaskDependency(Worked):
    """One task waits until another is completed."""

    task_id: Id
    depends_on_task_id: Id


@entity
class Project(Worked):
    """A repository that initiatives and errands work on."""

    name: Name
    url: Name
    default_branch: Name = "main"
    last_fetched_at: datetime | None = None


@entity
class InitiativeProject(Worked):
    """An initiative touches a project."""

    initiative_id: Id
    project_id: Id


@entity
class Page(Worked):
    """A page of an initiative's notes; the one without a parent is the root."""

    initiative_id: Id
    parent_page_id: Id | None = None
    title: Name
    content: Text | None = None
    sort_order: int = 0


@entity
class Proposal(Worked):
    """What an agent would like to add to or change in the plan."""

    agent_id: Id
    initiative_id: Id
    target_type: ProposalTarget
    target_id: Id | None = None
    title: Name
    summary: Text
    content: Text
    metadata: Mapped | None = None
    status: ProposalStatus = ProposalStatus.PENDING
    sort_order: int = 0


@entity
class ChangeSet(Worked):
    """What one journal transaction did to an initiative, so that it can be taken back whole."""

    initiative_id: Id
    agent_id: Id | None = None
    summary: Text
    tx: Id
    status: ChangeSetStatus = ChangeSetStatus.APPLIED


@entity
class ReviewComment(Worked):
    """A remark on one line of a phase's diff; removed lines are counted on the old side."""

    phase_id: Id
    parent_comment_id: Id | None = None
    file_path: Text
    line_number: Line
    line_type: LineType
    body: Text
    author: Name = "you"
    resolved: bool = False


@entity
class Errand(Worked):
    """A small change to a project outside any initiative."""

    description: Text
    branch: Name
    base_branch: Name = "main"
    agent_id: Id | None = None
    project_id: Id
    status: ErrandStatus = ErrandStatus.ACTIVE
