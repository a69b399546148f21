"""The plan as text: `import plan`, `export plan`."""

from pathlib import Path
from typing import Any, TypedDict

from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.plan_text.json_lines import read_json_lines, write_json_lines
from herdbook.domain.plan_text.markdown import read_markdown, write_markdown
from herdbook.entrypoints.cli.parser import read_input_bytes
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.parameter_converter import STANDARD_INPUT
from herdbook.ports.engine.dictionary import INITIATIVES
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud
from herdbook.services.plan_text.import_export import ImportReport, export_plan, import_plan

READERS = {"markdown": read_markdown, "lines": read_json_lines}
WRITERS = {"markdown": write_markdown, "lines": write_json_lines}
ENDINGS = {".md": "markdown", ".markdown": "markdown", ".jsonl": "lines", ".ndjson": "lines"}


class PlanDocument(TypedDict):
    """A plan as text."""

    format: str
    text: str


def read(app: AppContext, *, file: str, format: str | None) -> ImportReport:  # noqa: A002 - the option's name
    """Create or update the plan from a file, completely or not at all."""
    text = read_input_bytes() if file == STANDARD_INPUT else _content(app.workspace.folder / file)
    plan = READERS[format or _format(file, text)](text)
    return app.run(Area.WORK, import_plan, plan)


def write(
    app: AppContext,
    *,
    initiative: str | None,
    format: str,  # noqa: A002 - the option's name
    at: Position | None = None,
) -> PlanDocument:
    """The whole plan, or one initiative of it, as text that can be edited and imported again."""

    def export(uow: UnitOfWork) -> Any:
        return export_plan(uow, crud.key_of(uow, INITIATIVES, initiative) if initiative else None)

    return {"format": format, "text": WRITERS[format](app.read(Area.WORK, export, at=at))}


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreUnavailable(str(path), error.strerror or str(error)) from error


def _format(file: str, text: bytes) -> str:
    known = ENDINGS.get(Path(file).suffix.lower())
    if known is not None:
        return known
    if file == STANDARD_INPUT:
        return "lines" if text.lstrip().startswith(b"{") else "markdown"
    endings = ", ".join(ENDINGS)
    raise InvalidValue("format", f"is unknown: the name ends with none of {endings}")
