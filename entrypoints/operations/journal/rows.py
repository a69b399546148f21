"""The journal of changes: reading it, holding it for a reader, folding its beginning."""

from herdbook.entrypoints.operations.model import (
    AT,
    Operation,
    Parameter,
    argument,
    flag,
    use_case_operation,
)

_AREA = Parameter("area", "whose journal", choices=("work", "record"), default="work")
_LIMIT = Parameter("limit", "the maximum number of entries", kind="number", default=100)
_CURSOR = Parameter("cursor", "its name", positional=True, required=True)

ROWS: tuple[Operation, ...] = (
    Operation(
        "journal.list",
        "print the newest page of the journal or another one, or follow it",
        "journal.handlers:list_",
        "journal.views:entry",
        "herdbook journal list --before 400 --limit 50",
        (
            Parameter(
                "after",
                "print the entries after this number; default: the last ones",
                kind="number",
            ),
            Parameter("before", "print the entries before this number", kind="number"),
            Parameter("since", "the same as after", kind="number"),
            flag("follow", "keep running and print new entries"),
            _LIMIT._replace(
                help="the maximum number of entries; default: 100, or no limit with --follow",
                default=None,
            ),
        ),
        alias="journal",
        follows=True,
    ),
    Operation(
        "journal.since",
        "list the journal entries after a number, a page at a time",
        "journal.handlers:since",
        "journal.views:entries",
        "herdbook journal since 100 --limit 50",
        (
            Parameter(
                "seq",
                "the number; 0 starts at the first entry that was ever made",
                kind="number",
                positional=True,
                required=True,
            ),
            _LIMIT._replace(help="the maximum number of rows"),
            AT,
        ),
    ),
    Operation(
        "journal.row",
        "list what happened to one row, also to one that was removed",
        "journal.handlers:row_history",
        "journal.views:entries",
        "herdbook journal row tsk_a1b2",
        (argument("id", "its id with its prefix, whole unless the row still exists"), AT),
    ),
    Operation(
        "history",
        "show what happened, transaction by transaction, newest first",
        "journal.handlers:history",
        "journal.views:history",
        "herdbook history --limit 20",
        (
            Parameter("before", "what happened before this entry of the journal", kind="number"),
            _LIMIT._replace(help="how many changes to show; transactions are shown whole"),
            AT,
        ),
    ),
    Operation(
        "journal.moments",
        "list the transactions of the journal with their times: the positions of --at",
        "journal.handlers:moments",
        "journal.views:moments",
        "herdbook journal moments --limit 20",
        (
            Parameter("until", "the last ones until this number or time; default: now", "position"),
            Parameter("after", "the next ones after this number", kind="number"),
            _LIMIT._replace(help="the maximum number of transactions"),
        ),
    ),
    Operation(
        "journal.follow",
        "print journal entries as they are written",
        "journal.handlers:follow",
        "journal.views:entry",
        "herdbook journal follow --json",
        (
            Parameter(
                "since", "print the entries after this number; default: from now on", kind="number"
            ),
        ),
        follows=True,
    ),
    Operation(
        "journal.prune",
        "fold old entries of the journal; the rows stay as they are",
        "journal.handlers:prune",
        "journal.views:prune",
        "herdbook journal prune --keep 90d --preview",
        (
            Parameter("before", "fold the entries before this number or time", "position"),
            Parameter("keep", "fold all but so many entries, or all older than 90d"),
            flag("preview", "only say what would be folded"),
            _AREA,
        ),
        local=True,
    ),
    Operation(
        "journal.cursors",
        "list who reads the journal from where, those that have read least first",
        "journal.handlers:cursors",
        "journal.views:cursors",
        "herdbook journal cursors",
        (_AREA,),
    ),
    Operation(
        "journal.hold",
        "hold the journal for a reader: what it has not read is not folded",
        "journal.handlers:hold",
        "crud.views:one",
        "herdbook journal hold nightly-report --seq 400 --for 30d",
        (
            _CURSOR,
            Parameter(
                "seq", "the number up to which it has read; default: the last", kind="number"
            ),
            Parameter("holder", "what reads there, for people; default: who calls"),
            Parameter(
                "for_", "for how long; default: until released", kind="duration", option="for"
            ),
            _AREA,
        ),
    ),
    Operation(
        "journal.release",
        "release a cursor: what it has not read may be folded",
        "journal.handlers:release",
        "crud.views:one",
        "herdbook journal release nightly-report",
        (_CURSOR, _AREA),
    ),
    Operation(
        "diff",
        "show what changed between two entries of the journal, row by row",
        "journal.handlers:diff",
        "journal.views:diff",
        "herdbook diff 120 180",
        (
            Parameter(
                "since",
                "the state after this entry (a number), or at this time",
                kind="position",
                positional=True,
                required=True,
            ),
            Parameter("until", "the same; default: now", kind="position", positional=True),
            Parameter("limit", "the maximum number of rows", kind="number", default=1000),
        ),
    ),
    use_case_operation(
        "undo",
        "take back your last change, or a named one, if nothing it changed has changed since",
        "journal.undo:undo",
        "undo '#151'",
        argument(
            "tx", "an entry of the journal by its number, or a transaction; default: your last"
        )._replace(required=False),
    )._replace(view="journal.views:undo"),
)
