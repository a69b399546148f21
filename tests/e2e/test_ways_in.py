"""Deeds and questions of the plan, of talk and of logs, as people and programs reach them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Person
from tests.e2e.rpc_process import Pipes


class Herd:
    """A plan with agents, and the two ways to ask about it."""

    def __init__(self, person: Person, folder: Path, pipes: Pipes) -> None:
        self.person = person
        self.folder = folder
        self.pipes = pipes

    def asks(self, *words: str, **variables: str) -> Any:
        """What a command answers."""
        return self.person.asks(self.folder, *words, **variables)

    def calls(self, method: str, **params: Any) -> Any:
        """What a method answers, or its error."""
        return self.pipes.call(method, **params)

    def adds(self, *words: str) -> str:
        """The id of what a command adds."""
        return str(self.asks(*words)["id"])

    def refuses(self, *words: str) -> str:
        """The sentence with which the installed program refuses, with exit code 2."""
        told = self.person.tries(self.folder, *words)
        assert told.returncode == 2, (told.stdout, told.stderr)
        return told.stderr


@pytest.fixture
def herd(person: Person, app: Path) -> Iterator[Herd]:
    """Somebody's repository with two agents, at the command line and over JSON-RPC."""
    for name in ("otter", "lynx"):
        person.runs(app, "agent", "add", name)
    with Pipes(person, app) as pipes:
        yield Herd(person, app, pipes)


def ids(rows: list[dict[str, Any]]) -> list[str]:
    """The ids of rows."""
    return [row["id"] for row in rows]


def test_the_projects_of_an_initiative(herd: Herd) -> None:
    """They are set by difference, listed, and emptied on purpose only."""
    initiative = herd.adds("initiative", "add", "User auth")
    app, site, tool = (
        herd.adds("project", "add", name, "--url", f"https://example.com/{name}")
        for name in ("app", "site", "tool")
    )
    assert ids(herd.asks("initiative", "set-projects", initiative, "app", "site")) == [app, site]
    before = herd.asks("sql", "SELECT id, project_id FROM initiative_projects")
    found = herd.calls("initiative.set-projects", initiative=initiative, project_ids=[site, tool])
    assert set(ids(found)) == {site, tool}
    after = herd.asks("sql", "SELECT id, project_id FROM initiative_projects")
    assert [row in before["rows"] for row in after["rows"]].count(True) == 1
    assert set(ids(herd.asks("initiative", "projects", initiative))) == {site, tool}
    assert set(ids(herd.calls("initiative.projects", initiative=initiative))) == {site, tool}
    assert "project_ids" in herd.refuses("initiative", "set-projects", initiative)
    assert herd.asks("initiative", "set-projects", initiative, "--none") == []


def test_what_waits_for_what(herd: Herd) -> None:
    """Both ways, of tasks and of phases."""
    initiative = herd.adds("initiative", "add", "login")
    first, second = (
        herd.adds("phase", "add", name, "--initiative", initiative) for name in ("one", "two")
    )
    early, late = (herd.adds("task", "add", name) for name in ("early", "late"))
    herd.asks("phase", "after", second, first)
    herd.asks("task", "after", late, early)
    for words, expected in (
        (("phase", "waits-for", second), first),
        (("phase", "dependents", first), second),
        (("task", "waits-for", late), early),
        (("task", "dependents", early), late),
    ):
        noun, verb, key = words
        assert ids(herd.asks(*words)) == [expected]
        assert ids(herd.calls(f"{noun}.{verb}", **{noun: key})) == [expected]


def test_the_root_page_is_made_once_and_pages_form_a_tree(herd: Herd) -> None:
    """A page below itself is refused, whoever asks."""
    initiative = herd.adds("initiative", "add", "login")
    root = herd.asks("page", "root", initiative)
    assert (root["title"], root["parent_page_id"]) == ("login", None)
    assert herd.calls("page.root", initiative=initiative, title="x") == root
    below = herd.adds("page", "add", "s", "--initiative", initiative, "--parent-page", root["id"])
    told = herd.person.tries(herd.folder, "page", "set", root["id"], "--parent-page", below)
    assert told.returncode == 1
    assert "be below one another" in told.stderr
    error = herd.calls("page.set", id=root["id"], parent_page=below)
    assert error["data"]["type"] == "CycleRefused"
    assert herd.asks("page", "show", root["id"]) == root


