"""A look at a DuckDB file, under the lock that everybody takes."""

from herdbook.adapters.duckdb.errors import translating
from herdbook.adapters.duckdb.sharing import Attachment, SharedFile
from herdbook.adapters.urls import path_of
from herdbook.domain.errors import HerdbookError
from herdbook.domain.whereabouts import NOTHING_THERE, Sight


def look(url: str, patience: float) -> Sight:
    """See what the file says of itself."""
    shared = SharedFile(path_of(url), patience=patience)
    try:
        path = shared.real_path
        if not path.exists():
            return NOTHING_THERE
        wal = path.with_name(f"{path.name}.wal")
        size = sum(each.stat().st_size for each in (path, wal) if each.exists())
        try:
            with shared.attached(write=False) as attachment, translating(str(path)):
                sql = f"SELECT schema_version FROM {Attachment.catalog}.main.store"
                row = attachment.cursor.execute(sql).fetchone()
        except HerdbookError as error:
            return Sight(exists=True, bytes=size, problem=str(error))
        return Sight(exists=True, bytes=size, schema_version=row[0] if row else None)
    finally:
        shared.close()
