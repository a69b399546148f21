"""Pictures of values: plain data to look at and to compare, in which nothing has been made.

An object is pictured by the name of its class and what it would be made of, bytes by their number
and a digest of them. So anything can be looked at, whoever wrote it, and nothing is ever run.
"""

import math
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

DIGEST = 8
SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Thing(NamedTuple):
    """An object that was not made: its class, and what it would be made of."""

    name: str
    content: Any


class Blob(NamedTuple):
    """Bytes that are only told by what they are, how many, and a digest of them."""

    kind: str
    size: int
    digest: str


class Difference(NamedTuple):
    """One place at which two pictures differ; the change is `added`, `removed` or `changed`."""

    path: str
    change: str
    before: Any = None
    after: Any = None


def blob(kind: str, data: bytes) -> Blob:
    """The picture of bytes."""
    return Blob(kind, len(data), blake2b(data, digest_size=DIGEST).hexdigest())


def differences(before: object, after: object, path: str = "") -> Iterator[Difference]:
    """Every place at which two pictures differ, as deep as can be."""
    if same(before, after):
        return
    if isinstance(before, Thing) and isinstance(after, Thing) and before.name == after.name:
        yield from differences(before.content, after.content, path)
    elif isinstance(before, dict) and isinstance(after, dict):
        yield from _of_maps(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, path)
    else:
        yield Difference(path, "changed", before, after)


def _of_maps(before: dict[Any, Any], after: dict[Any, Any], path: str) -> Iterator[Difference]:
    for key, value in before.items():
        place = step(path, key)
        if key in after:
            yield from differences(value, after[key], place)
        else:
            yield Difference(place, "removed", before=value)
    for key, value in after.items():
        if key not in before:
            yield Difference(step(path, key), "added", after=value)


def _of_lists(before: list[Any], after: list[Any], path: str) -> Iterator[Difference]:
    """What both have at the beginning and at the end is left aside, the rest goes one by one."""
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for at, (one, other) in enumerate(zip(old, new, strict=False), start):
        yield from differences(one, other, f"{path}[{at}]")
    both = min(len(old), len(new))
    for at, value in enumerate(old[both:], start + both):
        yield Difference(f"{path}[{at}]", "removed", before=value)
    for at, value in enumerate(new[both:], start + both):
        yield Difference(f"{path}[{at}]", "added", after=value)


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many values two lists begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    unlike = (at for at, (mine, yours) in pairs if not same(mine, yours))
    return next(unlike, min(len(one), len(other)))


def same(one: object, other: object) -> bool:
    """Whether two pictures show the same; 1, 1.0 and True are three different things."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def step(path: str, key: object) -> str:
    """The path to a field of what a path leads to."""
    if isinstance(key, str) and key and SAFE.issuperset(key) and not key[0].isdigit():
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]"
