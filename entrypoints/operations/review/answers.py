"""What `review diff` answers: data of JSON, bounded, with text that can be printed."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, TypedDict

from herdbook.adapters.git.diff import LARGEST, SUBMODULE
from herdbook.domain.plan.diff import ChangedFile, DiffLine, Hunk
from herdbook.domain.plan.model import ReviewComment
from herdbook.entrypoints.operations.answer_fields import answer_from

LONGEST_LINE: Final = 2_000
"""How many characters of a line are told."""


class LineAnswer(TypedDict):
    """A line with its number on each side; `more` counts the characters that were left out."""

    type: str
    old: int | None
    new: int | None
    text: str
    is_open: bool
    more: int


class HunkAnswer(TypedDict):
    """Lines that changed, and unchanged ones around them."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    heading: str
    lines: list[LineAnswer]


class FileAnswer(TypedDict):
    """A file that changed.

    `form` is text, binary, large or submodule. `hunks` is None unless they were asked for, and
    `is_complete` says whether they are all of them. `content_id` changes with its contents.
    """

    path: str
    old_path: str | None
    content_id: str
    change: str
    form: str
    added: int | None
    removed: int | None
    old_mode: str
    new_mode: str
    old_size: int | None
    new_size: int | None
    threads: int
    open_threads: int
    hunks: list[HunkAnswer] | None
    is_complete: bool


class SentAnswer(TypedDict):
    """The message that told an agent of a comment, and its status."""

    to: str
    at: datetime
    status: str


class PlacedThread(TypedDict):
    """A thread and where it is in the diff.

    `side` is old or new. `state` is here; moved, if its lines have other numbers now; or outdated,
    if they are gone, and then `line` is where they were.
    """

    first: ReviewComment
    replies: list[ReviewComment]
    sent: dict[str, SentAnswer]
    side: str
    line: int
    last_line: int
    state: str


class SourceAnswer(TypedDict):
    """The branch that is looked at, and the commits that are compared.

    `uncommitted` counts the files in its worktree that no commit has, which the diff does not show.
    """

    name: str
    head: str
    base: str | None
    base_name: str
    agents: list[str]
    uncommitted: int | None


class SubjectAnswer(TypedDict):
    """What is reviewed, and the operations that end its review."""

    kind: str
    id: str
    name: str
    status: str
    since: datetime
    initiative: str | None
    phase_id: str | None
    agents: list[str]
    steps: list[dict[str, Any]]


class DiffTotal(TypedDict):
    """How many files and lines changed, in all; of those files that are told if not complete."""

    files: int
    added: int
    removed: int


class DiffAnswer(TypedDict):
    """What was changed for something, and the comments on it.

    `problem` says why there is no diff. `cut` says what was left out, in sentences. `elsewhere` has
    the threads on files that the diff does not have.
    """

    subject: SubjectAnswer
    source: SourceAnswer | None
    sources: list[str]
    problem: str | None
    files: list[FileAnswer]
    total: DiffTotal
    cut: list[str]
    threads: list[PlacedThread]
    elsewhere: list[PlacedThread]


def printable(text: str) -> str:
    """A text of git in which bytes that are no UTF-8 are escaped."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def file_answer(file: ChangedFile, threads: int, open_threads: int) -> FileAnswer:
    """A file without its lines."""
    path, old_path = printable(file.path), printable(file.old_path)
    return answer_from(
        FileAnswer,
        file,
        path=path,
        old_path=None if old_path == path else old_path,
        content_id=file.new_id,
        form=_form(file),
        threads=threads,
        open_threads=open_threads,
        hunks=None,
        is_complete=True,
    )


def _form(file: ChangedFile) -> str:
    if SUBMODULE in (file.old_mode, file.new_mode):
        return "submodule"
    if file.added is not None:
        return "text"
    largest = max(file.old_size or 0, file.new_size or 0)
    return "large" if largest > LARGEST else "binary"


def hunk_answers(hunks: Iterable[Hunk], most: int) -> tuple[list[HunkAnswer], int]:
    """Hunks of at most so many lines in all, and how many lines they have."""
    told: list[HunkAnswer] = []
    count = 0
    for hunk in hunks:
        if count >= most:
            break
        lines = hunk.lines[: most - count]
        count += len(lines)
        heading = printable(hunk.heading)[:LONGEST_LINE]
        shown = [_line(each) for each in lines]
        told.append(answer_from(HunkAnswer, hunk, heading=heading, lines=shown))
    return told, count


def _line(line: DiffLine) -> LineAnswer:
    text = printable(line.text)
    return {
        "type": line.type,
        "old": line.old,
        "new": line.new,
        "text": text[:LONGEST_LINE],
        "is_open": line.is_open,
        "more": max(0, len(text) - LONGEST_LINE),
    }
