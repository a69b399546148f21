"""Who changes a file: agents whose worktrees have it otherwise than where their branches began.

Git is asked in a thread of its own. An editor that asks waits for it a moment; what takes longer is
told as it was known, and the editor is asked to ask again.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as TooLate
from typing import Any, NamedTuple

from herdbook.adapters.git import changes, folder_for_git, worktrees
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.lsp.workspace import Look
from herdbook.ports.world.git import GitWorktree
from herdbook.services.agents import editor_comments
from herdbook.services.agents.editor_comments import AgentAssignment

WAITS = 1.0
"""For so many seconds an editor waits for git."""
SOON = 0.1
"""For so many seconds git is waited for at the end."""
FRESH = 2.0
"""What git said is good for so many seconds."""
MOST_DIFFS = 500
LONGEST = 60
TRUNKS = ("refs/remotes/origin/HEAD",)
SHOW = "herdbook.agent"
_TOP = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}


class At(NamedTuple):
    """An agent and the files that its worktree changes."""

    hand: AgentAssignment
    paths: frozenset[str]


class Lenses:
    """Knows who changes which file of a repository, and looks again when it may be otherwise."""

    def __init__(self, see: Look, late: Callable[[], None]) -> None:
        self._see = see
        self._late = late
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "herdbook-lenses")
        self._looks: list[Future[list[At]]] = []
        self._known: list[At] = []
        self._until = 0.0
        self._forgotten = self._begun = self._saves = 0
        self._over = False
        self._diffs: dict[tuple[str, str], frozenset[str]] = {}
        self._unsaved: dict[str, tuple[float, frozenset[str]]] = {}

    def forget(self) -> None:
        """Ask the store again the next time; what git said a moment ago is still good."""
        with self._mutex:
            self._until = 0.0
            self._forgotten += 1

    def saved(self, path: str) -> None:
        """Ask git again the next time what is not committed where a file was saved."""
        with self._mutex:
            for tree in list(self._unsaved):
                if path.startswith(f"{os.path.realpath(tree)}/"):
                    del self._unsaved[tree]
            self._saves += 1
        self.forget()

    def of(self, name: str, waits: float = WAITS) -> list[dict[str, Any]]:
        """What stands above a file: a line for each agent that changes it."""
        return [lens(each.hand) for each in self._all(waits) if name in each.paths]

    def close(self) -> None:
        """End the thread, or let it end with the git that it waits for."""
        self._over = True
        with self._mutex:
            looks = list(self._looks)
        self._pool.shutdown(wait=False, cancel_futures=True)
        if not wait(looks, SOON).not_done:
            self._pool.shutdown()

    def _all(self, waits: float) -> list[At]:
        with self._mutex:
            if time.monotonic() < self._until:
                return self._known
            self._looks = [each for each in self._looks if not each.done()]
            if not self._looks or self._is_outdated(self._looks[-1]):
                self._looks.append(self._pool.submit(self._look))
            looking = self._looks[-1]
        try:
            return looking.result(waits)
        except CancelledError:  # this is closed, and nobody will look any more
            return self._known
        except TooLate:
            looking.add_done_callback(lambda _: self._late())
            return self._known

    def _is_outdated(self, looking: "Future[list[At]]") -> bool:
        """Whether something has changed since a look was begun, which it may not have seen."""
        return looking.running() and self._begun != self._forgotten

    def _look(self) -> list[At]:
        with self._mutex:
            forgotten = self._begun = self._forgotten
        found = self._at_work(self._see())
        with self._mutex:
            self._known = found
            if forgotten == self._forgotten:
                self._until = time.monotonic() + FRESH
        return found

    def _at_work(self, here: AppContext) -> list[At]:
        hands = here.read(Area.WORK, editor_comments.agent_assignments)
        if here.workspace.facts is None or not hands:
            return []
        listed = [
            each for each in worktrees.list_worktrees(here.workspace.facts) if each.prunable is None
        ]
        known = [each for each in listed if each.worktree_id is not None]
        trees = {each.worktree_id: each for each in known if each.head and not each.is_bare}
        trunk = _trunk(here, listed)
        touched: dict[tuple[str, str | None], frozenset[str]] = {}
        found = []
        for hand in hands:
            tree = trees.get(hand.agent.worktree_id)
            if tree is None or self._over:
                continue
            base = _base(here, tree, hand) or trunk
            if (tree.path, base) not in touched:
                touched[tree.path, base] = self._changed(here.workspace.variables, tree, base)
            found.append(At(hand, touched[tree.path, base]))
        return found

    def _changed(
        self, variables: Mapping[str, str], tree: GitWorktree, base: str | None
    ) -> frozenset[str]:
        head = tree.head or ""
        committed = self._diffs.get((base or "", head))
        if committed is None:
            began = None if base is None else changes.merge_base(tree.path, base, head, variables)
            told = (
                None if began is None else changes.changed_paths(tree.path, began, head, variables)
            )
            committed = told or frozenset()
            if len(self._diffs) >= MOST_DIFFS:
                self._diffs.clear()
            self._diffs[base or "", head] = committed
        return committed | self._uncommitted(variables, tree)

    def _uncommitted(self, variables: Mapping[str, str], tree: GitWorktree) -> frozenset[str]:
        with self._mutex:
            saves = self._saves
            until, known = self._unsaved.get(tree.path, (0.0, frozenset()))
        if time.monotonic() < until:
            return known
        found = changes.uncommitted_paths(tree.path, variables) or frozenset()
        with self._mutex:
            # A save that came while git looked may be one that it has not seen.
            if saves == self._saves:
                self._unsaved[tree.path] = time.monotonic() + FRESH, found
        return found


def _base(here: AppContext, tree: GitWorktree, hand: AgentAssignment) -> str | None:
    """The commit of the branch that the agent's initiative gathers its work on."""
    branch = None if hand.initiative is None else hand.initiative.branch
    if branch is None or branch == tree.branch:
        return None
    return changes.commit_of(tree.path, f"refs/heads/{branch}", here.workspace.variables)


def _trunk(here: AppContext, listed: list[GitWorktree]) -> str | None:
    """The commit that branches are compared with: the origin's, else the repository's own."""
    if here.workspace.facts is None:
        return None
    folder = folder_for_git(here.workspace.facts)
    for name in (*TRUNKS, *(each.head for each in listed[:1] if each.head), "main-worktree/HEAD"):
        commit = changes.commit_of(folder, name, here.workspace.variables)
        if commit is not None:
            return commit
    return None


def lens(hand: AgentAssignment) -> dict[str, Any]:
    """An agent above a file: its name, and what it is at."""
    agent, tasks = hand.agent, hand.tasks
    title = f"{agent.name}: {_told(tasks[0])}" if tasks else f"{agent.name} ({agent.status})"
    if len(tasks) > 1:
        title += f", +{len(tasks) - 1} more"
    command = {"title": title, "command": SHOW, "arguments": [agent.id]}
    return {"range": _TOP, "command": command}


def _told(task: Task) -> str:
    return f"{short(task.name)} (task {task.id[:12]})"


def short(text: str, longest: int = LONGEST) -> str:
    """A text on one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
