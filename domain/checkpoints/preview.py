"""Previews of values: plain data to show and compare, for which no object is constructed.

An object is shown by the name of its class and the arguments it would be made from, bytes by their
length and a digest. So any value can be inspected, and no code is ever run.
"""

import math
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

DIGEST_SIZE = 8
IDENTIFIER_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class ObjectPreview(NamedTuple):
    """An object that was not constructed: its class, and what it would be made from."""

    name: str
    content: Any


class BytesPreview(NamedTuple):
    """Bytes, shown by their kind, their length and a digest."""

    kind: str
    size: int
    digest: str


class Difference(NamedTuple):
    """One path at which two previews differ; the change is `added`, `removed` or `changed`."""

    path: str
    change: str
    before: Any = None
    after: Any = None


def preview_bytes(kind: str, data: bytes) -> BytesPreview:
    """The preview of bytes."""
    return BytesPreview(kind, len(data), blake2b(data, digest_size=DIGEST_SIZE).hexdigest())


def differences(before: object, after: object, path: str = "") -> Iterator[Difference]:
    """Every path at which two previews differ, as deep as possible."""
    if previews_equal(before, after):
        return
    if (
        isinstance(before, ObjectPreview)
        and isinstance(after, ObjectPreview)
        and before.name == after.name
    ):
        yield from differences(before.content, after.content, path)
    elif isinstance(before, dict) and isinstance(after, dict):
        yield from _dict_differences(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_differences(before, after, path)
    else:
        yield Difference(path, "changed", before, after)


def _dict_differences(
    before: dict[Any, Any], after: dict[Any, Any], path: str
) -> Iterator[Difference]:
    for key, value in before.items():
        place = join_path(path, key)
        if key in after:
            yield from differences(value, after[key], place)
        else:
            yield Difference(place, "removed", before=value)
    for key, value in after.items():
        if key not in before:
            yield Difference(join_path(path, key), "added", after=value)


def _list_differences(before: list[Any], after: list[Any], path: str) -> Iterator[Difference]:
    """Skip the common start and end of two lists and compare the rest element by element."""
    start = _common_prefix_length(before, after)
    end = _common_prefix_length(before[start:][::-1], after[start:][::-1])
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for at, (one, other) in enumerate(zip(old, new, strict=False), start):
        yield from differences(one, other, f"{path}[{at}]")
    both = min(len(old), len(new))
    for at, value in enumerate(old[both:], start + both):
        yield Difference(f"{path}[{at}]", "removed", before=value)
    for at, value in enumerate(new[both:], start + both):
        yield Difference(f"{path}[{at}]", "added", after=value)


def _common_prefix_length(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many leading values two lists have in common."""
    pairs = enumerate(zip(one, other, strict=False))
    unlike = (at for at, (mine, yours) in pairs if not previews_equal(mine, yours))
    return next(unlike, min(len(one), len(other)))


def previews_equal(one: object, other: object) -> bool:
    """Whether two previews show the same value; 1, 1.0 and True are three different values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            previews_equal(one[key], other[key]) for key in one
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(previews_equal, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def join_path(path: str, key: object) -> str:
    """The path to a field of the value at `path`."""
    if (
        isinstance(key, str)
        and key
        and IDENTIFIER_CHARACTERS.issuperset(key)
        and not key[0].isdigit()
    ):
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]"
