"""The demo for people: a line for each event, or a board, and a report at the end."""

import shutil
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from typing import Any

from herdbook.entrypoints.cli import terminal
from herdbook.entrypoints.cli.terminal import Line
from herdbook.entrypoints.cli.text import plain
from herdbook.entrypoints.operations.agents.views import entry
from herdbook.entrypoints.operations.board import views as board_views

Data = dict[str, Any]

HEADER = ("AGENT", "ENDED", "TASKS", "COMMITS", "ASKED", "ANSWERED", "GRADES", "SCORE", "STANDING")
RECENT = 8
"""How many lines stand below the board."""


def show(answer: Data) -> str:
    """A line or the report; nothing for a board, which is for terminals only."""
    if "told" in answer:
        return plain(answer["told"])
    return "" if "board" in answer else _report(answer)


def live(answers: Generator[Data, None, None]) -> Data:
    """Draw the board with the last lines below it, then print and return the report.

    KeyboardInterrupt if somebody did not wait for that; the demo has put everything away then.
    """
    lines: list[str] = []
    rest: list[Data] = []

    def boards() -> Iterator[Data]:
        for answer in answers:
            if "board" in answer:
                yield answer["board"]
            elif "told" not in answer:
                rest.append(answer)
            elif terminal.is_terminal():
                lines.append(show(answer))
            else:
                print(show(answer), flush=True)

    try:
        if terminal.is_terminal():
            terminal.show_live(boards(), lambda board: _draw(board, lines))
        else:
            list(boards())
    finally:
        answers.close()
    if not rest:
        raise KeyboardInterrupt
    print(show(rest[-1]))
    return rest[-1]


def _draw(board: Data, lines: list[str]) -> list[Line]:
    """A board and the last lines, as many of both as the terminal has room for."""
    below: list[Line] = [[], *([(f"  {line}", "")] for line in lines[-RECENT:])]
    room = max(1, shutil.get_terminal_size().lines - len(below))
    return [*board_views.lines(board, datetime.now(UTC))[:room], *below]


def _report(answer: Data) -> str:
    agents = answer["agents"]
    lines = ["", "what each did", terminal.table(HEADER, [_cells(each) for each in agents]), ""]
    lines += [f"{each['agent']}: {', '.join(each['tasks']) or 'nothing'}" for each in agents]
    lines += ["", "the journal's last entries", *map(entry, answer["journal"]), ""]
    if answer["ok"]:
        lines.append(f"all {answer['tasks']} tasks are done, each once, and every check passes")
    else:
        lines += ["this is off:", *(f"  {plain(sentence)}" for sentence in answer["off"])]
    if answer["folder"]:
        lines.append(f"everything is kept in {plain(answer['folder'])}")
    return "\n".join([*lines, "", "try next", *(f"  {plain(each)}" for each in answer["next"])])


def _cells(each: Data) -> tuple[str, ...]:
    grades, counts = each["grades"], ("commits", "asked", "answered")
    return (
        *(each["agent"], each["ended"], str(len(each["tasks"]))),
        *(str(each[name]) for name in counts),
        ", ".join(f"{grades.count(name)} {name}" for name in dict.fromkeys(grades)) or "-",
        str(each["score"]),
        "halted" if each["halted"] else f"skill {each['skill_points']}",
    )
