"""What the hooks of coding agents and of git tell, and what it means for the record.

A hook writes down what it was given and leaves; only here is it read. What is said more than the
record needs is no fault: hosts add events and fields as they like.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Experience
from herdbook.domain.record.model import Commit, ScoreEvent
from herdbook.domain.record.standing import (
    DEFAULTS,
    EntryContext,
    command_entry,
    commit_entry,
    tool_entry,
)
from herdbook.domain.values import NAME

AGENT, SESSION = "HERDBOOK_AGENT", "HERDBOOK_SESSION"
TOOL, COMMAND, COMMITTED = "tool", "command", "commit"
UNCOUNTED = "uncounted"
"""What is understood and counts for nothing: that something begins, ends, fails or is asked for."""

PROVIDERS = {"claude": "claude", "claude-code": "claude", "codex": "codex", "opencode": "opencode"}
"""How a host is named before the colon of an event, and the provider it stands for."""
MEANINGS: Mapping[str, str] = {
    **dict.fromkeys(("PostToolUse", "tool.execute.after"), TOOL),
    "command.executed": COMMAND,
    "post-commit": COMMITTED,
    **dict.fromkeys(
        (
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUseFailure",
            "SubagentStop",
            "Stop",
            "SessionEnd",
            "session.created",
            "session.idle",
            "session.deleted",
            "message.part.updated",
            "post-rewrite",
            "pre-push",
        ),
        UNCOUNTED,
    ),
}
SHORT = 8
"""How much of a session's id names an agent that has no other name."""
LONGEST_EVENT_ID = 56
"""So that ids of rows can be made of it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HASH = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_TIMED = re.compile(r"ses_|[0-9a-f]{8}-[0-9a-f]{4}-7")
_GIT = ("post-commit", "post-rewrite", "pre-push")


class HookEvent(NamedTuple):
    """What a hook wrote down, and what was found out about it since.

    `at` counts microseconds. The project, and the hash and subject of a commit, follow from `cwd`
    and are known to nobody but git.
    """

    id: str
    at: int
    event: str
    cwd: str = ""
    env: Mapping[str, str] = {}
    raw: Any = None
    project: str | None = None
    commit_hash: str | None = None
    subject: str = ""


class SessionSetup(NamedTuple):
    """What a session runs as, as far as it was told."""

    provider: str | None = None
    model: str | None = None
    mode: AgentMode | None = None


class Interpretation(NamedTuple):
    """What an event stands for: at most an entry of the ledger and a commit, and whose it is."""

    agent: str | None
    session_id: str | None
    setup: SessionSetup
    entry: ScoreEvent | None = None
    commit: Commit | None = None


def entry_id(event_id: str) -> str:
    """The id of the ledger entry that comes of an event: the same each time it is read."""
    return f"sco_{event_id}"


def interpret(
    event: HookEvent,
    known: SessionSetup = SessionSetup(),  # noqa: B008 - a constant
    rules: Experience = DEFAULTS,
) -> Interpretation:
    """Say what an event means; `known` is what earlier events told of its session.

    InvalidValue gives the reason why it cannot be applied, now or ever: it depends on nothing else.
    """
    _check(event)
    name, provider = _split_event_name(event.event)
    session = find_session(event)
    agent = _text(event.env.get(AGENT)) or (None if session is None else _short(session))
    setup = SessionSetup(
        provider or _host(event) or known.provider,
        _model(event) or known.model,
        _mode(event) or known.mode,
    )
    meaning = Interpretation(agent, session, setup)
    if name not in MEANINGS:
        raise InvalidValue("event", f"{event.event!r} is not known; it is kept as it is")
    if MEANINGS[name] == UNCOUNTED or _failed(event) or (agent is None and name in _GIT):
        return meaning
    if agent is None:
        raise InvalidValue("agent", f"{event.event} names neither an agent nor a session")
    on = EntryContext(
        agent=agent,
        at=event_time(event),
        id=entry_id(event.id),
        session_id=session,
        project=event.project,
        provider=setup.provider or "claude",
        model=setup.model,
        mode=setup.mode,
    )
    if MEANINGS[name] == TOOL:
        return meaning._replace(entry=tool_entry(on, rules=rules))
    if MEANINGS[name] == COMMAND:
        return meaning._replace(entry=command_entry(on, rules=rules))
    commit = _commit(event, agent, rules)
    entry = commit_entry(on._replace(project=commit.project), rules=rules)
    return meaning._replace(entry=entry, commit=commit)


def event_time(event: HookEvent) -> datetime:
    """When it happened."""
    try:
        return _EPOCH + timedelta(microseconds=event.at)
    except OverflowError as error:
        raise InvalidValue("at", f"{event.at} is no time this side of the year 9999") from error


def find_session(event: HookEvent) -> str | None:
    """The session in which it happened: as the host says, else as the environment does."""
    raw = _fields(event.raw)
    for holder in (raw, _fields(raw.get("properties")), _fields(raw.get("input"))):
        for key in ("session_id", "sessionID", "sessionId"):
            if found := _text(holder.get(key)):
                return found
    return _text(event.env.get(SESSION))


def is_commit(event: HookEvent) -> bool:
    """Whether it tells of a commit, so that git has to be asked for its hash."""
    return _split_event_name(event.event)[0] == "post-commit"


def reported_commit_hash(event: HookEvent) -> str | None:
    """The hash of the commit, if the hook has written it down."""
    told = event.raw
    if isinstance(told, Mapping):
        keys = ("commit_hash", "commit", "arguments", "input")
        told = " ".join(str(told[key]) for key in keys if key in told)
    found = _HASH.search(told) if isinstance(told, str) else None
    return None if found is None else found[0]


def _check(event: HookEvent) -> None:
    if not 0 < len(event.id) <= LONGEST_EVENT_ID:
        raise InvalidValue("id", f"must have 1 to {LONGEST_EVENT_ID} characters")
    if not event.id.isascii() or not event.id.isprintable():
        raise InvalidValue("id", "must be of printable ASCII characters")
    event_time(event)


def _split_event_name(text: str) -> tuple[str, str | None]:
    """The name of the event, and the provider of the host that tells it, if that is plain."""
    host, colon, name = text.partition(":")
    if colon and host in PROVIDERS:
        return name, PROVIDERS[host]
    if colon and host == "git":
        return name, None
    return text, "opencode" if "." in text else None


def _commit(event: HookEvent, agent: str, rules: Experience) -> Commit:
    commit_hash = event.commit_hash or reported_commit_hash(event)
    if commit_hash is None:
        raise InvalidValue("commit", "git no longer tells which commit it was")
    return Commit(
        id=f"com_{event.id}",
        agent=agent,
        project=event.project or event.cwd,
        commit_hash=commit_hash,
        task=event.subject,
        experience_gained=rules.commit,
        at=event_time(event),
    )


def _short(session: str) -> str:
    # The ids of Codex and OpenCode begin with the time: what tells them apart is their end.
    short = session[-SHORT:] if _TIMED.match(session) else session[:SHORT]
    return f"session-{short}"


def _host(event: HookEvent) -> str | None:
    """Claude Code and Codex tell the same events; what tells them apart is where they keep them."""
    transcript = _fields(event.raw).get("transcript_path")
    parts = transcript.split("/") if isinstance(transcript, str) else []
    return next((name for name in ("codex", "claude") if f".{name}" in parts), None)


def _model(event: HookEvent) -> str | None:
    told = _fields(event.raw).get("model")
    return _text(told) or _text(_fields(told).get("id"))


def _mode(event: HookEvent) -> AgentMode | None:
    raw = _fields(event.raw)
    return AgentMode.PLAN if "plan" in (raw.get("permission_mode"), raw.get("agent")) else None


def _failed(event: HookEvent) -> bool:
    """OpenCode tells of a command that went wrong as of any other, with its exit code beside."""
    code = _fields(event.raw).get("exit")
    return isinstance(code, int) and code != 0


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    """What can be a name; hosts tell all kinds of things."""
    try:
        return None if value is None else str(NAME.check("name", value))
    except InvalidValue:
        return None
