"""Who is at the other end of the pipe, and where it works."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from herdbook.adapters.system.ids import random_id
from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AGENT, SESSION, AppContext
from herdbook.entrypoints.server_context import ServerContext, StorePool
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents import agent_lifecycle, introduction

_SESSIONS = (SESSION, "CLAUDE_CODE_SESSION_ID")
"""Where the name of a session may stand, the surest first."""

_PROVIDERS = ("claude", "codex", "opencode", "cursor", "gemini")
"""What the programs of agents are known by, here as in what their hooks tell."""
_GONE = (AgentStatus.STOPPED, AgentStatus.CRASHED)


class ClientSession:
    """One client, from the first message to the last.

    It works in the folder that it was started in, unless its roots say otherwise (`stand_at`). It
    is the agent that the environment names or that it introduced itself as; nobody is taken for an
    agent because that one happens to be alone in the worktree.
    """

    def __init__(self, context: AppContext, warn: Callable[[str], None]) -> None:
        workspace = context.workspace
        self.folder = workspace.folder
        # Whoever said -C has said where it is.
        self._is_fixed = self.has_folder = workspace.folder != Path()
        self.names: list[str] = []
        self.program = ""
        self._start = workspace
        self._warn = warn
        self._pool = StorePool()
        self._server = self._server_at(self.folder)
        named = (workspace.variables.get(each) for each in _SESSIONS)
        self.session = next((each for each in named if each), f"mcp_{random_id()}")

    @property
    def environment_name(self) -> str | None:
        """The agent that the environment says it is."""
        return self._start.variables.get(AGENT) or None

    def here(self, name: str | None = None) -> AppContext:
        """The context of one call, by the agent of that name; its stores stay open."""
        return self._server.call(name or self.agent_name, self.session)

    def _server_at(self, folder: Path) -> ServerContext:
        start = self._start
        return ServerContext(
            folder, start.variables, start.arguments, pool=self._pool, warn=self._warn
        )

    def close(self) -> None:
        """Close the stores."""
        self._pool.close()

    @property
    def provider(self) -> str | None:
        """Whose agent it is, as far as the name of its program tells."""
        return next((each for each in _PROVIDERS if each in self.program.lower()), None)

    @property
    def agent_name(self) -> str | None:
        """The name it goes by, as far as that was said."""
        return self.environment_name or (self.names[-1] if self.names else None)

    def require_agent(self) -> str:
        """The name of the agent it is; InvalidValue says how to become one."""
        found: Agent | None = self.here().read(Area.WORK, self._find_agent)
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
        """The name to introduce it by: the one that counts, or one that nobody has."""
        if self.environment_name and given not in (None, self.environment_name):
            raise InvalidValue(
                "name", f"{AGENT} says that you are {self.environment_name!r}; leave it out"
            )
        name = given or self.environment_name
        if name is None:
            name = self.here().read(
                Area.WORK, introduction.free_name, self.agent_name, self.session
            )
        return name

    def set_roots(self, uris: list[str]) -> None:
        """Work in the first of these roots that is a folder here; else where it was started."""
        folders = (folder_of(uri) for uri in uris)
        self.folder = next((each for each in folders if each), self._start.folder)
        self._server = self._server_at(self.folder)
        self.has_folder = True

    def forget_roots(self) -> None:
        """Let its place be asked for again."""
        self.has_folder = self._is_fixed


def folder_of(uri: str) -> Path | None:
    """The folder of this machine that a root names; None if it names none."""
    try:
        parts = urlsplit(uri)
        path = Path(unquote(parts.path, errors="surrogateescape"))
        is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
        return path if is_here and path.is_absolute() and path.is_dir() else None
    except (ValueError, OSError):
        return None
