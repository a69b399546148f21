"""Parameters made from the fields of an entity.

The dictionary says what a row of each kind holds, so a new field of an entity becomes a new option
and a new key in the JSON by itself.
"""

from typing import Any

from herdbook.domain.values import LABELS
from herdbook.entrypoints.operations.model import NAMED, Operation, Parameter, article
from herdbook.ports.engine.dictionary import DICTIONARY
from herdbook.ports.engine.kinds import Column, Kind
from herdbook.services.guarded_fields import FieldGuard, guards_of

SET_BY_STORE = frozenset({"id", "created_at", "updated_at", "version", "worktree_id"})
"""Fields that the unit of work fills in."""
FIELD_HELP = {
    "acceptance": "how to see that it is done: acceptance criteria",
    "answer": "the answer",
    "author": "who wrote it",
    "base_branch": "the branch it begins at and is merged into",
    "body": "the text of the comment",
    "branch": "its git branch",
    "category": "the kind of work",
    "commit_hash": "the commit in which its lines have these numbers",
    "config": "the settings of its login",
    "content": "its text",
    "credentials": "what it logs in with",
    "default_branch": "the branch that others are merged into",
    "description": "what is to be done",
    "email": "the address of the login",
    "execution_mode": "yolo: phases complete by themselves; review_per_phase: a person reviews",
    "exhausted_until": "when it can be used again",
    "exit_code": "the exit code of its process",
    "file_path": "the file, relative to the root of the repository",
    "host": "the machine it runs on",
    "is_exhausted": "whether its quota is used up",
    "labels": "its labels",
    "last_fetched_at": "when it was last fetched",
    "last_line": "the last line, if it is about several",
    "line_number": "the line; for a removed line, its number before the change",
    "line_text": "the text of its lines",
    "line_type": "whether the change added the line, removed it, or left it",
    "merge_base": "the commit that its diff begins at",
    "metadata": "further fields for the row it proposes",
    "mode": "what it is here to do",
    "model": "the model it runs",
    "name": "its name",
    "order": "its position in the list; smaller numbers come first",
    "output_file_path": "the file its output goes to",
    "pending_questions": "the questions it waits for a person to answer",
    "pid": "the number of its process",
    "priority": "how urgent it is",
    "process_started_at": "when its process was started",
    "prompt": "the prompt it was started with",
    "provider": "the provider: claude, codex, opencode …",
    "quality_review": "whether another agent reviews each task before it is completed",
    "question": "the question",
    "recipient_id": "the id of the agent it is for",
    "recipient_type": "whom it is for",
    "requires_response": "whether an answer is needed",
    "resolved": "whether its thread is resolved",
    "result": "what its process returned",
    "sender_id": "the id of the agent that sent it",
    "sender_type": "who sent it",
    "session_id": "the session of its host that it belongs to",
    "sort_order": "its position in the list; smaller numbers come first",
    "status": "its status",
    "summary": "what came of it, or why it is proposed, in a few sentences",
    "target_id": "the id of the row it is about",
    "target_type": "the kind of row it is about",
    "title": "its title",
    "tx": "the transaction of the journal that made it",
    "url": "the URL it is cloned from",
    "user_dismissed_at": "when the person hid it",
    "worktree_id": "the id of its worktree",
}
"""What a field means, for the help of its option."""
PLACED = {("review_comments", each) for each in ("file_path", "line_number", "line_type")}
"""Fields that another parameter may give: `--at` says where a comment belongs."""
OPTIONS = {"labels": "label", "parent_task_id": "parent"}
"""The options of fields that people call otherwise."""
ELSEWHERE = {("agents", "account_id"): "accounts"}
"""Fields that name a row of another area, with its kind; a space keeps references to its own."""
ACTING_FIELDS = {("proposals", "agent_id"), ("review_comments", "author")}
"""Fields that tell who acts: by default the acting agent."""
_KINDS = {
    "integer": "number",
    "number choice": "number",
    "flag": "yesno",
    "moment": "moment",
    "document": "json",
    "secret": "secret",
}


