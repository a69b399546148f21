"""Who is at the other end of the pipe, and where it works."""

from collections.abc import Callable, Container, Mapping
from pathlib import Path
from random import Random
from urllib.parse import unquote, urlsplit

from herdbook.adapters.system.ids import random_id
from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.agents.names import propose_name
from herdbook.domain.errors import InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.bootstrap import Here
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents import agent_lifecycle

AGENT, SESSION = "HERDBOOK_AGENT", "HERDBOOK_SESSION"
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

    def __init__(self, here: Here, warn: Callable[[str], None]) -> None:
        self.folder = here.folder
        # Whoever said -C has said where it is.
        self._is_fixed = self.is_placed = here.folder != Path()
        self.names: list[str] = []
        self.program = ""
        self._here = here
        self._warn = warn
        named = (here.variables.get(each) for each in _SESSIONS)
        self.session = next((each for each in named if each), f"mcp_{random_id()}")

    @property
    def pinned(self) -> str | None:
        """The agent that the environment says it is."""
        return self._here.variables.get(AGENT) or None

    def here(self, name: str | None = None) -> Here:
        """Its place, as the agent of that name sees it."""
        variables: Mapping[str, str] = {**self._here.variables, SESSION: self.session}
        name = name or self.known
        if name:
            variables = {**variables, AGENT: name}
        return Here(self.folder, variables, self._here.arguments, warn=self._warn)

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
        return given or self.pinned or self.here().read(Area.WORK, self._free)

    def _free(self, uow: UnitOfWork) -> str:
        found = self._found(uow)
        if found is not None:
            return found.name
        return propose_name(Random(), _Names(uow))  # noqa: S311 - a name is no secret

    def stand_at(self, uris: list[str]) -> None:
        """Work in the first of these roots that is a folder here; else where it was started."""
        folders = (folder_of(uri) for uri in uris)
        self.folder = next((each for each in folders if each), self._here.folder)
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


class _Names(Container[str]):
    """The names that agents have here, each asked for when it is proposed."""

    def __init__(self, uow: UnitOfWork) -> None:
        self._uow = uow

    def __contains__(self, name: object) -> bool:
        return self._uow.agents.by_name(str(name)) is not None
