"""Programs on a terminal of their own, typed to and read from as a person would."""

import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

SHELL = Path(__file__).with_name("shell_process.py")
STUCK = 120.0
"""How many seconds without what is waited for count as stuck; it decides nothing else."""


class Terminal:
    """A terminal, and the program that has it."""

    def __init__(self, screen: int, process: subprocess.Popen[bytes]) -> None:
        self._screen = screen
        self.process = process
        self.shown = ""

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._screen, text.encode())

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read on until the screen shows this; what was read up to it is forgotten."""
        end = time.monotonic() + STUCK
        while not (found := re.search(pattern, self.shown, re.DOTALL)):
            assert time.monotonic() < end, (
                f"{pattern!r} never came, but {' '.join(self.shown.split())[-2000:]!r}"
            )
            self._read(pattern)
        self.shown = self.shown[found.end() :]
        return found

    def interrupt_until(self, pattern: str) -> None:
        """Press Ctrl-C until the screen shows this.

        One that comes between two reads of Python's line editor is heard only with the next key.
        """
        while not re.search(pattern, self.shown, re.DOTALL):
            self.type("\x03")
            while select.select([self._screen], [], [], 2)[0]:
                self._read(pattern)
                if re.search(pattern, self.shown, re.DOTALL):
                    break
        self.wait_for(pattern)

    def end(self) -> int:
        """Read until the program has ended; its exit code."""
        with suppress(EOFError):
            while True:
                self._read("the end")
        return self.process.wait(STUCK)

    def modes(self) -> list[Any]:
        """How the terminal treats what is typed."""
        return termios.tcgetattr(self._screen)

    def _read(self, expected: str) -> None:
        if not select.select([self._screen], [], [], STUCK)[0]:
            raise AssertionError(f"waited for {expected!r}, and the screen shows {self.shown!r}")
        try:
            told = os.read(self._screen, 65_536)
        except OSError:  # the last one who had the terminal open has closed it
            told = b""
        if not told:
            raise EOFError(f"it ended before {expected!r}: {self.shown!r}")
        self.shown += told.decode(errors="replace").replace("\r\n", "\n")


@contextmanager
def shell_on_a_terminal(url: str, mode: str = "read", **environment: str) -> Iterator[Terminal]:
    """The SQL prompt of a store on a terminal; it is ended with the block if it still runs."""
    screen, line = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(SHELL), url, mode],
        stdin=line,
        stdout=line,
        stderr=line,
        start_new_session=True,
        env={**os.environ, "TERM": "dumb", "PAGER": "cat", "PSQLRC": os.devnull, **environment},
    )
    os.close(line)
    try:
        yield Terminal(screen, process)
    finally:
        process.kill()
        process.wait()
        os.close(screen)


def shell_in_a_pipe(
    url: str, mode: str = "read", typed: str = "", patience: float = 600, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The SQL prompt of a store without a terminal, from its beginning to its end."""
    return subprocess.run(
        [sys.executable, str(SHELL), url, mode, str(patience)],
        input=typed,
        env={**os.environ, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=STUCK,
    )
