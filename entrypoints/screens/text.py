"""Text that is safe and pleasant on a terminal."""

import re
from collections.abc import Sequence

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def plain(text: str) -> str:
    """A text in one line, without what would make a terminal do something."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under a header, each column as wide as it has to be."""
    table = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[at]) for row in table) for at in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def size(amount: int | None) -> str:
    """A number of bytes as people say it."""
    if amount is None:
        return "unknown size"
    value, unit = float(amount), 0
    while value >= 1024 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - it is what the units mean
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """A length of time as people say it, in its two largest units."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, left = divmod(left, length)
        if amount or (parts and len(parts) < 2):  # noqa: PLR2004 - two units say enough
            parts.append(f"{amount}{unit}")
    return " ".join(parts[:2]) or "0s"
