"""The context of one call: the workspace, its stores, and who acts.

Everything is read on first use, and imported on first use: `herdbook where` answers without loading
any engine, rule or row.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from herdbook.adapters.workspace import Workspace
from herdbook.domain.location.areas import Area

if TYPE_CHECKING:
    from weakref import ReferenceType

    from herdbook.domain.agents.model import Agent
    from herdbook.domain.journal import Actor
    from herdbook.domain.location.resolve import StoreLocation
    from herdbook.ports.engine.store import Store
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
    from herdbook.services.agents.halts import RecordHalts

R = TypeVar("R")

AGENT, SESSION = "HERDBOOK_AGENT", "HERDBOOK_SESSION"
HOST_SESSION = "CLAUDE_CODE_SESSION_ID"
"""The variable in which a host names its session to the programs that it runs."""
Progress = Callable[[str, int, int], None]
"""Called now and then with the current space, the rows that are done, and the total."""


def no_progress(_: str, __: int, ___: int) -> None:
    """Report nothing."""


class StoreProvider(Protocol):
    """Opens the stores of a workspace: for each use, for one call, or while a server runs."""

    def hold(self) -> AbstractContextManager[None]:
        """Within this context each area's store is opened at most once."""

    def open(self, area: Area, *, create: bool = False) -> "AbstractContextManager[Store]":
        """Open the store of an area for one use."""

    def open_at(
        self, location: "StoreLocation", *, create: bool = False, verify: bool = False
    ) -> "AbstractContextManager[Store]":
        """Open the store at a location for one use.

        Raises StoreGone and StoreUntrusted as `Workspace.store_exists` does.
        """

    def find(self, area: Area) -> "AbstractContextManager[Store] | None":
        """The store of an area if it is open already, else None."""


class CallStores:
    """Opens a store for each use; while they are held, each area's store is opened once."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._held: dict[Area, Store] | None = None
        self._stack = ExitStack()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep the stores of areas open from their first use until the context ends."""
        with self._stack:
            self._held = {}
            try:
                yield
            finally:
                self._held = None

    @contextmanager
    def open(self, area: Area, *, create: bool = False) -> Iterator["Store"]:
        """Open the store of an area, or use the one that is held."""
        location = self._workspace.locate(area)
        if self._held is None:
            with self._workspace.open_store(location, create=create) as store:
                yield store
            return
        held = self._held.get(area)
        if held is None:
            held = self._stack.enter_context(self._workspace.open_store(location, create=create))
            self._held[area] = held
        elif create:
            self._workspace.link(location)
        yield held

    def open_at(
        self, location: "StoreLocation", *, create: bool = False, verify: bool = False
    ) -> "AbstractContextManager[Store]":
        """Open the store at a location, for this use alone."""
        return self._workspace.open_store(location, create=create, verify=verify)

    def find(self, area: Area) -> "AbstractContextManager[Store] | None":
        """The store of an area, if it is held."""
        held = None if self._held is None else self._held.get(area)
        return None if held is None else nullcontext(held)


class Identity:
    """Who acts in a workspace: a person, and the agent of a name or of a session.

    Without either, the person alone. The agent is looked up once per unit of work.
    """

    def __init__(
        self, workspace: Workspace, agent_name: str | None = None, session: str | None = None
    ) -> None:
        self._workspace = workspace
        self.agent_name = agent_name or workspace.variables.get(AGENT) or None
        self.session = session or workspace.variables.get(SESSION) or None
        self.is_verified = False
        """Whether the agent of `agent_name` was read from the store in this call."""
        self._agent_read: tuple[ReferenceType[UnitOfWork], Agent | None] | None = None

    def agent(self, uow: "UnitOfWork") -> "Agent | None":
        """The acting agent as of this transaction; None if there is none."""
        found = self._agent_read
        if found is not None and found[0]() is uow:
            return found[1]
        from weakref import ref  # noqa: PLC0415

        from herdbook.services.agents import agent_lifecycle  # noqa: PLC0415

        agent = agent_lifecycle.find_acting_agent(uow, self.agent_name, self.session)
        self._agent_read = ref(uow), agent
        return agent

    def actor(self, note: str | None = None) -> "Actor":
        """Who acts, as far as that is known without reading a store."""
        from herdbook.domain.journal import Actor, join_notes  # noqa: PLC0415

        return Actor(
            person=self._workspace.user,
            agent=self.agent_name,
            session=self.session,
            worktree=self._workspace.worktree_id,
            note=join_notes(*self._workspace.overrides, note),
        )


