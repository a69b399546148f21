"""The SQL shell of a store: its engine's own program if there is one, else Herdbook's prompt."""

import importlib
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from herdbook.adapters.sql_query import ask
from herdbook.adapters.sql_query.native_shell import (
    Program,
    open_native_shell,
    why_no_native_shell,
)
from herdbook.adapters.stores.open_store import PATIENCE, open_store
from herdbook.adapters.stores.registry import is_on_server
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.entrypoints.cli.tabular import as_table
from herdbook.ports.engine.store import Store

UNJOURNALLED = (
    "What is changed here is not in the journal; "
    "`herdbook check` reports what is inconsistent afterwards.\n"
)
PROMPT = "herdbook> "
HELP = "A query on one line, .tables or .quit. Nothing can be changed here."
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)
_KEYBOARD = (signal.SIGINT, signal.SIGQUIT)


def shell(url: str, *, write: bool = False, patience: float = PATIENCE) -> int:
    """Run the SQL shell of a store on the terminal; returns its exit code.

    A DuckDB file is locked all that time: others can read beside a shell that reads, wait for one
    that writes, and get an error that names the holder when their patience ends. The engines' own
    programs show everything, secrets too; Herdbook's prompt shows `***`.
    """
    with open_store(url, create=False, patience=patience):
        pass  # it exists, is undamaged, and has the current schema
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
    """Run a program in the foreground; returns its exit code, or 128 plus the signal that ended it.

    Interrupts from the keyboard go to the program alone; signals that ask this process to end are
    forwarded to it, and its end is awaited.
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
    """Do not end before the child. Unlike an ignored signal, a handler is not inherited by it."""
    children: list[subprocess.Popen[bytes]] = []

    def ignore(_number: int, _frame: FrameType | None) -> None:
        """The terminal sends the signal to the child as well."""

    def forward(number: int, _frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    before = {number: signal.signal(number, ignore) for number in _KEYBOARD}
    before |= {number: signal.signal(number, forward) for number in _FORWARDED}
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _restore_terminal() -> Iterator[None]:
    """Restore the terminal's settings, also if the program was killed in the middle of a line."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def run_prompt(store: Store, url: str) -> int:
    """Answer a query per line until the input ends; an error is printed on one line.

    `url` names the store with its password, which the store's own URL leaves out. On a terminal
    an interrupt drops the typed line or the running query; elsewhere it ends the prompt.
    """
    on_terminal = sys.stdin.isatty()
    if on_terminal:
        importlib.import_module("readline")  # lets `input` edit and remember lines
        sys.stderr.write(f"{store.url}\n{HELP}\n")
    place = url if is_on_server(url) else store
    while True:
        try:
            line = _next_line(on_terminal=on_terminal)
            if line is None or line.strip() in {".quit", ".exit"}:
                return 0
            _reply(place, store, line.strip())
            sys.stdout.flush()
        except KeyboardInterrupt:
            if not on_terminal:
                raise
            sys.stderr.write("\n")


def _next_line(*, on_terminal: bool) -> str | None:
    if not on_terminal:
        return sys.stdin.readline() or None
    try:
        return input(PROMPT)
    except EOFError:
        sys.stderr.write("\n")
        return None


def _reply(place: str | Store, store: Store, line: str) -> None:
    match line:
        case "":
            pass
        case ".help":
            sys.stdout.write(f"{HELP}\n")
        case ".tables":
            sys.stdout.write("".join(f"{name}\n" for name in sorted(store.dictionary.kinds)))
        case query:
            _answer(place, query)


def _answer(place: str | Store, query: str) -> None:
    try:
        answer = ask(place, query)
    except HerdbookError as error:
        sys.stdout.flush()
        sys.stderr.write(f"{' '.join(str(error).split())}\n")
        return
    sys.stdout.write(as_table(answer))
    if answer.cut:
        sys.stdout.write(f"(the first {len(answer.rows)} rows; there are more)\n")
