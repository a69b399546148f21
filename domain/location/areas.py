"""Areas of data, the spaces they are stored in, and how large a store may grow."""

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from herdbook.domain.errors import InvalidValue

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
LONGEST_SPACE = 100


class Area(StrEnum):
    """An area of data; each area may have a store of its own."""

    WORK = "work"
    CHECKPOINTS = "checkpoints"
    RECORD = "record"


def space_of(area: Area, owner: str) -> str:
    """The name of the space that holds an owner's rows of an area, apart from all others.

    Raises InvalidValue for an owner that is empty or cannot be stored.
    """
    space = f"{area}/{owner}"
    if not owner or not _is_storable(space):
        raise InvalidValue("space", f"needs an owner, and at most {LONGEST_SPACE} bytes in all")
    return space


def _is_storable(space: str) -> bool:
    """Whether every store can write the name; lone surrogates cannot be encoded."""
    try:
        return "\0" not in space and len(space.encode()) <= LONGEST_SPACE
    except UnicodeEncodeError:
        return False


@lru_cache(maxsize=256)
def area_of(space: str) -> Area:
    """The area a space belongs to; raises InvalidValue for anything that is not a space name."""
    area, slash, owner = space.partition("/")
    if not slash or not owner or area not in set(Area):
        raise InvalidValue(
            "space", f"{space!r} is not <area>/<owner> with one of {', '.join(Area)}"
        )
    if not _is_storable(space):
        raise InvalidValue("space", f"may have at most {LONGEST_SPACE} bytes of text without NUL")
    return Area(area)


class SizeRange(NamedTuple):
    """How large a store may grow, in bytes: what is allowed, and the default."""

    default: int
    most: int
    least: int = MIB

    def __contains__(self, size: object) -> bool:
        return type(size) is int and self.least <= size <= self.most

    def __str__(self) -> str:
        return f"{self.least} (1 MiB) to {self.most} ({self.most // GIB} GiB) bytes"


SIZES = {
    Area.WORK: SizeRange(8 * GIB, TIB),
    Area.CHECKPOINTS: SizeRange(8 * GIB, TIB),
    Area.RECORD: SizeRange(512 * MIB, 2 * GIB),
}


def size_limit(area: Area | None, wanted: int | None) -> int:
    """How many bytes a store may take: `wanted` if that is allowed, by default the area's limit.

    Raises InvalidValue for a size outside the range of the area.
    """
    sizes = SIZES[area or Area.WORK]
    if wanted is None:
        return sizes.default
    if wanted not in sizes:
        raise InvalidValue("size_limit", f"must be from {sizes}, is {wanted!r}")
    return wanted
