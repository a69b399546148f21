"""The context of a server: its stores stay open, and changes of its surroundings are noticed.

A command reads git, settings and stores once and ends. To read all of it for every request would
cost a server ten times what most requests do; so it caches what it read for as long as the files it
came from are unchanged.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.adapters.folder_settings import CLONE_FILE
from herdbook.adapters.stores.registry import is_in_files
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.user_state import dirs
from herdbook.adapters.user_state.backup_schedule import BackupTimer
from herdbook.adapters.user_state.known_stores import FileIdentity
from herdbook.adapters.user_state.settings import PROJECT_FILE, REPOSITORY_FILE
from herdbook.adapters.workspace import Workspace
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import STATE_FOLDER, StoreLocation
from herdbook.entrypoints.context import AppContext, Identity
from herdbook.ports.unit_of_work.past_cache import PastCache

if TYPE_CHECKING:
    from datetime import timedelta

    from herdbook.entrypoints.server_numbers import ServerNumbers
    from herdbook.ports.engine.store import Store

Key = tuple[str, str, Any, Any]

FRESH_SECONDS = 0.001
MOST_WARNINGS = 1_000
"""The number of different warnings that are remembered, to print each once."""


class PooledStore:
    """An open store, and the number of its users."""

    def __init__(self, store: "Store", identity: FileIdentity | None) -> None:
        self.store = store
        self.identity = identity
        self.users = 1
        self.until = 0.0
        self.is_removed = False


class StorePool:
    """Stores that stay open, each until its file is replaced by another.

    `backups` starts the backups of what is written to them; `past_cache` keeps what was read of
    earlier positions.
    """

    def __init__(self) -> None:
        self.backups = BackupTimer()
        self.past_cache = PastCache()
        self._mutex = threading.Lock()
        self._stores: dict[Key, PooledStore] = {}

    def use(self, key: Key, open_store: "Callable[[], Store]") -> "AbstractContextManager[Store]":
        """The store of a key, opened if needed; it is not closed while it is used."""
        return _Lease(self, self._find(key) or self._open(key, open_store))

    def find(self, key: Key) -> "AbstractContextManager[Store] | None":
        """The store of a key for a reader, if it is open.

        A store whose file was checked a moment ago is not checked again.
        """
        now = time.monotonic()
        with self._mutex:
            pooled = self._stores.get(key)
            if pooled is not None and now < pooled.until:
                pooled.users += 1
                return _Lease(self, pooled)
        pooled = self._find(key)
        return None if pooled is None else _Lease(self, pooled)

    def _find(self, key: Key) -> PooledStore | None:
        now = time.monotonic()
        identity = _file_identity(key[0])
        with self._mutex:
            pooled = self._stores.get(key)
            if pooled is not None and pooled.identity == identity:
                pooled.users += 1
                pooled.until = now + FRESH_SECONDS
                return pooled
            if pooled is not None:
                del self._stores[key]
        if pooled is not None:
            self._close_when_unused(pooled)
        return None

    def _open(self, key: Key, open_store: "Callable[[], Store]") -> PooledStore:
        store = open_store()
        pooled = PooledStore(store, _file_identity(key[0]))
        with self._mutex:
            known = self._stores.get(key)
            if known is None:
                self._stores[key] = pooled
            else:
                known.users += 1
        if known is None:
            return pooled
        store.close()
        return known

    def _release(self, pooled: PooledStore) -> None:
        """End one use of a store."""
        with self._mutex:
            pooled.users -= 1
            unused = pooled.is_removed and not pooled.users
        if unused:
            pooled.store.close()

    def _close_when_unused(self, pooled: PooledStore) -> None:
        """Close a store as soon as nobody uses it."""
        with self._mutex:
            unused = not pooled.is_removed and not pooled.users
            pooled.is_removed = True
        if unused:
            pooled.store.close()

    def close(self) -> None:
        """Close all stores, each as soon as nobody uses it, and back up what was written last."""
        self.backups.close()
        with self._mutex:
            pooled, self._stores = list(self._stores.values()), {}
        for each in pooled:
            self._close_when_unused(each)


class _Lease:
    """The use of a pooled store; a class, because a generator costs a reader more."""

    def __init__(self, pool: StorePool, pooled: PooledStore) -> None:
        self._pool = pool
        self._pooled = pooled

    def __enter__(self) -> "Store":
        return self._pooled.store

    def __exit__(self, *_: object) -> None:
        self._pool._release(self._pooled)  # noqa: SLF001 - the pool's own


class PooledStores:
    """The stores of a workspace, from a pool that keeps them open."""

    def __init__(self, workspace: Workspace, pool: StorePool) -> None:
        self._workspace = workspace
        self._pool = pool
        self._keys: dict[StoreLocation, Key] = {}

    def hold(self) -> AbstractContextManager[None]:
        """Do nothing: the pool keeps the stores open anyway."""
        return nullcontext()

    def open(self, area: Area, *, create: bool = False) -> "AbstractContextManager[Store]":
        """Open the store of an area, or use the open one."""
        return self.open_at(self._workspace.locate(area), create=create)

    def open_at(
        self, location: StoreLocation, *, create: bool = False, verify: bool = False
    ) -> "AbstractContextManager[Store]":
        """Open the store at a location, or use the open one."""
        return self._pool.use(
            self._key(location),
            lambda: self._workspace.open_store(location, create=create, verify=verify),
        )

    def find(self, area: Area) -> "AbstractContextManager[Store] | None":
        """The store of an area, if it is open."""
        return self._pool.find(self._key(self._workspace.locate(area)))

    def _key(self, location: StoreLocation) -> Key:
        key = self._keys.get(location)
        if key is None:
            area = location.area
            patience = self._workspace.area_setting(area, "patience")
            limits = self._workspace.size_limit(area), patience
            key = self._keys[location] = location.url, str(area), *limits
        return key


class ServerContext:
    """Gives a server of a folder the context of each call.

    All calls share the workspace, which is read again when a file it came from has changed, and the
    stores, which stay open.
    """

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
        *,
        pool: StorePool | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self.folder = folder
        self.arguments = arguments
        self._variables = variables
        self._owns_pool = pool is None
        self._pool = pool or StorePool()
        self._mutex = threading.Lock()
        self._cache: tuple[PooledStores, Workspace, list[str], list[Any]] | None = None
        self._until = 0.0
        self._printed: set[str] = set()
        self._warn = warn or self._print_once
        self.on_lease: Callable[[timedelta], None] = lambda _: None
        self.numbers: Callable[[], ServerNumbers] | None = None

    def call(self, agent_name: str | None = None, session: str | None = None) -> AppContext:
        """The context of one call, by the named agent and in the named session, if any."""
        stores, workspace = self._current()
        identity = Identity(workspace, agent_name, session)
        app = AppContext(workspace, stores, identity, warn=self._warn)
        app.after_write = partial(self._pool.backups.after_write, workspace)
        app.past_cache = self._pool.past_cache
        app.on_lease = self.on_lease
        app.server_numbers = self.numbers
        return app

    def _current(self) -> tuple[PooledStores, Workspace]:
        """The current workspace and stores: the cached ones if no watched file has changed.

        Calls that come at once share a check.
        """
        cache, now = self._cache, time.monotonic()
        if cache is not None and now < self._until:
            return cache[:2]
        if cache is not None and cache[3] == [_file_stamp(path) for path in cache[2]]:
            self._until = now + FRESH_SECONDS
            return cache[:2]
        with self._mutex:
            watched = _watched_files(self._workspace())
            stamps = list(map(_file_stamp, watched or ()))
            # Read after the stamps, so that a change in between is noticed the next time.
            workspace = self._workspace()
            stores = PooledStores(workspace, self._pool)
            self._cache = None if watched is None else (stores, workspace, watched, stamps)
        return stores, workspace

    def _workspace(self) -> Workspace:
        return Workspace(self.folder, self._variables, self.arguments)

    def _print_once(self, sentence: str) -> None:
        """Print a warning to standard error, each one once."""
        if sentence not in self._printed and len(self._printed) < MOST_WARNINGS:
            self._printed.add(sentence)
            print(f"herdbook: {sentence}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Close the stores, unless their pool is somebody else's."""
        if self._owns_pool:
            self._pool.close()


def _watched_files(workspace: Workspace) -> list[str] | None:
    """The files that show a change; None outside a repository, which may be created."""
    facts = workspace.facts
    if facts is None:
        return None
    own, shared = Path(facts.git_dir), Path(facts.common_dir)
    found = [
        own / "HEAD",
        shared / "config",
        shared / "reftable" / "tables.list",
        shared / STATE_FOLDER / CLONE_FILE,
        dirs.config_file(),
        dirs.state_folder() / "trusted",
    ]
    if facts.top_level is not None:
        found += [Path(facts.top_level, name) for name in (REPOSITORY_FILE, PROJECT_FILE)]
    return [str(path) for path in found]


def _file_stamp(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - eight of them for every request
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _file_identity(url: str) -> FileIdentity | None:
    """The identity of the file or folder of a store; None for a server, or if it is missing."""
    path = _path(url)
    if path is None:
        return None
    try:
        status = os.stat(path)  # noqa: PTH116 - for every request
    except OSError:
        return None
    return status.st_dev, status.st_ino


@lru_cache(maxsize=64)
def _path(url: str) -> str | None:
    return str(path_of(url)) if is_in_files(url) else None
