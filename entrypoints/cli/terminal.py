"""Terminal output: in colours on a terminal, as plain text everywhere else.

Only this module decides that and imports rich, and only when colours are shown. The words are the
same either way.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from herdbook.entrypoints.cli.text import columns, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Span = tuple[str, str]
"""A text and its style as rich names it, such as `bold red`; "" for none."""
Line = Sequence[Span]
Redraw = Callable[[], None]

REDRAWS_PER_SECOND = 2
"""How often a live view is redrawn, for clocks that run and sizes that change."""
TERMINATED = 143


def shows_colours(variables: Mapping[str, str] = os.environ) -> bool:
    """Whether standard output is a terminal with colours, and NO_COLOR is not set."""
    return is_terminal(variables) and not variables.get("NO_COLOR")


def is_terminal(variables: Mapping[str, str] = os.environ) -> bool:
    """Whether standard output is a terminal on which a program can draw."""
    return sys.stdout.isatty() and variables.get("TERM", "dumb") not in ("dumb", "unknown")


def render_lines(lines: Sequence[Line]) -> str:
    """Lines as text to print; on a terminal each is cut to its width."""
    if not shows_colours():
        return "\n".join(_words(line) for line in lines)
    console = _console()
    with console.capture() as captured:
        for line in lines:
            console.print(_text(line), no_wrap=True, overflow="ellipsis", crop=True)
    return captured.get().removesuffix("\n")


def table(header: Sequence[str], rows: Sequence[Sequence[str]], none: str = "") -> str:
    """Rows under a header; control characters and markup in a cell have no effect.

    Without rows, what `none` says if it says something.
    """
    if none and not rows:
        return none
    cells = [[plain(cell) for cell in row] for row in rows]
    if not shows_colours():
        return columns(header, cells)
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in header:
        # An id is copied as a whole, so it is never wrapped.
        drawn.add_column(Text(name), overflow="fold", no_wrap=name == "ID")
    for row in cells:
        drawn.add_row(*(Text(cell) for cell in row))
    console = _console()
    with console.capture() as captured:
        console.print(drawn)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def show_live(
    answers: Iterator[Any],
    draw: Callable[[Any], Sequence[Line]],
    begin: Callable[[Redraw], None] | None = None,
) -> None:
    """Draw each answer in the place of the one before, until the user stops it.

    The terminal is restored however this ends. `begin` is called once, with a function that draws
    the last answer again.
    """
    if not is_terminal():
        for answer in answers:
            print("\n".join(_words(line) for line in draw(answer)), end="\n\n", flush=True)
        return
    import signal  # noqa: PLC0415

    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        _redraw(answers, draw, begin)
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


def _redraw(
    answers: Iterator[Any],
    draw: Callable[[Any], Sequence[Line]],
    begin: Callable[[Redraw], None] | None,
) -> None:
    from rich.console import Group  # noqa: PLC0415
    from rich.live import Live  # noqa: PLC0415

    last: list[Any] = []

    def draw_last() -> Group:
        lines = draw(last[-1]) if last else []
        return Group(*(_text(line) for line in _fit_height(lines)))

    console = _console()
    with Live(
        console=console,
        screen=True,
        get_renderable=draw_last,
        refresh_per_second=REDRAWS_PER_SECOND,
    ) as screen:
        if begin is not None:
            begin(screen.refresh)
        for answer in answers:
            last[:] = [answer]
            screen.refresh()


def _fit_height(lines: Sequence[Line]) -> Sequence[Line]:
    """As many lines as fit on the terminal; the last one counts the rest."""
    import shutil  # noqa: PLC0415 - brings archives of all kinds

    height = shutil.get_terminal_size().lines
    if len(lines) <= height:
        return lines
    rest = len(lines) - height + 1
    return [*lines[: height - 1], [(f"… and {rest} more lines", "dim")]]


def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415

    return Console(highlight=False, markup=False, emoji=False)


def _text(line: Line) -> "Text":
    from rich.text import Text  # noqa: PLC0415

    return Text.assemble(*line, no_wrap=True, overflow="ellipsis")


def _words(line: Line) -> str:
    return "".join(words for words, _ in line).rstrip()
