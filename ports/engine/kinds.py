"""Describes how an entity is stored: its key, uniques, lookups and references.

A `Kind` is one entry of the data dictionary. Stores read it to lay out tables, keys and indexes;
the unit of work reads it to enforce references, versions and the journal. No store and no unit of
work knows any kind by name.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, Generic, NamedTuple, TypeVar

from herdbook.domain.entity import REQUIRED, Field, fields_of
from herdbook.domain.location.areas import Area
from herdbook.domain.values import Rule, rule_of

E = TypeVar("E")

ORDERED = frozenset({"id", "integer", "flag", "moment", "choice", "number choice", "stamp"})
"""Types short enough to sort by; a name or a text in a lookup is for equality only."""
EQUATABLE = ORDERED | {"name"}


class OnDelete(StrEnum):
    """What happens to a row when the row it references is removed."""

    CASCADE = "cascade"
    SET_NULL = "set null"


class Reference(NamedTuple):
    """A field that holds the key of a row of another kind, which must exist."""

    field: str
    target: str
    on_delete: OnDelete


class Unique(NamedTuple):
    """No two rows of a space agree in all these fields.

    With `when_none`, it applies only to the rows in which that field is None.
    """

    fields: tuple[str, ...]
    when_none: str | None = None

    @property
    def lookup(self) -> tuple[str, ...]:
        """The lookup that finds the holder of these values."""
        return (*self.fields, *([self.when_none] if self.when_none else []))


class Column(NamedTuple):
    """One field as a store sees it."""

    name: str
    rule: Rule
    optional: bool
    default: Any

    @property
    def type_name(self) -> str:
        """The type of its values: the word by which adapters choose their encoding."""
        return self.rule.type_name

    def check(self, value: Any) -> Any:
        """The value validated and normalized; raises InvalidValue."""
        return None if value is None and self.optional else self.rule.check(self.name, value)

    @classmethod
    def from_field(cls, field: Field) -> "Column":
        """The column of an entity's field."""
        rule, optional = rule_of(field.annotation)
        return cls(field.name, rule, optional, field.default)

    @property
    def has_default(self) -> bool:
        """Whether rows written before this field existed have a value for it."""
        return self.default is not REQUIRED


