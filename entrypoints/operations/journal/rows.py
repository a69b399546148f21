"""The journal of changes: reading it, holding it for a reader, folding its beginning."""

from herdbook.entrypoints.operations.model import (
    AT,
    Operation,
    Parameter,
    argument,
    flag,
    rows_of,
    use_case_operation,
)

_AREA = Parameter("area", "whose journal", choices=("work", "record"), default="work")
_LIMIT = Parameter("limit", "the maximum number of entries", kind="number", default=100)
_CURSOR = argument("cursor", "its name")

ROWS = rows_of(
    "journal",
    Operation(
        "journal.list",
        "print the newest page of the journal or another one, or follow it",
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
        view="journal.views:entry",
        alias="journal",
        follows=True,
    ),
    Operation(
        "journal.since",
        "list the journal entries after a number, a page at a time",
        "herdbook journal since 100 --limit 50",
        (
            argument(
                "seq", "the number; 0 starts at the first entry that was ever made", kind="number"
            ),
            _LIMIT._replace(help="the maximum number of rows"),
            AT,
        ),
        view="journal.views:entries",
    ),
    Operation(
        "journal.row",
        "list what happened to one row, also to one that was removed",
        "herdbook journal row tsk_a1b2",
        (argument("id", "its id with its prefix, whole unless the row still exists"), AT),
        code="journal.handlers:row_history",
        view="journal.views:entries",
    ),
    Operation(
        "history",
        "show what happened, transaction by transaction, newest first",
        "herdbook history --limit 20",
        (
            Parameter("before", "what happened before this entry of the journal", kind="number"),
            _LIMIT._replace(
                help="how many changes to show; transactions of up to 1000 are shown whole"
            ),
            AT,
        ),
    ),
    use_case_operation(
        "journal.moments",
        "list the transactions of the journal with their times: the positions of --at",
        "journal.moments:list_moments",
        Parameter("until", "the last ones until this number or time; default: now", "position"),
        Parameter("after", "the next ones after this number", kind="number"),
        _LIMIT._replace(help="the maximum number of transactions"),
        example="journal moments --limit 20",
        reads=True,
        past=False,
        view="journal.views:moments",
    ),
    Operation(
        "journal.follow",
        "print journal entries as they are written",
        "herdbook journal follow --json",
        (
            Parameter(
                "since", "print the entries after this number; default: from now on", kind="number"
            ),
        ),
        view="journal.views:entry",
        follows=True,
    ),
    Operation(
        "journal.prune",
        "fold old entries of the journal; the rows stay as they are",
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
        "herdbook journal cursors",
        (_AREA,),
    ),
    Operation(
        "journal.hold",
        "hold the journal for a reader: what it has not read is not folded",
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
        view="crud.views:one",
    ),
    Operation(
        "journal.release",
        "release a cursor: what it has not read may be folded",
        "herdbook journal release nightly-report",
        (_CURSOR, _AREA),
        view="crud.views:one",
    ),
    Operation(
        "diff",
        "show what changed between two entries of the journal, row by row",
        "herdbook diff 120 180",
        (
            argument(
                "since", "the state after this entry (a number), or at this time", kind="position"
            ),
            argument("until", "the same; default: now", kind="position", required=False),
            Parameter("limit", "the maximum number of rows", kind="number", default=1000),
        ),
    ),
    use_case_operation(
        "undo",
        "take back your last change, or a named one, if nothing it changed has changed since",
        "journal.undo:undo",
        argument(
            "tx",
            "an entry of the journal by its number, or a transaction; default: your last",
            required=False,
        ),
        example="undo '#151'",
        view="journal.views:undo",
    ),
)
