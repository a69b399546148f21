"""A folder somebody works in: its repository, its settings, and where its stores are.

Nothing is read before it is asked for, and nothing is imported before it is needed: `where` answers
without any engine, rule or row being loaded.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.adapters.stores.file_checks import is_own_account
from herdbook.adapters.stores.registry import engine_schemes, is_in_files, is_in_memory
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
    DEFAULTS,
    USER_AREAS,
    Layer,
    Scope,
    effective_setting,
)

if TYPE_CHECKING:
    from herdbook.domain.grading import Experience
    from herdbook.ports.engine.store import Store
    from herdbook.ports.world.git import GitLookup

OUTSIDE = "outside"
"""The owner of what is kept outside any repository."""
RECORD_OVERRIDES = frozenset({"--record", "--store", "HERDBOOK_RECORD", "HERDBOOK_STORE"})
"""The rules by which one command uses another record than the user's own."""


class Workspace:
    """One folder: which repository and worktree it is, and where the stores of its areas are.

    What was found stays as it was found: a change of settings or of HEAD shows in another one.
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
        """The facts, and why there are none of a repository that is there."""
        from herdbook.adapters.git import find  # noqa: PLC0415

        return find(self.folder, environment=self.variables)

    @cached_property
    def facts(self) -> GitFacts | None:
        """What git says about this folder; None outside any repository that may be trusted."""
        return self._lookup.facts

    @property
    def repository_problem(self) -> str | None:
        """Why the repository that is here, or its worktree, is not used; None if it is."""
        return self._lookup.problem

    def disregard_repository(self, reason: str) -> None:
        """Go on as outside any repository, for a reason that people are told."""
        from herdbook.ports.world.git import GitLookup  # noqa: PLC0415

        self.__dict__.update(_lookup=GitLookup(None, reason), facts=None)
        self._forget_locations()

    @property
    def repository_id(self) -> str | None:
        """Which repository this is."""
        return None if self.facts is None else repository_id(self.facts)

    @property
    def worktree_id(self) -> str | None:
        """Which worktree this is; None in a bare repository."""
        if self.facts is None or self.facts.top_level is None:
            return None
        return worktree_id(self.facts)

    @cached_property
    def paths(self) -> RepositoryPaths:
        """The folders that scopes stand for."""
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
        """All settings, those that count most first."""
        base = self.paths.repository or os.path.realpath(self.folder)
        layers = [
            settings.from_arguments(self.arguments, base),
            *settings.from_environment(self.variables, base),
        ]
        if self.settings_file is not None:
            layer = settings.from_file(self.settings_file, base)
            layers.append(
                {
                    key: each._replace(of_repository=True, trusted=self.is_trusted)
                    for key, each in layer.items()
                }
            )
        own = dirs.config_file()
        if own.is_file():
            home = Path.home()
            name = f"~/{own.relative_to(home)}" if own.is_relative_to(home) else str(own)
            layers.append(settings.from_file(own, str(home), name))
        return layers

    def locate(self, area: Area) -> StoreLocation:
        """Where the store of an area is."""
        place = self._locations.get(area)
        if place is None:
            place = self._prefer_earlier(
                locate_store(area, self.layers, self.paths, _resolve_path, engine_schemes())
            )
            self._locations[area] = place
        return place

    def _prefer_earlier(self, place: StoreLocation) -> StoreLocation:
        """The same, or where it lay before it was kept below the git directory, if it still does.

        What lies there may also have come with the repository: then a note says that it is not
        used.
        """
        url = self._earlier_url(place)
        if url is None or _exists(known_stores.data_file(place.scheme, path_of(place.url))):
            return place
        path = path_of(url)
        if (
            os.path.realpath(path) != str(path)
            or not known_stores.data_file(place.scheme, path).exists()
        ):
            return place
        earlier = place._replace(url=url)
        try:
            self._require_own(earlier, path)
        except StoreUntrusted as error:
            return place._replace(notes=(*place.notes, str(error)))
        return earlier

    def locate_named(self, value: str) -> StoreLocation:
        """Where the store is that somebody named: an area's, or any other."""
        if value in set(Area):
            return self.locate(Area(value))
        base = self.paths.repository or os.path.realpath(self.folder)
        named = settings.from_arguments({"store": value}, base)
        return locate_store(
            Area.WORK, [named, *self.layers], self.paths, _resolve_path, engine_schemes()
        )

    def space(self, area: Area) -> str:
        """The space in which an area's rows of this place live."""
        space = self._spaces.get(area)
        if space is None:
            space = self._spaces[area] = self._find_space(area)
        return space

    def _find_space(self, area: Area) -> str:
        if area is Area.RECORD:
            return space_of(area, self.user)
        owner = self.repository_id
        if area is Area.CHECKPOINTS:
            owner = self.worktree_id or owner
        return space_of(area, owner or OUTSIDE)

    @property
    def host(self) -> str:
        """The name of this machine, as agents' processes are known by."""
        return os.uname().nodename

    @property
    def user(self) -> str:
        """Whose record it is: the account this process runs as, unless HERDBOOK_USER names one.

        LOGNAME and USER do not count: programs that hosts start get other ones than a terminal
        does, and one account would have two records.
        """
        return self.variables.get("HERDBOOK_USER") or account_name()

    def store_exists(self, place: StoreLocation) -> bool:
        """Whether a store is at a place; one in files is looked for and not opened.

        Raises StoreGone where this user has used one, and StoreUntrusted where one lies that this
        user neither made nor trusted.
        """
        if is_in_memory(place.url):
            return True
        from herdbook.adapters.stores.probe import is_missing  # noqa: PLC0415

        if is_in_files(place.url):
            path = _real_store_path(place.url)
            there = _exists(known_stores.data_file(place.scheme, path))
            if there:
                self._require_own(place, path)
                there = not is_missing(place.url)
        else:
            there = not is_missing(place.url, self._area_setting(place.area, "patience"))
        if not there:
            self._require_never_used(place)
        return there

    def probe(self, place: StoreLocation) -> StoreProbe:
        """See what is at a place without creating anything; what stands in the way is told."""
        from herdbook.adapters.stores.probe import probe  # noqa: PLC0415

        try:
            if is_in_files(place.url) and not self.store_exists(place):
                return NO_STORE
            sight = probe(place.url)
            if sight.exists is False:
                self._require_never_used(place)
        except StoreGone as error:
            return StoreProbe(exists=False, problem=str(error))
        except StoreUntrusted as error:
            return StoreProbe(exists=True, problem=str(error))
        return sight

    def _require_own(self, place: StoreLocation, path: Path) -> None:
        """Refuse a store in files that somebody else made.

        Inside a repository only those count that this user is known to have made or trusted; one
        elsewhere was named by the user, so it is enough that it belongs to the same account.
        """
        identity = known_stores.identity_of(place.scheme, path)
        if known_stores.is_own(identity) and not self._is_tracked(path):
            return
        if known_stores.is_trusted(identity):
            return
        if not is_own_account(path):
            raise StoreUntrusted(str(path), "it belongs to another account")
        if not self.paths.contains(str(path)):
            return
        if self._is_tracked(path):
            raise StoreUntrusted(str(path), "it came with the repository (git tracks its files)")
        if identity is not None and known_stores.last_use(place.url, self.space(place.area)):
            # Restored from a copy, or made before stores were known by their files.
            known_stores.add_own(identity, place.url)
            return
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

    def _require_never_used(self, place: StoreLocation) -> None:
        """Refuse to take a store that is gone for one that was never there.

        A repository that was cloned anew at the same path has not been used yet: nothing is pinned
        in its git directory.
        """
        facts = self.facts
        inside = is_in_files(place.url) and self.paths.contains(str(_real_store_path(place.url)))
        if inside and (facts is None or facts.pinned_repository_id is None):
            return
        for url in (place.url, self._earlier_url(place)):
            used = known_stores.last_use(shown_url(url), self.space(place.area)) if url else None
            if used is not None:
                raise StoreGone(shown_url(place.url), used.date().isoformat())

    def _earlier_url(self, place: StoreLocation) -> str | None:
        """Where a store of that scope lay before it was kept below the git directory."""
        folder = self.paths.worktree if place.scope is Scope.WORKTREE else self.paths.repository
        if not is_in_files(place.url) or place.scope in (None, Scope.GLOBAL) or folder is None:
            return None
        return file_url(place.scheme, f"{folder}/{LINKS_FOLDER}/{place.area}.{place.scheme}")

    def open_store(
        self, place: StoreLocation, *, create: bool = False, verify: bool = False
    ) -> "Store":
        """Open the store at a place; the caller closes it.

        A new one and its folder are this user's alone, and known to be before anything is in it.
        Raises StoreGone and StoreUntrusted as `is_there` does.
        With `verify` an engine that trusts its own files has them verified before it reads them.
        """
        from herdbook.adapters import open_store  # noqa: PLC0415

        in_files = is_in_files(place.url)
        if in_files and not self.store_exists(place) and create:
            path = _real_store_path(place.url)
            _make_store_folder(path.parent)
            known_stores.add_own(known_stores.reserve(place.scheme, path), place.url)
        store = open_store(
            place.url,
            area=place.area,
            size_limit=self._area_setting(place.area, "size_limit"),
            patience=self._area_setting(place.area, "patience"),
            create=create,
            verify=verify,
        )
        if create:
            self.link(place)
        return store

    def note_use(self, place: StoreLocation) -> None:
        """Remember that the rows of this place are kept there."""
        if not is_in_memory(place.url):
            known_stores.note_use(shown_url(place.url), self.space(place.area))

    def forget_use(self, place: StoreLocation) -> None:
        """Let a store that is gone count as one that never was."""
        for url in (place.url, self._earlier_url(place)):
            if url is not None:
                known_stores.forget_use(shown_url(url), self.space(place.area))

    def _forget_other_copies(self) -> None:
        """Forget the stores of a copy of this repository that lay at the same path before."""
        for area in Area:
            place = self.locate(area)
            if is_in_files(place.url) and self.paths.contains(str(_real_store_path(place.url))):
                self.forget_use(place)

    def link(self, place: StoreLocation) -> None:
        """Link a store of the repository into the folder at the root of this worktree.

        The links are for people and tools that look there; nothing depends on them.
        """
        root = self.paths.worktree
        if root is None or place.scope not in (Scope.REPO, Scope.WORKTREE):
            return
        target = path_of(place.url)
        try:
            link_privately(Path(root, LINKS_FOLDER), target)
        except OSError as error:
            import logging  # noqa: PLC0415 - costs 10 ms, and is needed only here

            logging.getLogger(__name__).debug("no link to %s in %s: %s", target, root, error)

    def setting(self, key: str) -> Any:
        """The value of a setting that counts."""
        found = effective_setting(self.layers, key)
        return DEFAULTS[key] if found is None else found.value

    @cached_property
    def experience(self) -> "Experience | None":
        """What successes are worth, where the user has set it."""
        prefix = "experience_"
        keys = [key for key in DEFAULTS if key.startswith(prefix)]
        if all(effective_setting(self.layers, key) is None for key in keys):
            return None
        from herdbook.domain.grading import Experience  # noqa: PLC0415

        return Experience(**{key.removeprefix(prefix): self.setting(key) for key in keys})

    @cached_property
    def overrides(self) -> tuple[str, ...]:
        """What leads away from the record that this account keeps, in which halts are written."""
        found = []
        if self.user != account_name():
            found.append(f"HERDBOOK_USER is {self.user}")
        rule = self.locate(Area.RECORD).decided_by.rule
        if rule in RECORD_OVERRIDES:
            found.append(f"the record is named by {rule}")
        return tuple(found)

    def _area_setting(self, area: Area, key: str) -> Any:
        """The value of a setting for an area's store; a repository has no say in the user's own."""
        if area not in USER_AREAS:
            return self.setting(key)
        own = [{k: s for k, s in layer.items() if not s.of_repository} for layer in self.layers]
        found = effective_setting(own, key)
        return DEFAULTS[key] if found is None else found.value

    def pin(self) -> None:
        """Write down who this repository and this worktree are, before anything is kept of them."""
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
    """Put a link to a store into a folder that git ignores; what is there already stays.

    A link that leads nowhere any more is set right. Nothing is done where the folder itself is a
    link: it came with the repository.
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
    """Where a store in files really lies: a link to it in a worktree stands for the store."""
    return Path(os.path.realpath(path_of(url)))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise StoreUnavailable(str(path), error.strerror or str(error)) from error


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
        return os.path.realpath(Path(base, Path(path).expanduser()))
    except RuntimeError as error:
        raise InvalidValue(path, "names the home directory of nobody known here") from error
