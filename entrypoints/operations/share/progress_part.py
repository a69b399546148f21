"""How far the plan is: in sentences, as a picture and phase by phase."""

from collections.abc import Sequence

from herdbook.entrypoints.operations.share.html import Html, element, join, text
from herdbook.entrypoints.operations.share.parts import Data, Shared, section, table

WIDTH = 300
HEIGHT = 60


def progress_section(shown: Shared) -> Html:
    """What is done of the plan, how fast, when the rest may be, and each phase."""
    found = shown.ask("progress")
    now = found["now"]
    if not now["total"]:
        return section("Progress", element("p", "The plan is empty.", class_="mute"))
    rows = [
        (each["initiative"] or "-", each["name"] or "without a phase", _count(each), _bar(each))
        for each in found["phases"]
    ]
    return section(
        f"Progress ({_count(now)} done)",
        element("p", _forecast(shown, found)),
        element("p", _pace(found["completed"]), class_="mute"),
        _burn_up(shown, found["history"]),
        table("Phases", ("initiative", "phase", "done", "share"), rows, ""),
    )


def _count(part: Data) -> str:
    return f"{part['done']:,} of {part['total']:,}"


def _bar(part: Data) -> Html:
    name = part["name"] or "without a phase"
    label = f"{name}: {_count(part)} done"
    return element(
        "progress", value=part["done"], max=max(1, part["total"]), aria_label=label, title=label
    )


def _forecast(shown: Shared, found: Data) -> Html:
    """When the rest may be done, in a sentence."""
    if found["now"]["done"] == found["now"]["total"]:
        return text("Everything is done.")
    forecast = found["forecast"]
    if forecast is None:
        reason = "too few tasks were completed lately"
        return text(f"When the rest is done is not known yet: {reason}.")
    likely, late = (shown.time(forecast[name]) for name in ("likely", "late"))
    return join(["If it goes on as before, done by ", likely, " (50%) or ", late, " (90%)."])


def _pace(completed: dict[str, int | None]) -> str:
    known = [f"{n:,} in the last {span}" for span, n in completed.items() if n is not None]
    return (
        f"Completed: {', '.join(known)}." if known else "The journal does not reach back an hour."
    )


def _burn_up(shown: Shared, history: Sequence[Data]) -> Html | None:
    """All tasks and those that were done, over time."""
    if len(history) < 2:  # noqa: PLR2004 - a line has two ends
        return None
    most = max(1, *(each["total"] for each in history))
    first, last = history[0], history[-1]
    times = [shown.time(each["at"]) for each in (first, last)]
    label = f"From {_count(first)} to {_count(last)} tasks done"
    lines = [
        f'<polyline class="{name}" points="{_points(history, name, most)}"/>'
        for name in ("total", "done")
    ]
    return element(
        "figure",
        Html(
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img"'
            f' aria-label="{text(label)}">{"".join(lines)}</svg>'
        ),
        element("figcaption", times[0], " to ", times[1], ": all tasks, and done ones bold"),
        class_="burn-up",
    )


def _points(history: Sequence[Data], name: str, most: int) -> str:
    step = WIDTH / (len(history) - 1)
    heights = (HEIGHT - 1 - each[name] / most * (HEIGHT - 2) for each in history)
    return " ".join(f"{at * step:.1f},{height:.1f}" for at, height in enumerate(heights))