class AppContext:
    """What one call works with: a workspace, a provider of its stores, and who acts.

    A wait ends when `should_stop` returns true, and sleeps with `pause`. A `note` goes into the
    journal with every change of the call.
    """

    def __init__(
        self,
        workspace: Workspace,
        stores: StoreProvider,
        identity: Identity,
        *,
        progress: Progress = no_progress,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.workspace = workspace
        self.stores = stores
        self.identity = identity
        self.progress = progress
        self.warn = warn
        self.note: str | None = None
        self.should_stop: Callable[[], bool] = lambda: False
        self.pause: Callable[[float], object] = time.sleep

    @classmethod
    def at(
        cls,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
        *,
        progress: Progress = no_progress,
        warn: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """The context of a folder; its stores are opened for each use."""
        workspace = Workspace(folder, variables, arguments)
        stores, identity = CallStores(workspace), Identity(workspace)
        return cls(workspace, stores, identity, progress=progress, warn=warn)

    @contextmanager
    def open(self, area: Area, *, create: bool = False) -> Iterator["Store"]:
        """Open the store of an area; with `create`, create it if needed and pin the git identity.

        Raises StoreUnavailable if there is none and it may not be created.
        """
        if create:
            self.workspace.pin()
        location = self._locate_and_warn(area)
        with self.stores.open(area, create=create) as store:
            if create:
                self.workspace.note_use(location)
                if area is Area.RECORD and self.workspace.setting("merge_legacy"):
                    from herdbook.entrypoints import tracker_automerge  # noqa: PLC0415

                    tracker_automerge.merge_once(self, store)
            yield store

    def run(self, area: Area | None, use_case: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run a use case as the acting agent on the store of an area, created if needed.

        In the work store the same transaction also records that this worktree is in use, unless
        that is recorded and recent.
        """
        from herdbook.ports.unit_of_work.run import run  # noqa: PLC0415

        area = area or Area.WORK
        is_work = area is Area.WORK
        with self.open(area, create=True) as store:
            return run(
                store,
                self.workspace.space(area),
                self._in_worktree(use_case) if is_work else use_case,
                *args,
                actor=self.actor,
                experience=None if is_work else self.workspace.experience,
                **kwargs,
            )

    def _in_worktree(self, use_case: Callable[..., R]) -> Callable[..., R]:
        """The use case, run in this worktree by the acting agent."""

        def inside(uow: "UnitOfWork", *args: Any, **kwargs: Any) -> R:
            self.record_worktree(uow)
            agent = self.identity.agent(uow)
            if agent is not None:
                uow.act_as(agent.name)
            return use_case(uow, *args, **kwargs)

        return inside

    def read(self, area: Area | None, question: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Read from the store of an area; if there never was one, from an empty store.

        Raises StoreGone if there was one.
        """
        from herdbook.ports.unit_of_work.run import read  # noqa: PLC0415

        area = area or Area.WORK
        rules = self.workspace.experience if area is Area.RECORD else None
        with self.stores.find(area) or self._open_to_read(area) as store:
            space = self.workspace.space(area)
            return read(store, space, question, *args, experience=rules, **kwargs)

    def _open_to_read(self, area: Area) -> "AbstractContextManager[Store]":
        location = self._locate_and_warn(area)
        if self.workspace.store_exists(location):
            return self.stores.open(area)
        return self.stores.open_at(location._replace(url="memory://"))

    def _locate_and_warn(self, area: Area) -> "StoreLocation":
        """The location of an area's store; its notes become warnings."""
        location = self.workspace.locate(area)
        for note in location.notes:
            self.warn(note)
        return location

    def record_worktree(self, uow: "UnitOfWork") -> None:
        """Record in the work store that this worktree is in use."""
        facts, identity = self.workspace.facts, self.workspace.worktree_id
        if facts is None or facts.top_level is None or identity is None:
            return
        from herdbook.services.agents import worktrees  # noqa: PLC0415

        worktrees.record_worktree(
            uow,
            identity,
            text_of(facts.top_level),
            branch=facts.branch,
            is_main=facts.is_main,
        )

    @property
    def actor(self) -> "Actor":
        """Who acts, with the note of this call, as far as that is known without reading a store."""
        return self.identity.actor(self.note)

    def halts(self) -> "RecordHalts":
        """The halts of the record, which is read once per agent."""
        from herdbook.services.agents.halts import RecordHalts  # noqa: PLC0415

        return RecordHalts(lambda question: self.read(Area.RECORD, question), self.warn)


def text_of(path: str | Path) -> str:
    """A path as text that can be stored and printed; other bytes than UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
