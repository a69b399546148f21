"""The place a server works for: its stores stay open, and what changes around it is noticed.

A command looks at git, settings and stores once and is over. A server would look at all of it for
every request, which costs ten times what most requests do; so it keeps what it saw for as long as
the files it came from are the same.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from herdbook.adapters.stores.registry import is_in_files
from herdbook.adapters.stores.urls import path_of
from herdbook.adapters.user_state import dirs
from herdbook.adapters.user_state.settings import PROJECT_FILE, REPOSITORY_FILE
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import StoreLocation
from herdbook.entrypoints.bootstrap import Here
from herdbook.ports.unit_of_work.run import read

if TYPE_CHECKING:
    from herdbook.ports.engine.store import Store

R = TypeVar("R")
Identity = tuple[int, int] | None
Key = tuple[str, str, Any, Any]

AT_ONCE = 0.001
MOST_SENTENCES = 1_000
"""So many different warnings are remembered, to say each once."""


class Stores:
    """Stores that stay open, each until what lies at its place is another one."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._kept: dict[Key, Kept] = {}

    @contextmanager
    def used(self, key: Key, opening: "Callable[[], Store]") -> "Iterator[Store]":
        """The store of a key, opened if it is not, which nobody closes meanwhile."""
        kept = self.found(key) or self._opened(key, opening)
        try:
            yield kept.store
        finally:
            self.let_go(kept)

    def found(self, key: Key, *, reads: bool = False) -> "Kept | None":
        """The store of a key, if it is open; nobody closes it until it is let go.

        What was there a moment ago is there still, for those who only want to `read`.
        """
        now = time.monotonic()
        with self._mutex:
            kept = self._kept.get(key)
            if reads and kept is not None and now < kept.until:
                kept.users += 1
                return kept
        identity = _identity(key[0])
        with self._mutex:
            kept = self._kept.get(key)
            if kept is not None and kept.identity == identity:
                kept.users += 1
                kept.until = now + AT_ONCE
                return kept
            if kept is not None:
                del self._kept[key]
        if kept is not None:
            self._leave(kept)
        return None

    def _opened(self, key: Key, opening: "Callable[[], Store]") -> "Kept":
        store = opening()
        kept = Kept(store, _identity(key[0]))
        with self._mutex:
            known = self._kept.get(key)
            if known is None:
                self._kept[key] = kept
            else:
                known.users += 1
        if known is None:
            return kept
        store.close()
        return known

    def let_go(self, kept: "Kept") -> None:
        """Use a store no longer."""
        with self._mutex:
            kept.users -= 1
            over = kept.left and not kept.users
        if over:
            kept.store.close()

    def _leave(self, kept: "Kept") -> None:
        """Close a store as soon as nobody is in it."""
        with self._mutex:
            over = not kept.left and not kept.users
            kept.left = True
        if over:
            kept.store.close()

    def close(self) -> None:
        """Close them all."""
        with self._mutex:
            kept, self._kept = list(self._kept.values()), {}
        for each in kept:
            self._leave(each)


class Kept:
    """A store that is open, and how many use it."""

    def __init__(self, store: "Store", identity: Identity) -> None:
        self.store = store
        self.identity = identity
        self.users = 1
        self.until = 0.0
        self.left = False


class Staying(Here):
    """A folder as a server sees it: as it was when last looked at, with stores that stay open."""

    stores: Stores

    def __init__(self, *args: Any, stores: Stores, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stores = stores
        self._places: dict[Area, StoreLocation] = {}
        self._ways: dict[Area, tuple[Key, str]] = {}

    def place(self, area: Area) -> StoreLocation:
        """Where the store of an area is."""
        found = self._places.get(area)
        if found is None:
            found = self._places[area] = super().place(area)
        return found

    def pin(self) -> None:
        """Write down who this repository and this worktree are."""
        super().pin()
        self._ways.clear()

    @contextmanager
    def opened_at(
        self, place: StoreLocation, *, create: bool = False, verify: bool = False
    ) -> "Iterator[Store]":
        """Open the store at a place, or take the one that is open."""
        with self.stores.used(
            self._key(place), lambda: self.open_at(place, create=create, verify=verify)
        ) as store:
            yield store

    def read(self, area: Area | None, question: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Ask the store of an area, without a look at what is open already."""
        key, space = self._way(area or Area.WORK)
        kept = self.stores.found(key, reads=True)
        if kept is None:
            return super().read(area, question, *args, **kwargs)
        try:
            return read(kept.store, space, question, *args, **kwargs)
        finally:
            self.stores.let_go(kept)

    def _way(self, area: Area) -> tuple[Key, str]:
        """Which store and which space an area's rows are in; asked for in every request."""
        found = self._ways.get(area)
        if found is None:
            found = self._ways[area] = self._key(self.place(area)), self.space(area)
        return found

    def _key(self, place: StoreLocation) -> Key:
        limits = self.setting("size_limit"), self.setting("patience")
        return place.url, str(place.area), *limits


class Premises:
    """Gives what is known of a folder now."""

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
    ) -> None:
        self._folder = folder
        self._variables = variables
        self._arguments = arguments
        self._stores = Stores()
        self._mutex = threading.Lock()
        self._seen: tuple[Staying, list[str], list[Any]] | None = None
        self._until = 0.0
        self._told: set[str] = set()

    def here(self) -> Here:
        """The folder as it is: as last seen, if nothing that was looked at has changed.

        Requests that come at once share a look.
        """
        seen, now = self._seen, time.monotonic()
        if seen is not None and now < self._until:
            return seen[0]
        if seen is not None and seen[2] == [_mark(path) for path in seen[1]]:
            self._until = now + AT_ONCE
            return seen[0]
        with self._mutex:
            watched = _watched(self._look())
            marks = list(map(_mark, watched or ()))
            # Looked at behind the marks, so that what changes in between is seen the next time.
            fresh = self._look()
            self._seen = None if watched is None else (fresh, watched, marks)
        return fresh

    def _look(self) -> Staying:
        return Staying(
            self._folder, self._variables, self._arguments, stores=self._stores, warn=self._warn
        )

    def _warn(self, sentence: str) -> None:
        """Say something once, where people who start servers look."""
        if sentence not in self._told and len(self._told) < MOST_SENTENCES:
            self._told.add(sentence)
            print(f"herdbook: {sentence}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Close the stores."""
        self._stores.close()


def _watched(here: Here) -> list[str] | None:
    """The files by which a change shows; None outside a repository, where one may come to be."""
    facts = here.facts
    if facts is None:
        return None
    own, shared = Path(facts.git_dir), Path(facts.common_dir)
    found = [
        own / "HEAD",
        shared / "config",
        shared / "reftable" / "tables.list",
        dirs.config_file(),
        dirs.state_folder() / "trusted",
    ]
    if facts.top_level is not None:
        found += [Path(facts.top_level, name) for name in (REPOSITORY_FILE, PROJECT_FILE)]
    return [str(path) for path in found]


def _mark(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - eight of them for every request
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def _identity(url: str) -> Identity:
    """Which file or folder lies there; None for what is none, or not there."""
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
