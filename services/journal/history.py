"""What happened, in words: the transactions of the journal, newest first."""

import json
from datetime import datetime
from itertools import islice
from pathlib import PurePath
from typing import Any, TypedDict

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.values import MOMENT
from herdbook.ports.engine.dictionary import JOURNAL, WORKTREES
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import between, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.journal.differences import RowNames
from herdbook.services.journal.journal_effects import STAMP_FIELDS, Effect

MOST = 1_000
"""How many entries can be asked for at once, and how many are told of a transaction at most."""
LONGEST = 60
"""How many characters of a value are told."""
_QUIET = frozenset(
    {*STAMP_FIELDS, "id", "created_at", "fence", "claim_stamp", "lease_until", "worktree_id"}
)


class HistoryEntry(TypedDict):
    """One change of one row: its number, the row, its name if it has one, and the change."""

    seq: int
    op: Op
    entity: str
    key: str
    name: str | None
    text: str


class HistoryStep(TypedDict):
    """One transaction: its last entry, what was before it, when, by whom, and its changes.

    Fewer than `seq - before` entries are a part of them.
    """

    seq: int
    before: int
    tx: str
    time: datetime
    who: str | None
    agent: str | None
    note: str | None
    entries: list[HistoryEntry]


class History(TypedDict):
    """Transactions, newest first; the journal has the entries from `first` to `last`."""

    first: int
    last: int
    steps: list[HistoryStep]


def list_history(uow: UnitOfWork, *, before: int | None = None, limit: int = 100) -> History:
    """The last transactions, or the last `before` a number; whole ones, of so many entries or more.

    Of a transaction that leads beyond MOST entries the last ones are told; the others are `before`
    them. Names are those that rows have at the position that is read. Raises InvalidValue for a
    limit that is none.
    """
    if not 0 < limit <= MOST:
        raise InvalidValue("limit", f"must be from 1 to {MOST}")
    entries = _read_whole(uow, before, limit)
    effects = [
        Effect(
            uow.dictionary.kinds[each.entity],
            each.key,
            each.op,
            each.before or {},
            each.after or {},
        )
        for each in entries
    ]
    names = RowNames(uow, effects, effects)
    steps: list[HistoryStep] = []
    for entry, effect in zip(entries, effects, strict=True):
        if not steps or steps[-1]["tx"] != entry.tx:
            steps.append(_step(entry))
        steps[-1]["before"] = entry.seq - 1
        steps[-1]["entries"].append(_entry(entry, effect, names))
    if before is not None and steps:
        steps[0]["seq"] = _end(uow, steps[0]["tx"], descending=True)
    if len(entries) == MOST:
        steps[-1]["before"] = _end(uow, steps[-1]["tx"]) - 1
    for each in steps:
        each["entries"].reverse()
    return {"first": uow.journal.pruned_to() + 1, "last": uow.journal.last(), "steps": steps}


def _read_whole(uow: UnitOfWork, before: int | None, limit: int) -> list[JournalEntry]:
    """The last entries before a number, newest first, until a transaction ends after the limit.

    At most MOST, whether it ends there or not.
    """
    query = find(JOURNAL, {"seq": between(None, before)}, descending=True, limit=min(PAGE, limit))
    found: list[JournalEntry] = []
    for entry in islice(select_all(uow, query), MOST):
        if len(found) >= limit and entry.tx != found[-1].tx:
            break
        found.append(entry)
    return found


def _end(uow: UnitOfWork, tx: str, *, descending: bool = False) -> int:
    """The number of the first entry of a transaction, or of the last one."""
    (entry,) = uow.select(find(JOURNAL, {"tx": tx}, descending=descending, limit=1))
    return entry.seq


def _step(entry: JournalEntry) -> HistoryStep:
    return {
        "seq": entry.seq,
        "before": entry.seq - 1,
        "tx": entry.tx,
        "time": entry.time,
        "who": entry.agent or entry.person,
        "agent": entry.agent,
        "note": entry.note,
        "entries": [],
    }


def _entry(entry: JournalEntry, effect: Effect, names: RowNames) -> HistoryEntry:
    name = names.of_row(effect.kind.name, effect.key)
    return {
        "seq": entry.seq,
        "op": entry.op,
        "entity": entry.entity,
        "key": entry.key,
        "name": name,
        "text": _text(effect, name, names),
    }


def _text(effect: Effect, name: str | None, names: RowNames) -> str:
    if effect.kind is WORKTREES and name is not None:
        name = PurePath(name).name  # where on this machine it is tells nobody else anything
    what = f"{effect.kind.title} {_short(name or effect.key)}"
    if effect.op is not Op.SAVE:
        return f"{'added' if effect.op is Op.ADD else 'removed'} {what}"
    fields = [each for each in effect.became if each not in _QUIET]
    told = [f"{_field(each)} {_value(effect, each, names)}" for each in fields]
    return f"{what}: {', '.join(told)}" if told else f"{what} changed"


def _value(effect: Effect, field: str, names: RowNames) -> str:
    known = names.of_reference(effect.kind, field, effect.became)
    value: Any = effect.became[field] if known is None else known
    if value is None:
        return "none"
    column = effect.kind.columns.get(field)
    if column is not None and column.type_name == MOMENT.type_name:
        return f"{datetime.fromisoformat(value):%Y-%m-%d %H:%M:%S} UTC"
    if field.endswith("path"):
        return _short(PurePath(str(value)).name)
    if isinstance(value, list):
        return _short(", ".join(map(_item_text, value))) or "none"
    return _short(
        value.replace("_", " ") if known is None and isinstance(value, str) else str(value)
    )


def _item_text(value: object) -> str:
    """One of several values: a question by its text, anything else as JSON has it."""
    if isinstance(value, dict) and isinstance(value.get("question"), str):
        value = value["question"]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _field(name: str) -> str:
    return name.removesuffix("_id").replace("_", " ")
