"""Text for people from rows of any kind."""

import json
from collections.abc import Sequence
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import plain

FIRST = ("id", "name", "title", "status", "priority", "question", "content", "body", "description")
"""The fields of a row that a list shows, if the row has them."""
WIDEST = 60


def one(answer: dict[str, Any]) -> str:
    """Every field with a value, a line each."""
    width = max(len(name) for name in answer)
    return "\n".join(
        f"{name:{width}}  {_text(value)}" for name, value in answer.items() if value is not None
    )


def many(answer: Sequence[dict[str, Any]]) -> str:
    """A line for each row."""
    if not answer:
        return "there are none"
    names = [name for name in FIRST if name in answer[0]]
    rows = [[_short(row[name]) for name in names] for row in answer]
    return table([name.upper() for name in names], rows)


def removed_rows(answer: Sequence[dict[str, Any]]) -> str:
    """A line for each removed row."""
    return "\n".join(f"removed {row['id']}" for row in answer)


def _text(value: Any) -> str:
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _short(value: Any) -> str:
    text = "" if value is None else _text(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def anything(answer: Any) -> str:
    """The answer of any use case: a row, rows, or sets of rows."""
    if answer is None:
        return "there is none"
    if isinstance(answer, dict):
        return one(answer)
    if answer and isinstance(answer[0], list):
        return "\n\n".join(f"wave {at}\n{many(each)}" for at, each in enumerate(answer, start=1))
    return many(answer)
