"""What `git status` says of a worktree, without running a filter that its repository names.

Git compares a file whose time has changed by what its filter makes of it. A filter of the user's
own settings runs as always; one that only the repository's config names is left out, so such a file
counts as changed until the user's own git has looked at it. Submodules are compared by their
commits alone: git would start itself in each, where another config counts.
"""

from collections.abc import Mapping

from herdbook.adapters.git.git_process import ask_git

_USER_SCOPES = frozenset({"system", "global", "command"})
_UNKNOWN_OPTION = 129
_REFUSED = 128


def status(
    folder: str, environment: Mapping[str, str], patience: float, *, untracked: str
) -> tuple[int, bytes, str]:
    """Exit status, output in the short form that ends lines with NUL, and git's complaint.

    `untracked` is `all` for every file that git does not track, or `normal` for folders of them.
    """
    try:
        settings = _without_filters(folder, environment, patience)
    except ValueError as error:
        return _REFUSED, b"", str(error)
    words = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"]
    return ask_git(
        ["-C", folder, *words, f"--untracked-files={untracked}"],
        environment,
        patience,
        settings=settings,
    )


def _without_filters(
    folder: str, environment: Mapping[str, str], patience: float
) -> dict[str, str]:
    """Settings that undo what the repository's config says of filters."""
    here, wanted = ["-C", folder, "config", "-z"], ["--get-regexp", r"^filter\."]
    ended, told, _ = ask_git([*here, "--show-scope", *wanted], environment, patience)
    if ended == _UNKNOWN_OPTION:  # before git 2.26, where all filters are left out
        ended, told, _ = ask_git([*here, *wanted], environment, patience)
        told = b"".join(b"unknown\0" + each + b"\0" for each in told.split(b"\0")[:-1])
    if ended != 0:
        return {}  # there is none, or git will complain of the config again
    fields = told.decode("utf-8", "surrogateescape").split("\0")[:-1]
    own: dict[str, str] = {}
    foreign: list[str] = []
    for scope, entry in zip(fields[::2], fields[1::2], strict=True):
        key, has_value, value = entry.partition("\n")
        if scope in _USER_SCOPES:
            own[key] = value if has_value else "true"
        else:
            foreign.append(key)
    if any("=" in key for key in foreign):
        # Git takes what stands before the first `=` for the name, so this one cannot be undone.
        raise ValueError("a filter of the repository has a name with `=`, so nothing was compared")
    return {key: own.get(key, _neutral_value(key)) for key in foreign}


def _neutral_value(key: str) -> str:
    return "false" if key.endswith(".required") else ""
