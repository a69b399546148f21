"""The record: grades, bugs, standings, activities, and the spool of the hooks."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag

_AGENT = argument("agent", "its name")
_OF_AGENT = Parameter("agent", "only this agent")
_PAGE = (
    Parameter("limit", "the maximum number of rows", kind="number", default=100),
    Parameter("after", "start after the row with this id"),
)

ROWS: tuple[Operation, ...] = (
    Operation(
        "grade",
        "grade an agent's commit; without a commit, list those that wait for your grade",
        "record.handlers:grade",
        "record.views:grade",
        "herdbook grade brisk-otter HEAD --self good --user excellent",
        (
            Parameter("agent", "its name; without it, all agents are listed", positional=True),
            Parameter(
                "commit",
                "the commit: a hash or any name that git accepts; without it, list what to grade",
                positional=True,
            ),
            Parameter("self", "the agent's own grade: bad, neutral, good, excellent"),
            Parameter("user", "your grade: bad, neutral, good, excellent"),
            Parameter("task", "what the commit was about; default: its first line"),
            Parameter("self_note", "the agent's comment"),
            Parameter("user_note", "your comment"),
            Parameter("limit", "the maximum number of commits to list", kind="number", default=20),
        ),
    ),
    Operation(
        "bug",
        "record a bug against an agent (-1 skill point; at 0 the agent is halted)",
        "record.handlers:bug",
        "record.views:standing",
        "herdbook bug brisk-otter --note 'loses the last line'",
        (_AGENT, Parameter("note", "a description of the bug")),
    ),
    Operation(
        "reinstate",
        "reinstate a halted agent",
        "record.handlers:reinstate",
        "record.views:standing",
        "herdbook reinstate brisk-otter",
        (
            _AGENT,
            Parameter("skill_points", "its skill points from then on", kind="number", default=1),
        ),
    ),
    Operation(
        "standing",
        "show the standings of agents, including events not flushed yet",
        "record.handlers:standing",
        "record.views:standings",
        "herdbook standing brisk-otter",
        (Parameter("agent", "its name; default: all agents", positional=True),),
    ),
    Operation(
        "activity.add",
        "record an activity of an agent",
        "record.handlers:add_activity",
        "crud.views:one",
        "herdbook activity add 'parse the dates' --agent brisk-otter --outcome 'all tests pass'",
        (
            argument("task", "the task"),
            Parameter("agent", "its name; default: the acting agent"),
            Parameter("actions", "the actions; - reads them from standard input"),
            Parameter("outcome", "the outcome"),
            Parameter("decisions", "the decisions"),
        ),
    ),
    Operation(
        "activity.list",
        "list activities of agents, newest first",
        "record.handlers:list_activities",
        "record.views:activities",
        "herdbook activity list --agent brisk-otter",
        (_OF_AGENT, *_PAGE),
    ),
    Operation(
        "retro.list",
        "list commit reviews (retrospectives), newest first",
        "record.handlers:list_retrospectives",
        "record.views:retrospectives",
        "herdbook retro list --agent brisk-otter",
        (_OF_AGENT, *_PAGE),
    ),
    Operation(
        "flush",
        "write the events that hooks have spooled into the record",
        "record.handlers:flush",
        "record.views:flush",
        "herdbook flush",
        (
            flag("if_due", "only if the spool is older or larger than the settings allow"),
            flag("gently", "exit with 0 even if the record cannot be written; for hooks"),
        ),
    ),
)

IMPORT_ROWS: tuple[Operation, ...] = (
    Operation(
        "import.agent-tracker",
        "import the database of OpenCode's agent-tracker into the record",
        "record.import_agent_tracker:read",
        "stores.views:merge",
        "herdbook import agent-tracker ~/.config/opencode/agent-tracker.lmdb",
        (
            Parameter("file", "its database", kind="path", positional=True, required=True),
            Parameter(
                "words", "dict/dict.txt of its npm package lmdb, if it is not found", kind="path"
            ),
        ),
        local=True,
    ),
)
