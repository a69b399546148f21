"""The one place that starts git: one process per call, never through a shell.

`ask_git` is for questions. Whatever the repository, nothing that its config names is run: no
transport, hook, fsmonitor, pager, editor, external diff, signature or credential program. Filters
have names that only the repository knows; `status` sees to them. `run_git` is for what the user
asked for by name (adding a worktree is a checkout): there the repository's own settings count.

Neither is ever given `--git-dir` for a repository that was found by looking: git started with `-C`
judges for itself whether the repository is one that this user may trust.

A hook inherits variables that name its own repository and index; `elsewhere` leaves them out for
whoever names the repository.
"""

import os
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, NoReturn

from herdbook.adapters.git.ownership import printable

if TYPE_CHECKING:
    import subprocess

PATIENCE: Final = 15.0
"""For how many seconds git may think about a question, unless the caller says otherwise."""
LONGEST: Final = 3_600.0
"""For how many seconds git may work on what it was told to do: a checkout may be large."""
_END_PATIENCE: Final = 5.0

# What git itself calls local to one repository, but for its settings of the moment (`git -c`).
_REPOSITORY_VARIABLES: Final = frozenset(
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
HOOKS_PATH: Final = "core.hooksPath"
# Settings given on the command line count more than those of any file.
_SAFE_SETTINGS: Final = {
    "core.fsmonitor": "false",
    HOOKS_PATH: os.devnull,
    "core.pager": "cat",
    "core.askPass": "",
    "core.editor": ":",
    "core.sshCommand": "false",
    "core.alternateRefsCommand": ":",
    "credential.helper": "",
    "diff.submodule": "short",
    "gc.auto": "0",
    "gpg.program": "false",
    "gpg.ssh.program": "false",
    "gpg.x509.program": "false",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
}
# A repository's `protocol.NAME.allow` counts more than `protocol.allow` of the command line, and
# its remotes have names we do not know. No setting counts more than variables.
_SAFE_VARIABLES: Final = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ASKPASS": "",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "false",
}
_PROGRAM_VARIABLES: Final = frozenset(
    {"GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_SSH", "SSH_ASKPASS"}
)
_ADVICE: Final = re.compile(r"[;,] use .*|;$")
_OF_ANOTHER_ACCOUNT: Final = re.compile(
    r"detected dubious ownership in repository at '(.*?)'?$"
    r"|unsafe repository \('(.*)' is owned by someone else\)"
)
_IMPLICITLY_BARE: Final = re.compile(r"cannot use bare repository '(.*)' \(safe\.bareRepository is")
# The system's troubles, which are none of the caller's: git ends its sentence with their names.
_SYSTEM_ERRORS: Final = ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE")


def without_repository_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what names a hook's own repository."""
    return {name: value for name, value in environment.items() if name not in _REPOSITORY_VARIABLES}


def ask_git(
    arguments: list[str],
    environment: Mapping[str, str],
    patience: float = PATIENCE,
    *,
    settings: Mapping[str, str] | None = None,
    except_for: Collection[str] = (),
) -> tuple[int, bytes, str]:
    """Ask git something: exit status, standard output, and the sentence it complained with.

    No program is run that the repository names, and nothing is fetched. `settings` are added to
    those that see to that, and those in `except_for` are left as the repository has them, which is
    only for questions about them. Raises StoreBusy for a git that takes longer than `patience`,
    which is ended together with all it started; StoreUnavailable where git cannot be started.
    """
    neutral = {**_SAFE_SETTINGS, **(settings or {})}
    words = [
        word
        for name, value in neutral.items()
        if name not in except_for
        for word in ("-c", f"{name}={value}")
    ]
    variables = {name: each for name, each in environment.items() if name not in _PROGRAM_VARIABLES}
    variables |= _SAFE_VARIABLES
    # The only transport that is allowed is one that nobody knows: a repository can call one of its
    # own `none`, and git finds the program for it among the repository's aliases.
    variables["GIT_ALLOW_PROTOCOL"] = f"none-{os.urandom(8).hex()}"
    return _run(["--no-pager", *words, *arguments], variables, patience, of_its_own=True)


def run_git(
    arguments: list[str], environment: Mapping[str, str], patience: float = LONGEST
) -> tuple[int, bytes, str]:
    """Let git do something that the user asked for, with the repository's own settings.

    Gives and raises what `ask_git` does. Hooks and filters of the repository run; git must have
    accepted its owner before.
    """
    return _run(arguments, environment, patience, of_its_own=False)


