"""A folder to work in: its repository, its settings, and the locations of its stores.

Everything is read on first use, and imported on first use: `herdbook where` answers without loading
any engine, rule or row.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.adapters.stores.file_checks import is_own_account
from herdbook.adapters.stores.registry import engine_schemes, find_spec, is_in_files, is_in_memory
from herdbook.adapters.stores.urls import path_of, shown_url
from herdbook.adapters.user_state import dirs, known_stores, settings, trust
from herdbook.domain.errors import InvalidValue, StoreGone, StoreUnavailable, StoreUntrusted
from herdbook.domain.location.areas import Area, space_of
from herdbook.domain.location.identity import GitFacts, repository_id, worktree_id
from herdbook.domain.location.resolve import (
    LINKS_FOLDER,
    NO_STORE,
    RepositoryPaths,
    StoreLocation,
    StoreProbe,
    file_url,
    is_within,
    locate_store,
)
from herdbook.domain.location.settings import (
    DEFAULT_SCOPES,
    DEFAULTS,
    USER_AREAS,
    USER_ONLY_KEYS,
    WORKFLOW_VARIABLE,
    Layer,
    Scope,
    Setting,
    effective_setting,
    shared_space,
    size_limit_keys,
)

if TYPE_CHECKING:
    from herdbook.domain.grading import Experience
    from herdbook.ports.engine.store import Store
    from herdbook.ports.world.git import GitLookup

OUTSIDE = "outside"
"""The owner of the rows that belong to no repository."""
RECORD_OVERRIDES = frozenset({"--record", "--store", "HERDBOOK_RECORD", "HERDBOOK_STORE"})
"""The rules by which a command uses another record than the user's own."""


