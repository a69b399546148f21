"""`import agent-tracker`: what OpenCode's plugin knows becomes part of the record."""

from pathlib import Path
from typing import Any

from attrs import asdict

from herdbook.adapters.agent_tracker import locate, reader
from herdbook.adapters.git.git_process import without_repository_variables
from herdbook.adapters.stores.urls import shown_url
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.ports.world.agent_tracker import TrackerContents, TrackerRecord
from herdbook.services.agent_tracker.fields import project_of
from herdbook.services.agent_tracker.import_records import import_tracker


def read(here: AppContext, *, file: str, words: str | None = None) -> dict[str, Any]:
    """Add to the record what it lacks of an agent-tracker's database, which is only looked at."""
    database = here.workspace.folder / Path(file).expanduser()
    named = None if words is None else here.workspace.folder / Path(words).expanduser()
    tracker, projects = read_database(here, database, named)
    report = here.run(Area.RECORD, import_tracker, tracker, projects)
    return {
        "source": str(database),
        "target": shown_url(here.workspace.place(Area.RECORD).url),
        "added": report.added,
        "kept": report.kept,
        "failed": [asdict(each) for each in report.failed],
        "ok": not report.failed,
    }


def read_database(
    here: AppContext, database: Path, words: Path | None = None
) -> tuple[TrackerContents, dict[str, str]]:
    """What a database tells, and which repositories its projects are."""
    if words is None:
        dictionary = locate.find_word_list(database, Path.home(), here.workspace.variables)
    else:
        dictionary = locate.read_word_list(words)
    tracker = reader.read(database, dictionary)
    return tracker, _projects(here, tracker)


def _projects(here: AppContext, tracker: TrackerContents) -> dict[str, str]:
    """The repositories that the paths of projects lead to, where they still do."""
    variables = without_repository_variables(here.workspace.variables)
    found = {}
    for path in {_path(record) for record in tracker.records}:
        try:
            if Path(path).is_absolute() and Path(path).is_dir():
                repository = AppContext.at(Path(path), variables).workspace.repository_id
                found[path] = repository or path
        except (HerdbookError, OSError, ValueError) as error:
            here.warn(f"{path} goes by its path: {error}")
    return found


def _path(record: TrackerRecord) -> str:
    try:
        return project_of(record)
    except HerdbookError:
        # The import tells of it, by the record's key.
        return ""
