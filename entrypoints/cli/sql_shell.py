"""The SQL prompt of a store: its engine's own program where there is one, else a small one."""

import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from herdbook.adapters.sql_query.native_shell import (
    Program,
    open_native_shell,
    why_no_native_shell,
)
from herdbook.adapters.stores.open_store import PATIENCE, open_store
from herdbook.domain.errors import InvalidValue
from herdbook.entrypoints.cli.sql_prompt import run_prompt

UNJOURNALLED = (
    "What is changed here is not in the journal; "
    "`herdbook check` tells what does not fit afterwards.\n"
)
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)
_KEYBOARD = (signal.SIGINT, signal.SIGQUIT)


def shell(url: str, *, write: bool = False, patience: float = PATIENCE) -> int:
    """Hand the terminal to the store's SQL prompt and wait for its end; the exit code.

    A DuckDB file is under our lock all that time: others read beside a prompt that reads, wait for
    one that writes, and are told who holds it when they have waited long enough. The engines' own
    programs show all there is, secrets too; the small prompt shows `***`.
    """
    with open_store(url, create=False, patience=patience):
        pass  # it is there, whole, and up to date
    with open_native_shell(url, write=write, patience=patience) as program:
        if program is not None:
            if write:
                sys.stderr.write(UNJOURNALLED)
                sys.stderr.flush()
            return run_program(program)
    if write:
        raise InvalidValue("write", f"{why_no_native_shell(url)}; Herdbook's own prompt only reads")
    with open_store(url, create=False, patience=patience) as store:
        return run_prompt(store, url)


def run_program(program: Program) -> int:
    """Run a program in the foreground as a shell does; 128 and the signal's number if one ended it.

    What is typed to interrupt goes to the program alone; what asks this process to end is passed
    on, and the program's end is waited for.
    """
    with _restore_terminal(), _forward_signals() as children:
        child = subprocess.Popen(  # noqa: S603 - a program that `open_native_shell` has named
            program.command,
            env={**os.environ, **program.environment},
            pass_fds=program.inherits,
        )
        children.append(child)
        code = child.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _forward_signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Do not end before the child. A handler, unlike ignoring, is not handed down to it."""
    children: list[subprocess.Popen[bytes]] = []

    def leave_it(_number: int, _frame: FrameType | None) -> None:
        """The terminal has sent it to the child as well."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    before = {number: signal.signal(number, leave_it) for number in _KEYBOARD}
    before |= {number: signal.signal(number, pass_on) for number in _FORWARDED}
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _restore_terminal() -> Iterator[None]:
    """Leave the terminal as it was, also when the program was killed in the midst of a line."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
