"""Ingest of spooled hook events into the record, each event exactly once.

Every event has an id. The transaction that counts an event also writes its id, so that a flush that
was killed before it could clear its buffer recognises what it had done. Counts of one flush are one
entry per agent, session and kind; they cannot be confused with another flush's, because an event
belongs to exactly one.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce
from hashlib import sha256
from typing import Any, NamedTuple

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import OperationResult
from herdbook.domain.record.events import (
    HookEvent,
    Interpretation,
    SessionSetup,
    entry_id,
    interpret,
)
from herdbook.domain.record.model import Commit, ScoreEvent, Standing
from herdbook.domain.record.standing import apply, collapse, fold, is_late
from herdbook.ports.engine.dictionary import COMMITS, OPERATIONS, SCORE_EVENTS
from herdbook.ports.engine.query import find
from herdbook.ports.repositories.base import PAGE
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class FlushReport(NamedTuple):
    """The result of a flush: what became of its events.

    `applied` ones were counted now, `doubled` ones earlier, `uncounted` ones have no effect on the
    ledger; those `aside`, by id and reason, cannot be applied. `sessions` maps sessions to agents.
    """

    applied: int
    doubled: int
    uncounted: int
    aside: list[tuple[str, str]]
    sessions: dict[str, str]


class _SortedEvents(NamedTuple):
    fresh: list[tuple[HookEvent, Interpretation]]
    doubled: int
    uncounted: int
    aside: list[tuple[str, str]]
    sessions: dict[str, str]
    setups: dict[str, SessionSetup]


def flush(uow: UnitOfWork, events: Sequence[HookEvent]) -> FlushReport:
    """Write buffered events into the record; events that were counted before change nothing.

    One that cannot be applied is set aside with its reason and does not stop the others.
    """
    found = _sort_events(uow, events)
    entries = [meaning.entry for _, meaning in found.fresh if meaning.entry is not None]
    commits = [meaning.commit for _, meaning in found.fresh if meaning.commit is not None]
    uow.ledger.add_all(collapse(entries))
    uow.commits.add_all(commits)
    _add_marks(uow, [event.id for event, _ in found.fresh], found.setups)
    if not found.doubled:
        # Events still in the buffer must be recognised, however long ago they were flushed: marks
        # are pruned only if this flush found none again.
        uow.operations.prune(uow.now, limit=max(PAGE, 2 * len(events)))
    return FlushReport(
        len(found.fresh), found.doubled, found.uncounted, found.aside, found.sessions
    )


def standings_with(
    uow: UnitOfWork, events: Sequence[HookEvent] = (), agent: str | None = None
) -> list[Standing]:
    """The standings of all agents or of one, counting buffered events; nothing is written."""
    fresh: dict[str, list[ScoreEvent]] = defaultdict(list)
    for _, meaning in _sort_events(uow, events).fresh:
        if meaning.entry is not None:
            fresh[meaning.entry.agent].append(meaning.entry)
    if agent is not None:
        standings = [uow.standings.of_agent(agent)]
    else:
        standings = list(uow.standings.select_all(find(uow.standings.kind, limit=PAGE)))
        known = {each.agent for each in standings}
        standings += [uow.standings.of_agent(each) for each in fresh if each not in known]
    moved = [_apply_entries(uow, each, collapse(fresh[each.agent])) for each in standings]
    return sorted(moved, key=lambda each: each.agent)


def sessions(uow: UnitOfWork, events: Sequence[HookEvent]) -> dict[str, str]:
    """The sessions of buffered events, each with its agent."""
    return _sort_events(uow, events).sessions


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


def _apply_entries(uow: UnitOfWork, standing: Standing, fresh: Sequence[ScoreEvent]) -> Standing:
    if any(is_late(standing, entry) for entry in fresh):
        whole = [*uow.ledger.of_agent(standing.agent), *fresh]
        return fold(standing.agent, whole, uow.experience)
    return reduce(lambda at, entry: apply(at, entry, uow.experience), fresh, standing)


def _sort_events(uow: UnitOfWork, events: Sequence[HookEvent]) -> _SortedEvents:
    """Sort events into fresh ones, duplicates, and those that cannot be applied."""
    result = _SortedEvents([], 0, 0, [], {}, {})
    setups = _known_setups(uow, events)
    meanings: dict[str, tuple[HookEvent, Interpretation]] = {}
    doubled = uncounted = 0
    for event in events:
        try:
            known = setups.get(event.session_id or "", SessionSetup())
            meaning = interpret(event, known, uow.experience)
        except InvalidValue as error:
            result.aside.append((event.id, str(error)))
            continue
        if meaning.session_id is not None and meaning.agent is not None:
            own = event.environment_session
            result.sessions.update(
                dict.fromkeys([meaning.session_id, *filter(None, [own])], meaning.agent)
            )
            if meaning.setup != known:
                setups[meaning.session_id] = result.setups[meaning.session_id] = meaning.setup
        if meaning.entry is None:
            uncounted += 1
        elif event.id in meanings:
            doubled += 1
        else:
            meanings[event.id] = (event, meaning)
    seen = _known_event_ids(uow, list(meanings))
    made: set[tuple[str, str, str]] = set()
    for key, (event, meaning) in meanings.items():
        if key in seen or (meaning.commit is not None and _is_known(uow, meaning.commit, made)):
            doubled += 1
        else:
            result.fresh.append((event, meaning))
    return result._replace(doubled=doubled, uncounted=uncounted)


def _is_known(uow: UnitOfWork, commit: Commit, made: set[tuple[str, str, str]]) -> bool:
    """Whether the commit is in the record or in `made`; adds it to `made`."""
    key = (commit.project, commit.commit_hash, commit.agent)
    if key in made:
        return True
    made.add(key)
    where = dict(zip(("project", "commit_hash", "agent"), key, strict=True))
    return bool(uow.select(find(COMMITS, where, limit=1)))


def _known_event_ids(uow: UnitOfWork, event_ids: Sequence[str]) -> set[str]:
    if not event_ids:
        return set()
    marks = uow.get(OPERATIONS, [_event_mark(each) for each in event_ids])
    entries = uow.get(SCORE_EVENTS, [entry_id(each) for each in event_ids])
    both = zip(event_ids, marks, entries, strict=True)
    return {each for each, mark, entry in both if mark is not None or entry is not None}


def _add_marks(uow: UnitOfWork, event_ids: Sequence[str], setups: dict[str, SessionSetup]) -> None:
    marks = [OperationResult(operation_id=_event_mark(each), at=uow.now) for each in event_ids]
    keys = {_session_mark(session): setup for session, setup in setups.items()}
    known = uow.get(OPERATIONS, list(keys)) if keys else []
    notes = [
        OperationResult(operation_id=key, result=_setup_to_document(setup), at=uow.now)
        for (key, setup), old in zip(keys.items(), known, strict=True)
        if old is None
    ]
    uow.operations.add_all([*marks, *notes])


def _known_setups(uow: UnitOfWork, events: Iterable[HookEvent]) -> dict[str, SessionSetup]:
    """The setups of these events' sessions that earlier flushes have stored."""
    sessions = {each.session_id for each in events if each.session_id is not None}
    keys = {_session_mark(each): each for each in sorted(sessions)}
    notes = uow.get(OPERATIONS, list(keys)) if keys else []
    return {
        keys[note.operation_id]: _setup_from_document(note.result)
        for note in notes
        if note is not None and isinstance(note.result, dict)
    }


def _setup_to_document(setup: SessionSetup) -> dict[str, Any]:
    return {"provider": setup.provider, "model": setup.model, "mode": setup.mode}


def _setup_from_document(result: dict[str, Any]) -> SessionSetup:
    mode = result.get("mode")
    return SessionSetup(
        result.get("provider"), result.get("model"), None if mode is None else AgentMode(mode)
    )


def _event_mark(event_id: str) -> str:
    return f"evt_{event_id}"


def _session_mark(session: str) -> str:
    return f"ses_{sha256(session.encode(errors='surrogatepass')).hexdigest()[:40]}"
