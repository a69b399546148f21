"""What can go wrong, named for the situation.

Every error carries the ids it speaks of and builds its own sentence, so that the command line, the
RPC server and a log all say the same. No sentence ever advises to delete, reset or re-create
anything: agents read these and do as they are told.
"""

from datetime import datetime

from attrs import define


class HerdbookError(Exception):
    """The root of everything Herdbook raises on purpose."""


@define(slots=False, auto_exc=True)
class NotFound(HerdbookError, LookupError):
    """Nothing is kept under that key."""

    entity: str
    key: str

    def __str__(self) -> str:
        return f"there is no {self.entity} {self.key!r}"


@define(slots=False, auto_exc=True)
class AlreadyExists(HerdbookError):
    """The key, or a value that must be unique, is taken."""

    entity: str
    key: str
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.fields:
            return f"{self.entity} {self.key!r} already exists"
        return f"{self.entity} {self.key!r} already has this {' and '.join(self.fields)}"


@define(slots=False, auto_exc=True)
class UnknownReference(HerdbookError, LookupError):
    """A field names a row that is not there."""

    entity: str
    key: str
    field: str
    target: str
    target_key: str

    def __str__(self) -> str:
        return (
            f"{self.field} of {self.entity} {self.key!r} names {self.target} {self.target_key!r}, "
            "which does not exist"
        )


@define(slots=False, auto_exc=True)
class StaleWrite(HerdbookError):
    """Somebody saved this row since it was read."""

    entity: str
    key: str
    version: int
    current: int
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        what = f" ({', '.join(self.fields)})" if self.fields else ""
        return (
            f"{self.entity} {self.key!r} has changed since it was read{what}: you hold version "
            f"{self.version}, the store holds {self.current}. Nothing was written; read it again"
        )


@define(slots=False, auto_exc=True)
class StaleFence(HerdbookError):
    """The lease this writer held has passed to somebody else, or was given up."""

    task_id: str
    fence: int
    current: int

    def __str__(self) -> str:
        return (
            f"the claim {self.fence} on task {self.task_id!r} is no longer valid (it is at "
            f"{self.current}). Nothing was written; stop working on this task"
        )


@define(slots=False, auto_exc=True)
class CycleRefused(HerdbookError):
    """The edge would make something wait for itself."""

    cycle: tuple[str, ...]

    def __str__(self) -> str:
        return f"refused, because these would wait for one another: {' -> '.join(self.cycle)}"


@define(slots=False, auto_exc=True)
class AgentHalted(HerdbookError):
    """The agent has no skill points left and may claim nothing until a person reinstates it."""

    agent: str
    skill_points: int

    def __str__(self) -> str:
        return (
            f"agent {self.agent!r} is halted ({self.skill_points} skill points); "
            "a person may reinstate it"
        )


@define(slots=False, auto_exc=True)
class InvalidValue(HerdbookError, ValueError):
    """A value breaks a rule of the domain; no store has seen it."""

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


@define(slots=False, auto_exc=True)
class StoreDamaged(HerdbookError):
    """What lies there is not a whole Herdbook store."""

    place: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.place} is not a whole Herdbook store: {self.reason}. Nothing was changed; "
            "keep the file as it is and open a backup or a copy"
        )


@define(slots=False, auto_exc=True)
class StoreBusy(HerdbookError, TimeoutError):
    """Somebody else holds the store longer than our patience."""

    place: str
    waited: float
    holder: str | None = None
    since: datetime | None = None

    def __str__(self) -> str:
        who = self.holder or "another process"
        since = f" since {self.since.isoformat(timespec='seconds')}" if self.since else ""
        return (
            f"{self.place} is held by {who}{since}; gave up after {self.waited:g} s. "
            "Nothing was written; try again"
        )


@define(slots=False, auto_exc=True)
class StoreUnavailable(HerdbookError, OSError):
    """The store cannot be reached or opened as things are."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place} cannot be used: {self.reason}"


@define(slots=False, auto_exc=True)
class StoreFull(HerdbookError):
    """There is no room for this change; what was kept is still kept."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place} is full: {self.reason}. Nothing was written; what it held is safe"


@define(slots=False, auto_exc=True)
class StoreTooNew(HerdbookError):
    """A newer Herdbook wrote this store; this one must not touch it."""

    place: str
    schema_version: int
    known: int

    def __str__(self) -> str:
        return (
            f"{self.place} was written by a newer Herdbook (schema {self.schema_version}, this one "
            f"knows up to {self.known}). Nothing was changed; use the newer program"
        )
