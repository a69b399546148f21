"""What a process knows of the place it works in: the one spot where everything is put together.

Nothing is read before it is asked for, and nothing is imported before it is needed: `where` answers
without any engine, rule or row being loaded.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from herdbook.adapters import folders, register, settings, trust
from herdbook.adapters.urls import path_of, shown_url
from herdbook.domain.errors import InvalidValue, StoreUnavailable
from herdbook.domain.identity import GitFacts, repository_id, worktree_id
from herdbook.domain.places import Area, space_of
from herdbook.domain.settings import BACKENDS, DEFAULTS, Layer, chosen
from herdbook.domain.whereabouts import FOLDER, Ground, Place, find_place

if TYPE_CHECKING:
    from herdbook.domain.agents import Agent
    from herdbook.domain.grading import Experience
    from herdbook.domain.journal import Actor
    from herdbook.ports.store import Store
    from herdbook.ports.unit_of_work import UnitOfWork

R = TypeVar("R")

OUTSIDE = "outside"
"""The owner of what is kept outside any repository."""
Progress = Callable[[str, int, int], None]
"""Told now and then which space is at work, how many rows are done, and of how many."""


def no_progress(_: str, __: int, ___: int) -> None:
    """Tell nobody."""


class Here:
    """One folder, as Herdbook sees it from there.

    What waits for something stops when `enough` says that whoever asked has had enough, and lets
    time pass with `pause`.
    """

    def __init__(
        self,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
        *,
        progress: Progress = no_progress,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.folder = folder
        self.variables = variables
        self.arguments = arguments or {}
        self.progress = progress
        self.warn = warn
        self.enough: Callable[[], bool] = lambda: False
        self.pause: Callable[[float], object] = time.sleep

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
    def opened(self, area: Area, *, create: bool = False) -> Iterator["Store"]:
        """Open the store of an area, made on the first write; the first write also pins who we are.

        Raises StoreUnavailable where there is none and it may not be made.
        """
        place = self.place(area)
        for note in place.notes:
            self.warn(note)
        with self.opened_at(place, create=create) as store:
            if create:
                self.pin()
                if area is Area.WORK and place.scheme != "memory":
                    register.note(shown_url(place.url), self.space(area))
                if area is Area.RECORD and self.setting("merge_legacy"):
                    from herdbook.entrypoints import legacy  # noqa: PLC0415

                    legacy.merge_once(self, store)
            yield store

    @contextmanager
    def opened_at(self, place: Place, *, create: bool = False) -> Iterator["Store"]:
        """Open the store at a place, for as long as it is used."""
        with self.open_at(place, create=create) as store:
            yield store

    def open_at(self, place: Place, *, create: bool = False) -> "Store":
        """Open the store at a place, for whoever closes it.

        The folder of a new one is this user's alone, and `.herdbook` hides itself from git.
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
        )

    def run(self, area: Area | None, use_case: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run a use case on the store of an area, made if there is none, as whoever acts here."""
        from herdbook.ports.run import run  # noqa: PLC0415

        area = area or Area.WORK
        with self.opened(area, create=True) as store:
            if area is not Area.WORK:
                return run(
                    store,
                    self.space(area),
                    use_case,
                    *args,
                    actor=self.actor,
                    experience=self.experience,
                    **kwargs,
                )
            self.see(store)
            return run(
                store,
                self.space(area),
                self._as_acting(use_case),
                *args,
                actor=self.actor,
                **kwargs,
            )

    def _as_acting(self, use_case: Callable[..., R]) -> Callable[..., R]:
        """The use case, done in the name of the agent that acts here."""

        def done(uow: "UnitOfWork", *args: Any, **kwargs: Any) -> R:
            agent = self.acting(uow)
            if agent is not None:
                uow.act_as(agent.name)
            return use_case(uow, *args, **kwargs)

        return done

    def acting(self, uow: "UnitOfWork") -> "Agent | None":
        """The agent that acts here: the one named, the session's, or the only one at work here."""
        from herdbook.services import crew  # noqa: PLC0415

        return crew.acting(
            uow,
            self.variables.get("HERDBOOK_AGENT") or None,
            self.variables.get("HERDBOOK_SESSION") or None,
            self.worktree_id,
        )

    def read(self, area: Area | None, question: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Ask the store of an area; where there is none yet, it answers as an empty one does."""
        from herdbook.adapters.looking import look  # noqa: PLC0415
        from herdbook.ports.run import read  # noqa: PLC0415

        area = area or Area.WORK
        place = self.place(area)
        if look(place.url).exists is False:
            place = place._replace(url="memory://")
        for note in place.notes:
            self.warn(note)
        with self.opened_at(place) as store:
            rules = self.experience if area is Area.RECORD else None
            return read(store, self.space(area), question, *args, experience=rules, **kwargs)

    def setting(self, key: str) -> Any:
        """The value of a setting that counts."""
        found = chosen(self.layers, key)
        return DEFAULTS[key] if found is None else found.value

    @cached_property
    def experience(self) -> "Experience | None":
        """What successes are worth, where the user has set it."""
        prefix = "experience_"
        keys = [key for key in DEFAULTS if key.startswith(prefix)]
        if all(chosen(self.layers, key) is None for key in keys):
            return None
        from herdbook.domain.grading import Experience  # noqa: PLC0415

        return Experience(**{key.removeprefix(prefix): self.setting(key) for key in keys})

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

    def see(self, store: "Store") -> None:
        """Write down in the work store that somebody works in this worktree."""
        facts, identity = self.facts, self.worktree_id
        if facts is None or facts.top_level is None or identity is None:
            return
        from herdbook.ports.run import run  # noqa: PLC0415
        from herdbook.services import worktrees  # noqa: PLC0415

        run(
            store,
            self.space(Area.WORK),
            worktrees.see,
            identity,
            text_of(facts.top_level),
            branch=facts.branch,
            is_main=facts.is_main,
            actor=self.actor,
        )

    @property
    def actor(self) -> "Actor":
        """Who acts here, as far as the environment tells."""
        from herdbook.domain.journal import Actor  # noqa: PLC0415

        return Actor(
            person=self.user,
            agent=self.variables.get("HERDBOOK_AGENT") or None,
            session=self.variables.get("HERDBOOK_SESSION") or None,
            worktree=self.worktree_id,
        )


def _make_room(folder: Path) -> None:
    try:
        folders.make_private(folder)
        if folder.name == FOLDER:
            folders.ignore_itself(folder)
    except OSError as error:
        reason = f"the folder cannot be made: {error.strerror}. Nothing was written"
        raise StoreUnavailable(str(folder), reason) from error


def text_of(path: str | Path) -> str:
    """A path as text that can be kept and printed, whatever bytes it is made of."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _real(base: str, path: str) -> str:
    try:
        return os.path.realpath(Path(base, Path(path).expanduser()))
    except RuntimeError as error:
        raise InvalidValue(path, "names the home directory of nobody known here") from error
