"""One row for each class of errors: exit code, JSON-RPC code, HTTP status, advice for agents.

The command line, the JSON-RPC server, the MCP server and the Python client read this table, and
`make docs` writes docs/errors.md from it. No advice here says to delete, reset or re-create
anything: models do as they are told.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from herdbook.domain import errors
from herdbook.domain.errors import HerdbookError, InvalidValue

REFUSED = 1
"""The exit code of a command whose answer says `"ok": false`."""
DEFECT = 70
_LOOK = "Look up its id first: ready, status, inbox, listen and review return ids"
_PERSON = "Tell the person, and continue with what does not need Herdbook"
_AGAIN = "Correct this and call {tool} again"


class ErrorRow(NamedTuple):
    """How one class of errors is reported.

    A `code` never changes its meaning; its thousands are the exit code, and it stays out of the
    range that JSON-RPC reserves. The `advice` tells a coding agent what to do next; {tool} is the
    tool that was called, other names are attributes of the error. `tools` has the advice for tools
    to which the same error means something else.
    """

    code: int
    http_status: int
    advice: str = _AGAIN
    tools: Mapping[str, str] = {}

    @property
    def exit_code(self) -> int:
        """The number a command ends with after this error."""
        return self.code // 1_000


ERRORS: dict[type[HerdbookError], ErrorRow] = {
    errors.CycleRefused: ErrorRow(1001, 409, "Propose it in another order"),
    errors.AgentHalted: ErrorRow(
        1002,
        403,
        "Stop working and tell the person why you stopped; the person can reinstate you with "
        "`herdbook reinstate {agent}`. Tools that only read still work",
    ),
    errors.WorktreeInUse: ErrorRow(1003, 409),
    errors.CopyDiffers: ErrorRow(1004, 409),
    errors.DecodingRefused: ErrorRow(1005, 422),
    errors.ConfirmationNeeded: ErrorRow(
        1006, 409, "Ask the person with message before anything is removed"
    ),
    errors.TaskNotClaimable: ErrorRow(
        1007, 409, "Call claim without a task for one that is ready, or ready to see them all"
    ),
    errors.InvalidValue: ErrorRow(2001, 400),
    errors.NotFound: ErrorRow(
        3001,
        404,
        _LOOK,
        {
            "claim": "Nothing can be claimed now: call status to see what others hold and what "
            "waits, or call claim again later"
        },
    ),
    errors.UnknownReference: ErrorRow(3002, 404, _LOOK),
    errors.JournalPruned: ErrorRow(
        3003, 410, "Read the rows as they are now, and go on from the first entry that is there"
    ),
    errors.AlreadyExists: ErrorRow(
        4001,
        409,
        "Read the existing row before you continue",
        {
            "introduce": "An agent of that name is running elsewhere: call introduce without a "
            "name",
            "answer": "The question is already answered: call listen for the next one",
        },
    ),
    errors.StaleWrite: ErrorRow(
        4002, 409, "Read it again, then do this again if it is still right"
    ),
    errors.StaleFence: ErrorRow(
        4003, 409, "Keep what you have done in your branch, and call claim for another task"
    ),
    errors.StoreBusy: ErrorRow(4004, 503, "Call the same tool again in a few seconds"),
    errors.SpaceRefused: ErrorRow(4005, 409),
    errors.CursorHolds: ErrorRow(4006, 409, "Tell the person which cursor holds it"),
    errors.StoreDamaged: ErrorRow(5001, 500, _PERSON),
    errors.StoreFull: ErrorRow(5002, 507, _PERSON),
    errors.StoreTooNew: ErrorRow(5003, 503, _PERSON),
    errors.StoreUnavailable: ErrorRow(5004, 503, _PERSON),
    errors.StoreUntrusted: ErrorRow(5005, 403, _PERSON),
    errors.StoreGone: ErrorRow(5006, 503, _PERSON),
    errors.SettingUntrusted: ErrorRow(5008, 403, _PERSON),
    errors.BackupDamaged: ErrorRow(5007, 422, _PERSON),
}
OTHER = ErrorRow(1000, 500)
"""For an error that has no row yet."""
ERRORS_BY_NAME = {each.__name__: each for each in ERRORS}


def public_class(error: HerdbookError) -> type[HerdbookError]:
    """The class under which an error is reported: its own, or the nearest base that has a row."""
    return next((each for each in type(error).__mro__ if each in ERRORS), type(error))


def row_of(error: HerdbookError) -> ErrorRow:
    """The row of an error's class, or of the nearest base class that has one."""
    return ERRORS.get(public_class(error), OTHER)


def describe_error(error: HerdbookError) -> dict[str, Any]:
    """An error as programs get it: its type, its sentence and the attributes it carries."""
    fields = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return {"type": public_class(error).__name__, "message": str(error), **fields}


def describe_for_agent(error: HerdbookError, tool: str) -> str:
    """An error as the agent that called a tool reads it: what happened and what to do next."""
    sentence = f"{public_class(error).__name__}: {error}"
    if isinstance(error, InvalidValue) and error.field == "agent":
        return f"{sentence}."  # its reason says already what to do
    row = row_of(error)
    advice = row.tools.get(tool, row.advice)
    return f"{sentence}. {advice.format(tool=tool, **vars(error))}."
