"""What all entities have in common: they are frozen, checked when made, and compared by value."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar, dataclass_transform

import attrs
from attrs import Attribute, Converter, field, frozen

from herdbook.domain.values import Id, Key, Rule, rule_of

T = TypeVar("T")

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""The time on a row that no store has seen yet."""


def _checked(name: str, rule: Rule, *, optional: bool) -> Callable[[Any], Any]:
    check = rule.check
    if optional:
        return lambda value: None if value is None else check(name, value)
    return lambda value: check(name, value)


def _with_rules(_: type, attributes: list["Attribute[Any]"]) -> list["Attribute[Any]"]:
    checked = []
    for each in attributes:
        rule, optional = rule_of(each.type)
        converter = Converter(_checked(each.name, rule, optional=optional))
        checked.append(each.evolve(converter=converter))
    return checked


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def entity(cls: type[T]) -> type[T]:
    """Make a frozen attrs class whose fields are checked by the rules in their annotations."""
    # With a __dict__ instead of slots a store can bring back a row it has written, already
    # checked, at a fraction of the price of checking it again.
    return frozen(cls, kw_only=True, slots=False, field_transformer=_with_rules)


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
