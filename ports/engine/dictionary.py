"""The data dictionary: every entity Herdbook stores, and its keys, indexes and references.

To add a field, add it to its entity with a default and raise `VERSION`; to add an entity, add its
kind here and to `DICTIONARY` and raise `VERSION`. Stores upgrade themselves from the difference.
"""

from herdbook.domain import conversation, journal
from herdbook.domain.agents import model as agents_model
from herdbook.domain.checkpoints import model as checkpoints_model
from herdbook.domain.location.areas import Area
from herdbook.domain.plan import model as plan_model
from herdbook.domain.plan import readiness
from herdbook.domain.record import model as record_model
from herdbook.ports.engine.kinds import Dictionary, Kind, OnDelete, Reference, Unique

VERSION = 6
ROWS_VERSION = 5
"""The newest version that changed rows which exist; `unit_of_work/rewrites.py` rewrites them."""


def _cascade(field: str, target: str) -> Reference:
    return Reference(field, target, OnDelete.CASCADE)


def _set_null(field: str, target: str) -> Reference:
    return Reference(field, target, OnDelete.SET_NULL)


INITIATIVES = Kind(
    "initiatives",
    plan_model.Initiative,
    prefix="ini",
    area=Area.WORK,
    lookups=(("status", "created_at"), ("name",)),
)
PHASES = Kind(
    "phases",
    plan_model.Phase,
    prefix="pha",
    area=Area.WORK,
    lookups=(("initiative_id", "created_at"), ("name",)),
    references=(_cascade("initiative_id", "initiatives"),),
    groups=(("status", "merge_base"),),
    mechanical=("status", "merge_base"),
)
PHASE_DEPENDENCIES = Kind(
    "phase_dependencies",
    plan_model.PhaseDependency,
    prefix="phd",
    area=Area.WORK,
    lookups=(("depends_on_phase_id",),),
    uniques=(Unique(("phase_id", "depends_on_phase_id")),),
    references=(_cascade("phase_id", "phases"), _cascade("depends_on_phase_id", "phases")),
    identity=("phase_id", "depends_on_phase_id"),
)
TASKS = Kind(
    "tasks",
    plan_model.Task,
    prefix="tsk",
    area=Area.WORK,
    lookups=(
        ("phase_id", "order", "created_at"),
        ("phase_id", "status"),
        ("initiative_id", "order", "created_at"),
        ("parent_task_id", "order", "created_at"),
        ("assignee_id", "status"),
        ("status", "created_at"),
        ("name",),
    ),
    references=(
        _cascade("phase_id", "phases"),
        _cascade("initiative_id", "initiatives"),
        _cascade("parent_task_id", "tasks"),
        _set_null("assignee_id", "agents"),
    ),
    groups=(
        (
            "status",
            "assignee_id",
            "fence",
            "claim_stamp",
            "lease_until",
            "summary",
            "retry_count",
        ),
    ),
    mechanical=("status", "assignee_id", "fence", "claim_stamp", "lease_until", "retry_count"),
)
TASK_DEPENDENCIES = Kind(
    "task_dependencies",
    plan_model.TaskDependency,
    prefix="tsd",
    area=Area.WORK,
    lookups=(("depends_on_task_id",),),
    uniques=(Unique(("task_id", "depends_on_task_id")),),
    references=(_cascade("task_id", "tasks"), _cascade("depends_on_task_id", "tasks")),
    identity=("task_id", "depends_on_task_id"),
)
PROJECTS = Kind(
    "projects",
    plan_model.Project,
    prefix="prj",
    area=Area.WORK,
    uniques=(Unique(("name",)), Unique(("url",))),
    mechanical=("last_fetched_at",),
)
INITIATIVE_PROJECTS = Kind(
    "initiative_projects",
    plan_model.InitiativeProject,
    prefix="inp",
    area=Area.WORK,
    lookups=(("project_id",),),
    uniques=(Unique(("initiative_id", "project_id")),),
    references=(_cascade("initiative_id", "initiatives"), _cascade("project_id", "projects")),
    identity=("initiative_id", "project_id"),
)
PAGES = Kind(
    "pages",
    plan_model.Page,
    prefix="pag",
    area=Area.WORK,
    lookups=(("parent_page_id", "sort_order", "created_at"),),
    uniques=(Unique(("initiative_id",), when_none="parent_page_id"),),
    references=(_cascade("initiative_id", "initiatives"), _cascade("parent_page_id", "pages")),
)
PROPOSALS = Kind(
    "proposals",
    plan_model.Proposal,
    prefix="pro",
    area=Area.WORK,
    lookups=(
        ("agent_id", "status", "sort_order", "created_at"),
        ("initiative_id", "status", "sort_order", "created_at"),
    ),
    references=(_cascade("agent_id", "agents"), _cascade("initiative_id", "initiatives")),
    mechanical=("status",),
)
CHANGE_SETS = Kind(
    "change_sets",
    plan_model.ChangeSet,
    prefix="chg",
    area=Area.WORK,
    lookups=(("initiative_id", "created_at"), ("agent_id",), ("tx",)),
    references=(_cascade("initiative_id", "initiatives"), _set_null("agent_id", "agents")),
)
REVIEW_COMMENTS = Kind(
    "review_comments",
    plan_model.ReviewComment,
    prefix="rev",
    area=Area.WORK,
    lookups=(("phase_id", "created_at"), ("parent_comment_id", "created_at"), ("message_id",)),
    references=(
        _cascade("phase_id", "phases"),
        _cascade("parent_comment_id", "review_comments"),
        _set_null("message_id", "messages"),
    ),
)
ERRANDS = Kind(
    "errands",
    plan_model.Errand,
    prefix="err",
    area=Area.WORK,
    lookups=(("project_id", "status", "created_at"), ("status", "created_at"), ("agent_id",)),
    references=(_set_null("agent_id", "agents"), _cascade("project_id", "projects")),
    groups=(("status", "agent_id"),),
    mechanical=("status", "agent_id"),
)
WORKTREES = Kind(
    "worktrees",
    agents_model.Worktree,
    prefix="wkt",
    area=Area.WORK,
    mechanical=("path", "branch", "is_main", "last_seen_at"),
)
AGENTS = Kind(
    "agents",
    agents_model.Agent,
    prefix="agt",
    area=Area.WORK,
    lookups=(
        ("task_id",),
        ("initiative_id",),
        ("session_id",),
        ("status", "created_at"),
        ("worktree_id", "status"),
    ),
    uniques=(Unique(("name",)),),
    references=(_set_null("task_id", "tasks"), _set_null("initiative_id", "initiatives")),
    groups=(("status", "pid", "host", "process_started_at", "exit_code", "task_id"),),
    mechanical=(
        "status",
        "pid",
        "host",
        "process_started_at",
        "exit_code",
        "task_id",
        "initiative_id",
        "session_id",
        "log_session",
        "output_file_path",
    ),
)
MESSAGES = Kind(
    "messages",
    conversation.Message,
    prefix="msg",
    area=Area.WORK,
    lookups=(
        ("recipient_type", "status", "created_at"),
        ("recipient_id", "status", "created_at"),
        ("requires_response", "status", "created_at"),
        ("parent_message_id", "created_at"),
    ),
    references=(_cascade("parent_message_id", "messages"),),
    mechanical=("status",),
)
CONVERSATIONS = Kind(
    "conversations",
    conversation.Conversation,
    prefix="cnv",
    area=Area.WORK,
    lookups=(
        ("to_agent_id", "status", "created_at"),
        ("from_agent_id", "created_at"),
        ("initiative_id",),
        ("phase_id",),
        ("task_id",),
    ),
    references=(
        _cascade("from_agent_id", "agents"),
        _cascade("to_agent_id", "agents"),
        _set_null("initiative_id", "initiatives"),
        _set_null("phase_id", "phases"),
        _set_null("task_id", "tasks"),
    ),
    groups=(("answer", "status"),),
    mechanical=("status",),
)
CHAT_SESSIONS = Kind(
    "chat_sessions",
    conversation.ChatSession,
    prefix="cht",
    area=Area.WORK,
    lookups=(
        ("target_type", "target_id", "status", "created_at"),
        ("agent_id", "status", "created_at"),
        ("initiative_id", "created_at"),
    ),
    references=(_cascade("initiative_id", "initiatives"), _set_null("agent_id", "agents")),
)
CHAT_MESSAGES = Kind(
    "chat_messages",
    conversation.ChatMessage,
    prefix="chm",
    area=Area.WORK,
    lookups=(("chat_session_id", "created_at"), ("change_set_id",)),
    references=(
        _cascade("chat_session_id", "chat_sessions"),
        _set_null("change_set_id", "change_sets"),
    ),
    append_only=True,
)
LOG_CHUNKS = Kind(
    "log_chunks",
    conversation.LogChunk,
    prefix="log",
    area=Area.WORK,
    lookups=(("agent_id", "session_number", "created_at"),),
    append_only=True,
    journalled=False,
)
WAITING = Kind(
    "waiting",
    readiness.WaitingTask,
    area=Area.WORK,
    key="task_id",
    lookups=(("phase_id",),),
    derived=True,
)
OPENINGS = Kind(
    "openings",
    readiness.Opening,
    area=Area.WORK,
    key="task_id",
    lookups=(
        ("state", "rank", "order", "created_at"),
        ("initiative_id", "state", "rank", "order", "created_at"),
        ("phase_id", "state", "rank", "order", "created_at"),
        ("state", "lease_until"),
        ("reviewer_id",),
    ),
    derived=True,
)
ACCOUNTS = Kind(
    "accounts",
    record_model.Account,
    prefix="acc",
    area=Area.RECORD,
    lookups=(("provider", "sort_order"), ("is_exhausted", "exhausted_until")),
    groups=(("is_exhausted", "exhausted_until"),),
    mechanical=("is_exhausted", "exhausted_until", "last_used_at"),
)
SCORE_EVENTS = Kind(
    "score_events",
    record_model.ScoreEvent,
    prefix="sco",
    area=Area.RECORD,
    lookups=(("agent", "at"), ("at",)),
    append_only=True,
)
STANDINGS = Kind(
    "standings",
    record_model.Standing,
    area=Area.RECORD,
    uniques=(Unique(("agent",)),),
    derived=True,
)
COMMITS = Kind(
    "commits",
    record_model.Commit,
    prefix="com",
    area=Area.RECORD,
    lookups=(("agent", "at"), ("project", "at"), ("at",), ("project", "commit_hash")),
    uniques=(Unique(("project", "commit_hash", "agent")),),
    append_only=True,
    identity=("project", "commit_hash", "agent"),
)
RETROSPECTIVES = Kind(
    "retrospectives",
    record_model.Retrospective,
    prefix="ret",
    area=Area.RECORD,
    lookups=(("agent", "at"), ("project", "at"), ("at",)),
    uniques=(Unique(("agent", "project", "commit_hash")),),
    append_only=True,
    identity=("agent", "project", "commit_hash"),
)
ACTIVITIES = Kind(
    "activities",
    record_model.Activity,
    prefix="act",
    area=Area.RECORD,
    lookups=(("agent", "at"), ("project", "at"), ("at",)),
    append_only=True,
)
SETUP_NOTES = Kind(
    "setup_notes",
    record_model.SetupNote,
    prefix="stn",
    area=Area.RECORD,
    lookups=(("session_id", "at"), ("agent", "at"), ("agent", "session_id", "at")),
    append_only=True,
)
LANES = Kind(
    "checkpoint_lanes",
    checkpoints_model.CheckpointLane,
    prefix="lan",
    area=Area.CHECKPOINTS,
    lookups=(("thread",),),
    append_only=True,
    journalled=False,
)
CHECKPOINTS = Kind(
    "checkpoints",
    checkpoints_model.Checkpoint,
    prefix="ckp",
    area=Area.CHECKPOINTS,
    lookups=(("lane", "place"), ("thread", "place"), ("place",), ("run",)),
    append_only=True,
    journalled=False,
)
PIECES = Kind(
    "checkpoint_pieces",
    checkpoints_model.Piece,
    prefix="pce",
    area=Area.CHECKPOINTS,
    lookups=(("thread",),),
    append_only=True,
    journalled=False,
)
WRITES = Kind(
    "checkpoint_writes",
    checkpoints_model.Write,
    prefix="wrt",
    area=Area.CHECKPOINTS,
    lookups=(("checkpoint",), ("thread",)),
    append_only=True,
    journalled=False,
)
JOURNAL = Kind(
    "journal",
    journal.JournalEntry,
    key="seq",
    lookups=(("entity", "key"), ("tx",)),
    append_only=True,
    journalled=False,
)
HEADS = Kind("heads", journal.Head, journalled=False)
CURSORS = Kind("cursors", journal.JournalCursor, journalled=False)
OPERATIONS = Kind(
    "operations",
    journal.OperationResult,
    key="operation_id",
    lookups=(("at",),),
    append_only=True,
    journalled=False,
)

