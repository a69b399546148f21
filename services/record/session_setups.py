"""Who acts in each session, and with which setup, at the moment of each event.

What an event tells of its session holds from then on. It is noted where it differs from what was
known before, so that it does not matter in which flush an event is read.
"""

from bisect import bisect_right, insort
from datetime import datetime
from operator import attrgetter

from herdbook.domain.errors import InvalidValue
from herdbook.domain.record.events import (
    HookEvent,
    Meaning,
    SessionSetup,
    event_time,
    name_after_session,
)
from herdbook.domain.record.model import SetupNote
from herdbook.ports.engine.dictionary import SETUP_NOTES
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

_at = attrgetter("at")


class SessionSetups:
    """The notes of the record on setups, and those that the events of a flush add."""

    def __init__(self, uow: UnitOfWork, since: datetime) -> None:
        self._added: dict[str, SetupNote] = {}
        self._uow = uow
        self._since = since
        self._sessions: dict[str, list[SetupNote]] = {}
        self._registrations: dict[str, list[SetupNote]] = {}
        self._agents: dict[str, list[SetupNote]] = {}

    def learn(self, event: HookEvent) -> tuple[str | None, SessionSetup]:
        """The agent of an event, if it has one, and what is known of its setup.

        Raises InvalidValue for a registration of nobody.
        """
        at = event_time(event)
        if event.meaning is Meaning.REGISTRATION:
            return self._learn_registration(event, at)
        agent = event.agent or self._agent_of_session(event, at)
        if agent is None:
            return None, SessionSetup()
        if event.session_id is None:
            if event.setup != SessionSetup():
                self._register(event, agent, at)
            return agent, _setup_of(_last(self._of_agent(agent), at))
        before = _last(self._of_session(event.session_id), at)
        note = _note(event, agent, event.session_id, event.setup.over(_setup_of(before)))
        self._add(note, before, _last(self._of_agent(agent), at))
        registered = _setup_of(_last(self._of_registration(agent), at))
        return agent, _setup_of(note).over(registered)

    def write(self) -> None:
        """Write what the events told, unless it was written when they were read before."""
        known = self._uow.get(SETUP_NOTES, list(self._added)) if self._added else []
        pairs = zip(self._added.values(), known, strict=True)
        self._uow.setup_notes.add_all([note for note, old in pairs if old is None])

    def _learn_registration(
        self, event: HookEvent, at: datetime
    ) -> tuple[str | None, SessionSetup]:
        if event.agent is None:
            raise InvalidValue("agent", "its registration does not name it")
        if event.session_id is not None:
            before = _last(self._of_session(event.session_id), at)
            if before is None or before.agent != event.agent:
                self._add(_note(event, event.agent, event.session_id, _setup_of(before)))
        if event.setup != SessionSetup():
            # After the session's, as their ids are ordered: both are of one moment.
            self._register(event, event.agent, at)
        return event.agent, event.setup

    def _register(self, event: HookEvent, agent: str, at: datetime) -> None:
        before = _last(self._of_registration(agent), at)
        note = _note(event, agent, None, event.setup.over(_setup_of(before)))
        self._add(note, before, _last(self._of_agent(agent), at))

    def _agent_of_session(self, event: HookEvent, at: datetime) -> str | None:
        for session in (event.session_id, event.environment_session):
            note = _last(self._of_session(session), at) if session else None
            if note is not None:
                return note.agent
        return name_after_session(event.session_id) if event.session_id else None

    def _add(self, note: SetupNote, *before: SetupNote | None) -> None:
        """Add a note, unless all that were before it tell the same."""
        is_known = bool(before) and all(
            _note_content(each) == _note_content(note) for each in before
        )
        if is_known or note.id in self._added:
            return
        self._added[note.id] = note
        insort(self._of_agent(note.agent), note, key=_at)
        if note.session_id is None:
            insort(self._of_registration(note.agent), note, key=_at)
        else:
            insort(self._of_session(note.session_id), note, key=_at)

    def _of_session(self, session: str) -> list[SetupNote]:
        if session not in self._sessions:
            self._sessions[session] = self._uow.setup_notes.of_session(session)
        return self._sessions[session]

    def _of_registration(self, agent: str) -> list[SetupNote]:
        if agent not in self._registrations:
            self._registrations[agent] = self._uow.setup_notes.of_registration(agent)
        return self._registrations[agent]

    def _of_agent(self, agent: str) -> list[SetupNote]:
        """The notes of an agent from the first event on, and the one before that."""
        if agent not in self._agents:
            notes = self._uow.setup_notes
            earlier = notes.of_agent(agent, until=self._since, descending=True, limit=1)
            self._agents[agent] = [*earlier, *notes.of_agent(agent, since=self._since)]
        return self._agents[agent]


def _last(notes: list[SetupNote], at: datetime) -> SetupNote | None:
    place = bisect_right(notes, at, key=_at)
    return notes[place - 1] if place else None


def _note(event: HookEvent, agent: str, session_id: str | None, setup: SessionSetup) -> SetupNote:
    return SetupNote(
        id=f"stn_{event.id}" + ("" if session_id else "_r"),
        agent=agent,
        session_id=session_id,
        provider=setup.provider,
        model=setup.model,
        mode=setup.mode,
        at=event_time(event),
    )


def _setup_of(note: SetupNote | None) -> SessionSetup:
    return SessionSetup() if note is None else SessionSetup(note.provider, note.model, note.mode)


def _note_content(note: SetupNote | None) -> tuple[object, ...] | None:
    return None if note is None else (note.agent, note.session_id, _setup_of(note))
