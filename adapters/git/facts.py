"""The facts about a folder's repository, gathered as cheaply as they can be.

Every hook and every command asks for them first, so nothing on the usual way here starts a process
or imports attrs, pathlib or subprocess: that alone would cost more than the answer.
"""

import os
from collections.abc import Mapping

from herdbook.adapters.git import discovery
from herdbook.adapters.git.config import Unsure, truth
from herdbook.adapters.git.discovery import Place
from herdbook.adapters.git.git_files import branch_of
from herdbook.adapters.git.identity_files import pinned_repository_id, pinned_worktree_id
from herdbook.adapters.git.machine_id import machine_id
from herdbook.adapters.git.ownership import Distrusted, leads_to, within
from herdbook.domain.location.identity import GitFacts
from herdbook.ports.world.git import GitLookup


def facts(
    folder: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None
) -> GitFacts | None:
    """The facts about the worktree or git directory that this folder lies in.

    `environment` is the process' own unless given; what hooks set in it counts, as it does for git.
    """
    return find(folder, environment=environment).facts


def find(
    folder: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None
) -> GitLookup:
    """The facts about a folder, and why there are none where a repository is not to be trusted."""
    variables = os.environ if environment is None else environment
    here = _real(folder)
    try:
        place = _place(here, variables)
        if place is None:
            return GitLookup(None)
        return GitLookup(_facts(place, variables), place.doubt)
    except Distrusted as error:
        return GitLookup(None, error.sentence)


def _facts(place: Place, variables: Mapping[str, str]) -> GitFacts:
    bare, origin_url = _settings(place, variables)
    repository_pin = pinned_repository_id(place.common_dir)
    roots: tuple[str, ...] = ()
    if origin_url is None and repository_pin is None:
        roots = _roots(place, variables)
    return GitFacts(
        origin_url=origin_url,
        root_commits=roots,
        common_dir=place.common_dir,
        git_dir=place.git_dir,
        machine_id=machine_id(),
        top_level=place.top_level,
        branch=_branch(place, variables),
        is_main=place.git_dir == place.common_dir,
        is_bare=_is_bare(place) if bare is None else bare,
        pinned_repository_id=repository_pin,
        pinned_worktree_id=pinned_worktree_id(place.git_dir),
    )


def repository_root(facts: GitFacts) -> str:
    """The folder that stands for the whole repository, the same from all its worktrees.

    It is the root of the main worktree, or the common git directory where there is none, or where
    that lies apart and does not say which worktree is its own.
    """
    if facts.is_bare:
        return facts.common_dir
    return discovery.main_worktree(facts.common_dir, _named(facts.common_dir)) or facts.common_dir


def folder_for_git(facts: GitFacts) -> str:
    """The folder in which git, when it is started there, works with what these facts speak of."""
    for folder in (facts.top_level, os.path.dirname(facts.git_dir)):
        if folder is not None and leads_to(folder, facts.git_dir):
            return folder
    return facts.git_dir


def _named(common_dir: str) -> str | None:
    """What `core.worktree` says."""
    try:
        return discovery.settings(common_dir).worktree
    except Unsure:
        from herdbook.adapters.git.git_cli import worktree_asked  # noqa: PLC0415 - seldom needed

        return worktree_asked(common_dir, os.environ)


def _place(folder: str, environment: Mapping[str, str]) -> Place | None:
    """The place of a folder; raises Distrusted where git would not use what is there.

    A folder that looks like a bare repository may have come with a clone, as ordinary files. Inside
    the worktree of another repository it is a folder like any other, whatever git takes it for.
    """
    answer = None
    try:
        found = discovery.found(folder, environment)
    except Unsure:
        answer = _asked(folder, environment)
        if answer is None or "GIT_DIR" in environment or not within(folder, answer.git_dir):
            return answer
        bare = answer.git_dir
    else:
        if not isinstance(found, discovery.Bare):
            return found
        bare = found.path
    outer = _place_around(bare, environment)
    return outer or answer or _asked(folder, environment)


def _place_around(bare: str, environment: Mapping[str, str]) -> Place | None:
    """The place in whose worktree a bare repository lies, if it does and is no part of its `.git`.

    It may be part of that: the git directories of worktrees and submodules look like bare ones.
    """
    try:
        holder = discovery.holder_above(bare)
    except Unsure:
        return None
    if holder is None or leads_to(holder, bare):
        return None
    outer = _place(holder, environment)
    if outer is None or outer.top_level is None or not within(bare, outer.top_level):
        return None
    for git_dir in (outer.git_dir, outer.common_dir):
        # Worktrees may be put into the folder of a bare repository; what is in them is theirs.
        if within(bare, git_dir) and not within(outer.top_level, git_dir):
            return None
    return outer


def _asked(folder: str, environment: Mapping[str, str]) -> Place | None:
    from herdbook.adapters.git.git_cli import asked  # noqa: PLC0415 - seldom needed

    return asked(folder, environment)


def _real(folder: str | os.PathLike[str]) -> str:
    path = os.fspath(folder)
    if "\0" not in path and os.path.isdir(path):
        return os.path.realpath(path)
    from herdbook.domain.errors import InvalidValue  # noqa: PLC0415 - brings attrs

    raise InvalidValue("folder", f"{path!r} is no folder that can be entered")


def _settings(place: Place, environment: Mapping[str, str]) -> tuple[bool | None, str | None]:
    """Whether the repository says that it is bare, and where it says that it comes from."""
    try:
        said = discovery.settings(place.common_dir)
        if not said.includes:
            return said.bare, _origin(said.origin_urls)
        bare = said.bare
    except Unsure:
        bare = None
    from herdbook.adapters.git.git_cli import settings_asked  # noqa: PLC0415 - seldom needed

    word, urls = settings_asked(place.folder, environment)
    if bare is None and word is not None:
        bare = _truth(word)
    return bare, _origin(urls)


def _truth(word: str) -> bool:
    try:
        return truth(word)
    except Unsure:
        return word.strip("0") not in {"", "-", "+"}


def _origin(urls: list[str]) -> str | None:
    """The URL git fetches from: the first one; an empty one takes those before it back."""
    while "" in urls:
        urls = urls[urls.index("") + 1 :]
    return urls[0] if urls else None


def _is_bare(place: Place) -> bool:
    """What to think of a repository that does not say, the same from inside `.git` as outside."""
    if place.git_dir == place.common_dir and place.top_level is not None:
        return False
    return os.path.basename(place.common_dir) != ".git"


def _branch(place: Place, environment: Mapping[str, str]) -> str | None:
    try:
        return branch_of(place.git_dir)
    except Unsure:
        from herdbook.adapters.git.git_cli import branch_asked  # noqa: PLC0415 - seldom needed

        return branch_asked(place.folder, environment)


def _roots(place: Place, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The root commits; none of a shallow clone, whose history begins anywhere."""
    if os.path.exists(os.path.join(place.common_dir, "shallow")):
        return ()
    from herdbook.adapters.git.git_cli import root_commits  # noqa: PLC0415 - costly, seldom needed

    return root_commits(place.folder, environment)
