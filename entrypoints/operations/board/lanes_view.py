"""Text for people from `lanes`: a line for each lane, from the begin of the window to its end."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from herdbook.entrypoints.cli.text import duration, local_time, pad, plain, shorten, width

COLUMNS = 60
"""How many columns the time has."""
NAME = 20
WHAT = 40
"""How many columns the name of a lane and that of a task have at most."""
GAP = "┆"
SIGNS = {"waiting_for_input": "!", "failed": "■", "review": "◇", "held": "█", "other": "▒"}
"""The sign of a bar; of two in one column the first of these is shown."""
LEGEND = "█ held  ! waits for a person  ◇ review  ■ failed  ▒ ended  ? asked  · commit"

Data = dict[str, Any]


class _TimeScale:
    """The columns of times; a time in which nothing happened takes one column."""

    def __init__(self, answer: Data) -> None:
        self.since, self.until = (_time(answer[name]) for name in ("since", "until"))
        self._gaps = [(_time(each["since"]), _time(each["until"])) for each in answer["gaps"]]
        idle = sum((until - since).total_seconds() for since, until in self._gaps)
        busy = (self.until - self.since).total_seconds() - idle
        self._per_column = max(busy, 1e-6) / max(1, COLUMNS - len(self._gaps))

    def column(self, moment: datetime) -> int:
        """The column of a moment; the nearest one for moments outside the window."""
        seconds = (min(moment, self.until) - self.since).total_seconds()
        columns = 0.0
        for since, until in self._gaps:
            if moment > since:
                seconds -= (min(moment, until) - since).total_seconds()
                columns += 1 if moment >= until else 0
        return max(0, min(COLUMNS - 1, int(columns + max(0.0, seconds) / self._per_column)))

    def gap_columns(self) -> Iterator[int]:
        """The columns that stand for times that are left out."""
        for number, (since, _) in enumerate(self._gaps):
            before = sum((end - begin).total_seconds() for begin, end in self._gaps[:number])
            busy = (since - self.since).total_seconds() - before
            yield min(COLUMNS - 1, int(busy / self._per_column) + number)


def lanes(answer: Data) -> str:
    """The lanes in which something is, and what is not shown."""
    scale = _TimeScale(answer)
    busy = [each for each in answer["lanes"] if each["spans"] or each["marks"]]
    lines = [_axis(answer)]
    names = [shorten(plain(_name(each, answer["group"])), NAME) for each in busy]
    places = max(map(width, names), default=0)
    now = _time(answer["now"])
    for lane, name in zip(busy, names, strict=True):
        lines.append(f"{pad(name, places)}  {_bars(lane, scale, now)}  {_what(lane, now)}".rstrip())
    if not busy:
        lines.append("nobody held anything; `herdbook claim --agent NAME` takes a task")
    else:
        lines.append(LEGEND)
    return "\n".join([*lines, *_notes(answer, len(busy))])


def _axis(answer: Data) -> str:
    since, until, now = (_time(answer[name]) for name in ("since", "until", "now"))
    begin, end = local_time(answer["since"]), local_time(answer["until"])
    last = "now" if until == now else end
    return f"from {begin} to {last} ({duration((until - since).total_seconds())})"


def _name(lane: Data, group: str) -> str:
    if lane.get("name"):
        return f"{lane['name']} (gone)" if lane.get("gone") else str(lane["name"])
    if lane.get("id"):
        return f"{group} {lane['id']}, gone"
    return {"agent": "nobody known", "phase": "without a phase"}.get(group, "no worktree known")


def _bars(lane: Data, scale: _TimeScale, now: datetime) -> str:
    cells = [" "] * COLUMNS
    for column in scale.gap_columns():
        cells[column] = GAP
    rank = list(SIGNS.values())
    for span in lane["spans"]:
        sign = SIGNS[_look(span)]
        last = now if span.get("until") is None else _time(span["until"])
        for column in range(scale.column(_time(span["since"])), scale.column(last) + 1):
            there = cells[column]
            if there not in rank or rank.index(sign) < rank.index(there):
                cells[column] = sign
    for mark in lane["marks"]:
        if mark["kind"] != "answered":
            cells[scale.column(_time(mark["at"]))] = "?" if mark["kind"] == "asked" else "·"
    return "".join(cells)


def _look(span: Data) -> str:
    """The state that a bar shows: how its claim ended, if that is over."""
    if span["state"] != "held":
        return str(span["state"])
    end = span.get("end")
    return "held" if end is None else "failed" if end == "failed" else "other"


def _what(lane: Data, now: datetime) -> str:
    """What the lane is at, and for how long; else what was last there."""
    lasting = [each for each in lane["spans"] if each.get("until") is None]
    if not lasting:
        last = lane["spans"][-1] if lane["spans"] else {}
        return _task(last) if last else ""
    span = lasting[-1]
    seconds = (now - _time(span["claimed_at"])).total_seconds()
    over = ", its lease is over" if span.get("over") else ""
    more = f" and {len(lasting) - 1} more" if len(lasting) > 1 else ""
    return f"{_task(span)}{more}, for {duration(seconds)}{over}"


def _task(span: Data) -> str:
    name = span.get("task") or ("no task" if span.get("task_id") is None else span["task_id"])
    return shorten(plain(name), WHAT)


def _notes(answer: Data, shown: int) -> Iterator[str]:
    if answer["idle"]:
        yield f"{answer['idle']:,} idle"
    left = answer["total"] - answer["idle"] - shown
    if left > 0:
        told = answer["total"] - answer["idle"]
        yield f"{shown:,} of {told:,} lanes; --limit sets how many are shown"
    if _time(answer["known_since"]) > _time(answer["since"]):
        since = local_time(answer["known_since"])
        why = "there was too much to read" if answer["cut"] else "the journal begins there"
        yield f"nothing is known before {since}: {why}"


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
