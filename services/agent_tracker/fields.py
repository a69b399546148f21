"""What the fields of an agent-tracker's records mean, refused by name where they do not."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.ports.world.agent_tracker import TrackedKind, TrackerRecord

LARGEST = 10**12
"""No total is larger: sums of them must fit into 64 bits."""
LAST_YEAR = 9_000
PROVIDER = "opencode"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATED = re.compile(r"(?P<agent>.*):(?P<at>\d{4}-\d\d-\d\d.*)", re.DOTALL)


class Who(NamedTuple):
    """An agent as the record knows it, and as the agent-tracker does."""

    id: str
    name: str
    model: str | None = None


def whole(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A whole number, as JavaScript keeps them."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise InvalidValue(name, f"must be a whole number, is {value!r}")
    if abs(value) > LARGEST:
        raise InvalidValue(name, f"must be within {LARGEST} of zero, is {value!r}")
    return int(value)


def text(fields: Mapping[str, Any], *names: str, default: str = "") -> str:
    """The first of these fields that is there."""
    for name in names:
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidValue(name, f"must be text, not {type(value).__name__}")
        if value:
            return str(value)
    return default


def moment(name: str, value: object) -> datetime:
    """A time that was kept as one, as text, or in milliseconds."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found = _EPOCH + timedelta(milliseconds=value)
        elif isinstance(value, datetime):
            found = value
        else:
            raise InvalidValue(name, f"must be a time, not {type(value).__name__}")
        at = found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (OverflowError, ValueError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue(name, f"{value!r} is no time") from error
    if at.year > LAST_YEAR:
        raise InvalidValue(name, f"lies behind the year {LAST_YEAR}")
    return at


def time_of(record: TrackerRecord, *names: str) -> datetime:
    """When it happened: its own word, else that of its key."""
    for name in names:
        if record.fields.get(name) is not None:
            return moment(name, record.fields[name])
    dated = _DATED.fullmatch(record.key)
    if record.kind is TrackedKind.COMMUNICATION and record.key.rpartition(":")[2].isdigit():
        return moment("timestamp", int(record.key.rpartition(":")[2]))
    return moment("timestamp", dated["at"] if dated else None)


def agent_of(record: TrackerRecord) -> str:
    """The agent-tracker's id of the agent a record is about: its own word, else that of its key."""
    known = text(record.fields, "agent_id")
    if known or record.kind is TrackedKind.COMMIT:
        return known
    match record.kind:
        case TrackedKind.COMMUNICATION:
            return record.key.rsplit(":", 2)[0]
        case TrackedKind.ACTIVITY:
            dated = _DATED.fullmatch(record.key)
            return dated["agent"] if dated else record.key.rpartition(":")[0]
        case _:
            return record.key.rpartition(":")[0]


def hash_of(record: TrackerRecord) -> str:
    """The commit a record is about."""
    known = text(record.fields, "commit_hash", "commit")
    if known:
        return known
    if record.kind is TrackedKind.COMMUNICATION:
        return (["", "", *record.key.rsplit(":", 2)])[-2]
    return record.key.rpartition(":")[2]


def project_of(record: TrackerRecord) -> str:
    """The path of the project a record is about, if it tells."""
    known = text(record.fields, "project_path", "project")
    if known or record.kind is not TrackedKind.COMMIT:
        return known
    return record.key.rpartition(":")[0]


def who_is(record: TrackerRecord) -> Who:
    """The agent that a record is about, as it is called there."""
    key = text(record.fields, "id", default=record.key)
    return Who(key, text(record.fields, "name", default=key), text(record.fields, "model") or None)


def crew_of(agents: Iterable[Who]) -> dict[str, Who]:
    """The agents by their ids; one is called by its name where that means no other agent."""
    read = {who.id: who for who in agents}
    names = Counter(who.name for who in read.values())
    return {
        who.id: who if _is_own(who, names, read) else who._replace(name=who.id)
        for who in read.values()
    }


def _is_own(who: Who, names: Counter[str], read: Mapping[str, Who]) -> bool:
    return names[who.name] == 1 and read.get(who.name, who) is who
