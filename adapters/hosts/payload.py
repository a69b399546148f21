"""What a payload can say, and how its fields are read without trusting them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.errors import InvalidValue
from herdbook.domain.values import NAME


class Payload(NamedTuple):
    """What one host's payload says; None where it says nothing."""

    session_id: str | None = None
    provider: str | None = None
    model: str | None = None
    mode: AgentMode | None = None
    failed: bool = False


def as_mapping(value: object) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def as_name(value: object) -> str | None:
    """The value if it can be a name, else None; hosts send all kinds of values."""
    try:
        return None if value is None else str(NAME.check("name", value))
    except InvalidValue:
        return None


def model_name(value: object) -> str | None:
    """The model: a name, or an object with its id."""
    return as_name(value) or as_name(as_mapping(value).get("id"))


def mode_of(value: object) -> AgentMode | None:
    """The mode of an agent: what is not planning is executing, whatever the host calls it."""
    if as_name(value) is None:
        return None
    return AgentMode.PLAN if value == "plan" else AgentMode.EXECUTE


def tool_name(raw: object) -> str | None:
    """The name of the tool that a payload is about, whichever host sent it."""
    fields = as_mapping(raw)
    names = (
        fields.get("tool_name"),
        fields.get("tool"),
        as_mapping(fields.get("input")).get("tool"),
    )
    return next((name for name in map(as_name, names) if name is not None), None)
