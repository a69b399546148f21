"""What events of hosts mean for the record, from their payloads on."""

from typing import Any

import pytest

from herdbook.adapters.hosts import MEANINGS, parse_event
from herdbook.domain.agents.model import AgentMode
from herdbook.domain.errors import InvalidValue
from herdbook.domain.record.events import HookEvent, SessionSetup, interpret
from herdbook.domain.record.model import EventKind

HASH = "0123456789abcdef0123456789abcdef01234567"


def told(event: str, raw: object = None, **more: Any) -> HookEvent:
    """An event of the agent `otter` in the session `s`."""
    env = {"HERDBOOK_AGENT": "otter", "HERDBOOK_SESSION": "s"}
    return parse_event(**{"id": "1", "at": 0, "event": event, "env": env, "raw": raw, **more})


@pytest.mark.parametrize(
    ("event", "kind", "points"),
    [
        ("PostToolUse", EventKind.TOOL, 1),
        ("codex:PostToolUse", EventKind.TOOL, 1),
        ("tool.execute.after", EventKind.TOOL, 1),
        ("command.executed", EventKind.COMMAND, 2),
        ("post-commit", EventKind.COMMIT, 5),
    ],
)
def test_what_counts_counts_as_the_rules_say(event: str, kind: EventKind, points: int) -> None:
    """Its entry has an id that follows from the event's."""
    entry = interpret(told(event, {"commit": HASH}, cwd="/app")).entry
    assert entry is not None
    assert (entry.id, entry.kind, entry.points) == ("sco_1", kind, points)


@pytest.mark.parametrize("event", [name for name, what in MEANINGS.items() if what == "uncounted"])
def test_what_begins_ends_or_fails_counts_nothing(event: str) -> None:
    """It is understood all the same, and tells whose session it is."""
    meaning = interpret(told(event))
    assert (meaning.entry, meaning.commit) == (None, None)
    assert (meaning.agent, meaning.session_id) == ("otter", "s")


@pytest.mark.parametrize(("code", "counts"), [(3, False), (-9, False), (0, True), (None, True)])
def test_a_command_that_ended_with_an_error_is_no_success(code: object, counts: bool) -> None:
    """OpenCode tells of it as of any other, with its exit code beside."""
    raw = {"tool": "bash", "sessionID": "s", "exit": code}
    assert (interpret(told("tool.execute.after", raw)).entry is not None) is counts


@pytest.mark.parametrize(
    "raw",
    [
        {"session_id": "host"},
        {"sessionID": "host"},
        {"properties": {"sessionID": "host"}},
        {"input": {"sessionID": "host"}},
    ],
)
def test_the_session_is_the_host_s_own_where_it_tells_one(raw: object) -> None:
    """Each host in its own words."""
    assert interpret(told("Stop", raw)).session_id == "host"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("01a1e345-78a1-7c82-8746-9bda1e5f360b", "01a1e345-a6da-7bc3-90b0-cfe7e5996da3"),
        ("ses_e1cb86dd5ffeVvQf5VhypOXGeE", "ses_e1cb7aea2ffe0eUcbtPvA1upGE"),
        ("90e7efea-86df-4ee2-8541-ede9db020954", "9d24ed89-86df-4ee2-8541-ede9db020954"),
    ],
)
def test_sessions_that_began_in_the_same_minute_are_two_agents(one: str, other: str) -> None:
    """Also where the ids of a host begin with the time."""
    first, second = (
        interpret(told("Stop", {"session_id": each}, env={})).agent for each in (one, other)
    )
    assert first != second


@pytest.mark.parametrize(
    ("raw", "known", "setup"),
    [
        ({"model": "deep"}, SessionSetup(), SessionSetup(None, "deep")),
        ({"model": {"id": "deep"}}, SessionSetup(), SessionSetup(None, "deep")),
        ({"permission_mode": "plan"}, SessionSetup(), SessionSetup(None, None, AgentMode.PLAN)),
        (
            {"agent": "plan", "model": "deep"},
            SessionSetup(),
            SessionSetup(None, "deep", AgentMode.PLAN),
        ),
        ({"transcript_path": "/people/me/.codex/s.jsonl"}, SessionSetup(), SessionSetup("codex")),
        ({"transcript_path": "/people/me/.claude/s.jsonl"}, SessionSetup(), SessionSetup("claude")),
        (
            None,
            SessionSetup("codex", "deep", AgentMode.PLAN),
            SessionSetup("codex", "deep", AgentMode.PLAN),
        ),
    ],
)
def test_a_session_s_setup_is_what_it_told_last(
    raw: object, known: SessionSetup, setup: SessionSetup
) -> None:
    """What an event leaves open is as it was known."""
    assert interpret(told("PostToolUse", raw), known).setup == setup


def test_a_commit_of_nobody_in_particular_counts_for_nobody() -> None:
    """People commit, too."""
    assert interpret(told("post-commit", env={})).entry is None


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (told("Unheard"), "event"),
        (told("PostToolUse", env={}), "agent"),
        (told("post-commit", cwd="/app"), "commit"),
        (told("PostToolUse", id=""), "id"),
        (told("PostToolUse", id="x" * 57), "id"),
        (told("PostToolUse", id="ü"), "id"),
        (told("PostToolUse", at=10**30), "at"),
    ],
)
def test_what_cannot_be_applied_has_a_reason(event: HookEvent, field: str) -> None:
    """Named by the field that is at fault."""
    with pytest.raises(InvalidValue) as refused:
        interpret(event)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (f"{HASH}\n", HASH),
        ({"commit": HASH}, HASH),
        ({"arguments": [], "input": f"{HASH}\n"}, HASH),
        ({"tree": HASH}, None),
        ("cafe", None),
        (None, None),
    ],
)
def test_a_hook_may_tell_the_hash_of_its_commit(raw: object, found: str | None) -> None:
    """As text, or under its name."""
    assert told("post-commit", raw).commit_hash == found


def test_only_a_commit_has_a_hash() -> None:
    """A tool may be given a text with a hash in it."""
    assert told("PostToolUse", {"input": f"git show {HASH}"}).commit_hash is None


@pytest.mark.parametrize(
    ("event", "provider"),
    [
        ("claude:Stop", "claude"),
        ("claude-code:Stop", "claude"),
        ("codex:Stop", "codex"),
        ("opencode:session.idle", "opencode"),
        ("session.idle", "opencode"),
        ("git:pre-push", None),
        ("Stop", None),
    ],
)
def test_an_event_may_name_its_host(event: str, provider: str | None) -> None:
    """Before a colon, or by a name that only one host has."""
    parsed = told(event)
    assert (parsed.setup.provider, parsed.meaning) == (provider, "uncounted")
