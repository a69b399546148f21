"""Text for people from `progress`: a bar for each phase, the pace, and the forecast."""

from datetime import datetime
from typing import Any

from herdbook.entrypoints.cli.text import duration, local_time, pad, plain, shorten, width

BAR = 20
NAME = 40
"""How many columns a bar and the name of a phase have."""
STEPS = "▁▂▃▄▅▆▇█"

Data = dict[str, Any]


def progress(answer: Data) -> str:
    """The whole plan, its phases, what was completed lately, and the forecast."""
    now = answer["now"]
    if not now["total"]:
        return "the plan has no tasks; `herdbook task add NAME` adds one"
    left = now["total"] - now["done"]
    lines = [f"{_bar(now)}  {now['done']:,} of {now['total']:,} tasks done, {left:,} left", ""]
    lines += _phases(answer["phases"])
    lines += [f"completed: {_pace(answer['completed'])}", _history(answer["history"])]
    return "\n".join([*lines, _forecast(answer, left)])


def _phases(phases: list[Data]) -> list[str]:
    if len(phases) < 2:  # noqa: PLR2004 - a single one is the whole plan
        return []
    names = [shorten(plain(each["name"] or "without a phase"), NAME) for each in phases]
    places = max(map(width, names))
    several = len({each["initiative_id"] for each in phases}) > 1
    lines, before = [], None
    for name, each in zip(names, phases, strict=True):
        if several and each["initiative_id"] not in (None, before):
            lines.append(shorten(plain(each["initiative"]), NAME + BAR))
        before = each["initiative_id"]
        lines.append(f"  {pad(name, places)}  {_bar(each)}  {each['done']:,} of {each['total']:,}")
    return [*lines, ""]


def _bar(part: Data) -> str:
    # A bar is full only when all is done, and not empty once something is.
    full = part["total"] and part["done"] * BAR // part["total"]
    full = max(full, 1) if part["done"] else 0
    return "█" * full + "░" * (BAR - full)


def _pace(completed: dict[str, int | None]) -> str:
    known = [
        f"{count:,} in the last {span}" for span, count in completed.items() if count is not None
    ]
    return ", ".join(known) if known else "the journal does not reach back an hour"


def _history(history: list[Data]) -> str:
    """The share of completed tasks over time, as a line of small bars."""
    first = local_time(history[0]["at"])
    shares = [each["done"] / each["total"] if each["total"] > 0 else 0.0 for each in history]
    bars = "".join(STEPS[round(min(1.0, max(0.0, share)) * (len(STEPS) - 1))] for share in shares)
    return f"done since {first}: {bars}"


def _forecast(answer: Data, left: int) -> str:
    if not left:
        return "all tasks are done"
    found = answer["forecast"]
    if found is None:
        return "forecast: unknown, too few tasks were completed in the last four weeks"
    now = datetime.fromisoformat(answer["now"]["at"])
    likely, late = (_moment(found[name], now) for name in ("likely", "late"))
    return f"forecast, if it goes on as before: 50% by {likely}, 90% by {late}"


def _moment(text: str, now: datetime) -> str:
    seconds = (datetime.fromisoformat(text) - now).total_seconds()
    return f"{local_time(text)} (in {duration(seconds)})"
