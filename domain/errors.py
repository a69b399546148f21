"""Errors, each named for its situation.

Every error carries the ids it is about and builds its own message, so that the command line, the
RPC server and the logs all say the same. No message ever advises to delete, reset or re-create
anything: agents read these messages and follow them.
"""

from datetime import datetime


class HerdbookError(Exception):
    """Base class of every error Herdbook raises on purpose; its attributes are its arguments."""

    def _fields(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "__notes__"}

    def __reduce__(self) -> tuple[object, ...]:
        # OSError would treat our fields as an error number and a file name, and drop the rest.
        return type(self), tuple(self._fields().values())

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self._fields().items())
        return f"{type(self).__name__}({parts})"


class NotFound(HerdbookError, LookupError):
    """There is no row with that key; a hint, if there is one, says what was probably meant.

    Where no key was asked for, the key is empty and the hint is the whole sentence.
    """

    hint = ""

    def __init__(self, entity: str, key: str, hint: str = "") -> None:
        super().__init__()
        self.entity = entity
        self.key = key
        if hint:
            self.hint = hint

    def __str__(self) -> str:
        if not self.key and self.hint:
            return self.hint
        message = f"there is no {self.entity} {self.key!r}"
        return f"{message}; {self.hint}" if self.hint else message


class AlreadyExists(HerdbookError):
    """The key, or a value that must be unique, is taken."""

    def __init__(self, entity: str, key: str, fields: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.entity = entity
        self.key = key
        self.fields = fields

    def __str__(self) -> str:
        if not self.fields:
            return f"{self.entity} {self.key!r} already exists"
        return f"{self.entity} {self.key!r} already has this {' and '.join(self.fields)}"


class UnknownReference(HerdbookError, LookupError):
    """A field refers to a row that does not exist."""

    def __init__(self, entity: str, key: str, field: str, target: str, target_key: str) -> None:
        super().__init__()
        self.entity = entity
        self.key = key
        self.field = field
        self.target = target
        self.target_key = target_key

    def __str__(self) -> str:
        return (
            f"{self.field} of {self.entity} {self.key!r} names {self.target} {self.target_key!r}, "
            "which does not exist"
        )


class StaleWrite(HerdbookError):
    """The row has been changed since it was read, or since what was to be taken back.

    The `reason` says so in one sentence where the versions would not help.
    """

    def __init__(  # noqa: PLR0917 - errors are pickled by their arguments
        self,
        entity: str,
        key: str,
        version: int,
        current: int,
        fields: tuple[str, ...] = (),
        reason: str = "",
    ) -> None:
        super().__init__()
        self.entity = entity
        self.key = key
        self.version = version
        self.current = current
        self.fields = fields
        self.reason = reason

    def __str__(self) -> str:
        if self.reason:
            return self.reason
        what = f" ({', '.join(self.fields)})" if self.fields else ""
        return (
            f"{self.entity} {self.key!r} has changed since it was read{what}: you hold version "
            f"{self.version}, the store holds {self.current}. Nothing was written; read it again"
        )


class StaleFence(HerdbookError):
    """The writer's claim on the task is no longer valid: it expired, or the task was returned.

    `fence` is the one that was given, if any was; `holder` is who holds the task now.
    """

    def __init__(
        self,
        task_id: str,
        fence: int | None,
        current: int,
        holder: str | None = None,
        since: datetime | None = None,
    ) -> None:
        super().__init__()
        self.task_id = task_id
        self.fence = fence
        self.current = current
        self.holder = holder
        self.since = since

    def __str__(self) -> str:
        claim = "your claim" if self.fence is None else f"the claim {self.fence}"
        since = f" since {self.since.isoformat(timespec='seconds')}" if self.since else ""
        now = "nobody holds it now" if self.holder is None else f"{self.holder} holds it{since}"
        return (
            f"{claim} on task {self.task_id!r} is no longer valid (it is at {self.current}); "
            f"nothing was written. Stop working on this task; {now}; `herdbook claim` takes another"
        )


class CycleRefused(HerdbookError):
    """The edge would close a cycle of dependencies, or put a row below itself in a tree."""

    relation = "wait for"

    def __init__(self, cycle: tuple[str, ...], relation: str = "") -> None:
        super().__init__()
        self.cycle = cycle
        if relation:
            self.relation = relation

    def __str__(self) -> str:
        way = " -> ".join(self.cycle)
        return f"refused, because these would {self.relation} one another: {way}"


class AgentHalted(HerdbookError):
    """The agent has no skill points left and may claim nothing until a person reinstates it."""

    def __init__(self, agent: str, skill_points: int) -> None:
        super().__init__()
        self.agent = agent
        self.skill_points = skill_points

    def __str__(self) -> str:
        return (
            f"agent {self.agent!r} is halted ({self.skill_points} skill points); "
            "a person may reinstate it"
        )


class WorktreeInUse(HerdbookError):
    """The worktree cannot be removed now: agents work in it, or work in it would be lost."""

    def __init__(self, worktree: str, reason: str) -> None:
        super().__init__()
        self.worktree = worktree
        self.reason = reason

    def __str__(self) -> str:
        return f"the worktree {self.worktree} is in use: {self.reason}. Nothing was changed"


class InvalidValue(HerdbookError, ValueError):
    """A value breaks a rule of the domain; nothing was written."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__()
        self.field = field
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class ConfirmationNeeded(HerdbookError):
    """More would be removed than what was named, or an agent holds it; nothing was removed."""

    def __init__(self, entity: str, keys: tuple[str, ...], along: str) -> None:
        super().__init__()
        self.entity = entity
        self.keys = keys
        self.along = along

    def __str__(self) -> str:
        return (
            f"{self.entity} {', '.join(self.keys)} stays, because more would go with it: "
            f"{self.along}. Nothing was changed; a person who wants that confirms it with --yes"
        )


class TaskNotClaimable(HerdbookError):
    """The named task cannot be claimed now; the reason says who holds it or what it waits for."""

    def __init__(self, task_id: str, name: str, reason: str) -> None:
        super().__init__()
        self.task_id = task_id
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return f"task {self.name!r} ({self.task_id}) cannot be claimed now: {self.reason}"


class DecodingRefused(HerdbookError, ValueError):
    """Reading a stored value would construct objects of classes that are not allowed."""

    def __init__(self, tag: str, names: tuple[str, ...]) -> None:
        super().__init__()
        self.tag = tag
        self.names = names

    def __str__(self) -> str:
        why = "that cannot be read safely here"
        if self.names:
            why = f"it asks for {', '.join(self.names)}, which is not allowed"
        return (
            f"a value written as {self.tag!r} was not decoded: {why}. Nothing was run, and the "
            "value is kept as it is; if you trust where it comes from, allow its classes by name"
        )


class StoreDamaged(HerdbookError):
    """The file or folder is not an intact Herdbook store."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__()
        self.place = place
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.place} is not a whole Herdbook store: {self.reason}. Nothing was changed; "
            "keep the file as it is and open a backup or a copy"
        )


