"""What shared pages are made of: sections, lists, tables, states and times."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from herdbook.entrypoints.cli.text import duration
from herdbook.entrypoints.operations.board import graph_picture
from herdbook.entrypoints.operations.share.html import Html, element, join
from herdbook.entrypoints.operations.share.paths import shorten_paths

Data = dict[str, Any]
Content = tuple[str, Html]
"""The title of a page and what is below it."""
MARKS = {
    **graph_picture.MARKS,
    "completed": "●",
    "stopped": "●",
    "running": "◐",
    "idle": "○",
    "crashed": "■",
    "waiting_for_input": "!",
}


class Shared:
    """Where a page gets its answers, and the moment that it is about."""

    def __init__(
        self,
        ask: Callable[..., Any],
        now: datetime,
        *,
        is_past: bool,
        places: Mapping[str, str],
    ) -> None:
        """`places` has the names of folders of this machine by their paths."""
        self.ask = ask
        self.now = now
        self.is_past = is_past
        self._places = places

    def time(self, at: str) -> Html:
        """A time as people in any place read it."""
        known = datetime.fromisoformat(at).astimezone(UTC)
        return element("time", f"{known:%Y-%m-%d %H:%M} UTC", datetime=known.isoformat())

    def ago(self, at: str) -> str:
        """How long something was ago at the moment."""
        return duration((self.now - datetime.fromisoformat(at)).total_seconds())

    def without_paths(self, text: str) -> str:
        """A text of the installation without the paths of this machine."""
        return shorten_paths(text, self._places)


def section(title: Any, *content: Any) -> Html:
    """A part of a page under its title."""
    return element("section", element("h2", title), *content)


def list_of(items: Sequence[Html], none: str) -> Html:
    """Items one below the other, or a sentence if there are none."""
    return element("ul", items) if items else element("p", none, class_="mute")


def mark(name: str) -> Html:
    """The mark of a state: never colour alone."""
    return element("span", MARKS.get(name, "○"), class_=f"mark {name}", aria_hidden="true")


def state(name: str) -> Html:
    """A state by its mark and its word."""
    return join([mark(name), name.replace("_", " ")])


def table(label: str, header: Sequence[str], rows: Sequence[Sequence[Any]], none: str) -> Html:
    """Rows under a header, or a sentence if there are none."""
    if not rows:
        return element("p", none, class_="mute")
    head = element("tr", [element("th", each, scope="col") for each in header])
    lines = [
        element(
            "tr",
            [element("td", cell, data_label=name) for name, cell in zip(header, row, strict=True)],
        )
        for row in rows
    ]
    return element(
        "table",
        element("caption", label, class_="hidden"),
        element("thead", head),
        element("tbody", lines),
    )
