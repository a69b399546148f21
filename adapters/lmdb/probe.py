"""Probes an LMDB folder with LMDB alone."""

import json
import os
from pathlib import Path
from typing import Any

import lmdb

from herdbook.adapters.lmdb.environment import LmdbEnvironment
from herdbook.adapters.lmdb.files import DATA, LOCK, holds_store, is_free, size_of
from herdbook.adapters.lmdb.open_environments import (
    acquire_environment,
    open_environment,
    release_environment,
)
from herdbook.adapters.lmdb.spaces import META
from herdbook.adapters.lmdb.writer_lock import FileCondition, judge_file, writer_lock
from herdbook.adapters.stores.urls import path_of
from herdbook.domain.errors import HerdbookError
from herdbook.domain.location.areas import size_limit
from herdbook.domain.location.resolve import NO_STORE, StoreProbe


def probe(url: str, patience: float, *, verify: bool = False) -> StoreProbe:
    """What the folder says of itself; creates no store, and waits for nobody unless it verifies.

    A data file that is not known to be whole is not read, unless it is to be verified: opening the
    store does that too, but upgrades an older one.
    """
    folder = Path(os.path.realpath(path_of(url)))
    if is_free(folder):
        return NO_STORE
    size = None
    try:
        size = size_of(folder)
        version = _version(folder)
        if version is None and verify:
            version = _verified_version(folder, patience)
        return StoreProbe(exists=True, bytes=size, schema_version=version)
    except (HerdbookError, lmdb.Error, OSError, ValueError, KeyError) as error:
        return StoreProbe(exists=True, bytes=size, problem=f"it cannot be read: {error}")


def is_missing(url: str) -> bool:
    """Whether there is no store in the folder; opens nothing: its pages may not be whole."""
    return is_free(Path(os.path.realpath(path_of(url))))


def _version(folder: Path) -> int | None:
    with open_environment(folder) as environment:
        if environment is not None:
            return _version_in(environment)
        holds_store(folder, create=False)
        trust = judge_file(folder / DATA, writer_lock(folder))
        if trust not in (FileCondition.AS_LEFT, FileCondition.IN_USE):
            return None
        # Without a lock file there is no writer to keep out, and no lock file may be created.
        lock = (folder / LOCK).exists()
        with (
            lmdb.open(str(folder), readonly=True, create=False, lock=lock, max_dbs=8) as env,
            env.begin() as txn,
        ):
            return _read_version(txn, env.open_db(META.encode(), txn=txn, create=False))


def _verified_version(folder: Path, patience: float) -> int | None:
    environment = acquire_environment(
        folder, size_limit=size_limit(None, None), patience=patience, create=False, verify=False
    )
    try:
        environment.find_databases((META,))
        return _version_in(environment)
    finally:
        release_environment(environment)


def _version_in(environment: LmdbEnvironment) -> int | None:
    meta = environment.databases.get(META)
    if meta is None:  # the store is just being created
        return None
    with environment.transaction(write=False) as txn:
        return _read_version(txn, meta)


def _read_version(txn: Any, meta: Any) -> int:
    return int(json.loads(txn.get(b"store", b"{}", db=meta))["schema_version"])
