"""The context of one call: the workspace, its stores, and who acts.

Everything is read on first use, and imported on first use: `herdbook where` answers without loading
any engine, rule or row.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from herdbook.adapters.workspace import Workspace
from herdbook.domain.agents.host_sessions import host_session
from herdbook.domain.location.areas import Area

if TYPE_CHECKING:
    from datetime import timedelta
    from weakref import ReferenceType

    from herdbook.domain.agents.model import Agent
    from herdbook.domain.errors import InvalidValue
    from herdbook.domain.journal import Actor, Position
    from herdbook.domain.location.resolve import StoreLocation
    from herdbook.entrypoints.server_numbers import ServerNumbers
    from herdbook.ports.engine.store import Store
    from herdbook.ports.engine.wakeups import StopEvent
    from herdbook.ports.unit_of_work.past_cache import PastCache
    from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
    from herdbook.services.agents.halts import RecordHalts

R = TypeVar("R")

AGENT, SESSION = "HERDBOOK_AGENT", "HERDBOOK_SESSION"
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

    The name comes from `--agent`, else from HERDBOOK_AGENT. Without a name, the agent of the
    session acts; without that, the person alone. The session is the given one, else the one of
    HERDBOOK_SESSION, else the one that the host names to the programs it starts. The agent is
    looked up once per unit of work.
    """

    def __init__(
        self, workspace: Workspace, agent_name: str | None = None, session: str | None = None
    ) -> None:
        self._workspace = workspace
        self._named_by = AGENT if not agent_name else "--agent"
        self.agent_name = agent_name or workspace.variables.get(AGENT) or None
        of_host, self.provider = host_session(workspace.variables)
        self.session = session or workspace.variables.get(SESSION) or of_host
        self.is_verified = False
        """Whether the agent of `agent_name` was read from the store in this call."""
        self.registers: str | None = None
        """The agent that this call registers, which may act without being known yet."""
        self._agent_read: tuple[ReferenceType[UnitOfWork], Agent | None] | None = None

    @property
    def is_person(self) -> bool:
        """Whether neither an agent nor a session is named, so that a person acts."""
        return self.agent_name is None and self.session is None

    def agent(self, uow: "UnitOfWork") -> "Agent | None":
        """The acting agent as of this transaction; None if a person acts.

        Raises InvalidValue, with the command that registers it, for a name that no agent has.
        """
        agent = self.find_agent(uow)
        if agent is None and self.agent_name not in (None, self.registers):
            raise self.describe_unknown()
        return agent

    def describe_unknown(self) -> "InvalidValue":
        """The error for a name that no agent has."""
        from shlex import quote  # noqa: PLC0415

        from herdbook.domain.errors import InvalidValue  # noqa: PLC0415

        name = self.agent_name or ""
        reason = (
            f"{self._named_by} names {name!r}, and no such agent is registered here; "
            f"`herdbook agent add {quote(name)}` registers it"
        )
        return InvalidValue("agent", reason)

    def describe_nobody(self) -> "InvalidValue":
        """The error where an agent has to act, and a person does or a session without an agent."""
        from herdbook.domain.errors import InvalidValue  # noqa: PLC0415

        if self.session is None:
            how = "name it with --agent or HERDBOOK_AGENT; `herdbook agent add NAME` registers one"
        else:
            how = "`herdbook agent add` registers one for this session"
        return InvalidValue("agent", f"must be named: only an agent does this, so {how}")

    def find_agent(self, uow: "UnitOfWork") -> "Agent | None":
        """The acting agent as of this transaction; None also for a name that no agent has."""
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
        from herdbook.domain.trace_context import TRACEPARENT, trace_id_of  # noqa: PLC0415

        return Actor(
            person=self._workspace.user,
            agent=self.agent_name,
            session=self.session,
            worktree=self._workspace.worktree_id,
            note=join_notes(*self._workspace.overrides, note),
            trace_id=trace_id_of(self._workspace.variables.get(TRACEPARENT)),
        )


