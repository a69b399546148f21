"""A look at an LMDB folder, with LMDB alone."""

import json
from pathlib import Path
from typing import Any

import lmdb

from herdbook.adapters.lmdb.environment import seen
from herdbook.adapters.urls import path_of
from herdbook.domain.whereabouts import NOTHING_THERE, Sight

META = "meta"


def look(url: str, _: float) -> Sight:
    """See what the folder says of itself."""
    folder = path_of(url)
    data = folder / "data.mdb"
    if not data.is_file():
        return NOTHING_THERE
    size = sum(each.stat().st_size for each in folder.iterdir() if each.name != "lock.mdb")
    try:
        return Sight(exists=True, bytes=size, schema_version=_version(folder))
    except (lmdb.Error, OSError, ValueError, KeyError) as error:
        return Sight(exists=True, bytes=size, problem=f"it cannot be read: {error}")


def _version(folder: Path) -> int:
    with seen(folder) as environment:
        if environment is not None:
            with environment.naming, environment.transaction(write=False) as txn:
                return _read_version(txn, environment.found((META,), txn)[META])
        # Without a lock file there is no writer to be kept out, and none must be made.
        lock = (folder / "lock.mdb").exists()
        with (
            lmdb.open(str(folder), readonly=True, create=False, lock=lock, max_dbs=8) as env,
            env.begin() as txn,
        ):
            return _read_version(txn, env.open_db(META.encode(), txn=txn, create=False))


def _read_version(txn: Any, meta: Any) -> int:
    return int(json.loads(txn.get(b"store", b"{}", db=meta))["schema_version"])
