"""A folder to work in: its repository, its settings, the locations of its stores, and the stores.

`repository_folder`, `folder_settings` and `store_locations` each add one of these; here stores are
found, opened and linked. `herdbook where` answers without loading any engine, rule or row.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from herdbook.adapters.store_locations import StoreLocations, is_there, real_store_path
from herdbook.adapters.stores.registry import is_in_files, is_in_memory
from herdbook.adapters.stores.urls import path_of, shown_url
from herdbook.adapters.user_state import dirs, known_stores
from herdbook.domain.errors import HerdbookError, StoreGone, StoreUnavailable, StoreUntrusted
from herdbook.domain.location.areas import Area
from herdbook.domain.location.identity import repository_id, worktree_id
from herdbook.domain.location.resolve import LINKS_FOLDER, NO_STORE, StoreLocation, StoreProbe
from herdbook.domain.location.settings import Scope

if TYPE_CHECKING:
    from herdbook.ports.engine.store import Store


class Workspace(StoreLocations):
    """One folder and the stores of its areas.

    Everything is read once: a later change of settings or of HEAD shows in a new Workspace only.
    """

    def store_exists(self, location: StoreLocation) -> bool:
        """Whether there is a store at a location; files are checked without being opened.

        Raises StoreGone if there is none but this user has used one there, and StoreUntrusted if
        there is one that this user neither made nor trusted.
        """
        if is_in_memory(location.url) or self._is_store(location):
            return True
        try:
            self._require_never_used(location)
        except StoreGone:
            # Another process may have made the store, and noted its use, since it was looked for.
            if self._is_store(location):
                return True
            raise
        return False

    def _is_store(self, location: StoreLocation) -> bool:
        from herdbook.adapters.stores.probe import is_missing  # noqa: PLC0415

        if not is_in_files(location.url):
            return not is_missing(location.url, self.area_setting(location.area, "patience"))
        path = real_store_path(location.url)
        data = known_stores.data_file(location.scheme, path)
        if data != path and path.is_file():
            reason = "there is a file where the store needs a folder. Name another place"
            raise StoreUnavailable(str(path), reason)
        if not is_there(data):
            return False
        self._require_own(location, path)
        return not is_missing(location.url)

    def probe(self, location: StoreLocation, *, verify: bool = False) -> StoreProbe:
        """Probe a location without creating anything; a missing or refused store is a problem.

        `verify` as in `adapters.stores.probe`.
        """
        from herdbook.adapters.stores.probe import probe  # noqa: PLC0415

        try:
            if is_in_files(location.url) and not self.store_exists(location):
                return NO_STORE
            result = probe(location.url, verify=verify)
            if result.exists is False:
                self._require_never_used(location)
        except StoreGone as error:
            return StoreProbe(exists=False, problem=str(error))
        except StoreUntrusted as error:
            return StoreProbe(exists=True, problem=str(error))
        except StoreUnavailable as error:
            return StoreProbe(exists=None, problem=str(error))
        return result

    def _require_never_used(self, location: StoreLocation) -> None:
        """Raise StoreGone for a missing store that was used before, so that no new one replaces it.

        A repository that was cloned again at the same path has not been used yet: nothing is pinned
        in its git directory.
        """
        facts = self.facts
        inside = is_in_files(location.url) and self.paths.contains(
            str(real_store_path(location.url))
        )
        if inside and (facts is None or facts.pinned_repository_id is None):
            return
        for url in (location.url, self._earlier_url(location)):
            used = known_stores.last_use(shown_url(url), self.space(location.area)) if url else None
            if used is not None:
                raise StoreGone(shown_url(location.url), used.date().isoformat())

    def open_store(
        self, location: StoreLocation, *, create: bool = False, verify: bool = False
    ) -> "Store":
        """Open the store at a location; the caller closes it.

        A new store and its folder are private to this user, and registered as the user's own before
        anything is written. Raises StoreGone and StoreUntrusted as `store_exists` does.
        With `verify`, an engine that trusts its own files verifies them before it reads them.
        """
        from herdbook.adapters import open_store  # noqa: PLC0415

        in_files = is_in_files(location.url)
        if in_files and not self.store_exists(location) and create:
            path = real_store_path(location.url)
            _make_store_folder(path.parent)
            known_stores.mark_made(location.scheme, path)
        store = open_store(
            location.url,
            area=location.area,
            size_limit=self.size_limit(location.area),
            patience=self.area_setting(location.area, "patience"),
            create=create,
            verify=verify,
        )
        if create:
            self.link(location)
        return store

    def note_use(self, location: StoreLocation) -> None:
        """Remember that this workspace has rows in a store."""
        if not is_in_memory(location.url):
            known_stores.note_use(shown_url(location.url), self.space(location.area))

    def forget_use(self, location: StoreLocation) -> None:
        """Forget that a store was used, so that a missing one may be created again."""
        for url in (location.url, self._earlier_url(location)):
            if url is not None:
                known_stores.forget_use(shown_url(url), self.space(location.area))

    def _forget_other_copies(self) -> None:
        """Forget the stores of another copy of this repository that was at the same path before."""
        for area in Area:
            location = self.locate(area)
            if is_in_files(location.url) and self.paths.contains(
                str(real_store_path(location.url))
            ):
                self.forget_use(location)

    def link(self, location: StoreLocation) -> None:
        """Link a store of the repository into the folder at the root of this worktree.

        The links are for people and tools; nothing depends on them.
        """
        root = self.paths.worktree
        if root is None or location.scope not in (Scope.REPO, Scope.WORKTREE):
            return
        target = path_of(location.url)
        try:
            link_privately(Path(root, LINKS_FOLDER), target)
        except OSError as error:
            import logging  # noqa: PLC0415 - costs 10 ms, and is needed only here

            logging.getLogger(__name__).debug("no link to %s in %s: %s", target, root, error)

    def pin(self) -> None:
        """Write the ids of the repository and the worktree into git's directory, before any row."""
        facts = self.facts
        if facts is None or (facts.pinned_repository_id and facts.pinned_worktree_id):
            return
        from herdbook.adapters.git import pin  # noqa: PLC0415

        if facts.pinned_repository_id is None:
            self._forget_other_copies()
        pinned = pin(facts, repository_id(facts), worktree_id(facts))
        self.__dict__["facts"] = facts._replace(
            pinned_repository_id=pinned[0], pinned_worktree_id=pinned[1]
        )
        self.__dict__.pop("paths", None)
        self._forget_locations()

    def disregard_repository(self, reason: str) -> None:
        """Behave as outside any repository; the reason becomes `repository_problem`."""
        from herdbook.ports.world.git import GitLookup  # noqa: PLC0415

        self.__dict__.update(_lookup=GitLookup(None, reason), facts=None)
        self._forget_locations()

    def disregard_broken_repository(self) -> None:
        """Behave as outside any repository if git cannot read the one here."""
        try:
            _ = self.facts
        except HerdbookError as error:
            self.disregard_repository(str(error))


def link_privately(folder: Path, target: Path) -> None:
    """Put a link to a store into a folder that git ignores; an existing file is left as it is.

    A dangling link is replaced. Nothing is done if the folder itself is a link: it came with the
    repository.
    """
    link = folder / target.name
    if folder.is_symlink() or target.parent == folder or link.exists():
        return
    dirs.make_private(folder)
    dirs.add_gitignore(folder)
    if link.is_symlink():
        link.unlink(missing_ok=True)
    with suppress(FileExistsError):  # another process was faster
        link.symlink_to(os.path.relpath(target, os.path.realpath(folder)))


def _make_store_folder(folder: Path) -> None:
    try:
        dirs.make_private(folder)
        if folder.name == LINKS_FOLDER:
            dirs.add_gitignore(folder)
    except OSError as error:
        reason = f"the folder cannot be made: {error.strerror}. Nothing was written"
        raise StoreUnavailable(str(folder), reason) from error
