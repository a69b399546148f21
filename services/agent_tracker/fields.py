"""Parse the fields of an agent-tracker's records; InvalidValue names a field that is malformed."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.ports.world.agent_tracker import TrackedKind, TrackerRecord

LARGEST = 10**12
"""The largest total that is accepted: sums of totals must fit into 64 bits."""
LAST_YEAR = 9_000
PROVIDER = "opencode"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATED = re.compile(r"(?P<agent>.*):(?P<at>\d{4}-\d\d-\d\d.*)", re.DOTALL)


class TrackedAgent(NamedTuple):
    """An agent: its id in the agent-tracker, and its name in the record."""

    id: str
    name: str
    model: str | None = None


def whole_number(fields: Mapping[str, Any], name: str, default: int | None = None) -> int:
    """A whole number, which JavaScript may have stored as a float."""
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise InvalidValue(name, f"must be a whole number, is {value!r}")
    if abs(value) > LARGEST:
        raise InvalidValue(name, f"must be within {LARGEST} of zero, is {value!r}")
    return int(value)


def text(fields: Mapping[str, Any], *names: str, default: str = "") -> str:
    """The text of the first of these fields that has one."""
    for name in names:
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidValue(name, f"must be text, not {type(value).__name__}")
        if value:
            return str(value)
    return default


def parse_time(name: str, value: object) -> datetime:
    """A time that was stored as a time, as ISO text, or in milliseconds since 1970."""
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
        raise InvalidValue(name, f"is after the year {LAST_YEAR}")
    return at


def time_of(record: TrackerRecord, *names: str) -> datetime:
    """The time of a record: from these fields, else from its key."""
    for name in names:
        if record.fields.get(name) is not None:
            return parse_time(name, record.fields[name])
    dated = _DATED.fullmatch(record.key)
    if record.kind is TrackedKind.COMMUNICATION and record.key.rpartition(":")[2].isdigit():
        return parse_time("timestamp", int(record.key.rpartition(":")[2]))
    return parse_time("timestamp", dated["at"] if dated else None)


def agent_of(record: TrackerRecord) -> str:
    """The agent-tracker's id of a record's agent: from its field, else from its key."""
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
    """The hash of the commit that a record is about."""
    known = text(record.fields, "commit_hash", "commit")
    if known:
        return known
    if record.kind is TrackedKind.COMMUNICATION:
        return (["", "", *record.key.rsplit(":", 2)])[-2]
    return record.key.rpartition(":")[2]


def project_of(record: TrackerRecord) -> str:
    """The path of the project that a record is about; empty if it has none."""
    known = text(record.fields, "project_path", "project")
    if known or record.kind is not TrackedKind.COMMIT:
        return known
    return record.key.rpartition(":")[0]


def parse_agent(record: TrackerRecord) -> TrackedAgent:
    """The agent that an agent record describes, with the name it has there."""
    key = text(record.fields, "id", default=record.key)
    return TrackedAgent(
        key, text(record.fields, "name", default=key), text(record.fields, "model") or None
    )


def agents_by_id(agents: Iterable[TrackedAgent]) -> dict[str, TrackedAgent]:
    """The agents by their ids; one goes by its id where its name could mean another agent."""
    read = {who.id: who for who in agents}
    names = Counter(who.name for who in read.values())
    return {
        who.id: who if _has_unique_name(who, names, read) else who._replace(name=who.id)
        for who in read.values()
    }


def _has_unique_name(
    who: TrackedAgent, names: Counter[str], read: Mapping[str, TrackedAgent]
) -> bool:
    return names[who.name] == 1 and read.get(who.name, who) is who
