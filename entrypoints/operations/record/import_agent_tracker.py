"""`import agent-tracker`: import the database of OpenCode's agent-tracker into the record."""

from pathlib import Path
from typing import Any

from attrs import asdict

from herdbook.adapters.agent_tracker import locate, reader
from herdbook.adapters.git.git_process import without_repository_variables
from herdbook.adapters.stores.urls import shown_url
from herdbook.adapters.user_state import dirs
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints import tracker_automerge
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.hooks import spool_flush
from herdbook.ports.world.agent_tracker import TrackerContents, TrackerRecord
from herdbook.services.agent_tracker.fields import project_of
from herdbook.services.agent_tracker.import_records import import_tracker


def read(app: AppContext, *, file: str, words: str | None = None) -> dict[str, Any]:
    """Add the missing entries of a database to the record; the database is only read."""
    database = (app.workspace.folder / dirs.expand_home(file)).absolute()
    named = None if words is None else app.workspace.folder / dirs.expand_home(words)
    tracker, projects = read_database(app, database, named)
    report, record = app.run(
        Area.RECORD, lambda uow: (import_tracker(uow, tracker, projects), uow.store_uuid)
    )
    tracker_automerge.note_import(app, record, database, report)
    spool_flush.mark_halted(app)
    return {
        "source": str(database),
        "target": shown_url(app.workspace.locate(Area.RECORD).url),
        "added": report.added,
        "kept": report.kept,
        "failed": [asdict(each) for each in report.failed],
        "ok": not report.failed,
    }


def read_database(
    app: AppContext, database: Path, words: Path | None = None
) -> tuple[TrackerContents, dict[str, str]]:
    """The contents of a database, and the repositories of its projects."""
    if words is None:
        dictionary = locate.find_word_list(database, Path.home(), app.workspace.variables)
    else:
        dictionary = locate.read_word_list(words)
    tracker = reader.read(database, dictionary)
    return tracker, _projects(app, tracker)


def _projects(app: AppContext, tracker: TrackerContents) -> dict[str, str]:
    """The repository of each project path that still exists."""
    variables = without_repository_variables(app.workspace.variables)
    found = {}
    for path in {_path(record) for record in tracker.records}:
        try:
            if Path(path).is_absolute() and Path(path).is_dir():
                repository = AppContext.at(Path(path), variables).workspace.repository_id
                found[path] = repository or path
        except (HerdbookError, OSError, ValueError) as error:
            app.warn(f"{path} goes by its path: {error}")
    return found


def _path(record: TrackerRecord) -> str:
    try:
        return project_of(record)
    except HerdbookError:
        # The import reports it, by the record's key.
        return ""
