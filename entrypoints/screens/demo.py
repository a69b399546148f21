"""The demo for people: a line for each thing that happens, or a board, and a report at the end."""

import shutil
from typing import Any

from herdbook.entrypoints.screens.status import status
from herdbook.entrypoints.screens.text import columns, plain

HOME, REST_OF_LINE, REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
HEADER = ("AGENT", "ENDED", "TASKS", "COMMITS", "ASKED", "ANSWERED", "GRADES", "SCORE", "STANDING")

TELLING = ("status", "retry_count", "fence", "summary", "answer")
"""The fields of a change that are shown."""


def told(answer: dict[str, Any]) -> str:
    """Whatever comes next: a line, a board, or the report."""
    if "told" in answer:
        return plain(answer["told"])
    return _board(answer) if "board" in answer else _report(answer)


def _board(answer: dict[str, Any]) -> str:
    """Who is at work, and what happened last, drawn over what was there before."""
    size = shutil.get_terminal_size()
    shown = status(answer["board"]).splitlines()
    lines = [*shown, "", *(f"  {plain(line)}" for line in answer["recent"])]
    # One line less than the screen has, or it would scroll and be drawn beside itself.
    fitting = (f"{line[: size.columns - 1]}{REST_OF_LINE}" for line in lines[: size.lines - 1])
    return HOME + "\n".join(fitting) + REST_OF_SCREEN


def _report(answer: dict[str, Any]) -> str:
    lines = ["", "what each did", columns(HEADER, [_deeds(each) for each in answer["agents"]]), ""]
    for each in answer["agents"]:
        done = ", ".join(each["tasks"]) or "nothing to its end"
        lines.append(plain(f"{each['agent']}: {done}"))
    lines += ["", "the journal's last entries"]
    lines += [_entry(each) for each in answer["journal"]]
    lines += ["", *_verdict(answer), "", "try next"]
    lines += [f"  {plain(command)}" for command in answer["next"]]
    return "\n".join(lines)


def _deeds(each: dict[str, Any]) -> tuple[str, ...]:
    return (
        plain(each["agent"]),
        each["ended"],
        str(len(each["tasks"])),
        str(each["commits"]),
        str(each["asked"]),
        str(each["answered"]),
        ", ".join(f"{each['grades'].count(name)} {name}" for name in dict.fromkeys(each["grades"]))
        or "-",
        str(each["score"]),
        "halted" if each["halted"] else f"skill {each['skill_points']}",
    )


def _entry(each: dict[str, Any]) -> str:
    """One change in short: who, what, and what became of the fields that tell something."""
    who = each["agent"] or each["person"] or "somebody"
    what = f"{each['entity'].removesuffix('s')} {each['name'] or each['key']!r}"
    changed = [
        f"{field} {value}"
        for field, value in (each["after"] or {}).items()
        if field in TELLING and value is not None
    ]
    return plain(f"#{each['seq']} {who}: {each['op']} {what}: {', '.join(changed)}")


def _verdict(answer: dict[str, Any]) -> list[str]:
    kept = [f"everything is kept in {plain(answer['folder'])}"] if answer["folder"] else []
    if answer["ok"]:
        return [f"all {answer['tasks']} tasks are done, each once, and every check passes", *kept]
    return ["this is off:", *(f"  {plain(sentence)}" for sentence in answer["off"]), *kept]
