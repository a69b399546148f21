"""Locates the store of each area: one URL, and the rule that decided it."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.location.settings import (
    DEFAULT,
    DEFAULT_SCOPES,
    DEFAULTS,
    USER_AREAS,
    EngineSchemes,
    Layer,
    Origin,
    Scope,
    Setting,
    is_url,
)

LINKS_FOLDER = ".herdbook"
"""The folder at the root of each worktree, with links to the stores; it once held the stores."""
STATE_FOLDER = "herdbook"
"""The folder in the git directory that holds a repository's stores."""
HOME = "~"
"""The folder that paths of a user's own areas are relative to, wherever they are set."""
ResolvePath = Callable[[str, str], str]
"""Returns the real path of a path relative to a folder, with links followed.

A `~` at the beginning of either is expanded.
"""


class RepositoryPaths(NamedTuple):
    """The folders of the repository and worktree a process is in; all are real paths.

    `repository` is the root of the main worktree, or the git directory of a bare repository, and
    `git` the git directory that all worktrees share. Outside a repository these and `worktree` are
    None; inside a bare one, `worktree` is None. `problem` says why a repository or worktree that
    exists was not accepted.
    """

    worktree: str | None
    repository: str | None
    data: str
    git: str | None = None
    worktree_id: str | None = None
    problem: str | None = None

    @property
    def state(self) -> str | None:
        """The folder that holds the repository's own stores."""
        return None if self.git is None else f"{self.git}/{STATE_FOLDER}"

    def store_folder(self, scope: Scope) -> str | None:
        """The folder for the stores of a scope; None where only the global one is possible.

        It is below the git directory: no clone can bring it along, and no `git clean` removes it.
        """
        if self.state is None or scope is Scope.GLOBAL:
            return None
        if scope is Scope.REPO or self.worktree is None:
            return self.state
        return f"{self.state}/worktrees/{self.worktree_id}"

    def contains(self, path: str) -> bool:
        """Whether a real path is inside the repository or this worktree.

        Of the git directory only our own folder counts: the rest is git's.
        """
        if self.git is not None and is_within(path, self.git):
            return is_within(path, f"{self.git}/{STATE_FOLDER}")
        return any(root and is_within(path, root) for root in (self.worktree, self.repository))


class StoreLocation(NamedTuple):
    """Where an area's store is, which rule decided it, and notes for a person.

    `untrusted` is the first setting that was passed over because nobody has trusted it, and what
    it says.
    """

    area: Area
    url: str
    scope: Scope | None
    decided_by: Origin
    backend_by: Origin | None = None
    notes: tuple[str, ...] = ()
    untrusted: tuple[str, str] | None = None

    @property
    def scheme(self) -> str:
        """The engine, as the scheme of the URL."""
        return self.url.partition("://")[0]


class StoreProbe(NamedTuple):
    """What can be seen of a store without opening it; None for what cannot be determined."""

    exists: bool | None
    bytes: int | None = None
    schema_version: int | None = None
    problem: str | None = None


NO_STORE = StoreProbe(exists=False)


def file_url(scheme: str, path: str) -> str:
    """The URL of a store in files, whatever characters its path contains."""
    return f"{scheme}://{quote_from_bytes(path.encode('utf-8', 'surrogateescape'))}"


def locate_store(
    area: Area,
    layers: Sequence[Layer],
    paths: RepositoryPaths,
    resolve_path: ResolvePath,
    engines: EngineSchemes,
) -> StoreLocation:
    """Locate the store of an area: by the first setting that counts, else by the default.

    Raises InvalidValue if links lead a store of the repository out of its git directory.
    """
    return _StoreLocator(area, layers, paths, resolve_path, engines).locate()


