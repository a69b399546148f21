"""Areas of data, the spaces they are kept in, and how large a store may grow."""

from enum import StrEnum
from functools import lru_cache

from herdbook.domain.errors import InvalidValue

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
LONGEST_SPACE = 100


class Area(StrEnum):
    """What a store is asked to hold; each area may live in a store of its own."""

    WORK = "work"
    CHECKPOINTS = "checkpoints"
    RECORD = "record"


def space_of(area: Area, owner: str) -> str:
    """The name of the space in which an owner's rows of an area live, apart from all others."""
    space = f"{area}/{owner}"
    if not owner or not _fits(space):
        raise InvalidValue("space", f"needs an owner, and at most {LONGEST_SPACE} bytes in all")
    return space


def _fits(space: str) -> bool:
    """Whether every store can write it down: lone surrogates have no bytes at all."""
    try:
        return "\0" not in space and len(space.encode()) <= LONGEST_SPACE
    except UnicodeEncodeError:
        return False


@lru_cache(maxsize=256)
def area_of(space: str) -> Area:
    """The area a space belongs to; refuses what is not the name of a space."""
    area, slash, owner = space.partition("/")
    if not slash or not owner or area not in set(Area):
        raise InvalidValue(
            "space", f"{space!r} is not <area>/<owner> with one of {', '.join(Area)}"
        )
    if not _fits(space):
        raise InvalidValue("space", f"may have at most {LONGEST_SPACE} bytes of text without NUL")
    return Area(area)


def size_limit(area: Area | None, wanted: int | None) -> int:
    """How many bytes a store may take: the wish if it is allowed, else the area's default."""
    default, most = (512 * MIB, 2 * GIB) if area is Area.RECORD else (8 * GIB, TIB)
    if wanted is None:
        return default
    if type(wanted) is not int or not MIB <= wanted <= most:
        raise InvalidValue(
            "size_limit",
            f"must be from {MIB} (1 MiB) to {most} ({most // GIB} GiB) bytes, is {wanted!r}",
        )
    return wanted
