"""`git status` of a worktree, without running a filter that its repository names.

Git compares a file whose time has changed by the output of its filter. A filter of the user's own
settings runs as always; one that only the repository's config names is disabled, so such a file
counts as changed until the user's own git has compared it. Submodules are compared by their commits
only: git would start itself in each, where another config applies.
"""

from collections.abc import Mapping

from herdbook.adapters.git.git_process import ask_git

_USER_SCOPES = frozenset({"system", "global", "command"})
_UNKNOWN_OPTION = 129
_REFUSED = 128


def status(
    folder: str, environment: Mapping[str, str], patience: float, *, untracked: str
) -> tuple[int, bytes, str]:
    """Exit status, output in the short format with lines ended by NUL, and git's error.

    `untracked` is `all` for every file that git does not track, or `normal` for folders of them.
    """
    try:
        settings = without_filters(folder, environment, patience)
    except ValueError as error:
        return _REFUSED, b"", str(error)
    words = ["status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=dirty"]
    return ask_git(
        ["-C", folder, *words, f"--untracked-files={untracked}"],
        environment,
        patience,
        settings=settings,
    )


def without_filters(folder: str, environment: Mapping[str, str], patience: float) -> dict[str, str]:
    """Settings that override the filters of the repository's config.

    Raises ValueError if one of them has a name that cannot be overridden.
    """
    here, wanted = ["-C", folder, "config", "-z"], ["--get-regexp", r"^filter\."]
    ended, output, _ = ask_git([*here, "--show-scope", *wanted], environment, patience)
    if ended == _UNKNOWN_OPTION:  # before git 2.26: all filters are disabled
        ended, output, _ = ask_git([*here, *wanted], environment, patience)
        output = b"".join(b"unknown\0" + each + b"\0" for each in output.split(b"\0")[:-1])
    if ended != 0:
        return {}  # there is none, or git will report the error in the config again
    fields = output.decode("utf-8", "surrogateescape").split("\0")[:-1]
    own: dict[str, str] = {}
    foreign: list[str] = []
    for scope, entry in zip(fields[::2], fields[1::2], strict=True):
        key, has_value, value = entry.partition("\n")
        if scope in _USER_SCOPES:
            own[key] = value if has_value else "true"
        else:
            foreign.append(key)
    if any("=" in key for key in foreign):
        # Git reads the name up to the first `=`, so this one cannot be overridden.
        raise ValueError("a filter of the repository has a name with `=`, so nothing was compared")
    return {key: own.get(key, _neutral_value(key)) for key in foreign}


def _neutral_value(key: str) -> str:
    return "false" if key.endswith(".required") else ""
