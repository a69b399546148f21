"""Where things are kept for whoever works in a folder: found from git, settings and trust.

Nothing is read before it is asked for, and nothing is imported before it is needed: `where` answers
without any engine, rule or row being loaded.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from herdbook.adapters import folders, settings, trust
from herdbook.adapters.urls import path_of
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.identity import GitFacts, repository_id, worktree_id
from herdbook.domain.places import Area, space_of
from herdbook.domain.settings import BACKENDS, DEFAULTS, Layer, chosen
from herdbook.domain.whereabouts import FOLDER, Ground, Place, find_place

if TYPE_CHECKING:
    from herdbook.ports.store import Store

OUTSIDE = "outside"
"""The owner of what is kept outside any repository."""


class Whereabouts:
    """One folder: which repository and worktree it is, and where the stores of its areas are."""

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
    ) -> None:
        self.folder = folder
        self.variables = variables
        self.arguments = arguments or {}

    @cached_property
    def facts(self) -> GitFacts | None:
        """What git says about this folder; None outside any repository."""
        from herdbook.adapters.git import facts  # noqa: PLC0415

        return facts(self.folder, environment=self.variables)

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
    def ground(self) -> Ground:
        """The folders that scopes stand for."""
        data = str(folders.data_folder())
        if self.facts is None:
            return Ground(None, None, data)
        from herdbook.adapters.git import repository_root  # noqa: PLC0415

        return Ground(self.facts.top_level, repository_root(self.facts), data)

    @cached_property
    def settings_file(self) -> Path | None:
        """The repository's settings file, if it has one."""
        root = self.ground.worktree
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
        base = self.ground.repository or os.path.realpath(self.folder)
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
        own = folders.config_file()
        if own.is_file():
            home = Path.home()
            name = f"~/{own.relative_to(home)}" if own.is_relative_to(home) else str(own)
            layers.append(settings.from_file(own, str(home), name))
        return layers

    def place(self, area: Area) -> Place:
        """Where the store of an area is."""
        return find_place(area, self.layers, self.ground, _real)

    def place_of(self, value: str) -> Place:
        """Where the store is that somebody named: an area's, or any other."""
        if value in set(Area):
            return self.place(Area(value))
        base = self.ground.repository or os.path.realpath(self.folder)
        named = settings.from_arguments({"store": value}, base)
        return find_place(Area.WORK, [named, *self.layers], self.ground, _real)

    def space(self, area: Area) -> str:
        """The space in which an area's rows of this place live."""
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
        """Whose record it is."""
        for name in ("HERDBOOK_USER", "LOGNAME", "USER"):
            if self.variables.get(name):
                return self.variables[name]
        import getpass  # noqa: PLC0415 - seldom needed

        return getpass.getuser()

    @contextmanager
    def opened_at(
        self, place: Place, *, create: bool = False, verify: bool = False
    ) -> Iterator["Store"]:
        """Open the store at a place, for as long as it is used."""
        with self.open_at(place, create=create, verify=verify) as store:
            yield store

    def open_at(self, place: Place, *, create: bool = False, verify: bool = False) -> "Store":
        """Open the store at a place, for whoever closes it.

        The folder of a new one is this user's alone, and `.herdbook` hides itself from git. With
        `verify` an engine that trusts its own files has them verified before it reads them.
        """
        from herdbook.adapters import open_store  # noqa: PLC0415

        if create and place.scheme in BACKENDS:
            _make_room(path_of(place.url).parent)
        return open_store(
            place.url,
            area=place.area,
            size_limit=self.setting("size_limit"),
            patience=self.setting("patience"),
            create=create,
            verify=verify,
        )

    def setting(self, key: str) -> Any:
        """The value of a setting that counts."""
        found = chosen(self.layers, key)
        return DEFAULTS[key] if found is None else found.value

    def pin(self) -> None:
        """Write down who this repository and this worktree are, before anything is kept of them."""
        facts = self.facts
        if facts is None or (facts.pinned_repository_id and facts.pinned_worktree_id):
            return
        from herdbook.adapters.git import pin  # noqa: PLC0415

        pinned = pin(facts, repository_id(facts), worktree_id(facts))
        self.__dict__["facts"] = facts._replace(
            pinned_repository_id=pinned[0], pinned_worktree_id=pinned[1]
        )


def _make_room(folder: Path) -> None:
    try:
        folders.make_private(folder)
        if folder.name == FOLDER:
            folders.ignore_itself(folder)
    except OSError as error:
        reason = f"the folder cannot be made: {error.strerror}. Nothing was written"
        raise StoreUnavailable(str(folder), reason) from error


def _real(base: str, path: str) -> str:
    try:
        return os.path.realpath(Path(base, Path(path).expanduser()))
    except RuntimeError as error:
        raise InvalidValue(path, "names the home directory of nobody known here") from error
