"""Where the work on something is: branches and worktrees, and the commit each began at."""

from collections.abc import Iterable
from typing import NamedTuple

from herdbook.adapters.git import changes, folder_for_git, worktrees
from herdbook.adapters.git.changes import TRUNKS
from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.context import AppContext
from herdbook.ports.world.git import GitWorktree
from herdbook.services.plan.review_subjects import ReviewSubject

USUAL_TRUNKS = ("main", "master")
"""What the default branch is called where nothing says so."""
NO_OTHER = "another branch"
"""What a branch is compared with where there is no other."""


class WorkSource(NamedTuple):
    """A branch, or the commit of a worktree, and the commit at which the work on it began.

    `base` is None if it has no commit in common with what it is compared with.
    """

    name: str
    head: str
    base: str | None
    base_name: str
    agents: tuple[str, ...]
    worktree: str | None

    @property
    def differs(self) -> bool:
        """Whether anything was committed since it began."""
        return self.base is not None and self.base != self.head


class WorkRepository:
    """The repository of a call: its commits and worktrees, read only."""

    def __init__(self, app: AppContext) -> None:
        facts = app.workspace.facts
        if facts is None:
            reason = app.workspace.repository_problem or "this folder is in no git repository"
            raise InvalidValue("repository", reason)
        self.folder = folder_for_git(facts)
        self.variables = app.workspace.variables
        self.trees = [
            each
            for each in worktrees.list_worktrees(facts)
            if each.prunable is None and not each.is_bare and each.head is not None
        ]

    def branch_commit(self, branch: str | None) -> str | None:
        """The commit of a local branch."""
        if branch is None:
            return None
        return changes.commit_of(self.folder, f"refs/heads/{branch}", self.variables)

    def merge_base(self, one: str, other: str) -> str | None:
        """The last commit that two have in common."""
        return changes.merge_base(self.folder, one, other, self.variables)

    def has(self, commit: str, source: WorkSource) -> bool:
        """Whether a commit is one that a source was at since it began."""
        return self.merge_base(commit, source.head) == commit

    def trunk(self, default: str | None, apart_from: str | None) -> tuple[str, str] | None:
        """The commit and the name of the default branch, if that is another than a branch."""
        for name in TRUNKS:
            commit = changes.commit_of(self.folder, name, self.variables)
            if commit is not None:
                return commit, name.removeprefix("refs/remotes/").removesuffix("/HEAD")
        main = next((each.branch for each in self.trees if each.is_main), None)
        for branch in (default, main, *USUAL_TRUNKS):
            commit = None if branch == apart_from else self.branch_commit(branch)
            if branch is not None and commit is not None:
                return commit, branch
        return None


def find_sources(repository: WorkRepository, subject: ReviewSubject) -> list[WorkSource]:
    """Where the work on a subject is, most likely first.

    That of an initiative or an errand is on its branch; that of a phase or a task in the worktrees
    of its agents, and then on the branch of its initiative.
    """
    names = _names(subject)
    found: dict[str, WorkSource] = {}
    for name, head, tree in _places(repository, subject):
        branch = name if tree is None else tree.branch
        base, base_name = _find_base(repository, subject, head, branch)
        agents = () if tree is None else tuple(names.get(tree.worktree_id, ()))
        path = None if tree is None else tree.path
        found.setdefault(name, WorkSource(name, head, base, base_name, agents, path))
    return list(found.values())


def _places(
    repository: WorkRepository, subject: ReviewSubject
) -> list[tuple[str, str, GitWorktree | None]]:
    """Name, commit and worktree of everything that may have the work, most likely first."""
    of_agents = [
        (each.branch or f"detached at {(each.head or '')[:10]}", each.head or "", each)
        for each in _trees_of(repository.trees, subject)
    ]
    own = repository.branch_commit(subject.branch)
    if own is None or subject.branch is None:
        return [*of_agents]
    tree = next((each for each in repository.trees if each.branch == subject.branch), None)
    of_branch = (subject.branch, own, tree)
    if subject.kind in ("initiative", "errand"):
        return [of_branch, *of_agents]
    return [*of_agents, of_branch]


def choose_source(sources: Iterable[WorkSource], wanted: str | None) -> WorkSource | None:
    """The source of a name, else the first that differs, else the first, else None.

    Raises InvalidValue, with those there are, for a name that none has.
    """
    known = list(sources)
    if wanted is None:
        return next((each for each in known if each.differs), known[0] if known else None)
    for each in known:
        if each.name == wanted:
            return each
    names = ", ".join(each.name for each in known) or "none"
    raise InvalidValue("source", f"{wanted!r} is not one of the branches of this work: {names}")


def _names(subject: ReviewSubject) -> dict[str | None, list[str]]:
    """The names of the agents of each worktree."""
    found: dict[str | None, list[str]] = {}
    for each in subject.agents:
        found.setdefault(each.worktree_id, []).append(each.name)
    return found


def _trees_of(trees: Iterable[GitWorktree], subject: ReviewSubject) -> list[GitWorktree]:
    """The worktrees of the agents, in the order of the agents."""
    known = {each.worktree_id: each for each in trees if each.worktree_id is not None}
    ids = dict.fromkeys(each.worktree_id for each in subject.agents)
    return [known[each] for each in ids if each in known]


def _find_base(
    repository: WorkRepository, subject: ReviewSubject, head: str, branch: str | None
) -> tuple[str | None, str]:
    """The commit at which the work began, and the name of what that was found by."""
    noted = subject.merge_base
    if noted is not None:
        commit = changes.commit_of(repository.folder, noted, repository.variables)
        if commit is not None and commit != head and repository.merge_base(commit, head) == commit:
            return commit, "the merge base of the phase"
    target = None
    if subject.kind != "errand" and subject.branch != branch:
        own = repository.branch_commit(subject.branch)
        target = None if own is None or subject.branch is None else (own, subject.branch)
    if target is None and subject.kind == "errand":
        own = repository.branch_commit(subject.base_branch)
        target = None if own is None or subject.base_branch is None else (own, subject.base_branch)
    target = target or repository.trunk(subject.base_branch, branch)
    if target is None:
        return None, NO_OTHER
    return repository.merge_base(target[0], head), target[1]
