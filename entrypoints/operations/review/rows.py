"""Reviews: what there is to review, its diff, and comments that are submitted together."""

from herdbook.entrypoints.operations.model import (
    Operation,
    Parameter,
    argument,
    flag,
    rows_of,
    use_case_operation,
)

_SUBJECT = argument(
    "subject", "a phase, task, initiative or errand: its id, a unique prefix of it, or its name"
)
_SOURCE = Parameter(
    "source", "the branch to look at, if agents worked on several; default: the first that differs"
)

ROWS = rows_of(
    "review",
    use_case_operation(
        "review.queue",
        "list what waits for a review, and the phases under way",
        "plan.review_queue:review_queue",
        reads=True,
        view="review.views:queue",
    ),
    Operation(
        "review.diff",
        "show what was changed for a phase, task, initiative or errand",
        "herdbook review diff Schema --file src/a.py",
        (
            _SUBJECT,
            Parameter("file", "only the lines of this file, one of those that changed"),
            _SOURCE,
            Parameter(
                "context", "how many unchanged lines to show around", kind="number", default=3
            ),
            flag("stat", "only the files and their numbers of lines"),
        ),
    ),
    Operation(
        "review.submit",
        "add review comments together, and tell the agent of them",
        "herdbook review submit Schema --comments "
        """'[{"file": "src/a.py", "line": 7, "body": "why?"}]'""",
        (
            _SUBJECT,
            Parameter(
                "comments",
                "a list of objects with body, and file, line, last_line, type (added, removed, "
                "context) and commit (the one that was looked at), or reply_to",
                kind="json",
                required=True,
            ),
            _SOURCE,
            Parameter("to", "the agent to tell; default: the one that worked on it last"),
        ),
        code="review.submit:submit",
        view="review.views:submission",
    ),
)
