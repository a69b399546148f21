"""Search the plan and what was said about it, by words."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.ports.engine.dictionary import (
    CHAT_MESSAGES,
    CONVERSATIONS,
    INITIATIVES,
    MESSAGES,
    PAGES,
    PHASES,
    PROPOSALS,
    REVIEW_COMMENTS,
    TASKS,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import select_pages
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

SEARCHED: dict[Kind[Any], tuple[str, ...]] = {
    TASKS: ("name", "labels", "description", "acceptance", "summary"),
    INITIATIVES: ("name",),
    PHASES: ("name", "content"),
    PAGES: ("title", "content"),
    PROPOSALS: ("title", "summary", "content"),
    MESSAGES: ("content",),
    CONVERSATIONS: ("question", "answer"),
    CHAT_MESSAGES: ("content",),
    REVIEW_COMMENTS: ("body", "file_path"),
}
"""The fields that are searched, by kind; the first one names the row."""
MOST_READ = 1_000_000
"""How many rows are read at most; the answer says if that was not enough."""
MOST_MATCHES = 10_000
"""How many matches are compared to find the best."""
CONTEXT = 40
"""How many characters before and after a word an excerpt has."""
LONGEST_QUERY = 1_000


class SearchMatch(NamedTuple):
    """A row in which every word occurs, and an excerpt of the field that has the first of them."""

    kind: str
    id: str
    name: str
    status: str | None
    field: str
    excerpt: str


class SearchAnswer(NamedTuple):
    """The best matches, how many there are, and how many rows were read; `complete` if all were."""

    matches: list[SearchMatch]
    total: int
    searched: int
    complete: bool


def search(uow: UnitOfWork, text: str, *, limit: int = 20) -> SearchAnswer:
    """The rows in which every word of a text occurs, whatever its case, anywhere in a word.

    Rows whose name has the whole text come first, then those whose name has a word, then the rest,
    each in the order of kinds; raises InvalidValue for a text without any word.
    """
    words = text[:LONGEST_QUERY].casefold().split()
    if not words:
        raise InvalidValue("text", "is empty")
    found: list[tuple[int, SearchMatch]] = []
    searched = total = 0
    for kind, fields in SEARCHED.items():
        for page in select_pages(uow.session, kind):  # rows are read once and not kept
            for row in page:
                matched = _match(kind, fields, row, words)
                total += matched is not None
                if matched is not None and len(found) < MOST_MATCHES:
                    found.append(matched)
            searched += len(page)
            if searched >= MOST_READ:
                return _best(found, limit, total, searched, complete=False)
    return _best(found, limit, total, searched, complete=True)


def _best(
    found: list[tuple[int, SearchMatch]], limit: int, total: int, searched: int, *, complete: bool
) -> SearchAnswer:
    ordered = sorted(found, key=lambda each: each[0])
    return SearchAnswer([each for _, each in ordered[:limit]], total, searched, complete)


def _match(
    kind: Kind[Any], fields: Iterable[str], row: object, words: list[str]
) -> tuple[int, SearchMatch] | None:
    """The match of a row and its rank; None if a word is missing."""
    texts = {name: _text(vars(row)[name]) for name in fields}
    folded = {name: each.casefold() for name, each in texts.items()}
    everything = "\n".join(folded.values())
    if not all(word in everything for word in words):
        return None
    name, *_ = texts
    rank = 0 if " ".join(words) in folded[name] else 1 if words[0] in folded[name] else 2
    field = next(each for each in texts if words[0] in folded[each])
    status = vars(row).get("status")
    title = texts[name].partition("\n")[0][: 2 * CONTEXT]
    excerpt = _excerpt(texts[field], folded[field].find(words[0]))
    key, shown = str(kind.key_of(row)), None if status is None else str(status)
    return rank, SearchMatch(kind.title, key, title, shown, field, excerpt)


def _text(value: object) -> str:
    return " ".join(value) if isinstance(value, list) else "" if value is None else str(value)


def _excerpt(text: str, at: int) -> str:
    """The text around a position, in one line."""
    begin, end = max(0, at - CONTEXT), at + 2 * CONTEXT
    cut = " ".join(text[begin:end].split())
    return f"{'…' if begin else ''}{cut}{'…' if end < len(text) else ''}"
