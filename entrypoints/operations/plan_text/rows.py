"""The plan as text: import and export."""

from herdbook.entrypoints.operations.model import AT, Operation, Parameter, argument

_FORMATS = ("markdown", "lines")

ROWS: tuple[Operation, ...] = (
    Operation(
        "import.plan",
        "create or update the plan from a Markdown or JSON Lines file",
        "herdbook import plan plan.md",
        (
            argument("file", "the file; - reads standard input", kind="path"),
            Parameter("format", "its format, if the file name does not tell", choices=_FORMATS),
        ),
        code="plan_text.handlers:read",
        view="plan_text.views:read",
        local=True,
    ),
    Operation(
        "export.plan",
        "export the plan as text that can be edited and imported again",
        "herdbook export plan --initiative a1b2",
        (
            Parameter("initiative", "only this initiative"),
            Parameter("format", "the format", choices=_FORMATS, default="markdown"),
            AT,
        ),
        code="plan_text.handlers:write",
        view="plan_text.views:write",
    ),
)
