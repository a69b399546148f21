"""The plan as text: import and export."""

from herdbook.entrypoints.operations.model import AT, Operation, Parameter

_FORMATS = ("markdown", "lines")

ROWS: tuple[Operation, ...] = (
    Operation(
        "import.plan",
        "create or update the plan from a Markdown or JSON Lines file",
        "plan_text.handlers:read",
        "plan_text.views:read",
        "herdbook import plan plan.md",
        (
            Parameter(
                "file",
                "the file; - reads standard input",
                kind="path",
                positional=True,
                required=True,
            ),
            Parameter("format", "its format, if the file name does not tell", choices=_FORMATS),
        ),
        local=True,
    ),
    Operation(
        "export.plan",
        "export the plan as text that can be edited and imported again",
        "plan_text.handlers:write",
        "plan_text.views:write",
        "herdbook export plan --initiative a1b2",
        (
            Parameter("initiative", "only this initiative"),
            Parameter("format", "the format", choices=_FORMATS, default="markdown"),
            AT,
        ),
    ),
)
