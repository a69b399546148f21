"""The record: grades, bugs, standings, what agents did, and what the hooks have left."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, flag

_AGENT = argument("agent", "its name")
_OF_AGENT = Parameter("agent", "of this agent alone")
_PAGE = (
    Parameter("limit", "at most so many", kind="number", default=100),
    Parameter("after", "from behind the one with this id on"),
)


ROWS: tuple[Operation, ...] = (
    Operation(
        "grade",
        "judge an agent's commit: both parties, or one alone",
        "record.handlers:grade",
        "record.views:graded",
        "herdbook grade brisk-otter HEAD --self good --user excellence",
        (
            _AGENT,
            argument("commit", "the commit, by its hash or another name that git knows"),
            Parameter("self", "the agent's own grade: bad, neutral, good, excellence"),
            Parameter("user", "your grade: bad, neutral, good, excellence"),
            Parameter("task", "what it was about; by default the commit's own first line"),
            Parameter("self_note", "what the agent says of it"),
            Parameter("user_note", "what you say of it"),
        ),
    ),
    Operation(
        "bug",
        "write down a bug in an agent's work: it costs a skill point, and the last one halts it",
        "record.handlers:bug",
        "record.views:standing",
        "herdbook bug brisk-otter --note 'loses the last line'",
        (_AGENT, Parameter("note", "what is wrong")),
    ),
    Operation(
        "reinstate",
        "let a halted agent go on",
        "record.handlers:reinstate",
        "record.views:standing",
        "herdbook reinstate brisk-otter",
        (_AGENT, Parameter("skill_points", "with so many", kind="number", default=1)),
    ),
    Operation(
        "standing",
        "show where agents stand, counting what the hooks have left",
        "record.handlers:standing",
        "record.views:standings",
        "herdbook standing brisk-otter",
        (Parameter("agent", "its name; all by default", positional=True),),
    ),
    Operation(
        "activity.add",
        "write down what an agent did",
        "record.handlers:add_activity",
        "crud.views:one",
        "herdbook activity add 'parse the dates' --agent brisk-otter --outcome 'all tests pass'",
        (
            argument("task", "what it was about"),
            Parameter("agent", "its name; by default the agent that acts here"),
            Parameter("actions", "what it did; - reads it from standard input"),
            Parameter("outcome", "how it went"),
            Parameter("decisions", "what it decided"),
        ),
    ),
    Operation(
        "activity.list",
        "list what agents did, the latest first",
        "record.handlers:list_activities",
        "record.views:activities",
        "herdbook activity list --agent brisk-otter",
        (_OF_AGENT, *_PAGE),
    ),
    Operation(
        "retro.list",
        "list what was thought of commits, the latest first",
        "record.handlers:list_retrospectives",
        "record.views:retrospectives",
        "herdbook retro list --agent brisk-otter",
        (_OF_AGENT, *_PAGE),
    ),
    Operation(
        "flush",
        "write what the hooks have left into the record",
        "record.handlers:flush",
        "record.views:flushed",
        "herdbook flush",
        (
            flag("if_due", "only if it is older or larger than the settings allow"),
            flag("gently", "end well also when the record cannot be written: for hooks"),
        ),
    ),
    Operation(
        "doctor",
        "show what waits to be flushed and why, what was set aside, and who is halted",
        "record.handlers:doctor",
        "record.views:doctor",
        "herdbook doctor",
        local=True,
    ),
    Operation(
        "advise",
        "rank the setups of agents for the next project, with how sure that is",
        "advice.handlers:advise",
        "advice.views:advise",
        "herdbook advise --for rust",
        (Parameter("goal", "a folder of a project, or a language", option="for"),),
    ),
    Operation(
        "recall",
        "find earlier work that resembles a task: what went well, and mistakes",
        "advice.handlers:recall",
        "advice.views:recall",
        'herdbook recall "retry a claim when its lease has ended"',
        (
            Parameter("text", "the task, in some words", positional=True, required=True),
            Parameter("project", "show this one first, instead of the one here"),
            Parameter("limit", "at most so many of each", kind="number", default=5),
        ),
    ),
    Operation(
        "import.agent-tracker",
        "add to the record what OpenCode's agent-tracker knows",
        "record.import_agent_tracker:read",
        "stores.views:merge",
        "herdbook import agent-tracker ~/.config/opencode/agent-tracker.lmdb",
        (
            Parameter("file", "its database", kind="path", positional=True, required=True),
            Parameter("words", "dict/dict.txt of its npm package lmdb, if not found", kind="path"),
        ),
        local=True,
    ),
)
