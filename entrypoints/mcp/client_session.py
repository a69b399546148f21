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


class Caller:
    """One client, from the first message to the last.

    It works in the folder that it was started in, unless its roots say otherwise (`stand_at`). It
    is the agent that the environment names or that it introduced itself as; nobody is taken for an
    agent because that one happens to be alone in the worktree.
    """

    def __init__(self, context: AppContext, warn: Callable[[str], None]) -> None:
        workspace = context.workspace
        self.folder = workspace.folder
        # Whoever said -C has said where it is.
        self._is_fixed = self.is_placed = workspace.folder != Path()
        self.names: list[str] = []
        self.program = ""
        self._start = workspace
        self._warn = warn
        self._pool = StorePool()
        self._server = self._server_at(self.folder)
        named = (workspace.variables.get(each) for each in _SESSIONS)
        self.session = next((each for each in named if each), f"mcp_{random_id()}")

    @property
    def pinned(self) -> str | None:
        """The agent that the environment says it is."""
        return self._start.variables.get(AGENT) or None

    def here(self, name: str | None = None) -> AppContext:
        """The context of one call, by the agent of that name; its stores stay open."""
        return self._server.call(name or self.known, self.session)

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
    def known(self) -> str | None:
        """The name it goes by, as far as that was said."""
        return self.pinned or (self.names[-1] if self.names else None)

    def agent(self) -> str:
        """The name of the agent it is; InvalidValue says how to become one."""
        found: Agent | None = self.here().read(Area.WORK, self._found)
        if found is not None and found.status not in _GONE:
            return found.name
        if self.pinned:
            reason = (
                f"{AGENT} says that you are {self.pinned!r}, who is not at work here; "
                "call introduce without a name, then do this again"
            )
        elif found is not None:
            reason = f"you were {found.name!r}, who has ended; call introduce, then do this again"
        else:
            reason = "it is not known who you are; call introduce, then do this again"
        raise InvalidValue("agent", reason)

    def _found(self, uow: UnitOfWork) -> Agent | None:
        return agent_lifecycle.find_acting_agent(uow, self.known, self.session)

    def new_name(self, given: str | None) -> str:
        """The name to introduce it by: the one that counts, or one that nobody has."""
        if self.pinned and given not in (None, self.pinned):
            raise InvalidValue("name", f"{AGENT} says that you are {self.pinned!r}; leave it out")
        name = given or self.pinned
        if name is None:
            name = self.here().read(Area.WORK, introduction.free_name, self.known, self.session)
        return name

    def stand_at(self, uris: list[str]) -> None:
        """Work in the first of these roots that is a folder here; else where it was started."""
        folders = (folder_of(uri) for uri in uris)
        self.folder = next((each for each in folders if each), self._start.folder)
        self._server = self._server_at(self.folder)
        self.is_placed = True

    def roots_changed(self) -> None:
        """Let its place be asked for again."""
        self.is_placed = self._is_fixed


def folder_of(uri: str) -> Path | None:
    """The folder of this machine that a root names; None if it names none."""
    try:
        parts = urlsplit(uri)
        path = Path(unquote(parts.path, errors="surrogateescape"))
        is_here = parts.scheme == "file" and parts.netloc in ("", "localhost")
        return path if is_here and path.is_absolute() and path.is_dir() else None
    except (ValueError, OSError):
        return None
