"""The class decorator of all entities: frozen, validated on construction, compared by value.

Entities are attrs classes. But attrs takes 40 ms to import and half a millisecond per class, and a
command that only reads constructs no row itself: stores return rows as they were written. So attrs
completes a class when its first row is constructed, or when attrs is asked about it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar, dataclass_transform

from herdbook.domain.values import Id, Key, Rule, rule_of

if TYPE_CHECKING:
    from attrs import Attribute, Converter

T = TypeVar("T")

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""The time on a row that no store has stamped yet."""
REQUIRED: Final = object()
"""The default of a field that has no default."""


class Field(NamedTuple):
    """A field as its class declares it."""

    name: str
    annotation: Any
    default: Any = REQUIRED


def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields of an entity: the inherited ones, then its own in the order of declaration."""
    declared: tuple[Field, ...] = vars(cls)["__declared__"]
    return declared


def default_instance(cls: type[T]) -> T:
    """Construct a row that has only defaults, without importing attrs; for module constants."""
    row = object.__new__(cls)
    vars(row).update({each.name: each.default for each in fields_of(cls)})
    return row


def evolve(row: T, **changes: object) -> T:
    """A copy of the row with these fields changed, validated like a new one."""
    from attrs import evolve  # noqa: PLC0415

    # mypy does not see that our decorator makes an attrs class and would reject attrs' own evolve.
    change: Callable[..., T] = evolve
    return change(row, **changes)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def entity(cls: type[T]) -> type[T]:
    """Make a frozen attrs class whose fields are validated by the rules in their annotations."""
    own = [
        Field(name, annotation, vars(cls).get(name, REQUIRED))
        for name, annotation in cls.__annotations__.items()
    ]
    for each in own:
        if each.default is not REQUIRED:
            delattr(cls, each.name)  # as attrs does: a missing field must not look like a default
    names = {each.name for each in own}
    bases = [base for base in cls.__bases__ if "__declared__" in vars(base)]
    inherited = [each for base in bases for each in fields_of(base) if each.name not in names]
    for name, value in {"__declared__": (*inherited, *own), **_PLACEHOLDERS}.items():
        setattr(cls, name, value)
    return cls


class _LazyAttributes:
    """Placeholder for `__attrs_attrs__` that completes the class when it is first read."""

    def __get__(self, _: object, cls: type) -> object:
        _complete_class(cls)
        return getattr(cls, "__attrs_attrs__")  # noqa: B009 - mypy cannot see it there


def _complete_class(cls: type) -> None:
    """Let attrs generate its methods for a class, and move them onto the class.

    attrs works on a copy, so that no thread ever sees a class that is half completed.
    """
    cls = next(each for each in cls.__mro__ if "__attrs_attrs__" in vars(each))
    with _completion_lock:
        if isinstance(vars(cls)["__attrs_attrs__"], _LazyAttributes):
            from attrs import frozen  # noqa: PLC0415

            left_out = {*_PLACEHOLDERS, "__dict__", "__weakref__"}
            body = {name: value for name, value in vars(cls).items() if name not in left_out}
            body["__annotations__"] = dict(cls.__annotations__)
            body |= {
                each.name: each.default
                for each in fields_of(cls)
                if each.name in cls.__annotations__ and each.default is not REQUIRED
            }
            made = frozen(
                type(cls)(cls.__name__, cls.__bases__, body),
                kw_only=True,
                slots=False,  # so that a store can build a row without validating it again
                eq=False,
                repr=False,
                field_transformer=_add_converters,
            )
            new = {name: each for name, each in vars(made).items() if name not in body}
            last = new.pop("__init__")
            for name in new.keys() - left_out | {"__setattr__", "__delattr__", "__attrs_attrs__"}:
                setattr(cls, name, new[name])
            cls.__init__ = last  # type: ignore[misc]


_completion_lock = RLock()


def _init(self: object, /, **values: object) -> None:
    _complete_class(type(self))
    init: Callable[..., None] = type(self).__init__
    init(self, **values)


def _raise_frozen(_: object, *__: object) -> NoReturn:
    from attrs.exceptions import FrozenInstanceError  # noqa: PLC0415

    raise FrozenInstanceError


def _eq(self: object, other: object) -> bool:
    # A row that a store built may have its fields in another order.
    return vars(self) == vars(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(frozenset(vars(self).items()))


def _repr(self: object) -> str:
    parts = ", ".join(f"{each.name}={vars(self)[each.name]!r}" for each in fields_of(type(self)))
    return f"{type(self).__name__}({parts})"


_PLACEHOLDERS: Final[dict[str, Any]] = {
    "__init__": _init,
    "__setattr__": _raise_frozen,
    "__delattr__": _raise_frozen,
    "__attrs_attrs__": _LazyAttributes(),
    # Permanent: attrs would generate and compile these again for every class.
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": _repr,
}


@cache
def _make_converter(name: str, rule: Rule, *, optional: bool) -> "Converter[Any, Any]":
    from attrs import Converter  # noqa: PLC0415

    check = rule.check
    if optional:
        return Converter(lambda value: None if value is None else check(name, value))
    return Converter(lambda value: check(name, value))


def _add_converters(_: type, attributes: list["Attribute[Any]"]) -> list["Attribute[Any]"]:
    checked = []
    for each in attributes:
        if each.converter is not None:  # inherited
            checked.append(each)
            continue
        rule, optional = rule_of(each.type)
        checked.append(each.evolve(converter=_make_converter(each.name, rule, optional=optional)))
    return checked


@entity
class VersionedEntity:
    """Base of rows that can be saved again: id, times of creation and change, version."""

    id: Key = ""
    created_at: datetime = NEVER
    updated_at: datetime = NEVER
    version: int = 0


@entity
class WorkEntity(VersionedEntity):
    """Base of rows of the area `work`, which record the worktree they were made in."""

    worktree_id: Id | None = None
