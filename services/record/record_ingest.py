"""Ingest of spooled hook events into the record, each event exactly once.

Every event has an id. The transaction that counts an event also writes its id, so that a flush that
was killed before it could clear its buffer recognises what it had done. Equal counts that follow
one another are one entry. What becomes of an event does not depend on the other events of its flush
but on what happened before it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import OperationResult
from herdbook.domain.record.events import (
    COUNTED,
    HookEvent,
    Interpretation,
    Meaning,
    check_event,
    entry_id,
    interpret,
)
from herdbook.domain.record.model import ScoreEvent, Standing
from herdbook.domain.record.standing import apply, collapse, fold, is_late
from herdbook.ports.engine.dictionary import OPERATIONS, SCORE_EVENTS
from herdbook.ports.engine.query import find
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.record.commit_places import CommitPlaces
from herdbook.services.record.session_setups import SessionSetups


class FlushReport(NamedTuple):
    """The result of a flush: what became of its events.

    `applied` ones were counted now, `doubled` ones earlier, `uncounted` ones have no effect on the
    ledger; those `aside`, by id and reason, cannot be applied. `sessions` maps sessions to agents.
    `dropped` has the number of commits of nobody, by folder.
    """

    applied: int
    doubled: int
    uncounted: int
    aside: list[tuple[str, str]]
    sessions: dict[str, str]
    dropped: Mapping[str, int]


def flush(uow: UnitOfWork, events: Sequence[HookEvent]) -> FlushReport:
    """Write buffered events into the record; events that were counted before change nothing.

    One that cannot be applied is set aside with its reason and does not stop the others.
    """
    changes = _RecordChanges(uow, events)
    changes.commits.write()
    for entries in changes.entries().values():
        uow.ledger.add_all(entries)
    changes.setups.write()
    marks = [OperationResult(operation_id=_event_mark(each), at=uow.now) for each in changes.fresh]
    uow.operations.add_all(marks)
    report = changes.report()
    if not report.doubled:
        # Events still in the buffer must be recognised, however long ago they were flushed: marks
        # are pruned only if this flush found none again.
        uow.operations.prune(uow.now, limit=max(PAGE, 2 * len(events)))
    return report


def standings_with(
    uow: UnitOfWork, events: Sequence[HookEvent] = (), agent: str | None = None
) -> list[Standing]:
    """The standings of all agents or of one, counting buffered events; nothing is written."""
    changes = _RecordChanges(uow, events)
    fresh = changes.entries()
    gone = set(changes.commits.removed_entries())
    losers = {each.agent for each in changes.commits.removed.values()}
    if agent is not None:
        standings = [uow.standings.of_agent(agent)]
    else:
        standings = list(uow.standings.select_all(find(uow.standings.kind, limit=PAGE)))
        known = {each.agent for each in standings}
        standings += [uow.standings.of_agent(each) for each in fresh if each not in known]
    moved = [
        _apply_entries(uow, each, fresh.get(each.agent, []), gone if each.agent in losers else ())
        for each in standings
    ]
    return sorted(moved, key=lambda each: each.agent)


def sessions(uow: UnitOfWork, events: Sequence[HookEvent]) -> dict[str, str]:
    """The sessions of buffered events, each with its agent."""
    return _RecordChanges(uow, events).sessions


def halted_sessions(uow: UnitOfWork, sessions: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """The sessions of halted agents, each with its agent, from the ledger and from `sessions`.

    `sessions` are pairs of a session and its agent that may not be in the ledger yet.
    """
    standings = uow.standings.select_all(find(uow.standings.kind, limit=PAGE))
    halted = {each.agent for each in standings if not each.active}
    found = {session: agent for session, agent in sessions if agent in halted}
    for agent in sorted(halted):
        for entry in uow.ledger.of_agent(agent, limit=PAGE, descending=True):
            if entry.session_id is not None:
                found.setdefault(entry.session_id, agent)
    return found


class _RecordChanges:
    """What events change in the record, read in their order; nothing is written."""

    def __init__(self, uow: UnitOfWork, events: Sequence[HookEvent]) -> None:
        self._uow = uow
        self.sessions: dict[str, str] = {}
        self.fresh: dict[str, Interpretation] = {}
        """The events that were not counted before and make an entry, by id."""
        self.commits = CommitPlaces(uow)
        self._aside: list[tuple[str, str]] = []
        self._doubled = self._uncounted = 0
        self._dropped: dict[str, int] = defaultdict(int)
        valid = [(event, at) for event in events if (at := self._time_of(event)) is not None]
        self.setups = SessionSetups(uow, min((at for _, at in valid), default=uow.now))
        counted = [event.id for event, _ in valid if event.meaning in COUNTED]
        seen = _known_event_ids(uow, list(dict.fromkeys(counted)))
        for event, _ in valid:
            self._read(event, seen)

    def _time_of(self, event: HookEvent) -> datetime | None:
        try:
            return check_event(event)
        except InvalidValue as error:
            self._aside.append((event.id, str(error)))
            return None

    def _read(self, event: HookEvent, seen: set[str]) -> None:
        uow = self._uow
        try:
            agent, known = self.setups.learn(event)
            meaning = interpret(event, known, uow.experience, agent=agent)
        except InvalidValue as error:
            self._aside.append((event.id, str(error)))
            return
        if meaning.session_id is not None and meaning.agent is not None:
            named = filter(None, (meaning.session_id, event.environment_session))
            self.sessions.update(dict.fromkeys(named, meaning.agent))
        if meaning.entry is None:
            if event.meaning is Meaning.COMMIT:
                self._dropped[event.cwd] += 1
            else:
                self._uncounted += 1
            for old, new in event.rewrites:
                self.commits.rewrite(event.place, old, new)
        elif event.id in seen or event.id in self.fresh:
            self._doubled += 1
        else:
            self.fresh[event.id] = meaning
            if meaning.commit is not None:
                self.commits.add(meaning.commit)

    def _new_entries(self) -> list[ScoreEvent]:
        """The new entries; a commit that has no place has none."""
        return [
            each.entry
            for each in self.fresh.values()
            if each.entry is not None
            and (each.commit is None or each.commit.id in self.commits.added)
        ]

    def entries(self) -> dict[str, list[ScoreEvent]]:
        """The entries for the ledger, by agent."""
        by_agent: dict[str, list[ScoreEvent]] = defaultdict(list)
        for entry in self._new_entries():
            by_agent[entry.agent].append(entry)
        gone = set(self.commits.removed_entries())
        return {
            agent: collapse(
                entries,
                [
                    each
                    for each in self._uow.ledger.of_agent(
                        agent, since=min(entry.at for entry in entries)
                    )
                    if each.id not in gone
                ],
            )
            for agent, entries in by_agent.items()
        }

    def report(self) -> FlushReport:
        """What became of the events."""
        applied = len(self._new_entries())
        doubled = self._doubled + len(self.fresh) - applied
        return FlushReport(
            applied, doubled, self._uncounted, self._aside, self.sessions, dict(self._dropped)
        )


def _apply_entries(
    uow: UnitOfWork, standing: Standing, fresh: Sequence[ScoreEvent], gone: Collection[str]
) -> Standing:
    if gone or any(is_late(standing, entry) for entry in fresh):
        left = [each for each in uow.ledger.of_agent(standing.agent) if each.id not in gone]
        return fold(standing.agent, [*left, *fresh], uow.experience)
    return reduce(lambda at, entry: apply(at, entry, uow.experience), fresh, standing)


def _known_event_ids(uow: UnitOfWork, event_ids: Sequence[str]) -> set[str]:
    if not event_ids:
        return set()
    marks = uow.get(OPERATIONS, [_event_mark(each) for each in event_ids])
    entries = uow.get(SCORE_EVENTS, [entry_id(each) for each in event_ids])
    both = zip(event_ids, marks, entries, strict=True)
    return {each for each, mark, entry in both if mark is not None or entry is not None}


def _event_mark(event_id: str) -> str:
    return f"evt_{event_id}"
