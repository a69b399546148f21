"""The facts about a folder's repository, gathered as cheaply as possible.

Every hook and every command needs them first, so nothing on the usual path here starts a process
or imports attrs, pathlib or subprocess: that alone would cost more than the answer.
"""

import os
from collections.abc import Mapping

from herdbook.adapters.git import discovery
from herdbook.adapters.git.config import NeedsGit, parse_boolean
from herdbook.adapters.git.discovery import GitDirectories
from herdbook.adapters.git.git_files import branch_of
from herdbook.adapters.git.identity_files import pinned_repository_id, pinned_worktree_id
from herdbook.adapters.git.machine_id import machine_id
from herdbook.adapters.git.ownership import UntrustedRepository, is_within, leads_to
from herdbook.domain.location.identity import GitFacts
from herdbook.ports.world.git import GitLookup


def facts(
    folder: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None
) -> GitFacts | None:
    """The facts about the worktree or git directory that this folder is in; None outside of any.

    - They are what git itself would say there: any sub-directory and any spelling of its path gives
      the same, a submodule is a repository of its own, and the variables that hooks set count.
      `environment` is the process' own by default.
    - `is_bare` is about the repository, not the folder: it is also true in a linked worktree of a
      bare repository. `is_main` says that the git directory is the repository's own.
    - `top_level` is None where git has no worktree: in a bare repository and inside `.git`, and
      where the worktree that git would use and the repository disagree.
    - `branch` is the one that HEAD names, also before its first commit; None when detached.
    - `origin_url` is the first `remote.origin.url` of the repository's own config and what that
      includes, as it is written there: no `insteadOf` is applied.
    - `root_commits` are collected only where the identity depends on them: without an origin and
      without a pin. They are those of the main worktree's HEAD, so that all worktrees agree.

    Raises what `find` raises, and InvalidValue where git refuses what it finds.
    """
    return find(folder, environment=environment).facts


def find(
    folder: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None
) -> GitLookup:
    """The facts about a folder, and the reason if a repository is there but not trusted.

    A repository counts where git would use it: its owner is the user, or the user's own settings
    name it (`safe.directory`); a bare one that was not named, where the settings allow that
    (`safe.bareRepository`) and it is not a folder of another repository's worktree. Raises
    InvalidValue for a folder that cannot be entered.
    """
    variables = os.environ if environment is None else environment
    here = _real_path(folder)
    try:
        dirs = _directories(here, variables)
        if dirs is None:
            return GitLookup(None)
        return GitLookup(_facts(dirs, variables), dirs.problem)
    except UntrustedRepository as error:
        return GitLookup(None, error.sentence)


def _facts(dirs: GitDirectories, variables: Mapping[str, str]) -> GitFacts:
    bare, origin_url = _settings(dirs, variables)
    repository_pin = pinned_repository_id(dirs.common_dir)
    roots: tuple[str, ...] = ()
    if origin_url is None and repository_pin is None:
        roots = _root_commits(dirs, variables)
    return GitFacts(
        origin_url=origin_url,
        root_commits=roots,
        common_dir=dirs.common_dir,
        git_dir=dirs.git_dir,
        machine_id=machine_id(),
        top_level=dirs.top_level,
        branch=_branch(dirs, variables),
        is_main=dirs.git_dir == dirs.common_dir,
        is_bare=_is_bare(dirs) if bare is None else bare,
        pinned_repository_id=repository_pin,
        pinned_worktree_id=pinned_worktree_id(dirs.git_dir),
    )


def repository_root(facts: GitFacts) -> str:
    """The folder that represents the whole repository, the same from all its worktrees.

    It is the root of the main worktree, or the common git directory if there is none, or if that
    is elsewhere and does not name its worktree.
    """
    if facts.is_bare:
        return facts.common_dir
    return (
        discovery.main_worktree(facts.common_dir, _configured_worktree(facts.common_dir))
        or facts.common_dir
    )


def folder_for_git(facts: GitFacts) -> str:
    """A folder in which git, when started there, uses the repository of these facts."""
    for folder in (facts.top_level, os.path.dirname(facts.git_dir)):
        if folder is not None and leads_to(folder, facts.git_dir):
            return folder
    return facts.git_dir


def _configured_worktree(common_dir: str) -> str | None:
    """The value of `core.worktree`."""
    try:
        return discovery.settings(common_dir).worktree
    except NeedsGit:
        from herdbook.adapters.git.git_cli import worktree_from_git  # noqa: PLC0415 - seldom needed

        return worktree_from_git(common_dir, os.environ)


