"""What an answer says about the earlier position that it was read at."""

from datetime import datetime
from typing import TypedDict

from herdbook.domain.rewind import NOT_KNOWN
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class PastAnswer(TypedDict):
    """The position that something was read at: the last entry that counts, and its time.

    What is `not_known` is left out of the answer or empty in it.
    """

    seq: int
    time: datetime
    not_known: list[str]


class PastNote(TypedDict, total=False):
    """What is added to an answer that was not read as it is now."""

    as_of: PastAnswer


def past_note(uow: UnitOfWork) -> PastNote:
    """What to add to an answer from a unit of work; nothing for the present."""
    if uow.as_of is None:
        return {}
    seq, time = uow.as_of
    return {"as_of": {"seq": seq, "time": time, "not_known": _not_known(uow)}}


def describe_past(uow: UnitOfWork) -> str:
    """The same as a sentence; empty for the present."""
    if uow.as_of is None:
        return ""
    from herdbook.entrypoints.cli.text import local_time  # noqa: PLC0415 - not for the present

    time = local_time(uow.as_of.time.isoformat())
    return f"as of #{uow.as_of.seq}, {time}; not known then: {', '.join(_not_known(uow))}"


def _not_known(uow: UnitOfWork) -> list[str]:
    from herdbook.ports.unit_of_work.past import PastSession  # noqa: PLC0415 - not for the present

    session = uow.session
    lost = session.lost if isinstance(session, PastSession) else {}
    gone = [
        f"{len(keys)} {name.replace('_', ' ')} that were removed" for name, keys in lost.items()
    ]
    return [*NOT_KNOWN, *gone]
