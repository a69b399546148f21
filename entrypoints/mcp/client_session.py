"""The client at the other end of the pipe: which agent it is, and the folder it works in."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from herdbook.adapters.system.ids import random_id
from herdbook.adapters.workspace import Workspace
from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AGENT, AppContext
from herdbook.entrypoints.liveness import LeaseRenewal
from herdbook.entrypoints.server_context import ServerContext, StorePool
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents import agent_lifecycle, introduction

_PROVIDERS = ("claude", "codex", "opencode", "cursor", "gemini")
"""The names of providers, here as in the events of their hooks."""
_GONE = (AgentStatus.STOPPED, AgentStatus.CRASHED)


class ClientSession:
    """One client, from the first message to the last.

    It works in the folder that it was started in, unless its roots name another (`set_roots`). It
    is the agent that the environment names or that it introduced itself as. It is never taken for
    an agent because that agent is the only one in the worktree.
    """

    def __init__(
        self,
        context: AppContext,
        warn: Callable[[str], None],
        *,
        full: bool = True,
        pool: StorePool | None = None,
    ) -> None:
        workspace = context.workspace
        self.folder = workspace.folder
        # With -C the folder is known from the start.
        self._is_fixed = self.has_folder = workspace.folder != Path()
        self.names: list[str] = []
        self.program = ""
        self.full = full
        """Whether answers have every field and come as structured content, with a schema."""
        self._start = workspace
        self._warn = warn
        self._owns_pool = pool is None
        self._pool = pool or StorePool()
        self.renewal = LeaseRenewal(self.get_context)
        self._server = self._server_at(self.folder)
        self.session = context.identity.session or f"mcp_{random_id()}"

    @property
    def environment_name(self) -> str | None:
        """The name of the agent in the environment."""
        return self._start.variables.get(AGENT) or None

    def get_context(self, name: str | None = None) -> AppContext:
        """The context of one call, by the agent of that name; its stores stay open."""
        return self._server.call(name or self.agent_name, self.session)

    def _server_at(self, folder: Path) -> ServerContext:
        start = self._start
        server = ServerContext(
            folder, start.variables, start.arguments, pool=self._pool, warn=self._warn
        )
        server.on_lease = self.renewal.expect
        return server

    def close(self) -> None:
        """Renew no lease any more, and close the stores that were opened for this client."""
        self.renewal.stop()
        if self._owns_pool:
            self._pool.close()

    def start_backups(self) -> None:
        """Start the backups of what was written last, for a process that exits at once."""
        self._pool.backups.close()

    @property
    def provider(self) -> str | None:
        """The provider of the agent, from the name of the client's program; None if unknown."""
        return next((each for each in _PROVIDERS if each in self.program.lower()), None)

    @property
    def agent_name(self) -> str | None:
        """The name of the agent: from the environment, else from the last introduction."""
        return self.environment_name or (self.names[-1] if self.names else None)

    def require_agent(self) -> str:
        """The name of the agent, which must be at work; else InvalidValue says what to do."""
        found: Agent | None = self.get_context().read(Area.WORK, self._find_agent)
        if found is not None and found.status not in _GONE:
            return found.name
        if self.environment_name:
            reason = (
                f"{AGENT} says that you are {self.environment_name!r}, who is not at work here; "
                "call introduce without a name, then do this again"
            )
        elif found is not None:
            reason = f"you were {found.name!r}, who has ended; call introduce, then do this again"
        else:
            reason = "it is not known who you are; call introduce, then do this again"
        raise InvalidValue("agent", reason)

    def _find_agent(self, uow: UnitOfWork) -> Agent | None:
        return agent_lifecycle.find_acting_agent(uow, self.agent_name, self.session)

    def choose_name(self, given: str | None) -> str:
        """The name to introduce the agent by: given, from the environment, known, or a free one.

        Raises InvalidValue if the environment names another agent.
        """
        if self.environment_name and given not in (None, self.environment_name):
            raise InvalidValue(
                "name", f"{AGENT} says that you are {self.environment_name!r}; leave it out"
            )
        name = given or self.environment_name
        if name is None:
            name = self.get_context().read(
                Area.WORK, introduction.free_name, self.agent_name, self.session
            )
        return name

    def set_roots(self, uris: list[str]) -> None:
        """Work in the first root that is a folder of this machine, else in the start folder."""
        folders = (folder_of(uri) for uri in uris)
        self.folder = next((each for each in folders if each), self._start.folder)
        self._server = self._server_at(self.folder)
        self.has_folder = True

    def use_folder(self, given: object) -> None:
        """Work in a folder that the client names, from now on.

        Raises InvalidValue if it is no folder of this machine, or of another repository than the
        one that the client was started in: its stores are none of this client's.
        """
        folder = Path(given) if isinstance(given, str) and "\0" not in given else None
        if folder is None or not folder.is_absolute() or not folder.is_dir():
            raise InvalidValue("folder", "must be the absolute path of a folder of this machine")
        there = Workspace(folder, self._start.variables).repository_id
        here = Workspace(self.folder, self._start.variables).repository_id
        if here not in (None, there):
            reason = "is of another repository than the one you were started in; leave it out"
            raise InvalidValue("folder", reason)
        self.folder = folder
        self._server = self._server_at(folder)
        self.has_folder = self._is_fixed = True

    def forget_roots(self) -> None:
        """Ask for the roots again before the next call, unless the folder was given by -C."""
        self.has_folder = self._is_fixed


GetClient = Callable[[], ClientSession]
"""Gives the client whose message is being answered."""


def folder_of(uri: str, *, must_exist: bool = True) -> Path | None:
    """The folder of this machine that a root's URI names; None if it names none."""
    try:
        parts = urlsplit(uri)
        path = Path(unquote(parts.path, errors="surrogateescape"))
        is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
        is_folder = not must_exist or path.is_dir()
        return path if is_here and path.is_absolute() and is_folder else None
    except (ValueError, OSError):
        return None