class BackupDamaged(StoreDamaged):
    """The file is not an intact backup, or what it holds does not fit together."""

    def __str__(self) -> str:
        return (
            f"{self.place} is not a whole backup: {self.reason}. Nothing was restored from it; "
            "`herdbook backup list` shows which others are whole"
        )


class StoreBusy(HerdbookError, TimeoutError):
    """Another process has held the store for longer than the patience."""

    def __init__(
        self, place: str, waited: float, holder: str | None = None, since: datetime | None = None
    ) -> None:
        super().__init__()
        self.place = place
        self.waited = waited
        self.holder = holder
        self.since = since

    def __str__(self) -> str:
        who = self.holder or "another process"
        since = f" since {self.since.isoformat(timespec='seconds')}" if self.since else ""
        return (
            f"{self.place} is held by {who}{since}; gave up after {self.waited:g} s. "
            "Nothing was written; try again"
        )


class StoreUnavailable(HerdbookError, OSError):
    """The store cannot be reached or opened."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__()
        self.place = place
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.place} cannot be used: {self.reason}"


class StoreUntrusted(StoreUnavailable):
    """This user neither made the store nor trusted it."""

    def __str__(self) -> str:
        return (
            f"{self.place} was not opened: {self.reason}. A person who knows where it comes from "
            f"may allow it with `herdbook trust {self.place}`"
        )


class SettingUntrusted(StoreUntrusted):
    """A setting that came with the repository names another store, and nobody trusted it yet."""

    def __str__(self) -> str:
        return (
            f"{self.place} {self.reason}. Nothing was written: it would not be where the setting "
            "says. A person who has read the file may allow it with `herdbook trust`, or name "
            "another store by its URL with `--store`"
        )


class StoreGone(StoreUnavailable):
    """A store that this user has used no longer exists."""

    def __init__(self, place: str, last_used: str) -> None:
        super().__init__(place, f"that was here on {last_used} is gone")
        self.last_used = last_used

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.place, self.last_used)

    def __str__(self) -> str:
        return (
            f"the store {self.place} {self.reason}. Nothing was written; bring it back from where "
            "it was moved or from a backup. If it was meant to go, a person may begin an empty one "
            f"with `herdbook trust --new {self.place}`"
        )


class StoreFull(HerdbookError):
    """There is no room for this change; everything stored before is safe."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__()
        self.place = place
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.place} is full: {self.reason}. Nothing was written; what it held is safe"


