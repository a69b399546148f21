"""Which agents change a file: those whose worktrees differ from where their branches began.

Git runs in a thread of its own. A request of the editor waits for it a moment; if it takes longer,
the answer is what was known before, and the editor is asked to request the lenses again.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as GitTimeout
from typing import Any, NamedTuple

from herdbook.adapters.git import changes, folder_for_git, worktrees
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.lsp.editor_worktree import ContextFactory
from herdbook.ports.world.git import GitWorktree
from herdbook.services.agents import editor_comments
from herdbook.services.agents.editor_comments import AgentAssignment

GIT_TIMEOUT = 1.0
"""Seconds that a request of the editor waits for git."""
CLOSE_TIMEOUT = 0.1
"""Seconds that `close` waits for git."""
CACHE_SECONDS = 2.0
"""Seconds for which an answer of git is used again."""
MOST_DIFFS = 500
LONGEST = 60
SHOW_AGENT = "herdbook.agent"
_TOP = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}


class AgentChanges(NamedTuple):
    """An agent and the files that its worktree changes."""

    assignment: AgentAssignment
    paths: frozenset[str]


class Lenses:
    """Finds which agents change which files of a repository, and caches the answer."""

    def __init__(self, get_context: ContextFactory, on_late: Callable[[], None]) -> None:
        self._get_context = get_context
        self._on_late = on_late
        self._mutex = threading.Lock()
        self._pool = ThreadPoolExecutor(1, "herdbook-lenses")
        self._loads: list[Future[list[AgentChanges]]] = []
        self._known: list[AgentChanges] = []
        self._until = 0.0
        self._forgotten = self._begun = self._saves = 0
        self._over = False
        self._diffs: dict[tuple[str, str], frozenset[str]] = {}
        self._uncommitted: dict[str, tuple[float, frozenset[str]]] = {}

    def forget(self) -> None:
        """Ask the store again the next time; recent answers of git are still used."""
        with self._mutex:
            self._until = 0.0
            self._forgotten += 1

    def note_save(self, path: str) -> None:
        """Ask git again the next time for uncommitted changes of the worktree of a saved file."""
        with self._mutex:
            for tree in list(self._uncommitted):
                if path.startswith(f"{os.path.realpath(tree)}/"):
                    del self._uncommitted[tree]
            self._saves += 1
        self.forget()

    def lenses_for(self, name: str, timeout: float = GIT_TIMEOUT) -> list[dict[str, Any]]:
        """The code lenses of a file: one for each agent that changes it."""
        return [code_lens(each.assignment) for each in self._changes(timeout) if name in each.paths]

    def close(self) -> None:
        """End the thread; one that waits for git ends when git does."""
        self._over = True
        with self._mutex:
            loads = list(self._loads)
        self._pool.shutdown(wait=False, cancel_futures=True)
        if not wait(loads, CLOSE_TIMEOUT).not_done:
            self._pool.shutdown()

    def _changes(self, timeout: float) -> list[AgentChanges]:
        with self._mutex:
            if time.monotonic() < self._until:
                return self._known
            self._loads = [each for each in self._loads if not each.done()]
            if not self._loads or self._is_outdated(self._loads[-1]):
                self._loads.append(self._pool.submit(self._load))
            load = self._loads[-1]
        try:
            return load.result(timeout)
        except CancelledError:  # this is closed, and nothing is loaded any more
            return self._known
        except GitTimeout:
            load.add_done_callback(lambda _: self._on_late())
            return self._known

    def _is_outdated(self, load: "Future[list[AgentChanges]]") -> bool:
        """Whether something has changed since a load merge_base, which it may have missed."""
        return load.running() and self._begun != self._forgotten

    def _load(self) -> list[AgentChanges]:
        with self._mutex:
            forgotten = self._begun = self._forgotten
        found = self._find_changes(self._get_context())
        with self._mutex:
            self._known = found
            if forgotten == self._forgotten:
                self._until = time.monotonic() + CACHE_SECONDS
        return found

    def _find_changes(self, app: AppContext) -> list[AgentChanges]:
        assignments = app.read(Area.WORK, editor_comments.agent_assignments)
        if app.workspace.facts is None or not assignments:
            return []
        usable = [
            each for each in worktrees.list_worktrees(app.workspace.facts) if each.prunable is None
        ]
        known = [each for each in usable if each.worktree_id is not None]
        trees = {each.worktree_id: each for each in known if each.head and not each.is_bare}
        trunk = _trunk_commit(app, usable)
        changed: dict[tuple[str, str | None], frozenset[str]] = {}
        found = []
        for assignment in assignments:
            tree = trees.get(assignment.agent.worktree_id)
            if tree is None or self._over:
                continue
            base = _base_commit(app, tree, assignment) or trunk
            if (tree.path, base) not in changed:
                changed[tree.path, base] = self._changed_paths(app.workspace.variables, tree, base)
            found.append(AgentChanges(assignment, changed[tree.path, base]))
        return found

    def _changed_paths(
        self, variables: Mapping[str, str], tree: GitWorktree, base: str | None
    ) -> frozenset[str]:
        head = tree.head or ""
        committed = self._diffs.get((base or "", head))
        if committed is None:
            merge_base = (
                None if base is None else changes.merge_base(tree.path, base, head, variables)
            )
            paths = (
                None
                if merge_base is None
                else changes.changed_paths(tree.path, merge_base, head, variables)
            )
            committed = paths or frozenset()
            if len(self._diffs) >= MOST_DIFFS:
                self._diffs.clear()
            self._diffs[base or "", head] = committed
        return committed | self._uncommitted_paths(variables, tree)

    def _uncommitted_paths(self, variables: Mapping[str, str], tree: GitWorktree) -> frozenset[str]:
        with self._mutex:
            saves = self._saves
            until, known = self._uncommitted.get(tree.path, (0.0, frozenset()))
        if time.monotonic() < until:
            return known
        found = changes.uncommitted_paths(tree.path, variables) or frozenset()
        with self._mutex:
            # Git may have missed a save that came while it ran.
            if saves == self._saves:
                self._uncommitted[tree.path] = time.monotonic() + CACHE_SECONDS, found
        return found


def _base_commit(app: AppContext, tree: GitWorktree, assignment: AgentAssignment) -> str | None:
    """The commit of the branch of the agent's initiative; None if it has none or is on it."""
    branch = None if assignment.initiative is None else assignment.initiative.branch
    if branch is None or branch == tree.branch:
        return None
    return changes.commit_of(tree.path, f"refs/heads/{branch}", app.workspace.variables)


def _trunk_commit(app: AppContext, trees: list[GitWorktree]) -> str | None:
    """The commit that branches are compared with: the HEAD of origin, else of the repository."""
    if app.workspace.facts is None:
        return None
    folder = folder_for_git(app.workspace.facts)
    for name in (
        *changes.TRUNKS,
        *(each.head for each in trees[:1] if each.head),
        "main-worktree/HEAD",
    ):
        commit = changes.commit_of(folder, name, app.workspace.variables)
        if commit is not None:
            return commit
    return None


def code_lens(assignment: AgentAssignment) -> dict[str, Any]:
    """The code lens of an agent: its name and its tasks."""
    agent, tasks = assignment.agent, assignment.tasks
    title = f"{agent.name}: {_task_label(tasks[0])}" if tasks else f"{agent.name} ({agent.status})"
    if len(tasks) > 1:
        title += f", +{len(tasks) - 1} more"
    command = {"title": title, "command": SHOW_AGENT, "arguments": [agent.id]}
    return {"range": _TOP, "command": command}


def _task_label(task: Task) -> str:
    return f"{shorten(task.name)} (task {task.id[:12]})"


def shorten(text: str, longest: int = LONGEST) -> str:
    """A text on one line, cut if it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
