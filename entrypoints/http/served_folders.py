"""The folders that the server works for; a client names one of them and nothing else.

A folder is served because the user's own command named it (`running_server.add_folder`), or because
git knows it as a worktree of such a repository. What a client sends is compared with these as text
and never opened.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from herdbook.adapters.git.worktree_list import list_worktrees
from herdbook.adapters.user_state import running_server
from herdbook.adapters.workspace import Workspace
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AGENT, SESSION
from herdbook.entrypoints.server_context import ServerContext, StorePool
from herdbook.entrypoints.server_numbers import ServerNumbers

WORKTREES_SECONDS = 1.0
"""How long a list of worktrees is used before an unknown folder is looked for in a new one."""
UNSERVED_SECONDS = 30.0
"""How long a folder in which agents work, and which is not served, is not looked for again."""
MOST_UNSERVED = 256


class ServedSpace(NamedTuple):
    """A space that can be followed: its area, its name, and the folder in which it is found."""

    area: Area
    space: str
    folder: str

    @property
    def key(self) -> str:
        """Its short name, in the ids of events."""
        return sha256(self.space.encode()).hexdigest()[:8]


class ServedFolders:
    """The served folders by their paths, each with a context whose stores stay open."""

    def __init__(
        self, variables: Mapping[str, str], arguments: Mapping[str, str | None] | None = None
    ) -> None:
        self.pool = StorePool()
        self.numbers: Callable[[], ServerNumbers] | None = None
        """What tells how the server is."""
        self._variables = variables
        self._arguments = arguments
        """The locations that were typed; they are those of the first folder's repository."""
        self._mutex = threading.Lock()
        self._contexts: dict[str, ServerContext] = {}
        self._roots: list[str] = []
        self._stamp = -1
        self._looked = float("-inf")
        self._unserved: dict[str, float] = {}

    def roots(self) -> list[str]:
        """The folders that the user's commands have named, the first one first."""
        stamp = running_server.folders_stamp()
        with self._mutex:
            if stamp != self._stamp:
                listed = running_server.list_folders()
                self._roots = list(dict.fromkeys([*self._roots, *listed]))
                for each in self._roots:
                    self._add(each)
                self._stamp = stamp
            return list(self._roots)

    def find(self, named: str | None) -> tuple[str, ServerContext]:
        """The served folder that a client means: the one it names or names something in.

        Without a name it is the first. Raises InvalidValue if no folder that is served fits, or if
        it is not there any more.
        """
        roots = self.roots()
        folder = roots[0] if named is None else self._match(named)
        if (
            folder is None
            and named is not None
            and time.monotonic() - self._looked > WORKTREES_SECONDS
        ):
            self._add_worktrees(roots)
            folder = self._match(named)
        if folder is None:
            reason = "is not served here; `herdbook serve` in it adds it"
            raise InvalidValue("folder", reason)
        if not Path(folder).is_dir():
            raise InvalidValue("folder", f"{folder} is served, but is not there any more")
        return folder, self._contexts[folder]

    def find_for(self, named: str | None, agent: str | None, session: str | None) -> ServerContext:
        """The context of a folder for a client that acts as an agent or in a session.

        Raises InvalidValue if no folder that is served fits.
        """
        folder, context = self.find(named)
        if not agent and not session:
            return context
        who = {AGENT: agent or "", SESSION: session or ""}
        return self._context(folder, {**self._variables, **who}, context.arguments)

    def spaces(self, named: list[str]) -> list[ServedSpace]:
        """The spaces of the named folders, or of all: the work of each, and the user's record.

        Raises the error of a named folder; of all folders, those in trouble are left out.
        """
        found: dict[str, ServedSpace] = {}
        for each in named or self.roots():
            with suppress(*(() if named else (HerdbookError,))):
                folder, context = self.find(each)
                workspace = context.call().workspace
                for area in (Area.WORK, Area.RECORD):
                    space = workspace.space(area)
                    found.setdefault(space, ServedSpace(area, space, folder))
        return list(found.values())

    def choice_key(self, folder: str | None) -> str | None:
        """The key of the repository of a folder, or of the first one; None if it is the only one.

        None also for one in trouble, which the page says.
        """
        roots = self.roots()
        if len(roots) == 1:
            return None
        try:
            work = {each.key for each in self.spaces([]) if each.area == Area.WORK}
            if len(work) > 1:
                return self.spaces([folder or roots[0]])[0].key
        except HerdbookError:
            pass
        return None

    def find_space(self, path: str) -> str | None:
        """The space of the plan for a folder that a hook has named; None if it is not served."""
        now = time.monotonic()
        if self._unserved.get(path, 0.0) > now:
            return None
        try:
            return self.find(path)[1].call().workspace.space(Area.WORK)
        except HerdbookError:
            if len(self._unserved) >= MOST_UNSERVED:
                self._unserved.clear()
            self._unserved[path] = now + UNSERVED_SECONDS
            return None

    def context(self, space: ServedSpace) -> ServerContext:
        """The context in which a space is read: in its folder, or in another one that is left."""
        folder = space.folder
        if not Path(folder).is_dir():
            left = (each.folder for each in self.spaces([]) if each.space == space.space)
            folder = next(left, folder)
        return self._contexts[folder]

    def last_entry(self, space: ServedSpace) -> int:
        """The number of the last entry in the journal of a space."""
        last: int = self.context(space).call().read(space.area, lambda uow: uow.journal.last())
        return last

    def positions(self) -> list[tuple[str, int]]:
        """The last entry of each space; of those alone whose stores can be read now."""
        found = []
        for each in self.spaces([]):
            with suppress(HerdbookError):
                found.append((each.space, self.last_entry(each)))
        return found

    def close(self) -> None:
        """Close all stores."""
        self.pool.close()

    def _match(self, named: str) -> str | None:
        """The longest served path that is the named one or leads to it."""
        path = os.path.normpath(named) if named.startswith("/") and "\0" not in named else ""
        with self._mutex:
            fitting = [each for each in self._contexts if f"{path}/".startswith(f"{each}/")]
        return max(fitting, key=len, default=None)

    def _add(self, folder: str, arguments: Mapping[str, str | None] | None = None) -> None:
        if folder not in self._contexts:
            given = self._arguments if not self._contexts else arguments
            self._contexts[folder] = self._context(folder, self._variables, given)

    def _context(
        self,
        folder: str,
        variables: Mapping[str, str],
        arguments: Mapping[str, str | None] | None = None,
    ) -> ServerContext:
        context = ServerContext(Path(folder), variables, arguments, pool=self.pool)
        context.numbers = self.numbers
        return context

    def _add_worktrees(self, roots: list[str]) -> None:
        self._looked = time.monotonic()
        found = [(root, each) for root in roots for each in _worktrees_of(root, self._variables)]
        with self._mutex:
            for root, each in found:
                self._add(each, self._contexts[root].arguments)


def _worktrees_of(root: str, variables: Mapping[str, str]) -> list[str]:
    """The worktrees that belong to the repository of a folder, on their own word as well."""
    try:
        facts = Workspace(Path(root), variables).facts
        if facts is None:
            return []
        listed = [each.path for each in list_worktrees(facts)]
        return [each for each in listed if _shared_folder(each, variables) == facts.common_dir]
    except HerdbookError:
        return []


def _shared_folder(path: str, variables: Mapping[str, str]) -> str | None:
    facts = Workspace(Path(path), variables).facts if Path(path).is_dir() else None
    return None if facts is None else facts.common_dir
