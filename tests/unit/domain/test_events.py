"""What host-neutral events mean for the record."""

from typing import Any

import pytest

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.errors import InvalidValue
from herdbook.domain.record.events import HookEvent, Meaning, SessionSetup, interpret
from herdbook.domain.record.model import EventKind
from tests.cases import for_each

HASH = "0123456789abcdef0123456789abcdef01234567"


def event(meaning: Meaning | None, **more: Any) -> HookEvent:
    """An event of the agent `otter` in the session `s`."""
    known = {"id": "1", "at": 0, "name": "x", "agent": "otter", "session_id": "s", "cwd": "/app"}
    return HookEvent(meaning=meaning, **{**known, **more})


@pytest.mark.parametrize(
    ("meaning", "kind", "points"),
    [
        (Meaning.TOOL, EventKind.TOOL, 1),
        (Meaning.COMMAND, EventKind.COMMAND, 2),
        (Meaning.COMMIT, EventKind.COMMIT, 5),
    ],
)
def test_a_success_counts_as_the_rules_say(meaning: Meaning, kind: EventKind, points: int) -> None:
    """Its entry has an id that follows from the event's."""
    entry = interpret(event(meaning, commit_hash=HASH)).entry
    assert entry is not None
    assert (entry.id, entry.kind, entry.points) == ("sco_1", kind, points)
    assert (entry.agent, entry.session_id) == ("otter", "s")


def test_a_commit_is_recorded_with_its_hash_and_subject() -> None:
    """In its project, or in its folder where that is not known."""
    told = event(Meaning.COMMIT, commit_hash=HASH, subject="fix it")
    for project, expected in (("app", "app"), (None, "/app")):
        commit = interpret(told._replace(project=project)).commit
        assert commit is not None
        found = (commit.id, commit.project, commit.commit_hash, commit.task)
        assert found == ("com_1", expected, HASH, "fix it")


def test_an_uncounted_event_has_no_entry_and_tells_whose_session_it_is() -> None:
    """It begins, ends or fails something."""
    found = interpret(event(Meaning.UNCOUNTED))
    assert found == ("otter", "s", SessionSetup(), None, None)


def test_a_setup_is_completed_by_what_was_known() -> None:
    """What an event leaves open is as it was known."""
    known = SessionSetup("codex", "deep", AgentMode.PLAN)
    told = event(Meaning.TOOL, setup=SessionSetup(model="fast"))
    assert interpret(told, known).setup == SessionSetup("codex", "fast", AgentMode.PLAN)


def test_a_commit_without_an_agent_and_a_session_counts_for_nobody() -> None:
    """People commit, too."""
    assert interpret(event(Meaning.COMMIT, agent=None, session_id=None)).entry is None


def test_the_agent_is_the_named_one_else_the_session_s_else_called_after_it() -> None:
    """Whoever the hook's environment names comes first."""
    told = event(Meaning.TOOL, session_id="0123456789")
    assert interpret(told, agent="heron").agent == "otter"
    assert interpret(told._replace(agent=None), agent="heron").agent == "heron"
    assert interpret(told._replace(agent=None)).agent == "session-01234567"


def test_a_setup_of_another_provider_completes_nothing() -> None:
    """Its model is none of this one's."""
    told = SessionSetup("opencode", None, None)
    assert told.over(SessionSetup("claude", "opus", AgentMode.PLAN)) == told
    fast = SessionSetup(None, "fast").over(SessionSetup("claude", "opus"))
    assert fast == SessionSetup("claude", "fast")


def test_an_event_of_nobody_known_has_no_provider() -> None:
    """It is not taken for anybody's."""
    entry = interpret(event(Meaning.TOOL)).entry
    assert entry is not None
    assert (entry.provider, entry.model, entry.mode) == ("unknown", None, None)


@for_each(
    ("told", "field"),
    [
        (event(None), "event"),
        (event(Meaning.TOOL, agent=None, session_id=None), "agent"),
        (event(Meaning.COMMIT), "commit"),
        (event(Meaning.TOOL, id=""), "id"),
        (event(Meaning.TOOL, id="x" * 57), "id"),
        (event(Meaning.TOOL, id="ü"), "id"),
        (event(Meaning.TOOL, at=10**30), "at"),
        (event(Meaning.UNCOUNTED, at=10**30), "at"),
    ],
)
def test_what_cannot_be_applied_has_a_reason(told: HookEvent, field: str) -> None:
    """Named by the field that is at fault."""
    with pytest.raises(InvalidValue) as refused:
        interpret(told)
    assert refused.value.field == field