class _StoreLocator:
    """The search for one area's store, collecting notes for a person."""

    def __init__(
        self,
        area: Area,
        layers: Sequence[Layer],
        paths: RepositoryPaths,
        resolve_path: ResolvePath,
        engines: EngineSchemes,
    ) -> None:
        self.area = area
        self.layers = layers
        self.paths = paths
        self.resolve_path = resolve_path
        self.engines = engines
        self.notes: list[str] = []
        self.untrusted: tuple[str, str] | None = None

    def locate(self) -> StoreLocation:
        if self.area is Area.CHECKPOINTS:
            for setting in self._settings("checkpoints_space"):
                self._check_trusted(setting, "the name of a space")
        default = Setting(str(self.area), str(DEFAULT_SCOPES[self.area]), DEFAULT)
        for setting in (*self._settings(str(self.area), "store"), default):
            place = self._location_for(setting)
            if place is not None:
                return place._replace(notes=tuple(self.notes), untrusted=self.untrusted)
        raise AssertionError("the default is a place")

    def _settings(self, *keys: str) -> Iterator[Setting]:
        """The settings with these keys, highest priority first.

        A repository has no say in what a user keeps for all repositories, whatever its file says
        and whoever trusts it: one repository could take the whole record.
        """
        for layer in self.layers:
            for key in keys:
                if key in layer and not (layer[key].of_repository and self.area in USER_AREAS):
                    yield layer[key]

    def _location_for(self, setting: Setting) -> StoreLocation | None:
        if setting.value in set(Scope):
            return self._location_in_scope(Scope(setting.value), setting.origin)
        if is_url(setting.value):
            if not self._check_trusted(setting, "the URL of a store"):
                return None
            return StoreLocation(self.area, setting.value, None, setting.origin)
        base = HOME if self.area in USER_AREAS else setting.base
        path = self.resolve_path(base, setting.value)
        if not self.paths.contains(path) and not self._check_trusted(
            setting, "a path outside the repository"
        ):
            return None
        backend, by = self._backend_for_path(path)
        return StoreLocation(self.area, file_url(backend, path), None, setting.origin, by)

    def _check_trusted(self, setting: Setting, what: str) -> bool:
        """Whether the setting is trusted; adds a note if it is not."""
        if not setting.trusted:
            sets = f"sets {setting.key} to {what}"
            self.untrusted = self.untrusted or (str(setting.origin), f"{sets}, and is not trusted")
            self.notes.append(
                f"{setting.origin} {sets}, which is ignored until you review the file and run "
                "`herdbook trust`"
            )
        return setting.trusted

    def _location_in_scope(self, scope: Scope, origin: Origin) -> StoreLocation:
        paths, area = self.paths, self.area
        folder = paths.store_folder(scope)
        if scope is not Scope.GLOBAL:
            if folder is None:
                why = paths.problem or "this is not inside a git repository"
                self.notes.append(f"{why}, so {area} is kept in the global store")
                scope = Scope.GLOBAL
            elif scope is Scope.WORKTREE and paths.worktree is None:
                why = paths.problem or "a bare repository has no worktree"
                self.notes.append(f"{why}, so {area} is kept beside its history")
        backend, by = self._chosen_backend(shared=scope is Scope.GLOBAL)
        if is_url(backend):
            return StoreLocation(area, backend, None, by or origin)
        path = f"{paths.data}/{area}.{backend}"
        if folder is not None:
            path = self.resolve_path(folder, f"{area}.{backend}")
            if not paths.contains(path):
                raise InvalidValue(
                    folder,
                    f"its links lead out of the git directory, to {path}. Nothing was opened; if "
                    f"you mean that place, set {area} to it in your own settings",
                )
        return StoreLocation(area, file_url(backend, path), scope, origin, by)

    def _chosen_backend(self, *, shared: bool) -> tuple[str, Origin | None]:
        """The engine, and the setting that chose it.

        What a user keeps for all repositories is not affected by the settings of one of them: an
        agent's history would be split by project.
        """
        for setting in self._settings("backend"):
            if shared and setting.of_repository:
                continue
            if not is_url(setting.value) or self._check_trusted(setting, "the URL of a server"):
                return setting.value, setting.origin
        return str(DEFAULTS["backend"]), None

    def _backend_for_path(self, path: str) -> tuple[str, Origin | None]:
        """The engine of a path: by its suffix, else the chosen one."""
        for backend in self.engines.files:
            if path.endswith(f".{backend}"):
                return backend, None
        backend, by = self._chosen_backend(shared=False)
        return (str(DEFAULTS["backend"]), None) if is_url(backend) else (backend, by)


def is_within(path: str, root: str) -> bool:
    """Whether a path is this folder, or anywhere below it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")
