"""Merge an existing agent-tracker database into the record automatically, once.

The first write to a record from a folder looks for databases there, in the worktree and in the home
directory. Two kinds of marks in the user's state folder keep it from doing so again: an outcome per
record and source, and a check per record and set of paths. A later write costs one stat, of the
check; it touches no path of the tracker. `herdbook import agent-tracker` does the same on request,
also for a database that appears later.

While a database that was found cannot be read, or only with a word list that was not found, there
is no check: it is tried again once its file has changed or the word list is there. Every outcome is
reported in one line, and no error here stops a command. Agents that came halted are marked at once.
"""

import json
import os
import shlex
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from herdbook.adapters.stores.registry import is_in_memory
from herdbook.adapters.user_state import dirs
from herdbook.domain.retention import MOST_MARKS

if TYPE_CHECKING:
    from herdbook.entrypoints.context import AppContext
    from herdbook.ports.engine.store import Store
    from herdbook.services.stores.merge_spaces import MergeReport

AGAIN = 0
"""The time of change to record for a file that is to be tried again even if it did not change."""
MOST_REASONS = 3
"""How many different reasons are told why something could not come."""


class Outcome(NamedTuple):
    """The outcome of merging a database: the number of added entries, or the reason it failed."""

    source: str
    changed_at: int
    added: int = 0
    failed: int = 0
    trouble: str | None = None
    reasons: Sequence[str] = ()
    needs_words: bool = False

    @property
    def is_open(self) -> bool:
        """Whether something may still come from a database that is still there."""
        unfinished = self.trouble is not None or self.needs_words
        return unfinished and Path(self.source).exists()

    def __str__(self) -> str:
        by_hand = f"`herdbook import agent-tracker {shlex.quote(self.source)}"
        if self.trouble is not None:
            return (
                f"{self.source} was not merged into the record: {self.trouble}. "
                f"{by_hand}` tries again"
            )
        entries = "entry was" if self.added == 1 else "entries were"
        text = (
            f"{self.added} {entries} merged into the record from {self.source}, which is as it was"
        )
        if self.failed:
            text += f"; {self.failed} could not come: {'; '.join(self.reasons)}"
        return f"{text}. {by_hand} --words FILE` brings them" if self.needs_words else text


def merge_once(app: "AppContext", store: "Store") -> None:
    """Merge the agent-tracker databases of this folder and the home directory, if not done yet.

    A defect of the plugin puts its database below a folder called `~` where OpenCode was started.
    """
    if is_in_memory(store.url):
        return
    root = Path(app.workspace.paths.worktree or app.workspace.folder)
    check = _check_mark(store, app.workspace.folder, root, Path.home())
    if check.exists():
        return
    from herdbook.adapters.agent_tracker import locate  # noqa: PLC0415 - only for the first write

    is_open = False
    for source in dict.fromkeys(
        each.resolve()
        for folder in (app.workspace.folder, root)
        for each in locate.find_databases(folder, Path.home())
    ):
        mark = _outcome_mark(store.uuid, source)
        outcome, changed_at = _read(mark), _changed_at(source)
        if outcome is None or _is_due(app, outcome, changed_at):
            outcome = _merge(app, store, source, changed_at)
            app.warn(str(outcome))
            _write(app, mark, json.dumps(outcome._asdict()))
        is_open = is_open or outcome.is_open
    if not is_open:
        _write(app, check, "")


def note_import(app: "AppContext", record: str, source: Path, report: "MergeReport") -> None:
    """Note what a person's import brought, if the database was merged automatically before."""
    mark = _outcome_mark(record, source.resolve())
    earlier = _read(mark)
    if earlier is not None:
        outcome = _outcome_of(source.resolve(), _changed_at(source), report)
        outcome = outcome._replace(added=earlier.added + report.added)
        _write(app, mark, json.dumps(outcome._asdict()))


def outcomes() -> list[Outcome]:
    """The outcomes of all automatic merges."""
    folder = _folder()
    marks = sorted(folder.iterdir()) if folder.is_dir() else []
    return [found for mark in marks if (found := _read(mark)) is not None]


