"""Git, started: one process per call, never through a shell, deaf to whoever called us.

A hook inherits variables that name its own repository and index; they would lead git astray
wherever we name the repository ourselves.
"""

import os
import re
from collections.abc import Mapping
from typing import Final, NoReturn

# What git itself calls local to one repository, but for its settings of the moment (`git -c`).
_OF_ANOTHER_PLACE: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_CEILING_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
_ADVICE: Final = re.compile(r"[;,] use .*|;$")
# The system's troubles, which are none of the caller's: git ends its sentence with their names.
_TROUBLES: Final = ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE")


def elsewhere(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what names a hook's own repository."""
    return {name: value for name, value in environment.items() if name not in _OF_ANOTHER_PLACE}


def ran(
    arguments: list[str], environment: Mapping[str, str], patience: float | None = None
) -> tuple[int, bytes, str]:
    """Run git to its end: exit status, standard output, and the sentence it complained with.

    One that takes longer than our patience is ended, and StoreBusy raised: only for questions.
    """
    import subprocess  # noqa: PLC0415 - costs 15 ms, and most answers need no process

    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_TRACE")}
    try:
        ended = subprocess.run(  # noqa: S603 - a list of arguments, in which no path can be a flag
            ["git", *arguments],  # noqa: S607 - whichever git the user's PATH names
            env={**kept, "LC_ALL": "C", "LANGUAGE": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=patience,
        )
    except subprocess.TimeoutExpired as error:
        from herdbook.domain.errors import StoreBusy  # noqa: PLC0415 - brings attrs

        raise StoreBusy("git", patience or 0.0, "a git that is slow to answer") from error
    except OSError as error:
        from herdbook.domain.errors import StoreUnavailable  # noqa: PLC0415 - brings attrs

        reason = f"the program git could not be started ({error.strerror})"
        raise StoreUnavailable("git", reason) from error
    except ValueError as error:
        from herdbook.domain.errors import InvalidValue  # noqa: PLC0415 - brings attrs

        raise InvalidValue(
            "git", "a path or name holds a NUL, or what the system cannot encode"
        ) from error
    return ended.returncode, ended.stdout, _complaint(os.fsdecode(ended.stderr))


def refuse(field: str, status: int, complaint: str) -> NoReturn:
    """Raise what git complained of: InvalidValue, or StoreUnavailable for the system's troubles."""
    from herdbook.domain.errors import InvalidValue, StoreUnavailable  # noqa: PLC0415 - brings attrs

    if status < 0:
        raise StoreUnavailable("git", f"it was ended by signal {-status}")
    reason = complaint or f"git gave no reason (exit status {status})"
    if any(reason.endswith(name) for name in _trouble_names()):
        raise StoreUnavailable("git", reason)
    raise InvalidValue(field, reason)


def _trouble_names() -> list[str]:
    import errno  # noqa: PLC0415 - only where something went wrong

    return [os.strerror(getattr(errno, name)) for name in _TROUBLES if hasattr(errno, name)]


def _complaint(text: str) -> str:
    """Git's reason without its advice, which may be to delete what somebody still needs."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for mark in ("fatal: ", "error: ", ""):
        for line in lines:
            if line.startswith(mark):
                return _ADVICE.sub("", line.removeprefix(mark))
    return ""