def _directories(folder: str, environment: Mapping[str, str]) -> GitDirectories | None:
    """The git directories of a folder; raises UntrustedRepository if git would refuse to use them.

    A folder that looks like a bare repository may have come with a clone, as ordinary files. Inside
    the worktree of another repository it is treated as an ordinary folder, unlike git does.
    """
    answer = None
    try:
        found = discovery.discover(folder, environment)
    except NeedsGit:
        answer = _ask_git(folder, environment)
        if answer is None or "GIT_DIR" in environment or not is_within(folder, answer.git_dir):
            return answer
        bare = answer.git_dir
    else:
        if not isinstance(found, discovery.BareCandidate):
            return found
        bare = found.path
    outer = _directories_around(bare, environment)
    return outer or answer or _ask_git(folder, environment)


def _directories_around(bare: str, environment: Mapping[str, str]) -> GitDirectories | None:
    """The directories of the worktree that a bare repository is in, unless it is in its `.git`.

    It may be in there: the git directories of worktrees and submodules look like bare ones.
    """
    try:
        holder = discovery.repository_above(bare)
    except NeedsGit:
        return None
    if holder is None or leads_to(holder, bare):
        return None
    outer = _directories(holder, environment)
    if outer is None or outer.top_level is None or not is_within(bare, outer.top_level):
        return None
    for git_dir in (outer.git_dir, outer.common_dir):
        # Worktrees may be in the folder of a bare repository; what is in them belongs to them.
        if is_within(bare, git_dir) and not is_within(outer.top_level, git_dir):
            return None
    return outer


def _ask_git(folder: str, environment: Mapping[str, str]) -> GitDirectories | None:
    from herdbook.adapters.git.git_cli import discover_with_git  # noqa: PLC0415 - seldom needed

    return discover_with_git(folder, environment)


def _real_path(folder: str | os.PathLike[str]) -> str:
    path = os.fspath(folder)
    if "\0" not in path and os.path.isdir(path):
        return os.path.realpath(path)
    from herdbook.domain.errors import InvalidValue  # noqa: PLC0415 - brings attrs

    raise InvalidValue("folder", f"{path!r} is no folder that can be entered")


def _settings(
    dirs: GitDirectories, environment: Mapping[str, str]
) -> tuple[bool | None, str | None]:
    """`core.bare` and the URL of the origin, as the repository has them."""
    try:
        found_settings = discovery.settings(dirs.common_dir)
        if not found_settings.includes:
            return found_settings.bare, _origin(found_settings.origin_urls)
        bare = found_settings.bare
    except NeedsGit:
        bare = None
    from herdbook.adapters.git.git_cli import settings_from_git  # noqa: PLC0415 - seldom needed

    word, urls = settings_from_git(dirs.folder, environment)
    if bare is None and word is not None:
        bare = _parse_boolean(word)
    return bare, _origin(urls)


def _parse_boolean(word: str) -> bool:
    try:
        return parse_boolean(word)
    except NeedsGit:
        return word.strip("0") not in {"", "-", "+"}


def _origin(urls: list[str]) -> str | None:
    """The URL git fetches from: the first one; an empty one clears those before it."""
    while "" in urls:
        urls = urls[urls.index("") + 1 :]
    return urls[0] if urls else None


def _is_bare(dirs: GitDirectories) -> bool:
    """Whether a repository without `core.bare` is bare, the same from inside `.git` as outside."""
    if dirs.git_dir == dirs.common_dir and dirs.top_level is not None:
        return False
    return os.path.basename(dirs.common_dir) != ".git"


def _branch(dirs: GitDirectories, environment: Mapping[str, str]) -> str | None:
    try:
        return branch_of(dirs.git_dir)
    except NeedsGit:
        from herdbook.adapters.git.git_cli import branch_from_git  # noqa: PLC0415 - seldom needed

        return branch_from_git(dirs.folder, environment)


def _root_commits(dirs: GitDirectories, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The root commits; none for a shallow clone, whose history begins anywhere."""
    if os.path.exists(os.path.join(dirs.common_dir, "shallow")):
        return ()
    from herdbook.adapters.git.git_cli import root_commits  # noqa: PLC0415 - costly, seldom needed

    return root_commits(dirs.folder, environment)
