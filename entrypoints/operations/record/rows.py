"""The record: grades, bugs, standings, activities, and the spool of the hooks."""

from herdbook.entrypoints.operations.model import (
    Operation,
    Parameter,
    argument,
    flag,
    rows_of,
    use_case_operation,
)

_AGENT = argument("agent", "its name")
_OF_AGENT = (
    Parameter("agent", "only this agent"),
    Parameter("limit", "the maximum number of rows", kind="number", default=100),
    Parameter("after", "start after the row with this id"),
)

ROWS = rows_of(
    "record",
    Operation(
        "grade",
        "grade an agent's commit; without a commit, list those that wait for your grade",
        "herdbook grade brisk-otter HEAD --self good --user excellent",
        (
            argument("agent", "its name; without it, all agents are listed", required=False),
            argument(
                "commit",
                "the commit: a hash or any name that git accepts; without it, list what to grade",
                required=False,
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
        "herdbook bug brisk-otter --note 'loses the last line'",
        (_AGENT, Parameter("note", "a description of the bug")),
        view="record.views:standing",
    ),
    Operation(
        "reinstate",
        "reinstate a halted agent",
        "herdbook reinstate brisk-otter",
        (
            _AGENT,
            Parameter("skill_points", "its skill points from then on", kind="number", default=1),
        ),
        view="record.views:standing",
    ),
    Operation(
        "standing",
        "show the standings of agents, including events not flushed yet",
        "herdbook standing brisk-otter",
        (argument("agent", "its name; default: all agents", required=False),),
        view="record.views:standings",
    ),
    Operation(
        "activity.add",
        "record an activity of an agent",
        "herdbook activity add 'parse the dates' --agent brisk-otter --outcome 'all tests pass'",
        (
            argument("task", "the task"),
            Parameter("agent", "its name; default: the acting agent"),
            Parameter("actions", "the actions; - reads them from standard input"),
            Parameter("outcome", "the outcome"),
            Parameter("decisions", "the decisions"),
        ),
        code="record.handlers:add_activity",
        view="crud.views:one",
    ),
    use_case_operation(
        "activity.list",
        "list activities of agents, newest first",
        "record.grading:activities",
        *_OF_AGENT,
        example="activity list --agent brisk-otter",
        reads=True,
        area="record",
        view="record.views:activities",
    ),
    use_case_operation(
        "retro.list",
        "list commit reviews (retrospectives), newest first",
        "record.grading:retrospectives",
        *_OF_AGENT,
        example="retro list --agent brisk-otter",
        reads=True,
        area="record",
        view="record.views:retrospectives",
    ),
    Operation(
        "flush",
        "write the events that hooks have spooled into the record",
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
        "herdbook import agent-tracker ~/.config/opencode/agent-tracker.lmdb",
        (
            argument("file", "its database", kind="path"),
            Parameter(
                "words", "dict/dict.txt of its npm package lmdb, if it is not found", kind="path"
            ),
        ),
        code="record.import_agent_tracker:read",
        view="stores.views:merge",
        local=True,
    ),
)
