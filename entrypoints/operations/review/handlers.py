"""`review diff` and `review submit`: the diff of what was done, and comments on its lines."""

from typing import Final, NamedTuple

from herdbook.adapters.git import changes
from herdbook.adapters.git.diff import ChangedFiles, CommitComparison, FileHunks
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.diff import ChangedFile
from herdbook.domain.plan.model import LineType
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.answer_fields import answer_from
from herdbook.entrypoints.operations.review.answers import (
    DiffAnswer,
    FileAnswer,
    PlacedThread,
    SentAnswer,
    SourceAnswer,
    SubjectAnswer,
    file_answer,
    hunk_answers,
    printable,
)
from herdbook.entrypoints.operations.review.placing import (
    NEW,
    OLD,
    OUTDATED,
    CommentPlacer,
    LinePlace,
)
from herdbook.entrypoints.operations.review.sources import (
    NO_OTHER,
    WorkRepository,
    WorkSource,
    choose_source,
    find_sources,
)
from herdbook.ports.engine.dictionary import AGENTS, MESSAGES
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import reviews
from herdbook.services.plan.review_subjects import ReviewSubject, find_subject
from herdbook.services.plan.reviews import CommentThread

MOST_FILES: Final = 3_000
"""How many files are told."""
MOST_LINES: Final = 20_000
"""How many lines are told of one file, and of all files together."""
MOST_CONTEXT: Final = 100_000


class SubjectRead(NamedTuple):
    """What the store knows of a review: its subject, its threads, and who was told of them."""

    subject: ReviewSubject
    threads: list[CommentThread]
    sent: dict[str, SentAnswer]


class Comparison(NamedTuple):
    """The difference that is looked at, or why there is none."""

    source: WorkSource | None
    sources: tuple[WorkSource, ...]
    git: CommitComparison | None
    changed: ChangedFiles
    problem: str | None
    repository: WorkRepository | None = None


def diff(
    app: AppContext,
    *,
    subject: str,
    file: str | None,
    source: str | None,
    context: int,
    stat: bool,
) -> DiffAnswer:
    """The files that were changed for a subject, their lines, and the comments on them.

    Raises InvalidValue for a file that did not change, and for a number of lines below 0.
    """
    if not 0 <= context <= MOST_CONTEXT:
        raise InvalidValue("context", f"must be 0 to {MOST_CONTEXT}, is {context}")
    known = app.read(Area.WORK, read_subject, subject)
    found = compare(app, known.subject, source)
    answer = _list_files(app, known, found)
    if file is not None:
        _add_file(answer, known, found, file, context)
    elif not stat:
        _add_all(answer, found, context)
    return answer


def read_subject(uow: UnitOfWork, text: str) -> SubjectRead:
    """The subject of a review and its comments, in one reading."""
    subject = find_subject(uow, text)
    threads = [each for key in subject.phase_ids for each in reviews.threads(uow, key)]
    comments = [one for each in threads for one in (each.first, *each.replies)]
    ids = dict.fromkeys(each.message_id for each in comments if each.message_id is not None)
    messages = [each for each in uow.get(MESSAGES, list(ids)) if each is not None]
    agents = uow.get(AGENTS, [each.recipient_id or "" for each in messages])
    by_message: dict[str | None, SentAnswer] = {
        each.id: {
            "to": "an agent that was removed" if agent is None else agent.name,
            "at": each.created_at,
            "status": each.status,
        }
        for each, agent in zip(messages, agents, strict=True)
    }
    sent = {
        each.id: by_message[each.message_id] for each in comments if each.message_id in by_message
    }
    return SubjectRead(subject, threads, sent)


def compare(app: AppContext, subject: ReviewSubject, wanted: str | None) -> Comparison:
    """The difference of a subject's work; a source that is named must be one of its own."""
    none = ChangedFiles((), is_complete=True)
    try:
        repository = WorkRepository(app)
        sources = tuple(find_sources(repository, subject))
    except HerdbookError as error:
        return Comparison(None, (), None, none, str(error))
    source = choose_source(sources, wanted)
    if source is None:
        missing = f"the branch {subject.branch!r} does not exist here"
        where = missing if subject.branch else "its initiative names no branch"
        who = "no agent that worked on it has a worktree here"
        return Comparison(None, sources, None, none, f"{where}, and {who}")
    git = CommitComparison(repository.folder, repository.variables)
    if source.base is None:
        reason = f"{source.name} and {source.base_name} have no commit in common"
        if source.base_name == NO_OTHER:
            known = "`herdbook phase set --merge-base` says where its work began"
            reason = f"there is no other branch to compare {source.name} with; {known}"
        return Comparison(source, sources, None, none, reason)
    changed = git.changed_files(source.base, source.head)
    return Comparison(source, sources, git, changed, None, repository)


