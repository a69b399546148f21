"""The watched board on a terminal: move, look at a task, claim it, answer an agent.

Keys are read in a thread of their own. What a key does is done by the program itself, run once more
with the words that a person would type: its one line is the answer, and it acts as who runs it.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import Event, Thread
from typing import Any

from herdbook.entrypoints.cli import terminal
from herdbook.entrypoints.cli.parser import PLACES
from herdbook.entrypoints.cli.terminal import Line, Redraw
from herdbook.entrypoints.cli.text import plain, plain_lines
from herdbook.entrypoints.operations.action_words import action_words

KEYS = "j/k move   enter show   c claim   a answer   q quit"
MOVES = {"j": 1, "\x1b[B": 1, "k": -1, "\x1b[A": -1, " ": 10, "\x1b[6~": 10, "\x1b[5~": -10}
"""The keys that move, and how far; the arrows and the page keys too."""
ESCAPE, ENTER, ERASE = "\x1b", ("\r", "\n"), ("\x7f", "\b")
PATIENCE = 0.1
"""Seconds between two looks whether the screen is closed."""
_KEY = re.compile(r"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)

Draw = Callable[[Any], Sequence[Line]]
Run = Callable[[Sequence[str]], tuple[bool, str]]


def run_program(words: Sequence[str]) -> tuple[bool, str]:
    """Run this program with other words; whether it ended well, and what it said."""
    ended = subprocess.run(  # noqa: S603 - our own program, with words and ids of its own
        [sys.executable, "-P", "-m", "herdbook.entrypoints", *words[:2], *_places(), *words[2:]],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    said = ended.stdout if ended.returncode == 0 else ended.stderr
    return ended.returncode == 0, said.strip()


def _places() -> list[str]:
    """The options by which this program was told where to look."""
    options = ("-C", *(f"--{each}" for each in PLACES))
    given = sys.argv[1:]
    pairs = pairwise(given)
    return [word for pair in pairs if pair[0] in options for word in pair] + [
        each for each in given if each.startswith(tuple(f"{option}=" for option in options))
    ]


class InteractiveBoard:
    """What a person sees of a board: the lines, which task is chosen, and what a key led to."""

    def __init__(self, draw: Draw, run: Run = run_program) -> None:
        self._draw = draw
        self._run = run
        self.answer: Any = None
        self.chosen: str | None = None
        self.message = ""
        self.page: list[str] | None = None
        """A text that is shown in place of the board until the next key."""
        self.typed: str | None = None
        """What was typed so far of an answer; None while none is typed."""
        self._question = ""
        self._reply: dict[str, Any] = {}
        """The action that answers the question."""
        self._top = 0

    def lines(self, height: int) -> list[Line]:
        """The part of the board that fits, with the chosen task in it, and a line about keys."""
        if self.answer is None:
            return []
        if self.page is not None:
            page: list[Line] = [[(text, "")] for text in self.page[: height - 1]]
            return [*page, [("any key leads back", "dim")]]
        found = list(self._draw(self.answer))
        keys = [getattr(line, "key", None) for line in found]
        at = keys.index(self.chosen) if self.chosen is not None and self.chosen in keys else None
        room = max(1, height - 1)
        if at is not None:
            self._top = min(max(self._top, at - room + 1), at)
            found[at] = [("> ", "bold"), *((text, f"{style} reverse") for text, style in found[at])]
        self._top = max(0, min(self._top, len(found) - room))
        shown = found[self._top : self._top + room]
        rest = len(found) - self._top - len(shown)
        return [*shown, self._last_line(rest)]

    def _last_line(self, rest: int) -> Line:
        if self.typed is not None:
            return [(f"answer to {plain(self._question)!r}: {plain(self.typed)}_", "bold")]
        if self.message:
            return [(plain(self.message), "bold")]
        return [(f"… and {rest} more lines   {KEYS}" if rest else KEYS, "dim")]

    def press(self, key: str) -> bool:
        """Do what a key says; False if it ends the board."""
        self.message = ""
        if self.typed is not None:
            self._type(key)
        elif self.page is not None:
            self.page = None
        elif key in ("q", "Q"):
            return False
        elif key in MOVES:
            self._move(MOVES[key])
        elif key in ENTER and self.chosen is not None:
            _, said = self._run(["task", "show", self.chosen])
            self.page = plain_lines(said).split("\n")
        elif key == "c" and self.chosen is not None:
            _, said = self._run(["task", "claim", self.chosen])
            self.message = " ".join(said.split("\n")[:2])
        elif key == "a":
            self._ask()
        elif key in ("c", *ENTER):
            self.message = "choose a task first: j"
        return True

    def _move(self, step: int) -> None:
        keys = [key for line in self._draw(self.answer) if (key := getattr(line, "key", None))]
        if not keys:
            self.message = "there is no task to choose"
            return
        at = keys.index(self.chosen) + step if self.chosen in keys else 0
        self.chosen = keys[max(0, min(at, len(keys) - 1))]

    def _ask(self) -> None:
        """Begin to answer the oldest question or message that waits for the person."""
        well, said = self._run(["waiting", "--json"])
        entries = json.loads(said) if well else []
        replies = [
            (each["text"], action)
            for each in entries
            if each["kind"] in ("question", "message")
            for action in each["actions"]
            if action.get("text")
        ]
        if replies:
            (asked, self._reply), self.typed = replies[0], ""
            self._question = " ".join(asked.split())
        else:
            self.message = "nobody waits for an answer" if well else said

    def _type(self, key: str) -> None:
        if self.typed is None:
            return
        if key in ENTER and self.typed.strip():
            options, values = action_words(self._reply)
            words = [*self._reply["method"].split("."), *options, "--", *values]
            _, self.message = self._run([*words, self.typed])
            self.typed = None
        elif key in (ESCAPE, *ENTER):
            self.typed = None
        elif key in ERASE:
            self.typed = self.typed[:-1]
        elif key.isprintable():
            self.typed += key


def show(answers: Iterator[Any], draw: Draw) -> None:
    """Show a board as it changes until `q` or Ctrl-C; without a keyboard, as `show_live` does."""
    if not terminal.is_terminal() or not sys.stdin.isatty():
        terminal.show_live(answers, draw)
        return
    board = InteractiveBoard(draw)

    def draw_part(answer: Any) -> Sequence[Line]:
        import shutil  # noqa: PLC0415 - brings archives of all kinds

        board.answer = answer
        return board.lines(shutil.get_terminal_size().lines)

    with _keyboard(board) as begin:
        terminal.show_live(answers, draw_part, begin)


@contextmanager
def _keyboard(board: InteractiveBoard) -> Iterator[Callable[[Redraw], None]]:
    """Read keys one by one; gives what is to be called with a function that redraws the screen.

    The terminal is as before when this ends.
    """
    import termios  # noqa: PLC0415 - only on a terminal
    import tty  # noqa: PLC0415

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    closed = Event()
    readers: list[Thread] = []

    def begin(redraw: Redraw) -> None:
        readers.append(Thread(target=_read_keys, args=(board, descriptor, closed, redraw)))
        readers[0].start()

    tty.setcbreak(descriptor)
    try:
        yield begin
    finally:
        closed.set()
        for reader in readers:
            reader.join()
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _read_keys(board: InteractiveBoard, descriptor: int, closed: Event, redraw: Redraw) -> None:
    """Press what is typed until the board is closed; `q` interrupts the program as Ctrl-C does."""
    from select import select  # noqa: PLC0415

    while not closed.is_set():
        if not select([descriptor], [], [], PATIENCE)[0]:
            continue
        typed = os.read(descriptor, 1_024).decode(errors="replace")
        pressed = [board.press(key) for key in _KEY.findall(typed)]
        if not pressed or not all(pressed):
            os.kill(os.getpid(), signal.SIGINT)
            return
        redraw()
