"""Build rows of the record from an agent-tracker's records.

Ids are derived from the tracker's own values: importing the same database, or a copy of it, on any
machine and any number of times gives the same rows.
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
    TrackedAgent,
    agent_of,
    agents_by_id,
    hash_of,
    parse_agent,
    project_of,
    text,
    time_of,
    whole_number,
)

FULL_HASH_LENGTH = 40
UNKNOWN_PROJECT = "unknown"
"""The project of a retrospective whose commit is not in the tracker."""


@define
class TrackerRows:
    """Rows by their ids; each commit and retrospective has a ledger entry in `entry_of`."""

    rules: Experience
    now: datetime
    projects: Mapping[str, str] = field(factory=dict)
    agents: dict[str, TrackedAgent] = field(factory=dict)
    commits: dict[str, Commit] = field(factory=dict)
    retrospectives: dict[str, Retrospective] = field(factory=dict)
    activities: dict[str, Activity] = field(factory=dict)
    entries: dict[str, ScoreEvent] = field(factory=dict)
    entry_of: dict[str, str] = field(factory=dict)
    balances: dict[str, list[ScoreEvent]] = field(factory=dict)
    duplicates: int = 0
    failed: list[TrackerReadFailure] = field(factory=list)
    _agent_records: list[TrackerRecord] = field(factory=list)
    _project_of_commit: dict[tuple[str, str], str] = field(factory=dict)
    _commit_keys: set[tuple[str, str, str]] = field(factory=set)
    _single: dict[str, list[ScoreEvent]] = field(factory=dict)

    def build(self, tracker: TrackerContents) -> None:
        """Build the rows of all records; records that have none are listed in `failed`."""
        self.failed += tracker.failures
        by_kind: dict[TrackedKind, list[TrackerRecord]] = {kind: [] for kind in TrackedKind}
        for record in tracker.records:
            by_kind[record.kind].append(record)
        agents = by_kind[TrackedKind.AGENT]
        self._each(agents, self._agent)
        self.agents = agents_by_id(self.agents.values())
        self._each(by_kind[TrackedKind.COMMIT], self._commit)
        self._each(by_kind[TrackedKind.RETROSPECTIVE], self._retrospective)
        self._each(by_kind[TrackedKind.COMMUNICATION], self._communication)
        self._each(by_kind[TrackedKind.ACTIVITY], self._activity)
        for entry in self.entries.values():
            self._single.setdefault(entry.agent, []).append(entry)
        self._each(self._agent_records, self._balance)

    def _each(
        self, records: Iterable[TrackerRecord], make: Callable[[TrackerRecord], None]
    ) -> None:
        for record in records:
            try:
                make(record)
            except InvalidValue as error:
                self.failed.append(TrackerReadFailure(record.kind, record.key, str(error)))

    def _agent(self, record: TrackerRecord) -> None:
        who = parse_agent(record)
        self.agents[who.id] = who
        self._agent_records.append(record)

    def _agent_of(self, record: TrackerRecord) -> TrackedAgent:
        key = agent_of(record)
        if not key:
            raise InvalidValue("agent_id", "is missing")
        return self.agents.get(key, TrackedAgent(key, key))

    def _project_name(self, path: str) -> str:
        return self.projects.get(path, path)

    def _add_new(self, rows: dict[str, Any], row: Any) -> bool:  # noqa: ANN401 - any kind's
        """Add a row; False, counting a duplicate, if the tracker's other layout had it already."""
        if row.id in rows:
            self.duplicates += 1
            return False
        rows[row.id] = row
        return True

    def _commit(self, record: TrackerRecord) -> None:
        who, commit_hash, path = self._agent_of(record), hash_of(record), project_of(record)
        project, at = self._project_name(path), time_of(record, "timestamp")
        # A full hash is one commit everywhere, whatever worktree it was seen from.
        identity = (who.id, commit_hash, "" if len(commit_hash) >= FULL_HASH_LENGTH else path)
        gained = whole_number(record.fields, "experience_gained", self.rules.commit)
        if gained < 0:
            raise InvalidValue("experience_gained", f"must be at least 0, is {gained}")
        row = Commit(
            id=_id("com", *identity),
            agent=who.name,
            project=project,
            commit_hash=commit_hash,
            task=text(record.fields, "task_description", "task"),
            experience_gained=gained,
            at=at,
        )
        on = _occasion(who, at, project, _id("sco", "commit", *identity))
        entry = evolve(commit_entry(on), points=gained)
        if (who.id, project, commit_hash) in self._commit_keys:
            self.duplicates += 1
        elif self._add_new(self.commits, row):
            self._commit_keys.add((who.id, project, commit_hash))
            self._project_of_commit[who.id, commit_hash] = project
            self._add_entry(row.id, entry)

    def _retrospective(self, record: TrackerRecord) -> None:
        who, commit_hash = self._agent_of(record), hash_of(record)
        project = self._project_name(project_of(record)) or self._project_of_commit.get(
            (who.id, commit_hash), UNKNOWN_PROJECT
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
            score_before=whole_number(record.fields, "score_before"),
            score_after=whole_number(record.fields, "score_after"),
            agent_note=text(record.fields, "agent_note"),
            user_note=text(record.fields, "user_note"),
            at=at,
        )
        on = _occasion(who, at, project, _id("sco", "grade", who.id, commit_hash))
        entry = grade_entry(on, *grades)
        if self._add_new(self.retrospectives, row):
            self._add_entry(row.id, entry)

    def _communication(self, record: TrackerRecord) -> None:
        who, commit_hash = self._agent_of(record), hash_of(record)
        at = time_of(record, "timestamp")
        grade = _grade(record, "grade")
        if commit_hash and _id("ret", who.id, commit_hash) in self.retrospectives:
            # The retrospective of the commit holds both grades already.
            self.duplicates += 1
            return
        key = _id("sco", "communication", who.id, commit_hash, at.isoformat(), str(int(grade)))
        self._add_new(
            self.entries,
            communication_entry(
                _occasion(who, at, self._project_name(project_of(record)), key), grade
            ),
        )

    def _activity(self, record: TrackerRecord) -> None:
        who, at = self._agent_of(record), time_of(record, "timestamp")
        row = Activity(
            id=_id("act", who.id, at.isoformat()),
            agent=who.name,
            project=self._project_name(project_of(record)) or None,
            task=text(record.fields, "task"),
            actions=text(record.fields, "actions"),
            outcome=text(record.fields, "outcome"),
            decisions=text(record.fields, "decisions"),
            at=at,
        )
        self._add_new(self.activities, row)

    def _balance(self, record: TrackerRecord) -> None:
        who = self.agents[parse_agent(record).id]
        if who.id in self.balances:
            self.duplicates += 1
            return
        own = self._single.get(who.name, [])
        names = [name for name in ("updated_at", "created_at") if record.fields.get(name)]
        last = max((entry.at for entry in own), default=self.now)
        at = time_of(record, *names) if names else last
        on = _occasion(who, at, "", _id("sco", "balance", who.id))
        self.balances[who.id] = balance(record.fields, own, on, self.rules)

    def _add_entry(self, row_id: str, entry: ScoreEvent) -> None:
        self.entries[entry.id] = entry
        self.entry_of[row_id] = entry.id


def _id(prefix: str, *parts: str) -> str:
    identity = "\0".join(("agent-tracker", *parts)).encode(errors="surrogatepass")
    return f"{prefix}_{sha256(identity).hexdigest()[:32]}"


def _occasion(who: TrackedAgent, at: datetime, project: str, key: str) -> EntryContext:
    return EntryContext(
        who.name, at, id=key, project=project or None, provider=PROVIDER, model=who.model
    )


def _grade(record: TrackerRecord, name: str) -> Grade:
    value = record.fields.get(name)
    known = int(value) if isinstance(value, float) and value == value // 1 else value
    if not isinstance(known, str | int) or isinstance(known, bool):
        raise InvalidValue(name, f"{value!r} is no grade")
    return Grade.parse(known)
