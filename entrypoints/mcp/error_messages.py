"""What a model is told when something was refused: what happened, and what to do next.

No sentence here advises to delete, reset or re-create anything: models do as they are told.
"""

import json
from typing import Any

from herdbook.domain.errors import (
    AgentHalted,
    AlreadyExists,
    CycleRefused,
    HerdbookError,
    InvalidValue,
    NotFound,
    StaleFence,
    StaleWrite,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreTooNew,
    StoreUnavailable,
    UnknownReference,
)
from herdbook.entrypoints.mcp.tool import Tool
from herdbook.entrypoints.operations import error_table

_LOOK = "Look its id up first: ready, status, inbox, listen and review tell ids"
_PERSON = "Tell the person, and go on with what needs no Herdbook"
NEXT: dict[type[HerdbookError], str] = {
    NotFound: _LOOK,
    UnknownReference: _LOOK,
    StaleFence: "Keep what you have done in your branch, and call claim for another task",
    StaleWrite: "Read it again, then do this again if it is still right",
    AgentHalted: (
        "Stop working and tell the person why you stopped; the person can let you go on with "
        "`herdbook reinstate {agent}`. Tools that only read still answer"
    ),
    AlreadyExists: "See what is there before you go on",
    CycleRefused: "Propose it in another order",
    StoreBusy: "Call the same tool again in a few seconds",
    StoreUnavailable: _PERSON,
    StoreFull: _PERSON,
    StoreTooNew: _PERSON,
    StoreDamaged: _PERSON,
}
OF_TOOLS: dict[tuple[str, type[HerdbookError]], str] = {
    ("claim", NotFound): (
        "Nothing can be claimed now: call status to see what others hold and what waits, or call "
        "claim again later"
    ),
    ("introduce", AlreadyExists): (
        "An agent of that name is at work elsewhere: call introduce without a name"
    ),
    ("answer", AlreadyExists): "The first answer stands: call listen for the next question",
}
"""Where the same error means something of its own."""


def sentence(tool: Tool, error: HerdbookError) -> str:
    """What happened, and what to do next."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, InvalidValue) and error.field == "agent":
        return f"{said}."  # which says it already
    for each in type(error).__mro__:
        following = OF_TOOLS.get((tool.name, each)) or NEXT.get(each)
        if following:
            return f"{said}. {following.format(**vars(error))}."
    return f"{said}. Call {tool.name} again with what is right."


def as_data(error: HerdbookError) -> dict[str, Any]:
    """What programs read: the type, the sentence and what it speaks of."""
    found: dict[str, Any] = json.loads(json.dumps(error_table.as_data(error)["error"], default=str))
    return found


def unexpected(error: Exception) -> str:
    """What a model is told of a defect: not where it was, but that nothing is known to be lost."""
    return (
        f"this should not have happened ({type(error).__name__}). Nothing is known to be lost; "
        "tell the person, and look with status before you do it again."
    )
