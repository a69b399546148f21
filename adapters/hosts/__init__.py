"""Parses the events that hooks of coding agents and of git send, one module per host.

A hook stores what it was given and exits; only here is it parsed. Unknown fields are no error:
hosts add events and fields as they like.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from herdbook.adapters.hosts import claude_code, codex, git, opencode, registration
from herdbook.adapters.hosts.payload import as_name
from herdbook.domain.agents.host_sessions import SESSION_VARIABLES
from herdbook.domain.record.events import HookEvent, Meaning, SessionSetup

T = TypeVar("T")

AGENT, SESSION = "HERDBOOK_AGENT", "HERDBOOK_SESSION"
MEANINGS: Final[Mapping[str, Meaning]] = {
    **claude_code.MEANINGS,
    **opencode.MEANINGS,
    **git.MEANINGS,
    registration.EVENT: Meaning.REGISTRATION,
}
"""Every known event, and what it means."""
PROVIDERS: Final = {
    "claude": "claude",
    "claude-code": "claude",
    "codex": "codex",
    "opencode": "opencode",
    "git": None,
}
"""The hosts that may be named before the colon of an event, and the providers they stand for."""

# The first that finds a value wins: a transcript below folders of both is Codex's.
_PARSERS: Final = (codex.parse, claude_code.parse, opencode.parse)


def parse_event(  # noqa: PLR0917 - the fields of a spooled event, in its order
    id: str,  # noqa: A002 - the spool's own name for it
    at: int,
    event: str,
    cwd: str = "",
    env: Mapping[str, str] | None = None,
    raw: object = None,
) -> HookEvent:
    """The host-neutral event; raises nothing, whatever a host sent.

    All parsers read the payload and the first that finds a value wins, because hosts forward one
    another's payloads and an event need not name its host.
    """
    env = env or {}
    name, provider = _split_name(event)
    payloads = [parse(raw) for parse in _PARSERS]
    session = _first(each.session_id for each in payloads)
    meaning = MEANINGS.get(name)
    if meaning is Meaning.REGISTRATION:
        return registration.parse(HookEvent(id, at, event, meaning, cwd), raw)
    if session is None:
        session, started_by = _environment_session(env)
        provider = provider or (started_by if name in git.MEANINGS else None)
    if meaning is not None and any(each.failed for each in payloads):
        meaning = Meaning.UNCOUNTED
    return HookEvent(
        id=id,
        at=at,
        name=event,
        meaning=meaning,
        cwd=cwd,
        agent=as_name(env.get(AGENT)),
        session_id=session,
        environment_session=as_name(env.get(SESSION)),
        setup=SessionSetup(
            provider or _first(each.provider for each in payloads),
            _first(each.model for each in payloads),
            _first(each.mode for each in payloads),
        ),
        commit_hash=git.commit_hash(raw) if meaning is Meaning.COMMIT else None,
        rewrites=git.rewritten_commits(raw) if meaning is Meaning.REWRITE else (),
    )


def _environment_session(env: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The session that the environment of a hook names, and its provider if that is known."""
    for variable, provider in SESSION_VARIABLES.items():
        if session := as_name(env.get(variable)):
            return session, provider
    return as_name(env.get(SESSION)), None


def _split_name(event: str) -> tuple[str, str | None]:
    """The name of the event without its host, and the provider if the event tells it."""
    host, colon, name = event.partition(":")
    if colon and host in PROVIDERS:
        return name, PROVIDERS[host]
    return event, "opencode" if "." in event else None


def _first(values: Iterable[T | None]) -> T | None:
    return next((each for each in values if each is not None), None)
