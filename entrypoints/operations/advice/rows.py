"""Advice from the record: which setup to use, and which earlier work is similar."""

from herdbook.entrypoints.operations.model import Operation, Parameter, argument, rows_of

EVERYTHING = "all"
"""The goal of advice that stands for all projects together."""

ROWS = rows_of(
    "advice",
    Operation(
        "advise",
        "rank the setups of agents for the next project, with confidence",
        "herdbook advise --for rust",
        (
            Parameter(
                "goal",
                "a project folder, a programming language, or all; default: the project you are in",
                option="for",
            ),
        ),
    ),
    Operation(
        "leaderboard",
        "compare the setups of agents: merit, grades, bugs and weeks, per language and project",
        "herdbook leaderboard --language rust",
        (
            Parameter("language", "only projects in this programming language"),
            Parameter("project", "only this project, by its name in the record"),
            Parameter("weeks", "of how many weeks to tell, up to 52", kind="number", default=12),
        ),
        code="advice.leaderboard:leaderboard",
    ),
    Operation(
        "recall",
        "find earlier work similar to a task: successes and mistakes",
        'herdbook recall "retry a claim when its lease has ended"',
        (
            argument("text", "a description of the task"),
            Parameter("project", "the project to list first; default: this one"),
            Parameter("limit", "the maximum number of each", kind="number", default=5),
        ),
    ),
)
