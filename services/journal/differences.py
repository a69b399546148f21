"""What changed between two positions of the journal: the net change of each row and field."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypedDict

from herdbook.domain.journal import Op, Position
from herdbook.domain.rewind import AsOf
from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import JOURNAL
from herdbook.ports.engine.kinds import Dictionary, Kind
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import above, find
from herdbook.ports.unit_of_work.past import resolve_position
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.journal.journal_effects import STAMP_FIELDS, Effect, Values, effects
from herdbook.services.listing import require_limit

MOST_ROWS = 1_000
"""How many rows are told unless another number is asked for."""
_LABELS = (
    "name",
    "title",
    "question",
    "summary",
    "content",
    "body",
    "description",
    "email",
    "path",
)
"""The fields that people know a row by; the first one that a row has is its name."""
_WORDS = {Op.ADD: "added", Op.SAVE: "changed", Op.REMOVE: "removed"}


class DiffPosition(TypedDict):
    """One of the two positions: its last entry, and its time."""

    seq: int
    time: datetime


class FieldDifference(TypedDict):
    """A field that has another value; of one that names a row, also the names of the rows."""

    field: str
    before: Any
    after: Any
    before_name: str | None
    after_name: str | None


class RowDifference(TypedDict):
    """A row that was added, removed or changed, and its fields that differ."""

    change: str
    entity: str
    id: str
    name: str | None
    fields: list[FieldDifference]


class Differences(TypedDict):
    """All rows that differ, the first of them with their fields; `more` were left out."""

    since: DiffPosition
    until: DiffPosition
    added: int
    changed: int
    removed: int
    rows: list[RowDifference]
    more: int


def differences(uow: UnitOfWork, since: Position, limit: int = MOST_ROWS) -> Differences:
    """What changed from a position up to the one that the unit of work reads.

    A row that came and went, and a field that has its old value again, are no change. Raises what
    `resolve_position` raises.
    """
    require_limit(limit)
    begin = resolve_position(uow.session, uow.space, since, "since")
    last = AsOf(uow.journal.last(), uow.now) if uow.as_of is None else uow.as_of
    query = find(JOURNAL, {"seq": above(begin.seq)}, limit=PAGE)
    found = [each for each in effects(uow.dictionary, select_all(uow, query)) if _fields_of(each)]
    order = {kind.name: place for place, kind in enumerate(uow.dictionary)}
    found.sort(key=lambda each: order[each.kind.name])
    shown = found[:limit]
    names = RowNames(uow, shown, found)
    counts = {word: sum(each.op is op for each in found) for op, word in _WORDS.items()}
    return {
        "since": {"seq": begin.seq, "time": begin.time},
        "until": {"seq": last.seq, "time": last.time},
        "added": counts["added"],
        "changed": counts["changed"],
        "removed": counts["removed"],
        "rows": [_row(each, names) for each in shown],
        "more": len(found) - len(shown),
    }


def _fields_of(effect: Effect) -> list[str]:
    """The fields that differ but for those that every save sets; of a row written once, its key."""
    if effect.kind.append_only and effect.op is not Op.SAVE:
        return [effect.kind.key]
    return [name for name in {**effect.was, **effect.became} if name not in STAMP_FIELDS]


def _row(effect: Effect, names: "RowNames") -> RowDifference:
    return {
        "change": _WORDS[effect.op],
        "entity": effect.kind.name,
        "id": effect.key,
        "name": names.of_row(effect.kind.name, effect.key),
        "fields": [
            {
                "field": name,
                "before": effect.was.get(name),
                "after": effect.became.get(name),
                "before_name": names.of_reference(effect.kind, name, effect.was),
                "after_name": names.of_reference(effect.kind, name, effect.became),
            }
            for name in _fields_of(effect)
            if name != effect.kind.key
        ],
    }


class RowNames:
    """What the rows of a difference, and the rows that they refer to, are called."""

    def __init__(self, uow: UnitOfWork, shown: Iterable[Effect], found: Iterable[Effect]) -> None:
        self._dictionary: Dictionary = uow.dictionary
        self._values = {
            (each.kind.name, each.key): each.was for each in found if each.op is Op.REMOVE
        }
        wanted: dict[str, dict[str, None]] = {}
        for each in shown:
            wanted.setdefault(each.kind.name, {})[each.key] = None
            for reference in each.kind.references:
                for values in (each.was, each.became):
                    if values.get(reference.field) is not None:
                        wanted.setdefault(reference.target, {})[values[reference.field]] = None
        self._read(uow, wanted)
        ends: dict[str, dict[str, None]] = {}
        for (name, _), values in list(self._values.items()):
            for reference in uow.dictionary.kinds[name].references:
                if values.get(reference.field) is not None:
                    ends.setdefault(reference.target, {})[values[reference.field]] = None
        self._read(uow, ends)

    def _read(self, uow: UnitOfWork, wanted: dict[str, dict[str, None]]) -> None:
        for name, keys in wanted.items():
            kind = uow.dictionary.kinds[name]
            missing = [key for key in keys if (name, key) not in self._values]
            for key, row in zip(missing, uow.get(kind, missing), strict=True):
                if row is not None:
                    self._values[name, key] = encode_row(kind, row)

    def of_row(self, entity: str, key: str) -> str | None:
        """The name of a row; of one that joins others, their names."""
        values = self._values.get((entity, key), {})
        kind = self._dictionary.kinds[entity]
        if kind.identity:
            ends = [self.of_reference(kind, name, values) for name in kind.identity]
            return " after ".join(each or "?" for each in ends) if any(ends) else None
        return next((str(values[name]) for name in _LABELS if values.get(name)), None)

    def of_reference(self, kind: Kind[Any], field: str, values: Values) -> str | None:
        """The name of the row that a field refers to; None for a field that refers to none."""
        target = next((each.target for each in kind.references if each.field == field), None)
        key = values.get(field)
        return None if target is None or key is None else self.of_row(target, key)
