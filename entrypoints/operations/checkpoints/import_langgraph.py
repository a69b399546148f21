"""`import langgraph-sqlite`: import the checkpoints of a LangGraph SqliteSaver database."""

from pathlib import Path
from typing import Any

from herdbook.adapters.langgraph.sqlite_reader import open_database
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.services.checkpoints.import_foreign import import_checkpoints


def read(app: AppContext, *, file: str) -> dict[str, Any]:
    """Add the missing checkpoints of a database to this worktree's; the database is only read."""
    database = app.workspace.folder / Path(file).expanduser()
    area = Area.CHECKPOINTS
    app.require_registered()
    with open_database(database) as source, app.open(area, create=True) as store:
        taken = import_checkpoints(
            source, store, app.workspace.space(area), actor=app.actor, progress=app.progress
        )
        return {
            "source": str(database),
            "target": store.url,
            "space": app.workspace.space(area),
            "threads": len(taken.threads),
            **taken.counted._asdict(),
            "writes_left_out": source.left_out,
            "bytes_before": source.size,
            "bytes_after": taken.bytes,
            "failed": [each._asdict() for each in taken.failed],
            "ok": not taken.failed,
        }
