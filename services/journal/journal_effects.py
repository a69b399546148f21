"""The effects of a transaction, row by row, from the journal, and what undoing them needs."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue, StaleWrite
from herdbook.domain.journal import JournalEntry, Op
from herdbook.ports.engine.codec import decode_row, encode_row
from herdbook.ports.engine.derived_ids import derive_id
from herdbook.ports.engine.kinds import Dictionary, Kind

Values = dict[str, Any]
LONGEST_VALUE = 40
"""How many characters of a value a message shows."""
STAMP_FIELDS = frozenset({"id", "created_at", "updated_at", "version"})
"""The fields that a save sets by itself."""


class Effect(NamedTuple):
    """A row before and after a transaction, as the journal has it.

    For a saved row, the fields that changed; for an added or removed one, all fields on one side
    and none on the other. For an append-only row, the journal has no fields.
    """

    kind: Kind[Any]
    key: str
    op: Op
    was: Values
    became: Values

    @property
    def what(self) -> str:
        """The row as messages name it."""
        return f"{self.kind.title} {self.key!r}"


def effects(dictionary: Dictionary, entries: Iterable[JournalEntry]) -> list[Effect]:
    """The net effect of a transaction on each row it touched, in order."""
    found: dict[tuple[str, str], list[JournalEntry]] = {}
    for entry in entries:
        key = _present_key(dictionary.kinds[entry.entity], entry)
        found.setdefault((entry.entity, key), []).append(entry)
    found_effects = [
        _effect(dictionary.kinds[name], key, own) for (name, key), own in found.items()
    ]
    return [effect for effect in found_effects if effect is not None]


def _present_key(kind: Kind[Any], entry: JournalEntry) -> str:
    """The key that the row of an entry has now: pairs had random ids once."""
    values = entry.after if entry.before is None else entry.before
    if kind.identity and values is not None and all(name in values for name in kind.identity):
        return derive_id(kind, values)
    return entry.key


def _effect(kind: Kind[Any], key: str, entries: list[JournalEntry]) -> Effect | None:
    came, went = entries[0].op is Op.ADD, entries[-1].op is Op.REMOVE
    if came and went:
        return None
    was: Values = {}
    became: Values = {}
    for entry in entries:
        before, after = entry.before or {}, entry.after or {}
        was = {**before, **was}  # the first value counts
        became = {} if entry.op is Op.REMOVE else {**became, **after}
    if came:
        return Effect(kind, key, Op.ADD, {}, became)
    if went:
        return Effect(kind, key, Op.REMOVE, was, {})
    changed = [name for name in {**was, **became} if was.get(name) != became.get(name)]
    # A secret is `***` on both sides, and the journal names it only if it changed.
    changed += [name for name in kind.secrets if name in was and name not in changed]
    return Effect(
        kind,
        key,
        Op.SAVE,
        {name: was.get(name) for name in changed},
        {name: became.get(name) for name in changed},
    )


def refuse_unrecoverable(effect: Effect) -> None:
    """Raise InvalidValue for a row that the journal does not hold enough of to restore."""
    if effect.op is Op.ADD:
        return
    if effect.kind.append_only:
        reason = "the journal keeps no more than the key of what is written once"
        raise InvalidValue("tx", f"{effect.what} cannot come back: {reason}. Nothing was written")
    hidden = sorted(name for name in effect.kind.secrets if effect.was.get(name) is not None)
    if hidden:
        raise InvalidValue(
            "tx",
            f"{', '.join(hidden)} of {effect.what} cannot come back: the journal keeps no secrets. "
            "Nothing was written",
        )


def refuse_changed(effect: Effect, row: object) -> None:
    """Raise StaleWrite, with the fields, if a row is not as the transaction left it."""
    held = encode_row(effect.kind, row)
    left = effect.became
    if effect.op is Op.ADD:
        # Decoded with today's kind: fields that were added since have their defaults.
        left = encode_row(effect.kind, decode_row(effect.kind, left))
    names = effect.kind.columns if effect.op is Op.ADD else left
    changed = tuple(n for n in names if n not in STAMP_FIELDS and held.get(n) != left.get(n))
    if changed:
        version = effect.became.get("version", 0)
        current = held.get("version", 0)
        differences = ", ".join(_describe_difference(n, left.get(n), held.get(n)) for n in changed)
        what = describe_row(effect.kind, effect.key, getattr(row, "name", None))
        reason = (
            f"{what} has changed since, so it stays as it is: {differences}. Nothing was written; "
            f"`herdbook journal row {effect.key}` shows what came later"
        )
        raise StaleWrite(effect.kind.title, effect.key, version, current, changed, reason)


def describe_row(kind: Kind[Any], key: str, name: str | None) -> str:
    """A row as messages name it, by its name if it has one, and by its id."""
    return f"{kind.title} {name!r} ({key})" if name else f"{kind.title} {key!r}"


def _describe_difference(field: str, was: object, now: object) -> str:
    """A field that changed, with both values if they are short."""
    if any(len(str(each)) > LONGEST_VALUE for each in (was, now)):
        return field
    return f"{field} was {_show(was)} and is {_show(now)}"


def _show(value: object) -> str:
    return "empty" if value is None else repr(value)


def restore_removed(effect: Effect) -> object:
    """The row that was removed, as it was."""
    return decode_row(effect.kind, {n: each for n, each in effect.was.items() if each is not None})


def restore_changed(effect: Effect, row: object) -> object:
    """The row with the fields that the transaction changed as they were before."""
    values = encode_row(effect.kind, row, reveal=True)
    values |= {name: each for name, each in effect.was.items() if name not in STAMP_FIELDS}
    return decode_row(effect.kind, {n: each for n, each in values.items() if each is not None})
