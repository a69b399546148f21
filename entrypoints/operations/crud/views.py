"""Text for people from rows of any kind."""

import json
from collections.abc import Sequence
from typing import Any

from herdbook.entrypoints.cli.terminal import table
from herdbook.entrypoints.cli.text import local_time, plain, short_id, shorten

FIRST = ("id", "name", "title", "status", "priority", "question", "content", "body", "description")
"""The fields of a row that a list shows, if the row has them."""
WORDS = ("name", "title", "question", "content", "body", "summary", "description", "email")
"""The fields that say what a row is; the first one with a value counts."""
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
    rows = [[_short(name, row.get(name)) for name in names] for row in answer]
    return table([name.upper() for name in names], rows)


def removed_rows(answer: Sequence[dict[str, Any]]) -> str:
    """A line for each removed row."""
    return "\n".join(f"removed {describe(row)}" for row in answer)


def saved_row(answer: dict[str, Any]) -> str:
    """A row that was added or changed, in one line."""
    return f"{'added' if answer.get('version') == 1 else 'saved'} {describe(answer)}"


def describe(row: dict[str, Any]) -> str:
    """A row in a few words: its kind, the beginning of its id, and what it is called."""
    words = next((row[name] for name in WORDS if row.get(name)), "")
    quoted = f" {plain(shorten(str(words).partition(chr(10))[0], WIDEST))!r}" if words else ""
    return f"{_title(row['id'])}{short_id(row['id'])}{quoted}"


def _title(key: str) -> str:
    """What a row is, by the prefix of its id; empty where the id has none."""
    from herdbook.ports.engine.dictionary import DICTIONARY  # noqa: PLC0415 - rows have loaded it

    prefix = key.partition("_")[0]
    kind = next((each for each in DICTIONARY if each.prefix and each.prefix == prefix), None)
    return "" if kind is None else f"{kind.title} "


def result(answer: Any) -> str:
    """What a use case wrote: each row in one line with its status, or what it answered."""
    if isinstance(answer, list) and answer and all("id" in each for each in answer):
        return "\n".join(map(result, answer))
    if not isinstance(answer, dict):
        return anything(answer)
    if "lease_until" in answer and "task_id" in answer:
        until = local_time(answer["lease_until"] or "")
        return f"task {short_id(answer['task_id'])} is held until {until}"
    if "id" not in answer:
        return anything(answer)
    status = answer.get("status")
    return f"{describe(answer)}: {status}" if status else describe(answer)


def _text(value: Any) -> str:
    return plain(
        local_time(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    )


def _short(name: str, value: Any) -> str:
    if name == "id":
        return short_id(str(value))
    return shorten("" if value is None else _text(value), WIDEST)


def anything(answer: Any) -> str:
    """The answer of any use case: a row, rows, or sets of rows."""
    if answer is None:
        return "there is none"
    if isinstance(answer, dict):
        return one(answer)
    if answer and isinstance(answer[0], list):
        return "\n\n".join(f"wave {at}\n{many(each)}" for at, each in enumerate(answer, start=1))
    return many(answer)
