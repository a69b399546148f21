"""The rows of the record that an agent-tracker's records become.

Their ids follow from what they tell of, in the tracker's own words: whoever imports the same
database, or a copy of it, on any machine and however often, makes the same rows.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from attrs import define, field

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Experience, Grade
from herdbook.domain.record.model import Activity, Commit, Retrospective, ScoreEvent
from herdbook.domain.record.standing import (
    EntryContext,
    commit_entry,
    communication_entry,
    grade_entry,
)
from herdbook.ports.world.agent_tracker import (
    TrackedKind,
    TrackerContents,
    TrackerReadFailure,
    TrackerRecord,
)
from herdbook.services.agent_tracker.balance import balance
from herdbook.services.agent_tracker.fields import (
    PROVIDER,
    Who,
    agent_of,
    crew_of,
    hash_of,
    project_of,
    text,
    time_of,
    who_is,
    whole,
)

WHOLE_HASH = 40
UNKNOWN = "unknown"
"""The project of a judgement whose commit is not told of."""


@define
class TrackerRows:
    """Rows by their ids, each of a commit or a judgement with its entry of the ledger."""

    rules: Experience
    now: datetime
    projects: Mapping[str, str] = field(factory=dict)
    crew: dict[str, Who] = field(factory=dict)
    commits: dict[str, Commit] = field(factory=dict)
    retrospectives: dict[str, Retrospective] = field(factory=dict)
    activities: dict[str, Activity] = field(factory=dict)
    entries: dict[str, ScoreEvent] = field(factory=dict)
    entry_of: dict[str, str] = field(factory=dict)
    balances: dict[str, list[ScoreEvent]] = field(factory=dict)
    doubled: int = 0
    failed: list[TrackerReadFailure] = field(factory=list)
    _agents: list[TrackerRecord] = field(factory=list)
    _made_in: dict[tuple[str, str], str] = field(factory=dict)
    _made: set[tuple[str, str, str]] = field(factory=set)
    _single: dict[str, list[ScoreEvent]] = field(factory=dict)

    def take(self, tracker: TrackerContents) -> None:
        """Make rows of all records; those of which none can be made are told one by one."""
        self.failed += tracker.failures
        by_kind: dict[TrackedKind, list[TrackerRecord]] = {kind: [] for kind in TrackedKind}
        for record in tracker.records:
            by_kind[record.kind].append(record)
        agents = by_kind[TrackedKind.AGENT]
        self._each(agents, self._agent)
        self.crew = crew_of(self.crew.values())
        self._each(by_kind[TrackedKind.COMMIT], self._commit)
        self._each(by_kind[TrackedKind.RETROSPECTIVE], self._retrospective)
        self._each(by_kind[TrackedKind.COMMUNICATION], self._communication)
        self._each(by_kind[TrackedKind.ACTIVITY], self._activity)
        for entry in self.entries.values():
            self._single.setdefault(entry.agent, []).append(entry)
        self._each(self._agents, self._balance)

    def _each(
        self, records: Iterable[TrackerRecord], make: Callable[[TrackerRecord], None]
    ) -> None:
        for record in records:
            try:
                make(record)
            except InvalidValue as error:
                self.failed.append(TrackerReadFailure(record.kind, record.key, str(error)))

    def _agent(self, record: TrackerRecord) -> None:
        who = who_is(record)
        self.crew[who.id] = who
        self._agents.append(record)

    def _who(self, record: TrackerRecord) -> Who:
        key = agent_of(record)
        if not key:
            raise InvalidValue("agent_id", "is missing")
        return self.crew.get(key, Who(key, key))

    def _known(self, path: str) -> str:
        return self.projects.get(path, path)

    def _keep(self, rows: dict[str, Any], row: Any) -> bool:  # noqa: ANN401 - any kind's
        """Whether the row is new, and not one that the first layout told of already."""
        if row.id in rows:
            self.doubled += 1
            return False
        rows[row.id] = row
        return True

    def _commit(self, record: TrackerRecord) -> None:
        who, commit_hash, path = self._who(record), hash_of(record), project_of(record)
        project, at = self._known(path), time_of(record, "timestamp")
        # A whole hash means one commit in the world, whatever worktree it was seen from.
        told = (who.id, commit_hash, "" if len(commit_hash) >= WHOLE_HASH else path)
        gained = whole(record.fields, "experience_gained", self.rules.commit)
        if gained < 0:
            raise InvalidValue("experience_gained", f"must be at least 0, is {gained}")
        row = Commit(
            id=_id("com", *told),
            agent=who.name,
            project=project,
            commit_hash=commit_hash,
            task=text(record.fields, "task_description", "task"),
            experience_gained=gained,
            at=at,
        )
        on = _on(who, at, project, _id("sco", "commit", *told))
        entry = evolve(commit_entry(on), points=gained)
        if (who.id, project, commit_hash) in self._made:
            self.doubled += 1
        elif self._keep(self.commits, row):
            self._made.add((who.id, project, commit_hash))
            self._made_in[who.id, commit_hash] = project
            self._enter(row.id, entry)

    def _retrospective(self, record: TrackerRecord) -> None:
        who, commit_hash = self._who(record), hash_of(record)
        project = self._known(project_of(record)) or self._made_in.get(
            (who.id, commit_hash), UNKNOWN
        )
        at = time_of(record, "timestamp")
        grades = [_grade(record, name) for name in ("agent_grade", "user_grade")]
        row = Retrospective(
            id=_id("ret", who.id, commit_hash),
            agent=who.name,
            project=project,
            commit_hash=commit_hash,
            task=text(record.fields, "task", "task_description"),
            agent_grade=grades[0],
            user_grade=grades[1],
            score_before=whole(record.fields, "score_before"),
            score_after=whole(record.fields, "score_after"),
            agent_note=text(record.fields, "agent_note"),
            user_note=text(record.fields, "user_note"),
            at=at,
        )
        on = _on(who, at, project, _id("sco", "grade", who.id, commit_hash))
        entry = grade_entry(on, *grades)
        if self._keep(self.retrospectives, row):
            self._enter(row.id, entry)

    def _communication(self, record: TrackerRecord) -> None:
        who, commit_hash = self._who(record), hash_of(record)
        at = time_of(record, "timestamp")
        grade = _grade(record, "grade")
        if commit_hash and _id("ret", who.id, commit_hash) in self.retrospectives:
            # The judgement of the commit tells of both grades already.
            self.doubled += 1
            return
        key = _id("sco", "communication", who.id, commit_hash, at.isoformat(), str(int(grade)))
        self._keep(
            self.entries,
            communication_entry(_on(who, at, self._known(project_of(record)), key), grade),
        )

    def _activity(self, record: TrackerRecord) -> None:
        who, at = self._who(record), time_of(record, "timestamp")
        row = Activity(
            id=_id("act", who.id, at.isoformat()),
            agent=who.name,
            project=self._known(project_of(record)) or None,
            task=text(record.fields, "task"),
            actions=text(record.fields, "actions"),
            outcome=text(record.fields, "outcome"),
            decisions=text(record.fields, "decisions"),
            at=at,
        )
        self._keep(self.activities, row)

    def _balance(self, record: TrackerRecord) -> None:
        who = self.crew[who_is(record).id]
        if who.id in self.balances:
            self.doubled += 1
            return
        own = self._single.get(who.name, [])
        names = [name for name in ("updated_at", "created_at") if record.fields.get(name)]
        last = max((entry.at for entry in own), default=self.now)
        at = time_of(record, *names) if names else last
        on = _on(who, at, "", _id("sco", "balance", who.id))
        self.balances[who.id] = balance(record.fields, own, on, self.rules)

    def _enter(self, row_id: str, entry: ScoreEvent) -> None:
        self.entries[entry.id] = entry
        self.entry_of[row_id] = entry.id


def _id(prefix: str, *parts: str) -> str:
    told = "\0".join(("agent-tracker", *parts)).encode(errors="surrogatepass")
    return f"{prefix}_{sha256(told).hexdigest()[:32]}"


def _on(who: Who, at: datetime, project: str, key: str) -> EntryContext:
    return EntryContext(
        who.name, at, id=key, project=project or None, provider=PROVIDER, model=who.model
    )


def _grade(record: TrackerRecord, name: str) -> Grade:
    value = record.fields.get(name)
    known = int(value) if isinstance(value, float) and value == value // 1 else value
    if not isinstance(known, str | int) or isinstance(known, bool):
        raise InvalidValue(name, f"{value!r} is no grade")
    return Grade.parse(known)