class StoreTooNew(HerdbookError):
    """A newer version of Herdbook wrote this store; this version must not change it."""

    def __init__(self, place: str, schema_version: int, known: int) -> None:
        super().__init__()
        self.place = place
        self.schema_version = schema_version
        self.known = known

    def __str__(self) -> str:
        return (
            f"{self.place} was written by a newer Herdbook (schema {self.schema_version}, this one "
            f"knows up to {self.known}). Nothing was changed; use the newer program"
        )


class SpaceRefused(HerdbookError):
    """The space cannot be copied or merged in its current state."""

    def __init__(self, place: str, space: str, reason: str) -> None:
        super().__init__()
        self.place = place
        self.space = space
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.space} in {self.place} {self.reason}"


class JournalPruned(HerdbookError):
    """The question is about entries of the journal that were folded.

    `seq` is the position that was asked about; `first` is the number of the first entry that is
    still there, or will be the next one written. `what` says why that matters, where no position
    was asked about.
    """

    def __init__(
        self, space: str, seq: int, first: int, since: datetime | None = None, what: str = ""
    ) -> None:
        super().__init__()
        self.space = space
        self.seq = seq
        self.first = first
        self.since = since
        self.what = what

    def __str__(self) -> str:
        since = f" since {self.since.isoformat(timespec='seconds')}" if self.since else ""
        begins = f"the journal of {self.space} begins at #{self.first}{since}"
        if self.what:
            return f"{self.what}: {begins}, earlier entries were folded"
        return (
            f"nothing after #{self.seq} can be listed whole: {begins}, earlier entries were "
            f"folded. Read the rows as they are now, and go on after #{self.first - 1}"
        )


class CursorHolds(HerdbookError):
    """A cursor still needs entries of the journal that were to be folded."""

    def __init__(self, space: str, cursor: str, holder: str, seq: int, wanted: int) -> None:
        super().__init__()
        self.space = space
        self.cursor = cursor
        self.holder = holder
        self.seq = seq
        self.wanted = wanted

    def __str__(self) -> str:
        return (
            f"the journal of {self.space} cannot be folded up to #{self.wanted}: cursor "
            f"{self.cursor!r} ({self.holder}) has read up to #{self.seq}. "
            f"`--before {self.seq + 1}` folds what every cursor has passed"
        )


class CopyDiffers(HerdbookError):
    """A copy is complete and differs from its source."""

    def __init__(self, place: str, space: str, kinds: tuple[str, ...]) -> None:
        super().__init__()
        self.place = place
        self.space = space
        self.kinds = kinds

    def __str__(self) -> str:
        return (
            f"the copy of {self.space} in {self.place} differs from its source in "
            f"{', '.join(self.kinds)}. It stays marked as unfinished and the source is as it was; "
            "copy once more, and check both stores if it differs again"
        )
