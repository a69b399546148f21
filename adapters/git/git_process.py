"""The only module that starts git: one process per call, never through a shell.

`ask_git` is for queries. In any repository, nothing that its config names is run: no transport,
hook, fsmonitor, pager, editor, external diff, signature or credential program. Filters have names
that only the repository knows; `status` disables them. `run_git` is for actions that the user
requested. An action that is a checkout (adding a worktree) runs the hooks, filters and transports
of the repository; one that needs none of them is `hardened` as a query is.

Neither is ever given `--git-dir` for a repository that was found by looking: git started with `-C`
decides for itself whether this user may trust the repository.

A hook inherits variables that name its own repository and index; `without_repository_variables`
removes them for callers that name the repository.
"""

import os
import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, BinaryIO, Final, NoReturn

from herdbook.adapters.git.ownership import printable

if TYPE_CHECKING:
    import subprocess

PATIENCE: Final = 15.0
"""How many seconds git may take for a query by default."""
LONGEST: Final = 3_600.0
"""How many seconds git may take for an action: a checkout may be large."""
_END_PATIENCE: Final = 5.0
_PART: Final = 65_536

# The variables that git itself calls local to one repository, except those of `git -c`.
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
# Settings on the command line override those of any file.
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
# A repository's `protocol.NAME.allow` overrides `protocol.allow` of the command line, and its
# remotes have names that are not known here. No setting overrides variables.
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
# Errors of the system, which the caller did not cause: git ends its message with their texts.
_SYSTEM_ERRORS: Final = ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "EIO", "EMFILE", "ENFILE")


def without_repository_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables that name a hook's own repository."""
    return {name: value for name, value in environment.items() if name not in _REPOSITORY_VARIABLES}


def ask_git(
    arguments: list[str],
    environment: Mapping[str, str],
    patience: float = PATIENCE,
    *,
    settings: Mapping[str, str] | None = None,
    except_for: Collection[str] = (),
) -> tuple[int, bytes, str]:
    """Query git; returns exit status, standard output, and the message of its error.

    No program is run that the repository names, and nothing is fetched. `settings` are added to
    those that ensure this, and those in `except_for` stay as the repository has them, which is only
    for queries about them. Raises StoreBusy if git takes longer than `patience`, and ends it with
    all it started; StoreUnavailable if git cannot be started.
    """
    words, variables = _harden(environment, settings or {}, except_for)
    return _run([*words, *arguments], variables, patience, of_its_own=True)[:3]


def ask_git_up_to(
    most: int,
    arguments: list[str],
    environment: Mapping[str, str],
    patience: float = PATIENCE,
    *,
    settings: Mapping[str, str] | None = None,
) -> tuple[int, bytes, str, bool]:
    """Query git as `ask_git` does, for at most so many bytes.

    The last value says whether there was more: then git was ended, and the exit status is 0.
    """
    words, variables = _harden(environment, settings or {})
    return _run([*words, *arguments], variables, patience, of_its_own=True, most=most)


def run_git(
    arguments: list[str],
    environment: Mapping[str, str],
    patience: float = LONGEST,
    *,
    hardened: Mapping[str, str] | None = None,
    reads: BinaryIO | None = None,
) -> tuple[int, bytes, str]:
    """Run an action that the user requested; returns and raises what `ask_git` does.

    `reads` is the file that git has as its standard input, if it needs any.
    Hooks and filters of the repository run, and git must have accepted its owner before. With
    `hardened` settings nothing runs that the repository names, as with those of `ask_git`.
    """
    # What watches for changes only saves time, and is never a part of the action.
    words, variables = ["-c", "core.fsmonitor=false"], environment
    if hardened is not None:
        words, variables = _harden(environment, hardened)
    return _run([*words, *arguments], variables, patience, of_its_own=False, reads=reads)[:3]


def _harden(
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    except_for: Collection[str] = (),
) -> tuple[list[str], dict[str, str]]:
    """The first arguments and the environment with which git runs nothing the repository names."""
    words = [
        word
        for name, value in {**_SAFE_SETTINGS, **settings}.items()
        if name not in except_for
        for word in ("-c", f"{name}={value}")
    ]
    variables = {name: each for name, each in environment.items() if name not in _PROGRAM_VARIABLES}
    variables |= _SAFE_VARIABLES
    # The only allowed transport has an unpredictable name: a repository can define one called
    # `none`, and git finds the program for it among the repository's aliases.
    variables["GIT_ALLOW_PROTOCOL"] = f"none-{os.urandom(8).hex()}"
    return ["--no-pager", *words], variables


