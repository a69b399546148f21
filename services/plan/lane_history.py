"""Reads the journal of a window of time into spans and marks, with the names of their rows."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from attrs import frozen

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.conversation import asks_person
from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.plan import lanes as rules
from herdbook.domain.plan.claims import HELD, lease_is_over
from herdbook.domain.plan.lanes import (
    TRACED,
    KeyedRows,
    LaneMark,
    LaneSpan,
    LaneState,
    MarkKind,
    find_tracks,
)
from herdbook.domain.plan.model import TaskStatus
from herdbook.domain.record.model import Commit
from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import AGENTS, DICTIONARY, MESSAGES, OPENINGS, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE, select_all
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


@frozen
class NamedSpan:
    """A span with the names of its task and agent, and its track in the lane.

    The lease of a claim that `is_over` has ended, so that somebody else may take its task.
    """

    span: LaneSpan
    task: str | None
    agent: str | None
    track: int = 0
    is_over: bool = False


def leave_out_unheld(entries: list[JournalEntry]) -> list[JournalEntry]:
    """The entries without those of tasks that were added and that nobody has held since.

    A plan that was imported has thousands of them, and each would cost the reading of its row.
    """
    times = Counter(entry.key for entry in entries if entry.entity == rules.TASK)
    return [
        entry
        for entry in entries
        if entry.entity != rules.TASK
        or entry.op is not Op.ADD
        or times[entry.key] > 1
        or (entry.after or {}).get("status") in HELD
    ]


class LaneHistory:
    """What the journal tells from a time on: spans, marks, and the names of rows of then."""

    def __init__(self, uow: UnitOfWork, entries: list[JournalEntry], begin: datetime) -> None:
        self.uow = uow
        entries = leave_out_unheld(entries)
        now = self._rows_now(entries)
        rows = rules.rows_before(now, entries)
        self._then, self._now = rows, now
        self._told = {
            (entry.entity, entry.key): {**(entry.before or {}), **(entry.after or {})}
            for entry in entries
        }
        reviewers = self._find_reviewers(rows, {entry.key for entry in entries})
        self.spans = rules.trace_spans(rows, entries, begin, reviewers)
        self.marks = rules.find_marks(rows, entries)
        self._asking = {
            each.agent_id
            for each in self.spans
            if each.until is None and each.state is LaneState.ASKING
        }

    def _rows_now(self, entries: list[JournalEntry]) -> KeyedRows:
        """Every row that changed, the tasks that are held, and their agents."""
        keys: dict[str, set[str]] = {kind: set() for kind in TRACED}
        for entry in entries:
            keys[entry.entity].add(entry.key)
        found = {name: self._get(DICTIONARY.kinds[name], keys[name]) for name in TRACED}
        held = any_of((TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW))
        for task in select_all(self.uow, find(TASKS, {"status": held}, limit=PAGE)):
            if task.status is TaskStatus.IN_PROGRESS or task.claim_stamp is not None:
                found[rules.TASK].setdefault(task.id, encode_row(TASKS, task))
        asking = {"status": AgentStatus.WAITING_FOR_INPUT}
        agents: list[Agent] = list(select_all(self.uow, find(AGENTS, asking, limit=PAGE)))
        open_messages = [
            each for each in self.uow.messages.requiring_response() if asks_person(vars(each))
        ]
        for message in open_messages:
            found[rules.MESSAGE].setdefault(message.id, encode_row(MESSAGES, message))
        at = any_of(found[rules.TASK])
        agents += self.uow.select(find(AGENTS, {"task_id": at})) if at.values else []
        for agent in agents:
            found[rules.AGENT].setdefault(agent.id, encode_row(AGENTS, agent))
        holders = {each.get("assignee_id") for each in found[rules.TASK].values()}
        holders |= {each.sender_id for each in open_messages}
        missing = {each for each in holders if each} - found[rules.AGENT].keys()
        found[rules.AGENT] |= self._get(AGENTS, missing)
        return found

    def _get(self, kind: Kind[Any], keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        wanted = sorted(keys)
        rows = self.uow.get(kind, wanted)
        return {
            key: encode_row(kind, row)
            for key, row in zip(wanted, rows, strict=True)
            if row is not None
        }

    def _find_reviewers(self, rows: KeyedRows, changed: Collection[str]) -> dict[str, str | None]:
        """Who reviewed each task that was under review before the entries."""
        reviewed = [key for key, task in rows[rules.TASK].items() if rules.is_reviewed(task)]
        found: dict[str, str | None] = {}
        if self.uow.as_of is None:
            for opening in self.uow.get(OPENINGS, [key for key in reviewed if key not in changed]):
                if opening is not None and opening.reviewer_id is not None:
                    found[opening.task_id] = opening.reviewer_id
        for key in reviewed:
            if key not in found:
                found[key] = self._find_claimer(key, rows[rules.TASK][key]["claim_stamp"])
        return found

    def _find_claimer(self, task_id: str, stamp: str) -> str | None:
        """Who made the claim of this stamp, by the journal; None if it is not there any more.

        Whoever claims again what it had claimed before has not moved: that was told before.
        """
        own = [
            entry
            for entry in self.uow.journal.of_row(TASKS, task_id)
            if "claim_stamp" in (entry.after or {})
        ]
        stamps = [(entry.after or {})["claim_stamp"] for entry in own]
        if stamp not in stamps:
            return None
        for entry in reversed(own[: stamps.index(stamp) + 1]):
            if (entry.after or {})["claim_stamp"] is None:
                return None
            agent = self.uow.agents.by_name(entry.agent) if entry.agent else None
            agents = {} if agent is None else {agent.id: encode_row(AGENTS, agent)}
            found = rules.find_reviewer(task_id, self.uow.journal.of_tx(entry.tx), agents)
            if found is not None:
                return found
        return None

    def values(self, kind: str, key: str | None) -> dict[str, Any]:
        """What is known of a row: as it is, as it was, or what entries tell; else nothing."""
        if key is None:
            return {}
        for rows in (self._now, self._then):
            if key in rows.get(kind, {}):
                return rows[kind][key]
        return self._told.get((kind, key), {})

    def agent_status(self, agent_id: str) -> str | None:
        """The status of an agent, None if it was removed.

        One that waits for a person does so, whatever else it does.
        """
        status: str | None = self._now[rules.AGENT].get(agent_id, {}).get("status")
        return AgentStatus.WAITING_FOR_INPUT if agent_id in self._asking else status

    def is_gone(self, agent_id: str) -> bool:
        """Whether an agent of then was removed."""
        return agent_id not in self._now[rules.AGENT]

    def name_spans(self, spans: Sequence[LaneSpan]) -> Iterator[NamedSpan]:
        """The spans with their names, in their tracks."""
        tracks, _ = find_tracks(spans)
        over = self._expired_tasks(spans)
        for span, track in zip(spans, tracks, strict=True):
            task = self.values(rules.TASK, span.task_id).get("name")
            agent = self.values(rules.AGENT, span.agent_id).get("name")
            is_over = span.until is None and span.task_id in over
            yield NamedSpan(span, task, agent, track, is_over)

    def _expired_tasks(self, spans: Sequence[LaneSpan]) -> set[str]:
        """The tasks whose lease has ended; what a lease was in the past is not known."""
        if self.uow.as_of is not None:
            return set()
        held = sorted({each.task_id for each in spans if each.until is None and each.task_id})
        openings = [each for each in self.uow.get(OPENINGS, held) if each is not None]
        return {each.task_id for each in openings if lease_is_over(each, self.uow.now)}

    def commit_marks(self, commits: Sequence[Commit]) -> list[LaneMark]:
        """The commits of agents of this repository."""
        ids = {
            agent.get("name"): key
            for rows in (self._then, self._now)
            for key, agent in rows[rules.AGENT].items()
        }
        for name in {each.agent for each in commits} - ids.keys():
            agent = self.uow.agents.by_name(name)
            if agent is not None:
                ids[name] = agent.id
                self._now[rules.AGENT][agent.id] = encode_row(AGENTS, agent)
        return [
            LaneMark(
                MarkKind.COMMIT, each.at, ids[each.agent], None, None, each.commit_hash, each.task
            )
            for each in commits
            if each.agent in ids
        ]