DICTIONARY = Dictionary(
    VERSION,
    (
        INITIATIVES,
        PHASES,
        PHASE_DEPENDENCIES,
        TASKS,
        TASK_DEPENDENCIES,
        PROJECTS,
        INITIATIVE_PROJECTS,
        PAGES,
        PROPOSALS,
        CHANGE_SETS,
        REVIEW_COMMENTS,
        ERRANDS,
        WORKTREES,
        AGENTS,
        MESSAGES,
        CONVERSATIONS,
        CHAT_SESSIONS,
        CHAT_MESSAGES,
        LOG_CHUNKS,
        WAITING,
        OPENINGS,
        ACCOUNTS,
        SCORE_EVENTS,
        STANDINGS,
        COMMITS,
        RETROSPECTIVES,
        ACTIVITIES,
        SETUP_NOTES,
        LANES,
        CHECKPOINTS,
        PIECES,
        WRITES,
        JOURNAL,
        HEADS,
        OPERATIONS,
        CURSORS,
    ),
)

WAITING_AGENTS = Kind("waiting_agents", agents_model.WaitingAgent, prefix="agt", area=Area.WORK)
"""Agents that wait, joined with the names of what they are at: an answer, stored nowhere."""
ROW_KINDS = {**DICTIONARY.kinds, WAITING_AGENTS.name: WAITING_AGENTS}
"""The kinds of rows that answers may hold, by name."""


def new_head(dictionary: Dictionary) -> journal.Head:
    """The head of a space that nobody has written to yet."""
    return journal.Head(
        schema_version=dictionary.version,
        oldest_writer=dictionary.oldest_writer,
        rows_version=ROWS_VERSION,
    )