def kind_of(operation: Operation) -> Kind[Any]:
    """The kind of rows that an operation is about."""
    return DICTIONARY.kinds[operation.entity]


def entity_parameters(operation: Operation) -> tuple[Parameter, ...]:
    """The parameters for the fields that can be added, changed or listed by."""
    kind, verb = kind_of(operation), operation.words[-1]
    left_out = SET_BY_STORE | _guarded_fields(operation).keys()
    columns = [
        column
        for name, column in kind.columns.items()
        if name not in left_out and len(_choices(column)) != 1
    ]
    if verb == "list":
        looked_up = {name for lookup in kind.all_lookups for name in lookup}
        looked_up |= {field for name, field in ELSEWHERE if name == kind.name}
        columns = [
            kind.columns[name]
            for name in kind.columns
            if (name in looked_up and kind.columns[name].type_name not in ("moment", "integer"))
            or kind.columns[name].rule is LABELS
        ]
    return tuple(_parameter(kind, column, operation) for column in columns)


def _guarded_fields(operation: Operation) -> dict[str, FieldGuard]:
    """The fields that an operation does not write because use cases do."""
    guards = guards_of(operation.entity, adding=operation.words[-1] == "add")
    return {name: guard for name, guard in guards.items() if not guard.by_hand}


def reason_refused(operation: Operation, option: str) -> str:
    """Why an operation has no such parameter, if use cases write that field; else empty."""
    if not operation.entity or operation.words[-1] not in ("add", "set"):
        return ""
    kind, name = kind_of(operation), option.replace("-", "_")
    for field, guard in _guarded_fields(operation).items():
        if name in (field, field_option(kind, field)):
            return guard.reason
    return ""


def _parameter(kind: Kind[Any], column: Column, operation: Operation) -> Parameter:
    positional = operation.words[-1] == "add" and column.name == operation.positional
    is_acting = operation.words[-1] == "add" and (kind.name, column.name) in ACTING_FIELDS
    needed = operation.words[-1] == "add" and not column.has_default and not column.optional
    needed = needed and (kind.name, column.name) not in PLACED
    choices = _choices(column)
    guard = guards_of(kind.name).get(column.name)
    if guard is not None and guard.by_hand and operation.words[-1] != "list":
        choices = guard.by_hand
    return Parameter(
        column.name if positional else field_option(kind, column.name),
        _help(kind, column) + ("; default: the acting agent" if is_acting else ""),
        kind="text" if column.rule is LABELS else _KINDS.get(column.type_name, "text"),
        positional=positional,
        required=needed and not is_acting,
        choices=choices,
        field=column.name,
        many=column.rule is LABELS,
        option=OPTIONS.get(column.name, ""),
    )


def _choices(column: Column) -> tuple[str, ...]:
    """The values of a column that is a choice; with one value there is nothing to choose."""
    if column.type_name != "choice":
        return ()
    return tuple(str(each.value) for each in column.rule.python_type)  # type: ignore[attr-defined]


def field_option(kind: Kind[Any], name: str) -> str:
    """The option of a field: `phase` for `phase_id`."""
    refers = (kind.name, name) in ELSEWHERE or any(each.field == name for each in kind.references)
    return name.removesuffix("_id") if refers else name


def _help(kind: Kind[Any], column: Column) -> str:
    targets = {each.field: each.target for each in kind.references}
    target = ELSEWHERE.get((kind.name, column.name)) or targets.get(column.name)
    if target is not None:
        title = DICTIONARY.kinds[target].title
        name = ", or its name" if target in NAMED else ""
        return f"{article(title)} {title}: its id or a unique prefix of it{name}"
    words = FIELD_HELP.get(column.name, column.name.replace("_", " "))
    if column.rule is LABELS:
        return words
    return {
        "text": f"{words}; - reads it from standard input",
        "moment": f"{words}, such as 2026-05-01T12:00Z",
        "document": f"{words}, as JSON",
        "secret": f"{words}; only - is taken, which reads it from standard input",
    }.get(column.type_name, words)