class Workspace:
    """One folder: its repository, its worktree, and the locations of the stores of its areas.

    Everything is read once: a later change of settings or of HEAD shows in a new Workspace only.
    """

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
    ) -> None:
        self.folder = folder
        self.variables = variables
        self.arguments = arguments or {}
        self._locations: dict[Area, StoreLocation] = {}
        self._spaces: dict[Area, str] = {}

    @cached_property
    def _lookup(self) -> "GitLookup":
        """The facts, or why the repository that exists is not used."""
        from herdbook.adapters.git import find  # noqa: PLC0415

        return find(self.folder, environment=self.variables)

    @cached_property
    def facts(self) -> GitFacts | None:
        """The git facts of this folder; None outside any repository that may be trusted."""
        return self._lookup.facts

    @property
    def repository_problem(self) -> str | None:
        """Why the repository of this folder, or its worktree, is not used; None if it is used."""
        return self._lookup.problem

    def disregard_repository(self, reason: str) -> None:
        """Behave as outside any repository; the reason becomes `repository_problem`."""
        from herdbook.ports.world.git import GitLookup  # noqa: PLC0415

        self.__dict__.update(_lookup=GitLookup(None, reason), facts=None)
        self._forget_locations()

    @property
    def repository_id(self) -> str | None:
        """The id of the repository; None outside any."""
        return None if self.facts is None else repository_id(self.facts)

    @property
    def worktree_id(self) -> str | None:
        """The id of the worktree; None in a bare repository and outside any."""
        if self.facts is None or self.facts.top_level is None:
            return None
        return worktree_id(self.facts)

    @cached_property
    def paths(self) -> RepositoryPaths:
        """The folders of the scopes."""
        data = str(dirs.data_folder())
        if self.facts is None:
            return RepositoryPaths(None, None, data, problem=self.repository_problem)
        from herdbook.adapters.git import repository_root  # noqa: PLC0415

        return RepositoryPaths(
            self.facts.top_level,
            repository_root(self.facts),
            data,
            self.facts.common_dir,
            self.worktree_id,
            self.repository_problem,
        )

    @cached_property
    def settings_file(self) -> Path | None:
        """The repository's settings file, if it has one."""
        root = self.paths.worktree
        return None if root is None else settings.repository_file(Path(root))

    @cached_property
    def is_trusted(self) -> bool:
        """Whether the user has trusted the repository's settings file as it is now."""
        if self.settings_file is None or self.facts is None:
            return False
        return trust.is_trusted(self.settings_file, self.facts.common_dir)

    @cached_property
    def layers(self) -> list[Layer]:
        """All settings, those with precedence first."""
        if self.settings_file is None:
            return self.user_layers
        layer = {
            key: each._replace(of_repository=True, trusted=self.is_trusted)
            for key, each in settings.from_file(self.settings_file, self._base).items()
        }
        *earlier, own = self.user_layers
        return [*earlier, layer, own]

    @cached_property
    def user_layers(self) -> list[Layer]:
        """The settings that are the user's own: all but the repository's, which is not read."""
        layers = [
            settings.from_arguments(self.arguments, self._base),
            *settings.from_environment(self.variables, self._base),
        ]
        own = dirs.config_file()
        if not own.is_file():
            return [*layers, {}]
        home = Path.home()
        name = f"~/{own.relative_to(home)}" if own.is_relative_to(home) else str(own)
        return [*layers, settings.from_file(own, str(home), name)]

    @property
    def _base(self) -> str:
        """The folder that paths typed here are relative to."""
        return self.paths.repository or os.path.realpath(self.folder)

    def _layers_of(self, area: Area) -> list[Layer]:
        """The settings that count for an area: a repository has no say in what is the user's."""
        return self.user_layers if area in USER_AREAS else self.layers

    def locate(self, area: Area) -> StoreLocation:
        """The location of an area's store."""
        location = self._locations.get(area)
        if location is None:
            location = self._prefer_earlier(
                locate_store(
                    area, self._layers_of(area), self.paths, _resolve_path, engine_schemes()
                )
            )
            location = self._locations[area] = self._note_other_store(location)
        return location

    def _prefer_earlier(self, location: StoreLocation) -> StoreLocation:
        """The location, or the one used before stores were below the git directory.

        The earlier one is used while a store is there and none at the new one. A store there may
        also have come with the repository: then it is not used, and a note says so.
        """
        url = self._earlier_url(location)
        if url is None or _exists(known_stores.data_file(location.scheme, path_of(location.url))):
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
        """The location, with a note if no store is there but the usual place has one in use.

        Another setting, perhaps one that came with the repository, shows an empty plan otherwise.
        """
        if not is_in_files(location.url) or _exists(
            known_stores.data_file(location.scheme, _real_store_path(location.url))
        ):
            return location
        area = location.area
        folder = self.paths.store_folder(DEFAULT_SCOPES[area]) or self.paths.data
        for scheme in engine_schemes().files:
            url = file_url(scheme, f"{folder}/{area}.{scheme}")
            if url == location.url or not _exists(known_stores.data_file(scheme, path_of(url))):
                continue
            used = known_stores.last_use(url, self.space(area))
            if used is not None:
                note = (
                    f"there is no store at {shown_url(location.url)}; {area} is in {url}, which "
                    f"was used on {used.date().isoformat()} (`herdbook copy` brings it along)"
                )
                location = location._replace(notes=(*location.notes, note))
        return location

    @property
    def workflow_file(self) -> Path | None:
        """The SQLite database whose threads are read until they go on here, if one is named."""
        named = effective_setting(self.layers, str(Area.CHECKPOINTS), "store")
        if named is None or named.origin.rule != settings.SQLITE_RULE:
            return None
        base = self.paths.repository or os.path.realpath(self.folder)
        return settings.workflow_path(self.variables[WORKFLOW_VARIABLE], base)

    def locate_named(self, value: str) -> StoreLocation:
        """The location of a store by the name of its area, or by its URL or path."""
        if value in set(Area):
            return self.locate(Area(value))
        named = settings.from_arguments({"store": value}, self._base)
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

    @property
    def host(self) -> str:
        """The name of this machine, by which agents' processes are identified."""
        return os.uname().nodename

    @property
    def user(self) -> str:
        """The owner of the record: HERDBOOK_USER, else the account of this process.

        LOGNAME and USER are ignored: programs that hosts start get other values than a terminal
        does, and one account would have two records.
        """
        return self.variables.get("HERDBOOK_USER") or account_name()

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
        path = _real_store_path(location.url)
        if not _exists(known_stores.data_file(location.scheme, path)):
            return False
        self._require_own(location, path)
        return not is_missing(location.url)

    def probe(self, location: StoreLocation) -> StoreProbe:
        """Probe a location without creating anything; a missing or refused store is a problem."""
        from herdbook.adapters.stores.probe import probe  # noqa: PLC0415

        try:
            if is_in_files(location.url) and not self.store_exists(location):
                return NO_STORE
            result = probe(location.url)
            if result.exists is False:
                self._require_never_used(location)
        except StoreGone as error:
            return StoreProbe(exists=False, problem=str(error))
        except StoreUntrusted as error:
            return StoreProbe(exists=True, problem=str(error))
        return result

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

    def _require_never_used(self, location: StoreLocation) -> None:
        """Raise StoreGone for a missing store that was used before, so that no new one replaces it.

        A repository that was cloned again at the same path has not been used yet: nothing is pinned
        in its git directory.
        """
        facts = self.facts
        inside = is_in_files(location.url) and self.paths.contains(
            str(_real_store_path(location.url))
        )
        if inside and (facts is None or facts.pinned_repository_id is None):
            return
        for url in (location.url, self._earlier_url(location)):
            used = known_stores.last_use(shown_url(url), self.space(location.area)) if url else None
            if used is not None:
                raise StoreGone(shown_url(location.url), used.date().isoformat())

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
            path = _real_store_path(location.url)
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
                str(_real_store_path(location.url))
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

    def setting(self, key: str) -> Any:
        """The effective value of a setting."""
        layers = self.user_layers if key in USER_ONLY_KEYS else self.layers
        found = effective_setting(layers, key)
        return DEFAULTS[key] if found is None else found.value

    def size_limit(self, area: Area) -> int | None:
        """How large the store of an area may grow; None if that is not set."""
        found = self._size_setting(area)
        return None if found is None else int(found.value)

    def _size_setting(self, area: Area) -> Setting | None:
        return effective_setting(self._layers_of(area), *size_limit_keys(area))

    def unused_size_limit(self, area: Area) -> Setting | None:
        """The size limit that is set for an area whose engine keeps none; None otherwise."""
        spec = find_spec(self.locate(area).url)
        has_limit = spec is not None and "size_limit" in spec.options
        return None if has_limit else self._size_setting(area)

    @cached_property
    def experience(self) -> "Experience | None":
        """The experience that successes give; None unless the user has set it."""
        prefix = "experience_"
        keys = [key for key in DEFAULTS if key.startswith(prefix)]
        if all(effective_setting(self.user_layers, key) is None for key in keys):
            return None
        from herdbook.domain.grading import Experience  # noqa: PLC0415

        return Experience(**{key.removeprefix(prefix): self.setting(key) for key in keys})

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

    def area_setting(self, area: Area, key: str) -> Any:
        """A setting for an area's store; a repository's settings do not apply to the user's own."""
        found = effective_setting(self._layers_of(area), key)
        return DEFAULTS[key] if found is None else found.value

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

    def _forget_locations(self) -> None:
        self._locations.clear()
        self._spaces.clear()


def account_name() -> str:
    """The name of the account this process runs as; its number where it has no name."""
    import pwd  # noqa: PLC0415 - seldom needed

    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


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


def _real_store_path(url: str) -> Path:
    """The real path of a store in files; a link to it in a worktree is resolved."""
    return Path(os.path.realpath(path_of(url)))


def _exists(path: Path) -> bool:
    """Whether something is at a path; a link that leads nowhere is something, and is refused."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreUnavailable(str(path), error.strerror or str(error)) from error
    return True


def _make_store_folder(folder: Path) -> None:
    try:
        dirs.make_private(folder)
        if folder.name == LINKS_FOLDER:
            dirs.add_gitignore(folder)
    except OSError as error:
        reason = f"the folder cannot be made: {error.strerror}. Nothing was written"
        raise StoreUnavailable(str(folder), reason) from error


def _resolve_path(base: str, path: str) -> str:
    try:
        return os.path.realpath(Path(dirs.expand_home(base), dirs.expand_home(path)))
    except RuntimeError as error:
        raise InvalidValue(path, "names the home directory of nobody known here") from error
