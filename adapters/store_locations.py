"""The locations of a folder's stores, and whose they are.

A location is decided by settings (`domain.location`); here its notes are added, the places of
earlier versions, and the check that a store in files was made or trusted by this user.
"""

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from herdbook.adapters.folder_settings import FolderSettings
from herdbook.adapters.repository_folder import account_name
from herdbook.adapters.stores.file_checks import is_own_account
from herdbook.adapters.stores.registry import engine_schemes, find_spec, is_in_files, is_in_memory
from herdbook.adapters.stores.urls import path_of, shown_url
from herdbook.adapters.user_state import dirs, known_stores, settings
from herdbook.domain.errors import (
    InvalidValue,
    SettingUntrusted,
    StoreUnavailable,
    StoreUntrusted,
)
from herdbook.domain.location.areas import Area, space_of
from herdbook.domain.location.resolve import (
    LINKS_FOLDER,
    StoreLocation,
    file_url,
    is_within,
    locate_store,
)
from herdbook.domain.location.settings import Scope, Setting, shared_space

OUTSIDE = "outside"
"""The owner of the rows that belong to no repository."""
RECORD_OVERRIDES = frozenset({"--record", "--store", "HERDBOOK_RECORD", "HERDBOOK_STORE"})
"""The rules by which a command uses another record than the user's own."""