def _run(
    arguments: list[str], environment: Mapping[str, str], patience: float, *, of_its_own: bool
) -> tuple[int, bytes, str]:
    import signal  # noqa: PLC0415 - imported by what follows anyway
    import subprocess  # noqa: PLC0415 - costs 15 ms, and most answers need no process

    # An interrupt waits until we know the process that would otherwise go on without us; one that
    # has our terminal is interrupted together with us.
    held = {signal.SIGINT} if of_its_own else set[signal.Signals]()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    process = None
    try:
        process = _start(arguments, environment, of_its_own=of_its_own)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        told, complained = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired as error:
        _end(process, of_its_own=of_its_own)
        from herdbook.domain.errors import StoreBusy  # noqa: PLC0415 - brings attrs

        raise StoreBusy("git", patience, "a git that is slow to answer") from error
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _end(process, of_its_own=of_its_own)
        raise
    return process.returncode, told, _complaint(os.fsdecode(complained))


def _start(
    arguments: list[str], environment: Mapping[str, str], *, of_its_own: bool
) -> "subprocess.Popen[bytes]":
    import subprocess  # noqa: PLC0415

    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_TRACE")}
    try:
        return subprocess.Popen(  # noqa: S603 - a list of arguments, in which no path can be a flag
            ["git", *arguments],  # noqa: S607 - whichever git the user's PATH names
            env={**kept, "LC_ALL": "C", "LANGUAGE": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A question has no terminal that something could prompt at, and can be ended whole.
            # What the user asked for is interrupted as they are, and tidies up after itself.
            start_new_session=of_its_own,
        )
    except OSError as error:
        from herdbook.domain.errors import StoreUnavailable  # noqa: PLC0415 - brings attrs

        reason = f"the program git could not be started ({error.strerror})"
        raise StoreUnavailable("git", reason) from error
    except ValueError as error:
        from herdbook.domain.errors import InvalidValue  # noqa: PLC0415 - brings attrs

        raise InvalidValue(
            "git", "a path or name holds a NUL, or what the system cannot encode"
        ) from error


def _end(process: "subprocess.Popen[bytes] | None", *, of_its_own: bool) -> None:
    """End git, and what it started if that is known; one that cannot be ended is not waited for."""
    import signal  # noqa: PLC0415 - only where something went wrong
    import subprocess  # noqa: PLC0415
    from contextlib import suppress  # noqa: PLC0415

    if process is None:
        return  # it was not started
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    # Git takes back what is half done when it is told to end, and has a moment for that.
    for number in (signal.SIGKILL,) if of_its_own else (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):  # it has ended meanwhile, and is only to be waited for
            (os.killpg if of_its_own else os.kill)(process.pid, number)
        try:
            process.wait(_END_PATIENCE)
        except subprocess.TimeoutExpired:
            continue
        return


def raise_complaint(field: str, status: int, complaint: str) -> NoReturn:
    """Raise what git complained of: InvalidValue, or StoreUnavailable for the system's troubles."""
    from herdbook.domain.errors import InvalidValue, StoreUnavailable  # noqa: PLC0415 - brings attrs

    if status < 0:
        raise StoreUnavailable("git", f"it was ended by signal {-status}")
    reason = trust_refusal(complaint) or complaint or f"git gave no reason (exit status {status})"
    if any(reason.endswith(name) for name in _system_error_texts()):
        raise StoreUnavailable("git", reason)
    raise InvalidValue(field, reason)


def trust_refusal(complaint: str) -> str | None:
    """Why git would not use a repository that it found, if that is what it complained of.

    The sentence may be followed by what comes of it; None for any other complaint.
    """
    if match := _OF_ANOTHER_ACCOUNT.search(complaint):
        path = printable(match[1] or match[2] or "")
        return (
            f"the repository at {path} belongs to another account "
            "(git's `safe.directory` setting can name it)"
        )
    if match := _IMPLICITLY_BARE.search(complaint):
        return (
            f"the bare repository at {printable(match[1])} is not used "
            "(git's `safe.bareRepository` setting is `explicit`)"
        )
    return None


def _system_error_texts() -> list[str]:
    import errno  # noqa: PLC0415 - only where something went wrong

    return [os.strerror(getattr(errno, name)) for name in _SYSTEM_ERRORS if hasattr(errno, name)]


def _complaint(text: str) -> str:
    """Git's reason without its advice, which may be to delete what somebody still needs."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for mark in ("fatal: ", "error: ", ""):
        for line in lines:
            if line.startswith(mark):
                return _ADVICE.sub("", line.removeprefix(mark))
    return ""