def test_logs_of_several_agents_and_of_one_that_is_gone(herd: Herd) -> None:
    """They are counted, printed together, found by name and by id, and removed."""
    for name in ("otter", "lynx"):
        herd.asks("log", "add", f"of {name}", "--agent", name)
    gone = herd.asks("agent", "show", "lynx")["id"]
    lines = herd.person.runs(herd.folder, "log", "list", "--agents", "lynx", "otter")
    assert lines == "of lynx\nof otter\n"
    told = herd.calls("log.list", agents=["otter", "lynx"])
    assert [chunk["content"] for chunk in told] == ["of otter", "of lynx"]
    herd.asks("agent", "rm", "lynx")
    for name in ("lynx", gone, gone[:10]):
        assert herd.person.runs(herd.folder, "log", "list", name) == "of lynx\n"
        assert [each["content"] for each in herd.calls("log.list", agent=name)] == ["of lynx"]
    (summary,) = herd.asks("log", "sessions", "lynx")
    assert summary == {"agent_id": gone, "agent_name": "lynx", "sessions": 1, "removed": True}
    named = {each["agent_name"]: each["removed"] for each in herd.calls("log.sessions")}
    assert named == {"otter": False, "lynx": True}
    assert "removed" in herd.person.runs(herd.folder, "log", "sessions")
    assert herd.calls("log.rm", agent="lynx") == {"removed": 1}
    assert herd.person.tries(herd.folder, "log", "rm", gone).returncode == 3
    assert "follow" in herd.refuses("log", "list", "--agents", "otter", "lynx", "--follow")
    assert herd.person.runs(herd.folder, "log", "list") == "of otter\n"


def test_a_conversation_is_about_the_phase_and_initiative_of_its_task(herd: Herd) -> None:
    """It is listed by each of them, and counted by who asks."""
    initiative = herd.adds("initiative", "add", "login")
    phase = herd.adds("phase", "add", "one", "--initiative", initiative)
    task = herd.adds("task", "add", "parse", "--phase", phase)
    asked = herd.asks(
        "conversation", "add", "port?", "--to", "lynx", "--agent", "otter", "--task", task
    )
    assert (asked["phase_id"], asked["initiative_id"]) == (phase, initiative)
    about = herd.calls("conversation.add", question="why?", to="lynx", agent="otter", phase=phase)
    assert (about["phase_id"], about["initiative_id"]) == (phase, initiative)
    given = herd.asks(
        "conversation", "add", "so?", "--to", "otter", "--agent", "lynx", "--initiative", initiative
    )
    assert (given["phase_id"], given["initiative_id"]) == (None, initiative)
    assert len(herd.asks("conversation", "list", "--initiative", initiative)) == 3
    assert len(herd.calls("conversation.list", phase=phase)) == 2
    assert herd.asks("conversation", "count", "otter", "lynx") == {"otter": 2, "lynx": 1}
    assert herd.calls("conversation.count", agent_ids=["lynx"]) == {"lynx": 1}


def test_a_chat_about_a_phase_tells_its_change_sets(herd: Herd) -> None:
    """By hand, and when a proposal of its agent is accepted."""
    initiative = herd.adds("initiative", "add", "login")
    phase = herd.adds("phase", "add", "one", "--initiative", initiative)
    chat = herd.asks("chat", "add", "phase", phase[:12], "--agent", "otter")
    assert (chat["target_type"], chat["target_id"]) == ("phase", phase)
    assert herd.calls("chat.add", target_type="phase", target_id=phase)["id"] == chat["id"]
    (proposal,) = _proposals(herd, initiative, 1)
    change_set = herd.asks("proposal", "accept", proposal)["id"]
    herd.asks("chat", "post", chat["id"], "assistant", "did it", "--change-set", change_set[:12])
    said = {"chat_session": chat["id"], "role": "assistant", "content": "and more"}
    herd.calls("chat.post", change_set=change_set, **said)
    history = herd.asks("chat", "history", chat["id"])
    assert [(each["role"], each["change_set_id"]) for each in history] == [
        ("system", change_set),
        ("assistant", change_set),
        ("assistant", change_set),
    ]
    later = herd.asks("chat", "history", chat["id"], "--after", history[1]["id"])
    assert ids(later) == [history[2]["id"]]


def _proposals(herd: Herd, initiative: str, number: int) -> list[str]:
    """Proposals of otter for new tasks."""
    about = {"target_type": "task", "agent": "otter", "initiative": initiative}
    return [
        herd.calls("proposal.add", title=f"t{n}", summary="s", content="c", **about)["id"]
        for n in range(number)
    ]


