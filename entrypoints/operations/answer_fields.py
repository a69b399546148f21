"""Makes an answer from the values of a use case, field by field."""

from typing import Any, TypeVar

T = TypeVar("T")
_GIVEN, _EMPTY = -1, -2
_sources: dict[Any, list[tuple[str, int]]] = {}
"""Where the fields come from, by the shape, the types of the values and what is given.

It is the place of a value, or one of the numbers above. An answer may have thousands of parts.
"""


def answer_from(shape: type[T], *values: object, **given: Any) -> T:
    """An answer with the fields of a TypedDict, in its order.

    A field that is not given is the attribute of its name of the first value that has one; if none
    has, it is None where one of the values is None. A field that is not required may be missing.
    Raises AttributeError for a field that comes from nowhere.
    """
    key = (shape, *map(type, values), *given)
    sources = _sources.get(key)
    if sources is None:
        sources = _sources[key] = _find_sources(shape, values, given)
    answer: Any = {
        name: getattr(values[at], name) if at >= 0 else given[name] if at == _GIVEN else None
        for name, at in sources
    }
    return answer  # type: ignore[no-any-return]


def _find_sources(
    shape: type, values: tuple[object, ...], given: dict[str, Any]
) -> list[tuple[str, int]]:
    optional: frozenset[str] = getattr(shape, "__optional_keys__", frozenset())
    found: list[tuple[str, int]] = []
    for name in shape.__annotations__:
        owner = next((at for at, each in enumerate(values) if hasattr(each, name)), None)
        if name in given:
            found.append((name, _GIVEN))
        elif name in optional:
            continue
        elif owner is not None:
            found.append((name, owner))
        elif any(each is None for each in values):
            found.append((name, _EMPTY))
        else:
            raise AttributeError(f"no value has {name!r}")
    return found
