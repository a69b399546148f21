"""What hooks have written down becomes the record: once, however often it is read.

Every event has an id. In the transaction that counts it, its id is written down too, so that a
flush that was killed before it could clear its buffer finds out what it had done. Counts of one
flush are one entry per agent, session and kind; that cannot be taken for another flush's, because
an event belongs to exactly one.
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
    """What came of the events of a flush.

    `applied` ones count from now on, `doubled` ones did already, `uncounted` ones say nothing that
    counts; those `aside`, by id and reason, cannot be applied. `sessions` tells whose they are.
    """

    applied: int
    doubled: int
    uncounted: int
    aside: list[tuple[str, str]]
    sessions: dict[str, str]


class _Sorted(NamedTuple):
    fresh: list[tuple[HookEvent, Interpretation]]
    doubled: int
    uncounted: int
    aside: list[tuple[str, str]]
    sessions: dict[str, str]
    setups: dict[str, SessionSetup]


def flush(uow: UnitOfWork, events: Sequence[HookEvent]) -> FlushReport:
    """Write buffered events into the record; those it has seen before change nothing.

    One that cannot be applied is set aside with its reason and holds up none of the others.
    """
    found = _sorted(uow, events)
    entries = [meaning.entry for _, meaning in found.fresh if meaning.entry is not None]
    commits = [meaning.commit for _, meaning in found.fresh if meaning.commit is not None]
    uow.ledger.add_all(collapse(entries))
    uow.commits.add_all(commits)
    _remember(uow, [event.id for event, _ in found.fresh], found.setups)
    if not found.doubled:
        # What is still in the buffer must be recognised, however long ago it was flushed.
        uow.operations.prune(uow.now, limit=max(PAGE, 2 * len(events)))
    return FlushReport(
        len(found.fresh), found.doubled, found.uncounted, found.aside, found.sessions
    )


def standing_with(
    uow: UnitOfWork, events: Sequence[HookEvent] = (), agent: str | None = None
) -> list[Standing]:
    """Where agents stand, or one of them, counting what is buffered; nothing is written."""
    fresh: dict[str, list[ScoreEvent]] = defaultdict(list)
    for _, meaning in _sorted(uow, events).fresh:
        if meaning.entry is not None:
            fresh[meaning.entry.agent].append(meaning.entry)
    if agent is not None:
        standings = [uow.standings.of_agent(agent)]
    else:
        standings = list(uow.standings.select_all(find(uow.standings.kind, limit=PAGE)))
        known = {each.agent for each in standings}
        standings += [uow.standings.of_agent(each) for each in fresh if each not in known]
    moved = [_moved(uow, each, collapse(fresh[each.agent])) for each in standings]
    return sorted(moved, key=lambda each: each.agent)


def sessions(uow: UnitOfWork, events: Sequence[HookEvent]) -> dict[str, str]:
    """The sessions that buffered events tell of, each with its agent."""
    return _sorted(uow, events).sessions


def halted_sessions(uow: UnitOfWork, sessions: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """The sessions of halted agents, each with its agent: those of the ledger, and these of late.

    `sessions` are pairs of a session and its agent that the ledger need not know.
    """
    standings = uow.standings.select_all(find(uow.standings.kind, limit=PAGE))
    halted = {each.agent for each in standings if not each.active}
    found = {session: agent for session, agent in sessions if agent in halted}
    for agent in sorted(halted):
        for entry in uow.ledger.of_agent(agent, limit=PAGE, descending=True):
            if entry.session_id is not None:
                found.setdefault(entry.session_id, agent)
    return found


def _moved(uow: UnitOfWork, standing: Standing, fresh: Sequence[ScoreEvent]) -> Standing:
    if any(is_late(standing, entry) for entry in fresh):
        whole = [*uow.ledger.of_agent(standing.agent), *fresh]
        return fold(standing.agent, whole, uow.experience)
    return reduce(lambda at, entry: apply(at, entry, uow.experience), fresh, standing)


def _sorted(uow: UnitOfWork, events: Sequence[HookEvent]) -> _Sorted:
    """Tell fresh events from doubled ones and from those that cannot be applied."""
    said = _Sorted([], 0, 0, [], {}, {})
    setups = _known_setups(uow, events)
    meanings: dict[str, tuple[HookEvent, Interpretation]] = {}
    doubled = uncounted = 0
    for event in events:
        try:
            known = setups.get(event.session_id or "", SessionSetup())
            meaning = interpret(event, known, uow.experience)
        except InvalidValue as error:
            said.aside.append((event.id, str(error)))
            continue
        if meaning.session_id is not None and meaning.agent is not None:
            own = event.environment_session
            said.sessions.update(
                dict.fromkeys([meaning.session_id, *filter(None, [own])], meaning.agent)
            )
            if meaning.setup != known:
                setups[meaning.session_id] = said.setups[meaning.session_id] = meaning.setup
        if meaning.entry is None:
            uncounted += 1
        elif event.id in meanings:
            doubled += 1
        else:
            meanings[event.id] = (event, meaning)
    seen = _seen(uow, list(meanings))
    made: set[tuple[str, str, str]] = set()
    for key, (event, meaning) in meanings.items():
        if key in seen or (meaning.commit is not None and _is_known(uow, meaning.commit, made)):
            doubled += 1
        else:
            said.fresh.append((event, meaning))
    return said._replace(doubled=doubled, uncounted=uncounted)


def _is_known(uow: UnitOfWork, commit: Commit, made: set[tuple[str, str, str]]) -> bool:
    """Whether the commit is in the record or among those `made` just now; it is from here on."""
    key = (commit.project, commit.commit_hash, commit.agent)
    if key in made:
        return True
    made.add(key)
    where = dict(zip(("project", "commit_hash", "agent"), key, strict=True))
    return bool(uow.select(find(COMMITS, where, limit=1)))


def _seen(uow: UnitOfWork, event_ids: Sequence[str]) -> set[str]:
    if not event_ids:
        return set()
    marks = uow.get(OPERATIONS, [_mark(each) for each in event_ids])
    entries = uow.get(SCORE_EVENTS, [entry_id(each) for each in event_ids])
    both = zip(event_ids, marks, entries, strict=True)
    return {each for each, mark, entry in both if mark is not None or entry is not None}


def _remember(uow: UnitOfWork, event_ids: Sequence[str], setups: dict[str, SessionSetup]) -> None:
    marks = [OperationResult(operation_id=_mark(each), at=uow.now) for each in event_ids]
    keys = {_session_mark(session): setup for session, setup in setups.items()}
    known = uow.get(OPERATIONS, list(keys)) if keys else []
    notes = [
        OperationResult(operation_id=key, result=_told(setup), at=uow.now)
        for (key, setup), old in zip(keys.items(), known, strict=True)
        if old is None
    ]
    uow.operations.add_all([*marks, *notes])


def _known_setups(uow: UnitOfWork, events: Iterable[HookEvent]) -> dict[str, SessionSetup]:
    """What earlier flushes were told of these events' sessions."""
    sessions = {each.session_id for each in events if each.session_id is not None}
    keys = {_session_mark(each): each for each in sorted(sessions)}
    notes = uow.get(OPERATIONS, list(keys)) if keys else []
    return {
        keys[note.operation_id]: _read(note.result)
        for note in notes
        if note is not None and isinstance(note.result, dict)
    }


def _told(setup: SessionSetup) -> dict[str, Any]:
    return {"provider": setup.provider, "model": setup.model, "mode": setup.mode}


def _read(result: dict[str, Any]) -> SessionSetup:
    mode = result.get("mode")
    return SessionSetup(
        result.get("provider"), result.get("model"), None if mode is None else AgentMode(mode)
    )


def _mark(event_id: str) -> str:
    return f"evt_{event_id}"


def _session_mark(session: str) -> str:
    return f"ses_{sha256(session.encode(errors='surrogatepass')).hexdigest()[:40]}"
