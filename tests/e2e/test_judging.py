"""Who may judge whom, by the installed program: real commits, the installed hooks, every way in."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import desk
from tests.e2e.rpc_process import Pipes

STARTED = {"session_id": "s1", "hook_event_name": "SessionStart", "model": "claude-opus-4"}


def tell(person: Person, folder: Path, event: str, agent: str, **told: Any) -> None:
    """Let the hook of a host run in a folder."""
    given = json.dumps({**STARTED, "hook_event_name": event, **told})
    assert person.tries(folder, "hook", event, stdin=given, HERDBOOK_AGENT=agent).returncode == 0


def standing(person: Person, folder: Path, agent: str) -> dict[str, Any]:
    """The standing of an agent."""
    (found,) = person.asks(folder, "standing", agent)
    answer: dict[str, Any] = found
    return answer


def test_parties_that_grade_one_after_the_other_complete_a_retrospective(
    keeper: Person, app: Path
) -> None:
    """The agent in its own shell, the person in theirs; each once, whatever is tried again."""
    keeper.runs(app, "hooks", "install", "git")
    tell(keeper, app, "SessionStart", "otter")
    tell(keeper, app, "PostToolUse", "otter", tool_name="Bash")
    made = keeper.commits(app, "otter", "fix the clock")
    own = keeper.asks(
        app, "grade", "otter", made, "--self", "good", "--self-note", "mine", HERDBOOK_AGENT="otter"
    )
    assert own["retrospective"] is None
    again = keeper.tries(
        app, "grade", "otter", made, "--self", "excellence", HERDBOOK_AGENT="otter"
    )
    assert again.returncode == 4
    assert "the agent's own grade of otter's commit" in again.stderr
    words = ("grade", "otter", made, "--user", "excellence", "--user-note", "yours")
    assert keeper.asks(app, *words)["retrospective"]["task"] == "fix the clock"
    for attempt in (words, ("grade", "otter", made, "--self", "5", "--user", "5")):
        assert keeper.tries(app, *attempt).returncode == 4
    (retro,) = keeper.asks(app, "retro", "list")
    assert (retro["agent_note"], retro["user_note"]) == ("mine", "yours")
    assert (retro["score_before"], retro["score_after"]) == (60, 67)
    now = standing(keeper, app, "otter")
    assert (now["communication_score"], now["commits"]) == (67, 1)
    assert now["experience_points"] == sum((1, 5, 1))
    shown = keeper.runs(app, "activity", "list")
    assert "mine" in shown
    assert "fix the clock" in shown


def test_grades_and_bugs_carry_the_setup_of_the_work(keeper: Person, app: Path) -> None:
    """Of the commit that is graded, else what the agent is registered as, never a default."""
    keeper.runs(app, "hooks", "install", "git")
    keeper.runs(app, "agent", "add", "fox", "--provider", "codex", "--model", "gpt-x")
    keeper.runs(app, "grade", "fox", "HEAD", "--user", "good")
    keeper.runs(app, "bug", "fox")
    question = "SELECT kind, provider, model FROM score_events WHERE agent = 'fox'"
    rows = keeper.asks(app, "sql", question, "--area", "record")["rows"]
    assert {(each[1], each[2]) for each in rows} == {("codex", "gpt-x")}
    assert {each[0] for each in rows} == {"communication", "bug"}
    assert standing(keeper, app, "fox")["provider"] == "codex"


def test_no_agent_ends_a_halt_or_grades_as_the_user(person: Person, app: Path) -> None:
    """By its name, its session or its host's session, on the command line and over RPC."""
    person.runs(app, "agent", "add", "otter", HERDBOOK_SESSION="s1")
    person.registers(app, "heron")
    person.runs(app, "bug", "otter")
    attempts = (
        ("reinstate", "otter"),
        ("grade", "otter", "HEAD", "--user", "5"),
        ("grade", "otter", "HEAD", "--self", "5", "--user", "5"),
    )
    agents = (
        {"HERDBOOK_AGENT": "otter"},
        {"HERDBOOK_AGENT": "heron"},
        {"HERDBOOK_SESSION": "s1"},
        {"CLAUDE_CODE_SESSION_ID": "unheard"},
    )
    for variables in agents:
        for words in attempts:
            told = person.tries(app, *words, **variables)
            assert (told.returncode, told.stdout) == (2, ""), (words, variables)
            assert "acts here. Nothing was written" in told.stderr
        with Pipes(person, app, **variables) as pipes:
            for method, more in (("reinstate", {}), ("grade", {"commit": "HEAD", "user": "5"})):
                answer = pipes.call(method, agent="otter", **more)
                assert answer["code"] == 2001, (method, variables)
    now = standing(person, app, "otter")
    assert (now["active"], now["communication_score"]) == (False, 60)
    with Pipes(person, app) as pipes:
        assert pipes.call("reinstate", agent="otter")["active"] is True
    person.runs(app, "grade", "otter", "HEAD", "--self", "5", HERDBOOK_SESSION="s1")
    person.runs(app, "grade", "otter", "HEAD", "--user", "5")
    assert standing(person, app, "otter")["communication_score"] == 70


def test_an_agent_that_only_its_session_names_is_known_and_gives_its_own_grade(
    person: Person, app: Path
) -> None:
    """Nobody has registered it; its hooks count what it does for the same name."""
    session = "11112222-3333-4444-8555-666677778888"
    given = json.dumps({**STARTED, "session_id": session, "hook_event_name": "PostToolUse"})
    assert person.tries(app, "hook", "PostToolUse", stdin=given).returncode == 0
    own = "session-11112222"
    assert standing(person, app, own)["experience_points"] == 1
    host = {"CLAUDE_CODE_SESSION_ID": session}
    person.runs(app, "grade", own, "HEAD", "--self", "good", **host)
    assert person.tries(app, "grade", own, "HEAD", "--user", "good", **host).returncode == 2
    person.runs(app, "grade", own, "HEAD", "--user", "good")
    assert standing(person, app, own)["communication_score"] == 64


def test_the_tools_of_an_agent_judge_nobody(person: Person, app: Path) -> None:
    """There is none for it among them, and a call of one by its name is refused."""
    with desk(person, app) as sat:
        sat.does("introduce", name="otter")
        tools = {each.name for each in sat.portal.call(sat.client.list_tools).tools}
        assert not tools & {"grade", "reinstate", "bug"}
        assert sat.tries("reinstate", agent="otter").is_error


def test_a_misspelt_name_is_refused_with_the_nearest_and_makes_nobody(
    person: Person, app: Path
) -> None:
    """Known are those in the record, those registered here, and those only the spool knows."""
    tell(person, app, "PostToolUse", "heron")
    person.registers(app, "otter")
    for words in (
        ("standing", "oter"),
        ("bug", "oter"),
        ("reinstate", "oter"),
        ("grade", "oter", "HEAD", "--user", "good"),
    ):
        told = person.tries(app, *words)
        assert (told.returncode, told.stdout) == (3, "")
        assert "there is no agent 'oter'; did you mean otter" in told.stderr
    assert [each["agent"] for each in person.asks(app, "standing")] == ["heron"]
    assert standing(person, app, "otter")["active"] is True
    assert standing(person, app, "heron")["active"] is True
    assert "did you mean heron" in person.tries(app, "bug", "heronn").stderr
    assert person.asks(app, "bug", "heron")["active"] is False
    with Pipes(person, app) as pipes:
        assert pipes.call("standing", agent="nobody")["code"] == 3001
