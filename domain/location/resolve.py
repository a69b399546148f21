"""Where the store of each area is: one answer, and the rule that gave it."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.location.settings import (
    DEFAULT,
    DEFAULTS,
    SCOPES,
    USERS_OWN,
    EngineSchemes,
    Layer,
    Origin,
    Scope,
    Setting,
    is_url,
)

FOLDER = ".herdbook"
"""The folder at the root of each worktree, with links to the stores. Stores lay here once."""
STATE = "herdbook"
"""The folder in the git directory in which a repository's stores are kept."""
Real = Callable[[str, str], str]
"""Gives the real path of a path, seen from a folder, its `~` expanded and its links followed."""


class Ground(NamedTuple):
    """The ground a process stands on; all paths are real ones.

    `repository` is the root of the main worktree, or the git directory of a bare repository, and
    `git` the git directory that all worktrees share. Outside a repository these and `worktree` are
    None; inside a bare one, `worktree` is. `doubt` says why one that is there is not among them.
    """

    worktree: str | None
    repository: str | None
    data: str
    git: str | None = None
    worktree_id: str | None = None
    doubt: str | None = None

    @property
    def state(self) -> str | None:
        """The folder in which the repository's own stores are kept."""
        return None if self.git is None else f"{self.git}/{STATE}"

    def folder_of(self, scope: Scope) -> str | None:
        """The folder for the stores of a scope; None where only the global one can be meant.

        It lies below the git directory: no clone can bring it along, and no `git clean` takes it.
        """
        if self.state is None or scope is Scope.GLOBAL:
            return None
        if scope is Scope.REPO or self.worktree is None:
            return self.state
        return f"{self.state}/worktrees/{self.worktree_id}"

    def holds(self, path: str) -> bool:
        """Whether a real path lies inside the repository or this worktree.

        Of the git directory only our own folder counts: the rest is git's.
        """
        if self.git is not None and is_within(path, self.git):
            return is_within(path, f"{self.git}/{STATE}")
        return any(root and is_within(path, root) for root in (self.worktree, self.repository))


class Place(NamedTuple):
    """Where an area's store is, which rule decided it, and what a person should know of it."""

    area: Area
    url: str
    scope: Scope | None
    decided_by: Origin
    backend_by: Origin | None = None
    notes: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        """The engine, as its URL says it."""
        return self.url.partition("://")[0]


class Sight(NamedTuple):
    """What is to be seen at a place without touching it; None where that cannot be told."""

    exists: bool | None
    bytes: int | None = None
    schema_version: int | None = None
    problem: str | None = None


NOTHING_THERE = Sight(exists=False)


def file_url(scheme: str, path: str) -> str:
    """The URL of a store in files, whatever characters its path has."""
    return f"{scheme}://{quote_from_bytes(path.encode('utf-8', 'surrogateescape'))}"


def find_place(
    area: Area, layers: Sequence[Layer], ground: Ground, real: Real, engines: EngineSchemes
) -> Place:
    """Find the store of an area: the first setting that counts, else the default."""
    return _Search(area, layers, ground, real, engines).place()


class _Search:
    """The search for one area's store, and what is to be said about it."""

    def __init__(
        self,
        area: Area,
        layers: Sequence[Layer],
        ground: Ground,
        real: Real,
        engines: EngineSchemes,
    ) -> None:
        self.area = area
        self.layers = layers
        self.ground = ground
        self.real = real
        self.engines = engines
        self.notes: list[str] = []

    def place(self) -> Place:
        default = Setting(str(self.area), str(SCOPES[self.area]), DEFAULT)
        for setting in (*self._settings(str(self.area), "store"), default):
            place = self._at(setting)
            if place is not None:
                return place._replace(notes=tuple(self.notes))
        raise AssertionError("the default is a place")

    def _settings(self, *keys: str) -> Iterator[Setting]:
        """The settings with these keys, those that count most first.

        A repository has no say in what a user keeps for all repositories, whatever its file says
        and whoever trusts it: one of them could take the whole record.
        """
        for layer in self.layers:
            for key in keys:
                if key in layer and not (layer[key].of_repository and self.area in USERS_OWN):
                    yield layer[key]

    def _at(self, setting: Setting) -> Place | None:
        if setting.value in set(Scope):
            return self._of_scope(Scope(setting.value), setting.origin)
        if is_url(setting.value):
            if not self._counts(setting, "the URL of a store"):
                return None
            return Place(self.area, setting.value, None, setting.origin)
        path = self.real(setting.base, setting.value)
        if not self.ground.holds(path) and not self._counts(
            setting, "a path outside the repository"
        ):
            return None
        backend, by = self._backend_of(path)
        return Place(self.area, file_url(backend, path), None, setting.origin, by)

    def _counts(self, setting: Setting, what: str) -> bool:
        if not setting.trusted:
            self.notes.append(
                f"{setting.origin} sets {setting.key} to {what}, which counts only once you have "
                "looked at the file and run `herdbook trust`"
            )
        return setting.trusted

    def _of_scope(self, scope: Scope, origin: Origin) -> Place:
        ground, area = self.ground, self.area
        folder = ground.folder_of(scope)
        if scope is not Scope.GLOBAL:
            if folder is None:
                why = ground.doubt or "this is not inside a git repository"
                self.notes.append(f"{why}, so {area} is kept in the global store")
                scope = Scope.GLOBAL
            elif scope is Scope.WORKTREE and ground.worktree is None:
                why = ground.doubt or "a bare repository has no worktree"
                self.notes.append(f"{why}, so {area} is kept beside its history")
        backend, by = self._backend(shared=scope is Scope.GLOBAL)
        if is_url(backend):
            return Place(area, backend, None, by or origin)
        path = f"{ground.data}/{area}.{backend}"
        if folder is not None:
            path = self.real(folder, f"{area}.{backend}")
            if not ground.holds(path):
                raise InvalidValue(
                    folder,
                    f"its links lead out of the git directory, to {path}. Nothing was opened; if "
                    f"you mean that place, set {area} to it in your own settings",
                )
        return Place(area, file_url(backend, path), scope, origin, by)

    def _backend(self, *, shared: bool) -> tuple[str, Origin | None]:
        """The engine, and who chose it.

        What a user keeps for all repositories is not moved by the settings of one of them: an
        agent's history would be split by project.
        """
        for setting in self._settings("backend"):
            if shared and setting.of_repository:
                continue
            if not is_url(setting.value) or self._counts(setting, "the URL of a server"):
                return setting.value, setting.origin
        return str(DEFAULTS["backend"]), None

    def _backend_of(self, path: str) -> tuple[str, Origin | None]:
        """The engine of a path: the one its name ends with, else the one that was chosen."""
        for backend in self.engines.files:
            if path.endswith(f".{backend}"):
                return backend, None
        backend, by = self._backend(shared=False)
        return (str(DEFAULTS["backend"]), None) if is_url(backend) else (backend, by)


def is_within(path: str, root: str) -> bool:
    """Whether a path is a folder, or lies somewhere below it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")