def test_several_proposals_are_decided_at_once(herd: Herd) -> None:
    """By id or by agent, all or none, and counted by status."""
    initiative = herd.adds("initiative", "add", "login")
    keys = _proposals(herd, initiative, 6)
    change_set = herd.asks("proposal", "accept-all", *keys[:2])
    assert change_set["summary"] == "t0; t1"
    dismissed = herd.calls("proposal.dismiss-all", proposal_ids=keys[2:4])
    assert [each["status"] for each in dismissed] == ["dismissed", "dismissed"]
    counted = {"pending": 2, "accepted": 2, "dismissed": 2}
    assert herd.asks("proposal", "count", "otter") == counted
    assert herd.calls("proposal.count", agent="otter") == counted
    assert "is accepted already" in herd.refuses("proposal", "dismiss-all", keys[0], keys[4])
    assert "not both" in herd.refuses("proposal", "dismiss-all")
    assert ids(herd.asks("proposal", "dismiss-all", "--agent", "otter")) == keys[4:]
    assert herd.calls("proposal.count", agent="otter")["pending"] == 0


def test_an_errand_has_the_id_its_caller_chose(herd: Herd) -> None:
    """Once."""
    herd.adds("project", "add", "app", "--url", "https://example.com/app")
    words = ("errand", "add", "fix", "--branch", "typo", "--project", "app", "--id")
    assert herd.asks(*words, "my-1")["id"] == "my-1"
    assert herd.person.tries(herd.folder, *words, "my-1").returncode == 4
    about = {"description": "fix", "branch": "b", "project": "app"}
    assert herd.calls("errand.add", id="my-2", **about)["id"] == "my-2"


def test_one_question_tells_what_still_needs_a_response(herd: Herd) -> None:
    """Whether it was read or not."""
    first, second, third = (
        herd.adds("message", "add", text, "--to", "otter", "--requires-response")
        for text in ("one", "two", "three")
    )
    herd.adds("message", "add", "just so", "--to", "otter")
    herd.asks("message", "read", first)
    herd.asks("message", "reply", second, "done", "--agent", "otter")
    assert ids(herd.asks("message", "unanswered")) == [first, third]
    assert ids(herd.calls("message.unanswered", to="otter")) == [first, third]
    assert herd.calls("message.unanswered", to="lynx") == []


def test_accounts_whose_exhaustion_is_over_are_freed(herd: Herd) -> None:
    """All at once."""
    account = herd.adds("account", "add", "me@example.com")
    herd.asks("account", "exhaust", account, "--until", "2020-01-01T00:00Z")
    assert ids(herd.asks("account", "free-expired")) == [account]
    assert herd.calls("account.free-expired") == []
    assert herd.asks("account", "show", account)["is_exhausted"] is False


def test_what_happened_to_one_row(herd: Herd) -> None:
    """By its id, also after it was removed."""
    task = herd.adds("task", "add", "parse")
    herd.asks("task", "set", task, "--name", "parse it")
    assert [each["op"] for each in herd.asks("journal", "row", task[:10])] == ["add", "save"]
    herd.asks("task", "rm", task)
    assert [each["op"] for each in herd.calls("journal.row", id=task)][-1] == "remove"
    assert "prefix" in herd.refuses("journal", "row", "nothing")
    assert herd.person.tries(herd.folder, "journal", "row", "tsk_nothing").returncode == 3


def test_a_fetch_of_a_project_is_noted(herd: Herd) -> None:
    """By who fetched it."""
    project = herd.adds("project", "add", "app", "--url", "https://example.com/app")
    at = herd.asks("project", "fetched", "app", "--at", "2026-01-01T00:00Z")["last_fetched_at"]
    assert at.startswith("2026-01-01")
    assert herd.calls("project.fetched", project=project)["last_fetched_at"] > at


