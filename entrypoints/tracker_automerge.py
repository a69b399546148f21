"""Merge an existing agent-tracker database into the record automatically, once.

The first write to a record from a folder looks for databases there, in the worktree and in the home
directory. Two kinds of marks in the user's state folder keep it from doing so again: an outcome per
record and source, and a check per record and set of paths. A later write costs one stat, of the
check; it touches no path of the tracker. `herdbook import agent-tracker` does the same on request,
also for a database that appears later.

While a database that was found cannot be read, there is no check: it is tried again once its file
has changed. Every outcome is reported in one line, and no error here stops a command.
"""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from herdbook.adapters.stores.registry import is_in_memory
from herdbook.adapters.user_state import dirs

if TYPE_CHECKING:
    from herdbook.entrypoints.context import AppContext
    from herdbook.ports.engine.store import Store

AGAIN = 0
"""The time of change to record for a file that is to be tried again even if it did not change."""


class Outcome(NamedTuple):
    """The outcome of merging a database: the number of added entries, or the reason it failed."""

    source: str
    changed_at: int
    added: int = 0
    failed: int = 0
    trouble: str | None = None

    def __str__(self) -> str:
        if self.trouble is not None:
            by_hand = f"`herdbook import agent-tracker {self.source}` tries again"
            return f"{self.source} was not merged into the record: {self.trouble}. {by_hand}"
        short = f", {self.failed} could not come" if self.failed else ""
        entries = "entry was" if self.added == 1 else "entries were"
        return (
            f"{self.added} {entries} merged into the record from {self.source}, "
            f"which is as it was{short}"
        )


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

    failed = False
    for source in dict.fromkeys(
        each.resolve()
        for folder in (app.workspace.folder, root)
        for each in locate.find_databases(folder, Path.home())
    ):
        mark = _folder() / sha256(f"{store.uuid} {source}".encode()).hexdigest()[:32]
        outcome, changed_at = _read(mark), _changed_at(source)
        if outcome is None or (outcome.trouble is not None and outcome.changed_at != changed_at):
            outcome = _merge(app, store, source, changed_at)
            app.warn(str(outcome))
            _write(app, mark, json.dumps(outcome._asdict()))
        failed = failed or outcome.trouble is not None
    if not failed:
        _write(app, check, "")


def outcomes() -> list[Outcome]:
    """The outcomes of all automatic merges."""
    folder = _folder()
    marks = sorted(folder.iterdir()) if folder.is_dir() else []
    return [found for mark in marks if (found := _read(mark)) is not None]


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
    except Exception as error:  # noqa: BLE001 - a foreign file never stops a command
        reason = str(error) or type(error).__name__
        return Outcome(str(source), tried, trouble=reason)
    return Outcome(str(source), changed_at, report.added, len(report.failed))


def _folder() -> Path:
    return dirs.state_folder() / "legacy"


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
    except OSError as error:
        # The next write does it again, which adds nothing to the record.
        app.warn(f"{mark.parent} cannot be written: {error.strerror}")