class StoreLocations(FolderSettings):
    """A folder with the locations of the stores of its areas, and its spaces in them."""

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
    ) -> None:
        super().__init__(folder, variables, arguments)
        self._locations: dict[Area, StoreLocation] = {}
        self._spaces: dict[Area, str] = {}

    def locate(self, area: Area) -> StoreLocation:
        """The location of an area's store."""
        location = self._locations.get(area)
        if location is None:
            location = self._prefer_earlier(
                locate_store(
                    area, self._layers_of(area), self.paths, _resolve_path, engine_schemes()
                )
            )
            location = self._note_other_store(location)
            if area is Area.WORK:
                notes = (*location.notes, *self.ignored_settings.values())
                location = location._replace(notes=notes)
            self._locations[area] = location
        return location

    def require_trusted(self, area: Area) -> None:
        """Raise SettingUntrusted if a setting that nobody trusted names another store."""
        untrusted = self.locate(area).untrusted
        if untrusted is not None:
            raise SettingUntrusted(*untrusted)

    def _prefer_earlier(self, location: StoreLocation) -> StoreLocation:
        """The location, or the one used before stores were below the git directory.

        The earlier one is used while a store is there and none at the new one. A store there may
        also have come with the repository: then it is not used, and a note says so.
        """
        url = self._earlier_url(location)
        if url is None or is_there(known_stores.data_file(location.scheme, path_of(location.url))):
            return location
        path = path_of(url)
        if (
            os.path.realpath(path) != str(path)
            or not known_stores.data_file(location.scheme, path).exists()
        ):
            return location
        earlier = location._replace(url=url)
        try:
            self._require_own(earlier, path)
        except StoreUntrusted as error:
            return location._replace(notes=(*location.notes, str(error)))
        return earlier

    def _note_other_store(self, location: StoreLocation) -> StoreLocation:
        """The location, with a note if nothing was written there yet but to another store.

        After a change of settings, perhaps of some that came with the repository, the plan would
        seem to be empty otherwise.
        """
        area, here = location.area, shown_url(location.url)
        if is_in_memory(location.url) or known_stores.last_use(here, self.space(area)):
            return location
        if is_in_files(location.url) and is_there(
            known_stores.data_file(location.scheme, real_store_path(location.url))
        ):
            return location
        used = {
            url: known_stores.last_use(url, self.space(area))
            for url, space in known_stores.list_uses()
            if space == self.space(area) and url != here and self._may_hold_rows(url)
        }
        latest = max(used, key=lambda url: str(used[url]), default=None)
        if latest is None or used[latest] is None:
            return location
        from shlex import quote  # noqa: PLC0415 - seldom needed

        note = (
            f"there is no store at {here} yet; {area} is in {latest}, which was used on "
            f"{str(used[latest])[:10]} (`herdbook copy {quote(latest)} {area}` brings it over)"
        )
        return location._replace(notes=(*location.notes, note))

    def _may_hold_rows(self, url: str) -> bool:
        """Whether a store that was used is still there and can be of this clone.

        Another clone of the same repository has stores of its own.
        """
        if not is_in_files(url):
            return True
        path = real_store_path(url)
        is_ours = self.paths.contains(str(path)) or is_within(str(path), self.paths.data)
        return is_ours and is_there(known_stores.data_file(url.partition("://")[0], path))

    def _earlier_url(self, location: StoreLocation) -> str | None:
        """The URL of a store of that scope before stores were kept below the git directory."""
        folder = self.paths.worktree if location.scope is Scope.WORKTREE else self.paths.repository
        if (
            not is_in_files(location.url)
            or location.scope in (None, Scope.GLOBAL)
            or folder is None
        ):
            return None
        return file_url(
            location.scheme, f"{folder}/{LINKS_FOLDER}/{location.area}.{location.scheme}"
        )

    def _require_own(self, location: StoreLocation, path: Path) -> None:
        """Raise StoreUntrusted for a store in files that somebody else made.

        Inside a repository, this user must be known to have made or trusted it. A store elsewhere
        was named by the user, so it is enough that it belongs to the same account.
        """
        if known_stores.is_trusted(known_stores.identity_of(location.scheme, path)):
            return
        if not is_own_account(path):
            raise StoreUntrusted(str(path), "it belongs to another account")
        if not self.paths.contains(str(path)):
            return
        if self._is_tracked(path):
            raise StoreUntrusted(str(path), "it came with the repository (git tracks its files)")
        if not known_stores.was_made_here(location.scheme, path):
            raise StoreUntrusted(str(path), "it was not made here by you")

    def _is_tracked(self, path: Path) -> bool:
        """Whether git tracks something at a path or below it; never true of the git directory."""
        facts, root = self.facts, self.paths.worktree
        if facts is None or root is None or not is_within(str(path), root):
            return False
        if is_within(str(path), facts.common_dir):
            return False
        from herdbook.adapters.git.index import is_tracked  # noqa: PLC0415 - seldom needed

        return is_tracked(facts, os.path.relpath(path, root), self.variables)

    def locate_named(self, value: str, name: str = "store") -> StoreLocation:
        """The location of a store by the name of its area, or by its URL or path.

        Raises InvalidValue, which calls the value `name`, if it is none of these.
        """
        if value in set(Area):
            return self.locate(Area(value))
        try:
            named = settings.from_arguments({"store": value}, self._base)
        except InvalidValue as error:
            raise InvalidValue(name, error.reason) from None
        return locate_store(
            Area.WORK, [named, *self.layers], self.paths, _resolve_path, engine_schemes()
        )

    def space(self, area: Area) -> str:
        """The space of this workspace's rows in an area's store."""
        space = self._spaces.get(area)
        if space is None:
            space = self._spaces[area] = self._find_space(area)
        return space

    def _find_space(self, area: Area) -> str:
        if area is Area.RECORD:
            return space_of(area, self.user)
        owner = self.repository_id
        if area is Area.CHECKPOINTS:
            owner = shared_space(self.layers) or self.worktree_id or owner
        return space_of(area, owner or OUTSIDE)

    def unused_size_limit(self, area: Area) -> Setting | None:
        """The size limit that is set for an area whose engine keeps none; None otherwise."""
        spec = find_spec(self.locate(area).url)
        has_limit = spec is not None and "size_limit" in spec.options
        return None if has_limit else self._size_setting(area)

    @cached_property
    def overrides(self) -> tuple[str, ...]:
        """The reasons why the record is not this account's own, in which halts are written."""
        found = []
        if self.user != account_name():
            found.append(f"HERDBOOK_USER is {self.user}")
        rule = self.locate(Area.RECORD).decided_by.rule
        if rule in RECORD_OVERRIDES:
            found.append(f"the record is named by {rule}")
        return tuple(found)

    def _forget_locations(self) -> None:
        self._locations.clear()
        self._spaces.clear()


def real_store_path(url: str) -> Path:
    """The real path of a store in files; a link to it in a worktree is resolved."""
    return Path(os.path.realpath(path_of(url)))


def is_there(path: Path) -> bool:
    """Whether something is at a path; a link that leads nowhere is something, and is refused."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreUnavailable(str(path), error.strerror or str(error)) from error
    return True


def _resolve_path(base: str, path: str) -> str:
    try:
        return os.path.realpath(Path(dirs.expand_home(base), dirs.expand_home(path)))
    except RuntimeError as error:
        raise InvalidValue(path, "names the home directory of nobody known here") from error
