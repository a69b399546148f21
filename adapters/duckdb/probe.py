"""Probes a DuckDB file, under the lock that everybody takes."""

from herdbook.adapters.duckdb import file_checks
from herdbook.adapters.duckdb.errors import translate_errors
from herdbook.adapters.duckdb.file_access import Attachment, SharedFile
from herdbook.adapters.stores.urls import path_of
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.resolve import NO_STORE, StoreProbe


def is_missing(url: str) -> bool:
    """Whether there is no such file, nor a log of one. Opens nothing and waits for nobody."""
    path = file_checks.real_path(path_of(url))
    return not (path.exists() or file_checks.wal_path(path).exists())


def probe(url: str, patience: float) -> StoreProbe:
    """What the file says of itself."""
    shared = SharedFile(path_of(url), patience=patience)
    try:
        path = shared.real_path
        if is_missing(url):
            return NO_STORE
        size = None
        try:
            with translate_errors(str(path)):
                file_checks.require_own_files(path)
                size = sum(
                    e.stat().st_size for e in (path, file_checks.wal_path(path)) if e.exists()
                )
            with shared.attach(write=False) as attachment, translate_errors(str(path)):
                sql = f"SELECT schema_version FROM {Attachment.catalog}.main.store"
                row = attachment.cursor.execute(sql).fetchone()
        except HerdbookError as error:
            return StoreProbe(exists=True, bytes=size, problem=str(error))
        # The type is as foreign as the file may be; opening it as a store checks everything.
        version = row[0] if row and isinstance(row[0], int) else None
        return StoreProbe(exists=True, bytes=size, schema_version=version)
    finally:
        shared.close()
