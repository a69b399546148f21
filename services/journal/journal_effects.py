"""What a transaction did, row by row, read from the journal, and what it would take to undo it."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue, StaleWrite
from herdbook.domain.journal import JournalEntry, Op
from herdbook.ports.engine.codec import decode_row, encode_row
from herdbook.ports.engine.kinds import Dictionary, Kind

Values = dict[str, Any]
STAMPED = frozenset({"id", "created_at", "updated_at", "version"})
"""What follows from a save itself."""


class Effect(NamedTuple):
    """A row before and after a transaction, as the journal writes it.

    Of a row that was saved, the fields that changed; of one that came or went, all of them on one
    side and None on the other. Of an append-only row that came or went, nothing is known.
    """

    kind: Kind[Any]
    key: str
    op: Op
    was: Values
    became: Values

    @property
    def what(self) -> str:
        """The row as a person names it."""
        return f"{self.kind.title} {self.key!r}"


def effects(dictionary: Dictionary, entries: Iterable[JournalEntry]) -> list[Effect]:
    """What a transaction made of each row it touched, however often it did, in order."""
    found: dict[tuple[str, str], list[JournalEntry]] = {}
    for entry in entries:
        found.setdefault((entry.entity, entry.key), []).append(entry)
    told = [_effect(dictionary.kinds[name], key, own) for (name, key), own in found.items()]
    return [effect for effect in told if effect is not None]


def _effect(kind: Kind[Any], key: str, entries: list[JournalEntry]) -> Effect | None:
    came, went = entries[0].op is Op.ADD, entries[-1].op is Op.REMOVE
    if came and went:
        return None
    was: Values = {}
    became: Values = {}
    for entry in entries:
        before, after = entry.before or {}, entry.after or {}
        was = {**before, **was}  # what it was first counts
        became = {} if entry.op is Op.REMOVE else {**became, **after}
    if came:
        return Effect(kind, key, Op.ADD, {}, became)
    if went:
        return Effect(kind, key, Op.REMOVE, was, {})
    changed = [name for name in {**was, **became} if was.get(name) != became.get(name)]
    # A secret shows as `***` on both sides, and the journal tells of it only where it changed.
    changed += [name for name in kind.secrets if name in was and name not in changed]
    return Effect(
        kind,
        key,
        Op.SAVE,
        {name: was.get(name) for name in changed},
        {name: became.get(name) for name in changed},
    )


def refuse_untold(effect: Effect) -> None:
    """Raise InvalidValue for what the journal does not tell enough of to bring it back."""
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
    """Raise StaleWrite, naming the fields, where a row is not as the transaction left it."""
    held = encode_row(effect.kind, row)
    left = effect.became
    if effect.op is Op.ADD:
        # As it is read today: fields that came since have their defaults.
        left = encode_row(effect.kind, decode_row(effect.kind, left))
    names = effect.kind.columns if effect.op is Op.ADD else left
    changed = tuple(n for n in names if n not in STAMPED and held.get(n) != left.get(n))
    if changed:
        version = effect.became.get("version", 0)
        current = held.get("version", 0)
        raise StaleWrite(effect.kind.title, effect.key, version, current, changed)


def brought_back(effect: Effect) -> object:
    """The row that was removed, as it was."""
    return decode_row(effect.kind, {n: each for n, each in effect.was.items() if each is not None})


def put_back(effect: Effect, row: object) -> object:
    """A row with what the transaction changed as it was before."""
    values = encode_row(effect.kind, row, reveal=True)
    values |= {name: each for name, each in effect.was.items() if name not in STAMPED}
    return decode_row(effect.kind, {n: each for n, each in values.items() if each is not None})