def _run(
    arguments: list[str],
    environment: Mapping[str, str],
    patience: float,
    *,
    of_its_own: bool,
    most: int | None = None,
    reads: BinaryIO | None = None,
) -> tuple[int, bytes, str, bool]:
    import signal  # noqa: PLC0415 - imported by subprocess anyway
    import subprocess  # noqa: PLC0415 - costs 15 ms, and most answers need no process

    # An interrupt waits until the process is known, which would otherwise go on without us; one
    # that shares our terminal is interrupted together with us.
    held = {signal.SIGINT} if of_its_own else set[signal.Signals]()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    process = None
    try:
        process = _start(arguments, environment, of_its_own=of_its_own, reads=reads)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if most is None:
            output, complained = process.communicate(timeout=patience)
        else:
            output, complained = _read_up_to(most, process, patience)
    except subprocess.TimeoutExpired as error:
        _end(process, of_its_own=of_its_own)
        from herdbook.domain.errors import StoreBusy  # noqa: PLC0415 - brings attrs

        raise StoreBusy("git", patience, "a git that is slow to answer") from error
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _end(process, of_its_own=of_its_own)
        raise
    if most is not None and len(output) > most:
        _end(process, of_its_own=of_its_own)
        return 0, output[:most], "", True
    return process.returncode, output, _complaint(os.fsdecode(complained)), False


def _read_up_to(
    most: int, process: "subprocess.Popen[bytes]", patience: float
) -> tuple[bytes, bytes]:
    """What git writes, until it ends or has written more than `most` bytes.

    Raises TimeoutExpired if it takes longer than `patience`.
    """
    import selectors  # noqa: PLC0415 - imported by subprocess anyway
    import subprocess  # noqa: PLC0415
    import time  # noqa: PLC0415

    end = time.monotonic() + patience
    read = {process.stdout: bytearray(), process.stderr: bytearray()}
    with selectors.DefaultSelector() as waiting:
        for pipe in read:
            waiting.register(pipe, selectors.EVENT_READ)  # type: ignore[arg-type]
        while waiting.get_map() and len(read[process.stdout]) <= most:
            ready = waiting.select(max(0.0, end - time.monotonic()))
            if not ready and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(process.args, patience)
            for key, _ in ready:
                part = os.read(key.fd, _PART)
                if part:
                    read[key.fileobj] += part  # type: ignore[index]
                else:
                    waiting.unregister(key.fileobj)
    if len(read[process.stdout]) <= most:
        process.wait(max(0.0, end - time.monotonic()))
        for pipe in read:
            pipe.close()  # type: ignore[union-attr]
    return bytes(read[process.stdout]), bytes(read[process.stderr][:_PART])


def _start(
    arguments: list[str],
    environment: Mapping[str, str],
    *,
    of_its_own: bool,
    reads: BinaryIO | None = None,
) -> "subprocess.Popen[bytes]":
    import subprocess  # noqa: PLC0415

    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_TRACE")}
    try:
        return subprocess.Popen(  # noqa: S603 - a list of arguments, in which no path can be a flag
            ["git", *arguments],  # noqa: S607 - whichever git the user's PATH names
            env={**kept, "LC_ALL": "C", "LANGUAGE": "C", "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL if reads is None else reads,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A query has no terminal to prompt at, and can be ended with all it started. An action
            # of the user is interrupted together with us, and cleans up after itself.
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
    """End git, and with its own session all it started; not waiting for one that will not end."""
    import signal  # noqa: PLC0415 - only where something went wrong
    import subprocess  # noqa: PLC0415
    from contextlib import suppress  # noqa: PLC0415

    if process is None:
        return  # it was not started
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    # Git undoes unfinished work on SIGTERM, and has a few seconds for that.
    for number in (signal.SIGKILL,) if of_its_own else (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):  # it has ended meanwhile, and is only waited for
            (os.killpg if of_its_own else os.kill)(process.pid, number)
        try:
            process.wait(_END_PATIENCE)
        except subprocess.TimeoutExpired:
            continue
        return


def raise_complaint(field: str, status: int, complaint: str) -> NoReturn:
    """Raise git's error: StoreUnavailable for errors of the system, else InvalidValue."""
    from herdbook.domain.errors import InvalidValue, StoreUnavailable  # noqa: PLC0415 - brings attrs

    if status < 0:
        raise StoreUnavailable("git", f"it was ended by signal {-status}")
    reason = trust_refusal(complaint) or complaint or f"git gave no reason (exit status {status})"
    if any(reason.endswith(name) for name in _system_error_texts()):
        raise StoreUnavailable("git", reason)
    raise InvalidValue(field, reason)


def trust_refusal(complaint: str) -> str | None:
    """Why git refused to use a repository that it found; None for any other error.

    Callers may append the consequence to the sentence.
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
    """Git's error without its advice, which may be to delete what somebody still needs."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for mark in ("fatal: ", "error: ", ""):
        for line in lines:
            if line.startswith(mark):
                return _ADVICE.sub("", line.removeprefix(mark))
    return ""