def _is_due(app: "AppContext", outcome: Outcome, changed_at: int) -> bool:
    """Whether a database that was tried before is to be tried again."""
    if not outcome.is_open:
        return False
    if outcome.changed_at != changed_at:
        return True
    from herdbook.adapters.agent_tracker import locate  # noqa: PLC0415

    source = Path(outcome.source)
    return outcome.needs_words and (
        locate.find_word_list(source, Path.home(), app.workspace.variables) is not None
    )


def _merge(app: "AppContext", store: "Store", source: Path, changed_at: int) -> Outcome:
    from herdbook.domain.location.areas import Area  # noqa: PLC0415
    from herdbook.entrypoints.operations.record.import_agent_tracker import read_database  # noqa: PLC0415
    from herdbook.ports.unit_of_work.run import run  # noqa: PLC0415
    from herdbook.services.agent_tracker.import_records import import_tracker  # noqa: PLC0415

    tried = changed_at
    try:
        tracker, projects = read_database(app, source)
        tried = AGAIN  # a record that cannot be written now is not an error of the file
        report = run(
            store,
            app.workspace.space(Area.RECORD),
            import_tracker,
            tracker,
            projects,
            actor=app.actor,
            experience=app.workspace.experience,
        )
        if report.added:
            _mark_halted(app, store)
    except Exception as error:  # noqa: BLE001 - a foreign file never stops a command
        reason = str(error) or type(error).__name__
        return Outcome(str(source), tried, trouble=reason)
    return _outcome_of(source, changed_at, report)


def _outcome_of(source: Path, changed_at: int, report: "MergeReport") -> Outcome:
    from herdbook.adapters.agent_tracker.errors import NO_WORD_LIST  # noqa: PLC0415

    reasons = list(dict.fromkeys(each.reason for each in report.failed))
    return Outcome(
        str(source),
        changed_at,
        report.added,
        len(report.failed),
        reasons=reasons[:MOST_REASONS],
        needs_words=NO_WORD_LIST in reasons,
    )


def _mark_halted(app: "AppContext", store: "Store") -> None:
    """Set the markers of the agents that are halted in the record."""
    from functools import partial  # noqa: PLC0415

    from herdbook.adapters.user_state import halt_markers  # noqa: PLC0415
    from herdbook.domain.location.areas import Area  # noqa: PLC0415
    from herdbook.ports.unit_of_work.run import read, run  # noqa: PLC0415
    from herdbook.services.record.spool_flush import Record, mark_halted  # noqa: PLC0415

    space = app.workspace.space(Area.RECORD)
    record = Record(partial(run, store, space), partial(read, store, space))
    mark_halted(record, halt_markers, enforce_halt=app.workspace.setting("enforce_halt"))


def _folder() -> Path:
    return dirs.state_folder() / "legacy"


def _outcome_mark(record: str, source: Path) -> Path:
    return _folder() / sha256(f"{record} {source}".encode()).hexdigest()[:32]


def _check_mark(store: "Store", *folders: Path) -> Path:
    """The mark of a finished check of these folders for a record."""
    text = "\0".join([store.uuid, *(os.fspath(each) for each in folders)])
    name = sha256(os.fsencode(text)).hexdigest()[:32]
    return dirs.state_folder() / "tracker-checks" / name


def _changed_at(source: Path) -> int:
    data = source / "data.mdb"
    try:
        return (data if data.is_file() else source).stat().st_mtime_ns
    except OSError:
        return 0


def _read(mark: Path) -> Outcome | None:
    try:
        fields: dict[str, Any] = json.loads(mark.read_text(encoding="utf-8"))
        return Outcome(**fields)
    except (OSError, ValueError, TypeError):
        return None


def _write(app: "AppContext", mark: Path, text: str) -> None:
    try:
        dirs.make_private(mark.parent)
        dirs.write_private(mark, text)
        dirs.keep_newest(mark.parent, MOST_MARKS)
    except OSError as error:
        # The next write does it again, which adds nothing to the record.
        app.warn(f"{mark.parent} cannot be written: {error.strerror}")