def test_set_cannot_walk_round_what_a_use_case_guards(herd: Herd) -> None:
    """It names the command to use, on the command line and over JSON-RPC; nothing changes."""
    initiative = herd.adds("initiative", "add", "login")
    phase = herd.adds("phase", "add", "one", "--initiative", initiative)
    herd.adds("project", "add", "app", "--url", "https://example.com/app")
    (proposal,) = _proposals(herd, initiative, 1)
    rows = {
        "proposal": proposal,
        "errand": herd.adds("errand", "add", "fix", "--branch", "b", "--project", "app"),
        "message": herd.adds("message", "add", "hi", "--to", "otter"),
        "conversation": herd.adds("conversation", "add", "?", "--to", "lynx", "--agent", "otter"),
        "chat": herd.adds("chat", "add", "phase", phase),
        "account": herd.adds("account", "add", "me@example.com"),
    }
    herd.asks("errand", "move", rows["errand"], "merged")
    herd.asks("message", "reply", rows["message"], "ok")
    herd.asks("conversation", "answer", rows["conversation"], "yes")
    herd.asks("account", "exhaust", rows["account"], "--until", "2031-01-01T00:00Z")
    before = {noun: herd.asks(noun, "show", key) for noun, key in rows.items()}
    for noun, option, value, command in (
        ("proposal", "--status", "accepted", "proposal accept"),
        ("errand", "--status", "active", "errand move"),
        ("message", "--status", "pending", "message reply"),
        ("conversation", "--answer", "silently", "conversation answer"),
        ("conversation", "--clear", "answer", "conversation answer"),
        ("conversation", "--status", "pending", "conversation answer"),
        ("chat", "--status", "closed", "chat close"),
        ("account", "--is-exhausted", "no", "account free"),
        ("account", "--clear", "exhausted_until", "account free"),
    ):
        said = herd.refuses(noun, "set", rows[noun], option, value)
        assert f"`herdbook {command}`" in said
        params = {option.removeprefix("--").replace("-", "_"): value}
        error = herd.calls(f"{noun}.set", id=rows[noun], **params)
        assert f"`herdbook {command}`" in error["message"]
    assert {noun: herd.asks(noun, "show", key) for noun, key in rows.items()} == before


def test_an_initiative_gets_a_branch_from_its_name(herd: Herd) -> None:
    """Unless it is given; it can be changed and cleared."""
    auth = herd.asks("initiative", "add", "User auth")
    assert auth["branch"] == "herd/user-auth"
    assert herd.calls("initiative.add", name="User auth")["branch"] == "herd/user-auth-2"
    given = herd.asks("initiative", "add", "x", "--branch", "main", "--execution-mode", "yolo")
    assert (given["branch"], given["execution_mode"]) == ("main", "yolo")
    assert herd.asks("initiative", "set", auth["id"], "--clear", "branch")["branch"] is None


@pytest.mark.parametrize("way", ["done", "set"])
def test_a_phase_that_is_handed_in_keeps_its_merge_base(
    person: Person, app: Path, tmp_path: Path, way: str
) -> None:
    """Where the commits of the agent's worktree left the main one, whatever is committed later."""
    base = person.git(app, "rev-parse", "HEAD").strip()
    person.git(app, "worktree", "add", "--quiet", "-b", "work", str(tmp_path / "work"))
    initiative = person.asks(app, "initiative", "add", "User auth")["id"]
    words = ("phase", "add", "one", "--initiative", initiative, "--status", "approved")
    phase = person.asks(app, *words)["id"]
    person.runs(app, "task", "add", "parse", "--phase", phase)
    for folder in (tmp_path / "work", app):
        person.git(folder, "commit", "--quiet", "--allow-empty", f"--message={folder.name}")
    here = tmp_path / "work"
    if way == "done":
        person.runs(here, "agent", "add", "otter")
        person.runs(here, "claim", HERDBOOK_AGENT="otter")
        assert person.asks(here, "phase", "show", phase)["merge_base"] is None
        person.runs(here, "done", HERDBOOK_AGENT="otter")
    else:
        shown = person.asks(here, "phase", "set", phase, "--status", "pending_review")
        assert shown["merge_base"] == base
    kept = person.asks(app, "phase", "show", phase)
    assert (kept["status"], kept["merge_base"]) == ("pending_review", base)
    person.git(app, "merge", "--quiet", "--no-edit", "work")
    done = person.asks(app, "phase", "set", phase, "--status", "completed")
    assert done["merge_base"] == base


def test_a_phase_has_no_merge_base_where_nothing_was_committed(person: Person, app: Path) -> None:
    """On the branch that it would be merged into."""
    initiative = person.asks(app, "initiative", "add", "x")["id"]
    phase = person.asks(app, "phase", "add", "one", "--initiative", initiative)["id"]
    done = person.asks(app, "phase", "set", phase, "--status", "completed")
    assert (done["status"], done["merge_base"]) == ("completed", None)
