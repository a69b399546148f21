"""What all entities have in common: they are frozen, checked when made, and compared by value."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, dataclass_transform

import attrs
from attrs import Attribute, Converter, field, frozen

from herdbook.domain.values import Id, Key, Rule, rule_of

T = TypeVar("T")

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""The time on a row that no store has seen yet."""


@cache
def _checking(name: str, rule: Rule, *, optional: bool) -> "Converter[Any, Any]":
    check = rule.check
    if optional:
        return Converter(lambda value: None if value is None else check(name, value))
    return Converter(lambda value: check(name, value))


def _with_rules(_: type, attributes: list["Attribute[Any]"]) -> list["Attribute[Any]"]:
    checked = []
    for each in attributes:
        if each.converter is not None:  # inherited
            checked.append(each)
            continue
        rule, optional = rule_of(each.type)
        checked.append(each.evolve(converter=_checking(each.name, rule, optional=optional)))
    return checked


def _eq(self: object, other: object) -> bool:
    # A row that a store brought back may have its fields in another order.
    return vars(self) == vars(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(frozenset(vars(self).items()))


def _repr(self: object) -> str:
    said = ", ".join(f"{each.name}={vars(self)[each.name]!r}" for each in fields_of(type(self)))
    return f"{type(self).__name__}({said})"


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def entity(cls: type[T]) -> type[T]:
    """Make a frozen attrs class whose fields are checked by the rules in their annotations."""
    # Written once for all: attrs would write and compile them for every class, which every
    # command would wait for.
    cls.__eq__, cls.__hash__, cls.__repr__ = _eq, _hash, _repr  # type: ignore[method-assign]
    # With a __dict__ instead of slots a store can bring back a row it has written, already
    # checked, at a fraction of the price of checking it again.
    return frozen(
        cls, kw_only=True, slots=False, eq=False, repr=False, field_transformer=_with_rules
    )


@entity
class Kept:
    """A row that can be saved again: who it is, when it came and changed, how often."""

    id: Key = ""
    created_at: datetime = NEVER
    updated_at: datetime = NEVER
    version: int = 0


@entity
class Worked(Kept):
    """A row of the area `work`, which knows the worktree it was made in."""

    worktree_id: Id | None = None


def evolve(row: T, **changes: object) -> T:
    """Make the row with these fields changed, checked as if it were new."""
    # mypy does not see an attrs class behind our decorator and would refuse attrs' own.
    change: Callable[..., T] = attrs.evolve
    return change(row, **changes)


def fields_of(cls: type) -> tuple["Attribute[Any]", ...]:
    """The fields of an entity, in the order of their declaration."""
    declared: Callable[[type], tuple[Attribute[Any], ...]] = attrs.fields
    return declared(cls)
