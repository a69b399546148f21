"""Host-neutral hook events, and the rules that turn them into entries of the record.

`adapters/hosts` parses what each host sends.
"""

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Experience
from herdbook.domain.record.model import UNKNOWN_PROVIDER, Commit, ScoreEvent
from herdbook.domain.record.standing import (
    DEFAULTS,
    EntryContext,
    command_entry,
    commit_entry,
    tool_entry,
)

LONGEST_EVENT_ID = 56
"""So that ids of rows can be made of it."""
SHORT = 8
"""How much of a session's id names an agent that has no other name."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMED_ID = re.compile(r"ses_|[0-9a-f]{8}-[0-9a-f]{4}-7")


class Meaning(StrEnum):
    """What an event means.

    A `REWRITE` puts new commits in the place of old ones. A `REGISTRATION` tells what an agent was
    registered with. `UNCOUNTED` events are understood and count for nothing: something begins,
    ends, fails or is asked for.
    """

    TOOL = "tool"
    COMMAND = "command"
    COMMIT = "commit"
    REWRITE = "rewrite"
    REGISTRATION = "registration"
    UNCOUNTED = "uncounted"


COUNTED = (Meaning.TOOL, Meaning.COMMAND, Meaning.COMMIT)
"""What makes an entry of the ledger."""


class SessionSetup(NamedTuple):
    """What a session runs as, as far as it is known."""

    provider: str | None = None
    model: str | None = None
    mode: AgentMode | None = None

    def over(self, known: "SessionSetup") -> "SessionSetup":
        """This setup, completed by what was known, unless that is of another provider."""
        if None not in (self.provider, known.provider) and self.provider != known.provider:
            return self
        return SessionSetup(
            self.provider or known.provider, self.model or known.model, self.mode or known.mode
        )


class HookEvent(NamedTuple):
    """An event of a hook, and what was found out about it since.

    `at` counts microseconds. `name` is what the hook called it; `meaning` is None for an event that
    no host is known to send. `agent` is the agent that the hook's environment names.
    `environment_session` is the session of the hook's environment, where the host may name its own.
    `project`, and `commit_hash` and `subject` of a commit, are looked up in git from `cwd`; a hook
    may have named the hash itself. `rewrites` are the pairs of an old and a new commit.
    """

    id: str
    at: int
    name: str
    meaning: Meaning | None
    cwd: str = ""
    agent: str | None = None
    session_id: str | None = None
    environment_session: str | None = None
    setup: SessionSetup = SessionSetup()
    project: str | None = None
    commit_hash: str | None = None
    subject: str = ""
    rewrites: tuple[tuple[str, str], ...] = ()

    @property
    def place(self) -> str:
        """The project of its commits, or the folder where that is not known."""
        return self.project or self.cwd


class Interpretation(NamedTuple):
    """The result of an event: at most a ledger entry and a commit, and whose they are."""

    agent: str | None
    session_id: str | None
    setup: SessionSetup
    entry: ScoreEvent | None = None
    commit: Commit | None = None


def entry_id(event_id: str) -> str:
    """The id of the ledger entry of an event: the same each time the event is read."""
    return f"sco_{event_id}"


def commit_event_id(commit: Commit) -> str:
    """The id of the event that a commit was made from; another id if it was imported.

    Commits of older versions had the event's id as their own.
    """
    return commit.event_id or commit.id.removeprefix("com_")


def name_after_session(session: str) -> str:
    """The name of an agent that has no other."""
    # The ids of Codex and OpenCode begin with the time: their ends tell them apart.
    short = session[-SHORT:] if _TIMED_ID.match(session) else session[:SHORT]
    return f"session-{short}"


def name_of_agent(event: HookEvent) -> str | None:
    """The name of the agent that an event is of, as far as the event alone tells it."""
    if event.agent is not None or event.session_id is None:
        return event.agent
    return name_after_session(event.session_id)


def interpret(
    event: HookEvent,
    known: SessionSetup = SessionSetup(),  # noqa: B008 - a constant
    rules: Experience = DEFAULTS,
    *,
    agent: str | None = None,
) -> Interpretation:
    """Interpret an event; `known` is what is known of its setup, `agent` the agent of its session.

    An agent that the event names comes first; without any, it is named after the session. Raises
    InvalidValue with the reason if the event cannot be applied, now or ever: the answer depends on
    the arguments alone.
    """
    at = check_event(event)
    session = event.session_id
    agent = event.agent or agent or (None if session is None else name_after_session(session))
    setup = event.setup.over(known)
    result = Interpretation(agent, session, setup)
    # People commit too: a commit without an agent is no fault and counts for nobody.
    by_person = agent is None and event.meaning is Meaning.COMMIT
    if by_person or event.meaning not in COUNTED:
        return result
    if agent is None:
        raise InvalidValue("agent", f"{event.name} names neither an agent nor a session")
    context = EntryContext(
        agent=agent,
        at=at,
        id=entry_id(event.id),
        session_id=session,
        project=event.project,
        provider=setup.provider or UNKNOWN_PROVIDER,
        model=setup.model,
        mode=setup.mode,
    )
    if event.meaning is Meaning.TOOL:
        return result._replace(entry=tool_entry(context, rules=rules))
    if event.meaning is Meaning.COMMAND:
        return result._replace(entry=command_entry(context, rules=rules))
    commit = _commit(event, agent, rules)
    entry = commit_entry(context._replace(project=commit.project), rules=rules)
    return result._replace(entry=entry, commit=commit)


def check_event(event: HookEvent) -> datetime:
    """When it happened; raises InvalidValue with the reason if it can never be applied."""
    if not 0 < len(event.id) <= LONGEST_EVENT_ID:
        raise InvalidValue("id", f"must have 1 to {LONGEST_EVENT_ID} characters")
    if not event.id.isascii() or not event.id.isprintable():
        raise InvalidValue("id", "must be of printable ASCII characters")
    at = event_time(event)
    if event.meaning is None:
        raise InvalidValue("event", f"{event.name!r} is not known; it is kept as it is")
    return at


def event_time(event: HookEvent) -> datetime:
    """When it happened; raises InvalidValue for a time after the year 9999."""
    try:
        return _EPOCH + timedelta(microseconds=event.at)
    except OverflowError as error:
        raise InvalidValue("at", f"{event.at} is no time this side of the year 9999") from error


def _commit(event: HookEvent, agent: str, rules: Experience) -> Commit:
    if event.commit_hash is None:
        raise InvalidValue("commit", "git no longer knows which commit it was")
    return Commit(
        id=f"com_{event.id}",
        agent=agent,
        project=event.place,
        commit_hash=event.commit_hash,
        task=event.subject,
        experience_gained=rules.commit,
        at=event_time(event),
        event_id=event.id,
    )
