"""The demo for people: a line for each thing that happens, or a board, and a report at the end."""

import shutil
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from typing import Any

from herdbook.entrypoints.cli import terminal
from herdbook.entrypoints.cli.terminal import Line
from herdbook.entrypoints.cli.text import plain
from herdbook.entrypoints.operations.board import views as board_views

Data = dict[str, Any]

HEADER = ("AGENT", "ENDED", "TASKS", "COMMITS", "ASKED", "ANSWERED", "GRADES", "SCORE", "STANDING")
TELLING = ("status", "retry_count", "fence", "summary", "answer")
"""The fields of a change that are shown."""
RECENT = 8
"""How many lines of the story stand below the board."""


def told(answer: Data) -> str:
    """A line or the report; nothing of a board, which is only for whoever watches."""
    if "told" in answer:
        return plain(answer["told"])
    return "" if "board" in answer else _report(answer)


def live(answers: Generator[Data, None, None]) -> Data:
    """The board with the last lines of the story below it, and then the report, which it gives.

    KeyboardInterrupt if somebody did not wait for that; the demo has put everything away then.
    """
    lines: list[str] = []
    rest: list[Data] = []
    try:
        if terminal.is_terminal():
            terminal.show_live(_frames(answers, lines, rest), lambda answer: _drawn(answer, lines))
        else:
            rest += _printed(answers)
    finally:
        answers.close()
    if not rest:
        raise KeyboardInterrupt
    print(told(rest[-1]))
    return rest[-1]


def _printed(answers: Iterator[Data]) -> Iterator[Data]:
    """The report, once all lines before it are printed."""
    for answer in answers:
        if "told" in answer:
            print(told(answer), flush=True)
        elif "board" not in answer:
            yield answer


def _frames(answers: Iterator[Data], lines: list[str], rest: list[Data]) -> Iterator[Data]:
    """The boards among the answers; the others are put where they belong."""
    for answer in answers:
        if "board" in answer:
            yield answer["board"]
        elif "told" in answer:
            lines.append(told(answer))
        else:
            rest.append(answer)


def _drawn(answer: Data, story: list[str]) -> list[Line]:
    """A board and the last lines of the story, as many of both as the terminal has room for."""
    below: list[Line] = [[], *([(f"  {line}", "")] for line in story[-RECENT:])]
    room = max(1, shutil.get_terminal_size().lines - len(below))
    return [*board_views.lines(answer, datetime.now(UTC))[:room], *below]


def _report(answer: Data) -> str:
    deeds = terminal.table(HEADER, [_deeds(each) for each in answer["agents"]])
    lines = ["", "what each did", deeds, ""]
    for each in answer["agents"]:
        done = ", ".join(each["tasks"]) or "nothing to its end"
        lines.append(plain(f"{each['agent']}: {done}"))
    lines += ["", "the journal's last entries"]
    lines += [_entry(each) for each in answer["journal"]]
    lines += ["", *_verdict(answer), "", "try next"]
    lines += [f"  {plain(command)}" for command in answer["next"]]
    return "\n".join(lines)


def _deeds(each: Data) -> tuple[str, ...]:
    grades = each["grades"]
    return (
        each["agent"],
        each["ended"],
        str(len(each["tasks"])),
        str(each["commits"]),
        str(each["asked"]),
        str(each["answered"]),
        ", ".join(f"{grades.count(name)} {name}" for name in dict.fromkeys(grades)) or "-",
        str(each["score"]),
        "halted" if each["halted"] else f"skill {each['skill_points']}",
    )


def _entry(each: Data) -> str:
    """One change in short: who, what, and what became of the fields that tell something."""
    who = each["agent"] or each["person"] or "somebody"
    what = f"{each['entity'].removesuffix('s')} {each['name'] or each['key']!r}"
    changed = [
        f"{field} {value}"
        for field, value in (each["after"] or {}).items()
        if field in TELLING and value is not None
    ]
    return plain(f"#{each['seq']} {who}: {each['op']} {what}: {', '.join(changed)}")


def _verdict(answer: Data) -> list[str]:
    kept = [f"everything is kept in {plain(answer['folder'])}"] if answer["folder"] else []
    if answer["ok"]:
        return [f"all {answer['tasks']} tasks are done, each once, and every check passes", *kept]
    return ["this is off:", *(f"  {plain(sentence)}" for sentence in answer["off"]), *kept]