def _list_files(app: AppContext, known: SubjectRead, found: Comparison) -> DiffAnswer:
    """The answer with all files and without any lines."""
    counts: dict[str, list[int]] = {}
    for thread in known.threads:
        count = counts.setdefault(thread.first.file_path, [0, 0])
        count[0] += 1
        count[1] += not thread.first.resolved
    files: list[FileAnswer] = []
    for each in found.changed.files[:MOST_FILES]:
        names = dict.fromkeys((printable(each.path), printable(each.old_path)))
        own = [counts.pop(name) for name in names if name in counts]
        files.append(file_answer(each, sum(n for n, _ in own), sum(n for _, n in own)))
    elsewhere = [each for each in known.threads if each.first.file_path in counts]
    return {
        "subject": _describe_subject(known.subject),
        "source": None if found.source is None else _describe_source(app, found.source),
        "sources": [each.name for each in found.sources],
        "problem": found.problem,
        "files": files,
        "total": {
            "files": len(found.changed.files),
            "added": sum(each.added or 0 for each in found.changed.files),
            "removed": sum(each.removed or 0 for each in found.changed.files),
        },
        "cut": _cut_files(found.changed),
        "threads": [],
        "elsewhere": [_place_thread(known, each, _place_of_number(each)) for each in elsewhere],
    }


def _cut_files(changed: ChangedFiles) -> list[str]:
    total = len(changed.files)
    if not changed.is_complete:
        return [
            f"git names more files than are read; the first {min(total, MOST_FILES):,} are told"
        ]
    return [f"{MOST_FILES:,} of {total:,} files are told"] if total > MOST_FILES else []


def _add_file(
    answer: DiffAnswer, known: SubjectRead, found: Comparison, name: str, context: int
) -> None:
    """Put the lines of one file and its comments into the answer."""
    file, told = _find_file(answer, found, name)
    git, source = found.git, found.source
    if git is None or source is None or source.base is None:
        return
    _add_lines(answer, git.file_hunks(source.base, source.head, file, context), told, MOST_LINES)
    names = {told["path"], told["old_path"]}
    threads = [each for each in known.threads if each.first.file_path in names]
    placer = CommentPlacer(git, file, source.base, source.head) if threads else None
    placed = [
        _place_thread(known, each, placer.place(each.first))
        for each in threads
        if placer is not None
    ]
    answer["threads"] = sorted(placed, key=lambda each: (each["last_line"], each["side"]))


def _find_file(answer: DiffAnswer, found: Comparison, name: str) -> tuple[ChangedFile, FileAnswer]:
    """A file by the name that the answer gives it; InvalidValue if none has it."""
    for file, told in zip(found.changed.files, answer["files"], strict=False):
        if told["path"] == name:
            return file, told
    raise InvalidValue("file", f"{name!r} is not among the files that were changed")


def _add_all(answer: DiffAnswer, found: Comparison, context: int) -> None:
    """Put the lines of all files into the answer, as many as one answer may have."""
    left, source = MOST_LINES, found.source
    if found.git is None or source is None or source.base is None:
        return
    for file, told in zip(found.changed.files, answer["files"], strict=False):
        if left <= 0:
            rest = sum(each["hunks"] is None for each in answer["files"])
            answer["cut"].append(
                f"the lines of {rest:,} more files are not told; --file tells one's"
            )
            return
        hunks = found.git.file_hunks(source.base, source.head, file, context)
        left -= _add_lines(answer, hunks, told, left)


def _add_lines(answer: DiffAnswer, found: FileHunks, told: FileAnswer, most: int) -> int:
    """Put the lines of a file into the answer, at most so many; how many it were."""
    told["hunks"], count = hunk_answers(found.hunks, most)
    length = sum(len(each.lines) for each in found.hunks)
    told["is_complete"] = found.is_complete and count == length
    if not told["is_complete"]:
        answer["cut"].append(f"the first {count:,} lines of {told['path']} are told")
    return count


def _describe_subject(subject: ReviewSubject) -> SubjectAnswer:
    names = [each.name for each in subject.agents]
    steps = [each._asdict() for each in subject.steps]
    return answer_from(SubjectAnswer, subject, agents=names, steps=steps)


def _describe_source(app: AppContext, source: WorkSource) -> SourceAnswer:
    paths = None
    if source.worktree is not None:
        paths = changes.uncommitted_paths(source.worktree, app.workspace.variables)
    uncommitted = None if paths is None else len(paths)
    return answer_from(SourceAnswer, source, name=printable(source.name), uncommitted=uncommitted)


def _place_of_number(thread: CommentThread) -> LinePlace:
    """The place of a thread on a file that the diff does not have: its own numbers."""
    first = thread.first
    side = OLD if first.line_type is LineType.REMOVED else NEW
    return LinePlace(side, first.line_number, first.last_line or first.line_number, OUTDATED)


def _place_thread(known: SubjectRead, thread: CommentThread, place: LinePlace) -> PlacedThread:
    ids = [each.id for each in (thread.first, *thread.replies)]
    sent = {each: known.sent[each] for each in ids if each in known.sent}
    return answer_from(PlacedThread, thread, place, sent=sent)