class Kind(Generic[E]):
    """One entity of the dictionary, and the guarantees a space gives for its rows.

    `identity` names the fields that a row's id is derived from: two replicas that add the same pair
    add the same row. What a merge of replicas needs: `groups` are the fields that mean something
    only together and change as one; `mechanical` fields are kept up by programs, so that a change
    of them is not somebody's edit; `synced` says whether rows leave their store at all.
    """

    def __init__(
        self,
        name: str,
        entity: type[E],
        *,
        prefix: str = "",
        area: Area | None = None,
        key: str = "id",
        lookups: tuple[tuple[str, ...], ...] = (),
        uniques: tuple[Unique, ...] = (),
        references: tuple[Reference, ...] = (),
        append_only: bool = False,
        derived: bool = False,
        journalled: bool | None = None,
        identity: tuple[str, ...] = (),
        groups: tuple[tuple[str, ...], ...] = (),
        mechanical: tuple[str, ...] = (),
        synced: bool | None = None,
    ) -> None:
        self.name = name
        self.entity = entity
        self.prefix = prefix
        self.area = area
        self.key = key
        self.lookups = lookups
        self.uniques = uniques
        self.references = references
        self.append_only = append_only
        self.derived = derived
        self.journalled = not derived if journalled is None else journalled
        self.identity = identity
        self.groups = groups
        self.mechanical = frozenset(mechanical)
        self.synced = self.journalled if synced is None else synced

    def __repr__(self) -> str:
        return f"Kind({self.name})"

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The fields by name, in the order of declaration."""
        return {each.name: Column.from_field(each) for each in fields_of(self.entity)}

    @cached_property
    def secrets(self) -> frozenset[str]:
        """The fields that must not be shown outside the store."""
        return frozenset(n for n, column in self.columns.items() if column.type_name == "secret")

    @cached_property
    def bytes_fields(self) -> tuple[str, ...]:
        """The fields that hold bytes, which JSON cannot carry."""
        return tuple(n for n, column in self.columns.items() if column.type_name == "bytes")

    @cached_property
    def documents(self) -> tuple[str, ...]:
        """The fields that hold documents, which can be changed in place."""
        return tuple(n for n, column in self.columns.items() if column.type_name == "document")

    @cached_property
    def all_lookups(self) -> tuple[tuple[str, ...], ...]:
        """The declared lookups and those the uniques need, each once."""
        return tuple(dict.fromkeys((*self.lookups, *(each.lookup for each in self.uniques))))

    @cached_property
    def registers(self) -> tuple[tuple[str, ...], ...]:
        """The fields that a merge of replicas decides together: the groups, and each other field.

        A row's key never changes, and its version and the time of its last change are each
        replica's own.
        """
        together = {name for group in self.groups for name in group}
        local = {self.key, "version", "updated_at"}
        alone = [(name,) for name in self.columns if name not in together | local]
        return (*self.groups, *alone)

    def key_of(self, row: E) -> Any:
        """The key of a row."""
        return getattr(row, self.key)

    @property
    def title(self) -> str:
        """What a person calls one of these: `task`, `review comment`."""
        words = "".join(f" {c.lower()}" if c.isupper() else c for c in self.entity.__name__)
        return words.strip()

    def problems(self, others: dict[str, "Kind[Any]"]) -> Iterator[str]:
        """The errors in this entry of the dictionary."""
        if self.key not in self.columns:
            yield f"{self.name} has no key field {self.key}"
        for column in self.columns.values():
            if column.optional and column.has_default and column.default is not None:
                yield f"{self.name}.{column.name} may be empty, so it must be empty by default"
        for name in {name for lookup in self.all_lookups for name in lookup}:
            if name not in self.columns:
                yield f"{self.name} has no field {name} to look up"
            elif self.columns[name].type_name not in EQUATABLE:
                yield f"{self.name}.{name} is too long to look up"
        for reference in self.references:
            yield from self._problems_of(reference, others)
        yield from self._merge_problems()

    def _merge_problems(self) -> Iterator[str]:
        grouped = [name for group in self.groups for name in group]
        for name in {*grouped, *self.mechanical, *self.identity}:
            if name not in self.columns:
                yield f"{self.name} has no field {name} to merge by"
        if len(grouped) > len(set(grouped)):
            yield f"{self.name} has a field in two groups"
        if self.identity and self.identity not in [each.fields for each in self.uniques]:
            yield f"{self.name} derives its ids from fields that are not unique"
        if self.synced and not self.journalled:
            yield f"{self.name} cannot be synced, because nobody journals its changes"

    def _problems_of(self, reference: Reference, others: dict[str, "Kind[Any]"]) -> Iterator[str]:
        field = f"{self.name}.{reference.field}"
        if reference.field not in self.columns or reference.target not in others:
            yield f"{field} refers to nothing"
            return
        if all(lookup[0] != reference.field for lookup in self.all_lookups):
            yield f"{field} needs a lookup to find what refers to a row"
        if reference.on_delete is OnDelete.SET_NULL and not self.columns[reference.field].optional:
            yield f"{field} cannot be emptied"


class Dictionary:
    """All kinds a store keeps, under one version number.

    Raises TypeError if an entry is inconsistent.
    """

    def __init__(
        self, version: int, kinds: Iterable[Kind[Any]], oldest_writer: int | None = None
    ) -> None:
        self.version = version
        # An older program would save rows without the fields it does not know.
        self.oldest_writer = version if oldest_writer is None else oldest_writer
        self.kinds: dict[str, Kind[Any]] = {kind.name: kind for kind in kinds}
        problems = [p for kind in self.kinds.values() for p in kind.problems(self.kinds)]
        if problems:
            raise TypeError("; ".join(problems))

    @cached_property
    def referrers(self) -> dict[str, tuple[tuple[Kind[Any], Reference], ...]]:
        """For each kind, the kinds that refer to it and through which field."""
        found: dict[str, list[tuple[Kind[Any], Reference]]] = {name: [] for name in self.kinds}
        for kind in self.kinds.values():
            for reference in kind.references:
                found[reference.target].append((kind, reference))
        return {name: tuple(each) for name, each in found.items()}

    @cached_property
    def referrers_first(self) -> tuple[Kind[Any], ...]:
        """The kinds in an order in which referring kinds come before the kinds they refer to.

        Where kinds refer to one another in a circle (an agent to its task, a task to its agent), a
        reference that is set to null on delete gives way.
        """
        ahead = {
            kind.name: [
                referrer.name
                for referrer, reference in self.referrers[kind.name]
                if reference.on_delete is OnDelete.CASCADE and referrer is not kind
            ]
            for kind in self
        }
        for kind in self:
            for referrer, _ in self.referrers[kind.name]:
                if referrer is not kind:
                    ahead[kind.name].append(referrer.name)
                    try:
                        TopologicalSorter(ahead).prepare()
                    except CycleError:
                        ahead[kind.name].pop()
        return tuple(self.kinds[name] for name in TopologicalSorter(ahead).static_order())

    def __iter__(self) -> Iterator[Kind[Any]]:
        return iter(self.kinds.values())
