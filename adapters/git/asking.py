"""What git itself says of a folder, where reading its files is not enough."""

import os
from collections.abc import Mapping

from herdbook.adapters.git.discovery import Place
from herdbook.adapters.git.program import ran, refuse

_NOWHERE = "not a git repository (or any "
_OURS = r"^(core\.bare|remote\.origin\.url)$"


def asked(folder: str, environment: Mapping[str, str]) -> Place | None:
    """The place of a folder in one process; None outside any repository."""
    # Paths may hold newlines, so a word that nobody can know beforehand stands between them.
    mark = f"--herdbook-{os.urandom(16).hex()}"
    wanted = ["--absolute-git-dir", mark, "--git-common-dir", mark, "--show-toplevel"]
    status, told, complaint = ran(["-C", folder, "rev-parse", *wanted], environment)
    parts = os.fsdecode(told).split(f"\n{mark}\n")
    if len(parts) < 3:  # noqa: PLR2004 - git said no before it came to the worktree
        if complaint.startswith(_NOWHERE):
            return None
        refuse("git", status, complaint)
    git_dir, common_dir, top_level = parts
    return Place(
        git_dir=os.path.realpath(git_dir),
        common_dir=os.path.realpath(os.path.join(folder, common_dir)),
        top_level=os.path.realpath(top_level.removesuffix("\n")) if status == 0 else None,
    )


def settings_asked(folder: str, environment: Mapping[str, str]) -> tuple[str | None, list[str]]:
    """`core.bare` and the origin's URLs, as the repository's config and what it includes say."""
    wanted = ["config", "--local", "--includes", "-z", "--get-regexp", _OURS]
    status, told, complaint = ran(["-C", folder, *wanted], environment)
    if status not in {0, 1}:
        refuse("git", status, complaint)
    bare = None
    urls = []
    for entry in told.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, has_value, value = entry.partition("\n")
        if key == "core.bare":
            bare = value if has_value else "true"
        else:
            urls.append(value)
    return bare, urls


def branch_asked(git_dir: str, environment: Mapping[str, str]) -> str | None:
    """The branch that HEAD names; None when it is detached."""
    wanted = ["--git-dir", git_dir, "symbolic-ref", "--quiet", "HEAD"]
    status, told, complaint = ran(wanted, environment)
    if status not in {0, 1}:
        refuse("git", status, complaint)
    name = told.decode("utf-8", "surrogateescape").removesuffix("\n")
    return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None


def root_commits(common_dir: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The first commits of the repository's own HEAD; none when it has no commit yet."""
    git = ["--git-dir", common_dir, "--no-replace-objects"]
    wanted = ["rev-list", "--max-parents=0", "HEAD", "--"]
    status, told, complaint = ran([*git, *wanted], environment)
    if status == 0:
        return tuple(sorted(told.decode("ascii").split()))
    born, _, _ = ran([*git, "rev-parse", "--verify", "--quiet", "HEAD"], environment)
    if born != 1:
        refuse("git", status, complaint)
    return ()
