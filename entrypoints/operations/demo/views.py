"""The demo for people: a line for each event, or a board, and a report at the end."""

import shutil
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from typing import Any

from herdbook.entrypoints.cli import terminal
from herdbook.entrypoints.cli.terminal import Line
from herdbook.entrypoints.cli.text import plain
from herdbook.entrypoints.operations.board import views as board_views
from herdbook.entrypoints.operations.journal.views import entry

Data = dict[str, Any]

RECENT = 8
"""How many lines are below the board."""


def show(answer: Data) -> str:
    """A line or the report; nothing for a board, which is for terminals only."""
    if "event" in answer:
        return plain(answer["event"])
    return "" if "board" in answer else _report(answer)


def live(answers: Generator[Data, None, None]) -> Data:
    """Draw the board with the last lines below it, then print and return the report.

    KeyboardInterrupt if somebody did not wait for that; the demo has removed everything then.
    """
    lines: list[str] = []
    last: Data = {}

    def boards() -> Iterator[Data]:
        for answer in answers:
            last.update(answer)
            if "board" in answer:
                yield answer["board"]
            elif "event" in answer:
                lines.append(show(answer))
                if not terminal.is_terminal():
                    print(lines[-1], flush=True)

    try:
        if terminal.is_terminal():
            terminal.show_live(boards(), lambda board: _draw(board, lines))
        else:
            list(boards())
    finally:
        answers.close()
    if "ok" not in last:
        raise KeyboardInterrupt
    print(_report(last))
    return last


def _draw(board: Data, lines: list[str]) -> list[Line]:
    """A board and the last lines, as many of both as the terminal has room for."""
    below: list[Line] = [[], *([(f"  {line}", "")] for line in lines[-RECENT:])]
    room = max(1, shutil.get_terminal_size().lines - len(below))
    return [*board_views.lines(board, datetime.now(UTC))[:room], *below]


def _report(answer: Data) -> str:
    rows = []
    for each in answer["agents"]:
        standing = each["standing"] or {"communication_score": "-", "active": True}
        halted, done = "" if standing["active"] else "halted", ", ".join(each["tasks"]) or "nothing"
        score = str(standing["communication_score"])
        rows.append((each["agent"], each["ended"], score, halted, done))
    lines = ["", "what each did", terminal.table(("AGENT", "ENDED", "SCORE", "", "TASKS"), rows)]
    lines += ["", "the journal's last entries", *map(entry, answer["journal"]), ""]
    if answer["ok"]:
        lines.append(f"all {answer['tasks']} tasks are done, each once, and every check passes")
    lines += [f"problem: {plain(sentence)}" for sentence in answer["problems"]]
    if answer["folder"]:
        lines.append(f"everything is kept in {plain(answer['folder'])}")
    return "\n".join([*lines, "", "try next", *(f"  {plain(each)}" for each in answer["next"])])
