"""How errors are told outside: one table of exit codes, one form for people, one for programs."""

from typing import Any

from herdbook.domain.errors import (
    AgentHalted,
    AlreadyExists,
    CopyDiffers,
    CycleRefused,
    DecodingRefused,
    HerdbookError,
    InvalidValue,
    NotFound,
    SpaceRefused,
    StaleFence,
    StaleWrite,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreGone,
    StoreTooNew,
    StoreUnavailable,
    StoreUntrusted,
    UnknownReference,
    WorktreeInUse,
)

REFUSED, USAGE, NOT_FOUND, CONFLICT, UNAVAILABLE = 1, 2, 3, 4, 5
DEFECT = 70
EXIT_CODES: dict[type[HerdbookError], int] = {
    CopyDiffers: REFUSED,
    CycleRefused: REFUSED,
    AgentHalted: REFUSED,
    WorktreeInUse: REFUSED,
    DecodingRefused: REFUSED,
    InvalidValue: USAGE,
    NotFound: NOT_FOUND,
    UnknownReference: NOT_FOUND,
    AlreadyExists: CONFLICT,
    SpaceRefused: CONFLICT,
    StaleWrite: CONFLICT,
    StaleFence: CONFLICT,
    StoreBusy: CONFLICT,
    StoreDamaged: UNAVAILABLE,
    StoreFull: UNAVAILABLE,
    StoreTooNew: UNAVAILABLE,
    StoreUnavailable: UNAVAILABLE,
    StoreUntrusted: UNAVAILABLE,
    StoreGone: UNAVAILABLE,
}


def exit_code(error: HerdbookError) -> int:
    """The number a command ends with after this error."""
    return next((EXIT_CODES[each] for each in type(error).__mro__ if each in EXIT_CODES), REFUSED)


def as_data(error: HerdbookError) -> dict[str, Any]:
    """An error as programs get it: its type, its sentence and what it speaks of."""
    about = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {"error": {"type": type(error).__name__, "message": str(error), **about}}
