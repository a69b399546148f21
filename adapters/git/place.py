"""The facts about a folder's repository, gathered as cheaply as they can be.

Every hook and every command asks for them first, so nothing on the usual way here starts a process
or imports attrs, pathlib or subprocess: that alone would cost more than the answer.
"""

import os
from collections.abc import Mapping

from herdbook.adapters.git import discovery
from herdbook.adapters.git.config import Unsure, truth
from herdbook.adapters.git.machine import machine_id
from herdbook.adapters.git.pins import pinned_repository_id, pinned_worktree_id
from herdbook.domain.identity import GitFacts


def facts(
    folder: str | os.PathLike[str], *, environment: Mapping[str, str] | None = None
) -> GitFacts | None:
    """The facts about the worktree or git directory that this folder lies in.

    `environment` is the process' own unless given; what hooks set in it counts, as it does for git.
    """
    variables = os.environ if environment is None else environment
    here = _real(folder)
    place = _place(here, variables)
    if place is None:
        return None
    bare, origin_url = _settings(here, place, variables)
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
    from herdbook.adapters.git.program import elsewhere  # noqa: PLC0415 - seldom needed

    place = _place(facts.common_dir, elsewhere(os.environ))
    if place is not None and place.top_level is not None:
        return place.top_level
    folder, name = os.path.split(facts.common_dir)
    return folder if name == ".git" else facts.common_dir


def _place(folder: str, environment: Mapping[str, str]) -> discovery.Place | None:
    try:
        return discovery.found(folder, environment)
    except Unsure:
        from herdbook.adapters.git.asking import asked  # noqa: PLC0415 - seldom needed

        return asked(folder, environment)


def _real(folder: str | os.PathLike[str]) -> str:
    path = os.fspath(folder)
    if "\0" not in path and os.path.isdir(path):
        return os.path.realpath(path)
    from herdbook.domain.errors import InvalidValue  # noqa: PLC0415 - brings attrs

    raise InvalidValue("folder", f"{path!r} is no folder that can be entered")


def _settings(
    folder: str, place: discovery.Place, environment: Mapping[str, str]
) -> tuple[bool | None, str | None]:
    """Whether the repository says that it is bare, and where it says that it comes from."""
    try:
        said = discovery.settings(place.common_dir)
        if not said.includes:
            return said.bare, _origin(said.origin_urls)
        bare = said.bare
    except Unsure:
        bare = None
    from herdbook.adapters.git.asking import settings_asked  # noqa: PLC0415 - seldom needed

    word, urls = settings_asked(folder, environment)
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


def _is_bare(place: discovery.Place) -> bool:
    """What to think of a repository that does not say, the same from inside `.git` as outside."""
    if place.git_dir == place.common_dir and place.top_level is not None:
        return False
    return os.path.basename(place.common_dir) != ".git"


def _branch(place: discovery.Place, environment: Mapping[str, str]) -> str | None:
    try:
        return discovery.branch_of(place.git_dir)
    except Unsure:
        from herdbook.adapters.git.asking import branch_asked  # noqa: PLC0415 - seldom needed

        return branch_asked(place.git_dir, environment)


def _roots(place: discovery.Place, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The root commits; none of a shallow clone, whose history begins anywhere."""
    if os.path.exists(os.path.join(place.common_dir, "shallow")):
        return ()
    from herdbook.adapters.git.asking import root_commits  # noqa: PLC0415 - costly, seldom needed
    from herdbook.adapters.git.program import elsewhere  # noqa: PLC0415

    return root_commits(place.common_dir, elsewhere(environment))
