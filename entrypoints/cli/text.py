"""Text for terminals: escaping, widths, columns, sizes and durations."""

import re
from collections.abc import Iterator, Sequence

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_JOINER, _PICTURE = "\u200d", "\ufe0f"
_SKINS = tuple(map(chr, range(0x1F3FB, 0x1F400)))
_ID = re.compile(r"[a-z]{2,4}_([0-9a-z]{12,})")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
SHORT_ID = 6
"""How many characters of an id are shown in lists: enough to name a row of most plans."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def plain(text: str) -> str:
    """A text in one line, with control characters escaped."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], text)


def plain_lines(text: str) -> str:
    """A text with its line breaks, with other control characters escaped."""
    return "\n".join(map(plain, text.split("\n")))


def plural(count: int, word: str) -> str:
    """A count and a regular noun."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under a header, each column as wide as its longest cell."""
    table = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(width(row[at]) for row in table) for at in range(len(header))]
    return "\n".join(
        "  ".join(pad(cell, places) for cell, places in zip(row, widths, strict=True)).rstrip()
        for row in table
    )


def width(text: str) -> int:
    """The width of a text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    return sum(_places(text))


def _places(text: str) -> Iterator[int]:
    """The width of each character; one that joins the character before it has none."""
    from unicodedata import category, east_asian_width  # noqa: PLC0415 - seldom needed

    before = ""
    for character in text:
        if before == _JOINER or character in _SKINS or category(character) in ("Mn", "Me", "Cf"):
            # After some characters this one selects the emoji form, which is wide.
            asked = character == _PICTURE and before and east_asian_width(before) not in "WF"
            yield 1 if asked else 0
        else:
            yield 2 if east_asian_width(character) in "WF" else 1
        before = character


def pad(text: str, places: int) -> str:
    """A text filled up with spaces to this width."""
    return text + " " * (places - width(text))


def shorten(text: str, places: int) -> str:
    """A text cut to this width; … marks the cut."""
    if width(text) <= places:
        return text
    kept, left = "", places - 1
    for character, taken in zip(text, _places(text), strict=True):
        left -= taken
        if left < 0:
            break
        kept += character
    return f"{kept}…"


def size(amount: int | None) -> str:
    """A number of bytes with its unit."""
    if amount is None:
        return "unknown size"
    value, unit = float(amount), 0
    while value >= 1024 and unit < len(_UNITS) - 1:  # noqa: PLR2004 - it is what the units mean
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 else f"{value:.1f} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """A duration in its two largest units."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        amount, left = divmod(left, length)
        if amount or (parts and len(parts) < 2):  # noqa: PLR2004 - two units say enough
            parts.append(f"{amount}{unit}")
    return " ".join(parts[:2]) or "0s"


def short_id(key: str) -> str:
    """The beginning of a generated id, without the prefix of its kind; other ids stay whole."""
    found = _ID.fullmatch(key)
    return plain(key) if found is None else found[1][:SHORT_ID]


def local_time(text: str) -> str:
    """An ISO 8601 time in the time zone of the reader, to the second; other texts stay."""
    if _TIME.fullmatch(text) is None:
        return text
    from datetime import datetime  # noqa: PLC0415

    try:
        return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):  # the first and the last year have hours of no other zone
        return text