class AppContext:
    """What one call works with: a workspace, a provider of its stores, and who acts.

    A wait ends when `stop` is set. A `note` goes into the journal with every change of the call. A
    server learns by `on_lease` that its agent holds something for a duration, and tells about
    itself by `server_numbers`. A call that `is_command` is of the person who typed it: only there
    may something be asked at the terminal, which a server has too.
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
        self.is_command = False
        self.server_numbers: Callable[[], ServerNumbers] | None = None
        self.note: str | None = None
        self.stop: StopEvent | None = None
        self.written: set[Area] = set()
        """The areas whose stores were opened for writing."""
        self.after_write: Callable[[Area], object] = self.written.add
        self.past_note = ""
        """As of when something was read that was not read as it is now, and what is not known."""
        self.past_cache: PastCache | None = None
        """Where a server keeps what it read of earlier positions."""
        self.is_missed = False
        """Whether the call was done but did not bring what it waited for."""
        self.on_lease: Callable[[timedelta], None] = lambda _: None

    @classmethod
    def at(
        cls,
        folder: Path,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
        *,
        agent_name: str | None = None,
        progress: Progress = no_progress,
        warn: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """The context of a folder, for an agent if one is named; opens stores for each use."""
        workspace = Workspace(folder, variables, arguments)
        stores, identity = CallStores(workspace), Identity(workspace, agent_name)
        return cls(workspace, stores, identity, progress=progress, warn=warn)

    @contextmanager
    def open(self, area: Area, *, create: bool = False) -> Iterator["Store"]:
        """Open the store of an area; with `create`, create it if needed and pin the git identity.

        Raises StoreUnavailable if there is none and it may not be created, and with `create`
        SettingUntrusted if a setting that nobody trusted names another store.
        """
        if create:
            self.workspace.require_trusted(area)
            self.workspace.pin()
        location = self._locate_and_warn(area)
        with self.stores.open(area, create=create) as store:
            if create:
                self.workspace.note_use(location)
                if area is Area.RECORD and self.workspace.setting("merge_legacy"):
                    from herdbook.entrypoints import tracker_automerge  # noqa: PLC0415

                    tracker_automerge.merge_once(self, store)
            yield store
        if create:
            self.after_write(area)

    def run(self, area: Area | None, use_case: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Run a use case as the acting agent on the store of an area, created if needed.

        In the work store the same transaction also records that this worktree is in use, unless
        that is recorded and recent.
        """
        area = area or Area.WORK
        is_work = area is Area.WORK
        acting = self._in_worktree(use_case) if is_work else self._elsewhere(area, use_case)
        return self.run_unattended(area, acting, *args, **kwargs)

    def run_unattended(
        self, area: Area, use_case: Callable[..., R], *args: Any, **kwargs: Any
    ) -> R:
        """Run a use case that is nobody's act, such as a flush: no agent is looked up."""
        from herdbook.ports.unit_of_work.run import run  # noqa: PLC0415

        with self.open(area, create=True) as store:
            return run(
                store,
                self.workspace.space(area),
                use_case,
                *args,
                actor=self.actor,
                experience=None if area is Area.WORK else self.workspace.experience,
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

    def _elsewhere(self, area: Area, use_case: Callable[..., R]) -> Callable[..., R]:
        """The use case on another store than the work store, run by the acting agent.

        The work store is asked first, before the transaction begins. If it is out of reach, nobody
        can be called unknown; that is a warning.
        """
        identity = self.identity
        if identity.is_person or identity.is_verified:
            return use_case
        from herdbook.domain.errors import HerdbookError  # noqa: PLC0415

        try:
            found = self.read(Area.WORK, identity.find_agent)
        except HerdbookError as error:
            self.warn(f"it is not known which agents are registered here: {error}")
            return use_case

        def inside(uow: "UnitOfWork", *args: Any, **kwargs: Any) -> R:
            if found is not None:
                uow.act_as(found.name)
            elif identity.agent_name is not None:
                self._require_recorded(uow if area is Area.RECORD else None, identity.agent_name)
            return use_case(uow, *args, **kwargs)

        return inside

    def _require_recorded(self, record: "UnitOfWork | None", name: str) -> None:
        """Raise InvalidValue for a name that neither the record nor the spool of hooks knows.

        Hooks report whoever works, registered or not, since an event that is refused is lost. So
        the record may know an agent that is not registered in this repository.
        """
        from herdbook.adapters.hosts import parse_event  # noqa: PLC0415
        from herdbook.adapters.user_state import spool  # noqa: PLC0415
        from herdbook.domain.record.events import name_of_agent  # noqa: PLC0415
        from herdbook.services.record.grading import is_known  # noqa: PLC0415

        if self.read(Area.RECORD, is_known, name) if record is None else is_known(record, name):
            return
        if all(name_of_agent(parse_event(*each)) != name for each in spool.read_buffered().events):
            raise self.identity.describe_unknown()

    def require_registered(self) -> None:
        """Raise InvalidValue if an agent is named that this repository has not registered."""
        if self.identity.agent_name is not None:
            self.read(Area.WORK, self.identity.agent)

    def read(
        self,
        area: Area | None,
        question: Callable[..., R],
        *args: Any,
        at: "Position | None" = None,
        **kwargs: Any,
    ) -> R:
        """Read from the store of an area; if there never was one, from an empty store.

        With `at`, it is read as it was at an earlier position of its journal. Raises StoreGone if
        there was a store, and what `past_unit_of_work` raises.
        """
        from herdbook.ports.unit_of_work.run import read  # noqa: PLC0415

        area = area or Area.WORK
        if at is not None:
            kwargs |= {"at": at, "past_cache": self.past_cache}
            question = self.note_past(question)
        rules = self.workspace.experience if area is Area.RECORD else None
        with self.stores.find(area) or self._open_to_read(area) as store:
            space = self.workspace.space(area)
            return read(store, space, question, *args, experience=rules, **kwargs)

    def note_past(self, question: Callable[..., R]) -> Callable[..., R]:
        """The question, after which `past_note` says as of when it was answered."""

        def inside(uow: "UnitOfWork", *args: Any, **kwargs: Any) -> R:
            answer = question(uow, *args, **kwargs)
            if uow.as_of is not None:
                from herdbook.entrypoints.operations.past_answer import describe_past  # noqa: PLC0415

                self.past_note = describe_past(uow)
            return answer

        return inside

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

    def require_person(self, field: str, what: str) -> None:
        """Raise InvalidValue if an agent acts: some things only a person may decide."""
        from herdbook.domain.agents.host_sessions import SESSION_VARIABLES  # noqa: PLC0415
        from herdbook.domain.errors import InvalidValue  # noqa: PLC0415

        variables = filter(self.workspace.variables.get, (AGENT, SESSION, *SESSION_VARIABLES))
        name = next(variables, None)
        if name is not None or self.identity.agent_name is not None:
            who = "--agent names an agent" if name is None else f"{name} is set"
            reason = f"is for a person to {what}, and {who}: ask the person who runs you"
            raise InvalidValue(field, reason)

    def act_as(self, agent_name: str) -> None:
        """Let this agent act from now on, as the call asks for."""
        self.identity = Identity(self.workspace, agent_name, self.identity.session)

    def miss(self, sentence: str) -> None:
        """Say what the call waited for and did not get; a command then ends with 1."""
        self.is_missed = True
        self.warn(sentence)

    def halts(self) -> "RecordHalts":
        """The halts of the record, which is read once per agent."""
        from herdbook.services.agents.halts import RecordHalts  # noqa: PLC0415

        return RecordHalts(lambda question: self.read(Area.RECORD, question), self.warn)


def text_of(path: str | Path) -> str:
    """A path as text that can be stored and printed; other bytes than UTF-8 are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def describe_process(app: AppContext, what: str) -> str:
    """What this process does, and which one it is, for people who ask who holds the journal."""
    return f"{what}, process {os.getpid()} on {app.workspace.host}"
