"""The agent-tracker's database that somebody already has, merged into the record by itself, once.

What came of it is written down beside the user's other state, by source and record, so that it is
not done again; a file that could not be read is tried again once it has changed. Whatever happens
here is told in one line and stops nothing; `herdbook import agent-tracker` does the same by hand.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from herdbook.adapters.agent_tracker import locate
from herdbook.adapters.user_state import dirs

if TYPE_CHECKING:
    from herdbook.entrypoints.context import AppContext
    from herdbook.ports.engine.store import Store

AGAIN = 0
"""When a file has changed that is to be tried again, whatever it holds."""


class Outcome(NamedTuple):
    """What came of merging a database: the entries that were added, or why it could not be read."""

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


def merge_once(here: "AppContext", store: "Store") -> None:
    """Merge what agent-trackers have left here and in the home directory, if that is still to do.

    A defect of the plugin puts its database below a folder called `~` where OpenCode was started.
    """
    if store.url.startswith("memory:"):
        return
    root = Path(here.workspace.ground.worktree or here.workspace.folder)
    for source in dict.fromkeys(
        each.resolve()
        for folder in (here.workspace.folder, root)
        for each in locate.databases(folder, Path.home())
    ):
        mark = _folder() / sha256(f"{store.uuid} {source}".encode()).hexdigest()[:32]
        before, changed_at = _read(mark), _changed_at(source)
        if before is None or (before.trouble is not None and before.changed_at != changed_at):
            outcome = _merged(here, store, source, changed_at)
            here.warn(str(outcome))
            _keep(here, mark, outcome)


def outcomes() -> list[Outcome]:
    """What came of all that was merged by itself."""
    folder = _folder()
    marks = sorted(folder.iterdir()) if folder.is_dir() else []
    return [found for mark in marks if (found := _read(mark)) is not None]


def _merged(here: "AppContext", store: "Store", source: Path, changed_at: int) -> Outcome:
    from herdbook.domain.location.areas import Area  # noqa: PLC0415
    from herdbook.entrypoints.operations.record.import_agent_tracker import told  # noqa: PLC0415
    from herdbook.ports.unit_of_work.run import run  # noqa: PLC0415
    from herdbook.services.agent_tracker.import_records import import_tracker  # noqa: PLC0415

    tried = changed_at
    try:
        tracker, projects = told(here, source)
        tried = AGAIN  # a record that cannot be written just now is not the file's fault
        report = run(
            store,
            here.workspace.space(Area.RECORD),
            import_tracker,
            tracker,
            projects,
            actor=here.actor,
            experience=here.workspace.experience,
        )
    except Exception as error:  # noqa: BLE001 - somebody else's file never stops our work
        reason = str(error) or type(error).__name__
        return Outcome(str(source), tried, trouble=reason)
    return Outcome(str(source), changed_at, report.added, len(report.failed))


def _folder() -> Path:
    return dirs.state_folder() / "legacy"


def _changed_at(source: Path) -> int:
    data = source / "data.mdb"
    try:
        return (data if data.is_file() else source).stat().st_mtime_ns
    except OSError:
        return 0


def _read(mark: Path) -> Outcome | None:
    try:
        told: dict[str, Any] = json.loads(mark.read_text(encoding="utf-8"))
        return Outcome(**told)
    except (OSError, ValueError, TypeError):
        return None


def _keep(here: "AppContext", mark: Path, outcome: Outcome) -> None:
    try:
        dirs.make_private(mark.parent)
        dirs.write_private(mark, json.dumps(outcome._asdict()))
    except OSError as error:
        # It will be done again the next time, which adds nothing to what is there.
        here.warn(f"{mark.parent} cannot be written: {error.strerror}")
