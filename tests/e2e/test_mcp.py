"""`herdbook mcp`, spoken to by the SDK's own client over real pipes."""

import json
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from herdbook.adapters.repository_folder import account_name
from herdbook.entrypoints.mcp.schemas import input_schema, output_schema
from herdbook.entrypoints.mcp.tools import TOOLS
from tests.e2e.conftest import Person
from tests.e2e.mcp_desk import Desk, desk, planned, some_arguments, told
from tests.e2e.warm_program import WarmProgram

BOTH_ERAS = {"lynx": "auto", "otter": "legacy"}
"""The protocol of 2026, in which a server asks by its answer, and the one before it."""


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory, warm: WarmProgram | None) -> Person:
    return Person(tmp_path_factory.mktemp("home"), warm)


@pytest.fixture(scope="module")
def app(person: Person, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return person.repository(tmp_path_factory.mktemp("work") / "app")


@pytest.fixture(scope="module")
def branch(person: Person, app: Path) -> Path:
    """A second worktree of the same repository, in a folder whose name must be escaped."""
    folder = app.parent / "lynx's branch ä"
    person.git(app, "worktree", "add", "--quiet", "-b", "lynx", str(folder))
    return folder


@pytest.fixture(scope="module")
def otter(person: Person, app: Path) -> Iterator[Desk]:
    """An agent that was started elsewhere, and whose root is the repository."""
    roots = [(app / "nowhere").as_uri(), app.as_uri()]
    with desk(person, app.parent, roots=roots, mode=BOTH_ERAS["otter"]) as sat:
        sat.does("introduce", name="otter", model="opus")
        yield sat


@pytest.fixture(scope="module")
def lynx(person: Person, branch: Path) -> Iterator[Desk]:
    """Another agent, in the other worktree, by the other protocol."""
    with desk(person, branch.parent, roots=[branch.as_uri()], mode=BOTH_ERAS["lynx"]) as sat:
        sat.does("introduce", name="lynx")
        yield sat


def test_the_client_sees_the_tools_as_they_are_declared(otter: Desk, lynx: Desk) -> None:
    """By either protocol, with their schemas and what they do to the world."""
    for sat in (otter, lynx):
        listed = {each.name: each for each in sat.portal.call(sat.client.list_tools).tools}
        assert list(listed) == [each.name for each in TOOLS]
        for tool in TOOLS:
            seen = listed[tool.name]
            assert seen.description == tool.description
            assert seen.input_schema == input_schema(tool)
            assert seen.output_schema == output_schema(tool)
            assert seen.annotations is not None
            assert seen.annotations.read_only_hint is tool.read_only
            assert seen.annotations.destructive_hint is False


def test_two_agents_live_the_life_of_tasks_with_nothing_but_tools(
    person: Person, app: Path, otter: Desk, lynx: Desk
) -> None:
    """They use every one of them, and the client finds each answer to be what was promised."""
    goal, phase, (first, second) = planned(person, app, "ship it", "write parser", "use parser")
    assert [each["id"] for each in otter.does("ready", initiative=goal)["tasks"]] == [first]
    held = otter.does("claim", initiative=goal, ttl="10m")
    assert (held["task"]["id"], held["task"]["status"]) == (first, "in_progress")
    assert otter.does("recall", text="write a parser")["mistakes"] == []
    assert otter.does("heartbeat", ttl="20m")["lease_until"] > held["lease_until"]
    shown = [row for row in lynx.does("status")["spaces"][0]["rows"] if row["task_id"] == first]
    assert [row["agent"] for row in shown] == ["otter"]

    asked = lynx.does("ask", question="which grammar?", to="otter", task=first)
    assert asked["status"] == "pending"
    heard = otter.does("listen", wait="30s")["question"]
    assert heard["id"] == asked["id"]
    assert otter.does("answer", question=asked["id"], text="LALR")["answer"] == "LALR"
    assert otter.does("listen") == {"question": None}

    wanted = otter.does("message", content="review this?", to="lynx", requires_response=True)
    assert [each["id"] for each in lynx.does("inbox")["messages"]] == [wanted["id"]]
    lynx.does("message", content="gladly", to="otter", in_reply_to=wanted["id"])
    assert lynx.does("inbox")["messages"] == []
    place = {"phase": phase, "file_path": "parser.py", "line_number": 7, "line_type": "added"}
    comment = lynx.does("comment", **place, body="off by one")
    otter.does("comment", **place, body="indeed", in_reply_to=comment["id"])
    (thread,) = otter.does("review", phase=phase, resolved=False)["threads"]
    assert [thread["first"]["author"], thread["replies"][0]["author"]] == ["lynx", "otter"]
    assert otter.does("resolve", comment=comment["id"])["resolved"] is True

    otter.does("note", task="write parser", actions="by hand", outcome="it works")
    assert otter.does("recall", text="parser by hand")["searched"] >= 1
    assert otter.does("complete", summary="see parser.py")["status"] == "completed"
    proposal = otter.does(
        "propose",
        initiative=goal,
        target_type="task",
        title="fuzz the parser",
        summary="it is new",
        content="a million inputs",
    )
    assert proposal["status"] == "pending"
    taken = lynx.does("claim", initiative=goal)
    assert taken["task"]["id"] == second
    assert taken["summaries"] == {first: "see parser.py"}
    assert lynx.does("release", task=second)["assignee_id"] is None
    again = lynx.does("claim", initiative=goal)
    assert again["fence"] > taken["fence"]
    assert lynx.does("fail")["retry_count"] == 1
    assert lynx.does("show_task", task=second)["status"] == "pending"
    assert lynx.does("wait", questions=["which one?"])["status"] == "waiting_for_input"
    assert otter.used | lynx.used == {each.name for each in TOOLS}


def test_the_journal_tells_who_did_it_in_which_session_and_worktree(
    person: Person, app: Path, branch: Path, otter: Desk, lynx: Desk
) -> None:
    """The worktree is where the client's root is, wherever the server was started."""
    goal, _, tasks = planned(person, app, "stamp it", "one", "two")
    otter.does("claim", initiative=goal)
    otter.does("complete", summary="done")
    lynx.does("claim", initiative=goal)
    lines = person.runs(app, "journal", "list", "--json").splitlines()
    claims = {
        each["key"]: each
        for each in map(json.loads, lines)
        if each["key"] in tasks and each["op"] == "save" and "assignee_id" in each["after"]
    }
    sessions = {each["name"]: each["session_id"] for each in person.asks(app, "agent", "list")}
    for task, name, folder in zip(tasks, ("otter", "lynx"), (app, branch), strict=True):
        worktree = person.asks(folder, "where")["worktree_id"]
        entry = claims[task]
        assert (entry["agent"], entry["session"]) == (name, sessions[name])
        assert (entry["person"], entry["worktree"]) == (account_name(), worktree)


def test_a_root_that_changes_moves_the_agent(otter: Desk) -> None:
    """To the first root that is a folder here; where there is none, to where it was started."""
    before = list(otter.roots)
    repository = otter.does("status")["spaces"][0]["space"]
    try:
        otter.moves("file:///no/such/folder")
        assert otter.does("status")["spaces"][0]["space"] != repository
    finally:
        otter.moves(*before)
    assert otter.does("status")["spaces"][0]["space"] == repository


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "following"),
    [
        ("claim", {"initiative": "ini_ffffffff"}, "NotFound", "call status"),
        ("show_task", {"task": "tsk_ffffffff"}, "NotFound", "Look up its id"),
        ("ready", {"limt": 3}, "InvalidValue", "it takes limit, initiative, phase"),
        ("ready", {"limit": 0}, "InvalidValue", "call ready again"),
        ("listen", {"wait": "1d"}, "InvalidValue", "call again to wait for longer"),
        ("ask", {"to": "otter", "question": "me?"}, "InvalidValue", "call ask again"),
        ("complete", {"summary": "x", "task": "tsk_ffffffff"}, "NotFound", "Look up its id"),
        ("introduce", {"name": "lynx"}, "AlreadyExists", "call introduce without a name"),
        ("message", {"content": "a\0b"}, "InvalidValue", "call message again"),
        ("propose", {"title": "x"}, "InvalidValue", "call propose again"),
    ],
)
@pytest.mark.usefixtures("lynx")
def test_a_refusal_has_a_type_and_says_what_to_do_next(
    otter: Desk, tool: str, arguments: dict[str, Any], kind: str, following: str
) -> None:
    """The model reads a sentence, a program the type and what it speaks of."""
    answer = otter.tries(tool, **arguments)
    assert answer.is_error
    assert told(answer).startswith(f"{kind}: ")
    assert following in told(answer)
    assert "Traceback" not in told(answer)
    assert answer.structured_content is None
    assert answer.meta is not None
    assert answer.meta["herdbook/error"]["type"] == kind


def test_a_claim_that_somebody_took_over_is_refused(
    person: Person, app: Path, otter: Desk, lynx: Desk
) -> None:
    """With the advice to take another task."""
    goal, _, (task,) = planned(person, app, "take over", "slow work")
    held = otter.does("claim", initiative=goal)
    otter.does("release", task=task)
    lynx.does("claim", initiative=goal)
    answer = otter.tries("complete", task=task, fence=held["fence"], summary="mine")
    assert told(answer).startswith("StaleFence: ")
    assert "call claim for another task" in told(answer)


def test_nobody_writes_before_they_say_who_they_are(person: Person, app: Path) -> None:
    """Not even in the name of the only agent that is at work in the worktree; reading is free."""
    alone = person.repository(app.parent / "alone")
    person.runs(alone, "agent", "add", "resident")
    with desk(person, alone) as sat:
        for tool in (each for each in TOOLS if each.needs_agent and each.name != "introduce"):
            answer = sat.tries(tool.name, **some_arguments(tool))
            assert answer.is_error
            assert "call introduce" in told(answer)
        assert json.loads(told(sat.tries("ready"))) == {"tasks": []}
        made = sat.does("introduce")
        assert re.fullmatch(r"[a-z]+-[a-z]+", made["name"])
        assert sat.does("introduce")["id"] == made["id"], "the session is that agent already"
        sat.does("message", content="here I am")
    (message,) = person.asks(alone, "message", "inbox")
    assert message["sender_id"] == made["id"]
    assert person.asks(alone, "agent", "show", made["name"])["status"] == "stopped"
    assert person.asks(alone, "agent", "show", "resident")["status"] == "idle"


def test_a_halted_agent_may_read_and_write_nothing(person: Person, app: Path) -> None:
    """It is told why and whom to turn to, and goes on once the person has reinstated it."""
    goal, _, _ = planned(person, app, "halt it", "one")
    with desk(person, app, HERDBOOK_AGENT="newt", HERDBOOK_SESSION="s-1") as sat:
        assert "HERDBOOK_AGENT says that you are 'newt', who is not at work" in told(
            sat.tries("claim")
        )
        assert "leave it out" in told(sat.tries("introduce", name="otter"))
        assert sat.does("introduce")["session_id"] == "s-1"
        person.runs(app, "bug", "newt")
        for tool in TOOLS:
            answer = sat.tries(tool.name, **some_arguments(tool))
            if not tool.read_only:
                assert told(answer).startswith("AgentHalted: agent 'newt' is halted"), tool.name
                assert "`herdbook reinstate newt`" in told(answer)
            else:
                assert "AgentHalted" not in told(answer)
        person.runs(app, "reinstate", "newt")
        assert sat.does("claim", initiative=goal)["task"]["name"] == "one"
    known = person.asks(app, "agent", "show", "newt")
    assert known["status"] == "running", "whom the environment names, others stop"


def test_the_board_and_a_task_can_be_read_as_documents(
    person: Person, app: Path, otter: Desk, lynx: Desk
) -> None:
    """They are listed; a task that is not there is said to be so."""
    goal, _, (first, second) = planned(person, app, "read it", "one", "two")
    for sat in (otter, lynx):
        (listed,) = sat.portal.call(sat.client.list_resources).resources
        assert (str(listed.uri), listed.mime_type) == ("herdbook://board", "application/json")
        (known,) = sat.portal.call(sat.client.list_resource_templates).resource_templates
        assert known.uri_template == "herdbook://task/{id}"
        board = json.loads(sat.reads("herdbook://board"))
        assert goal in [each["id"] for each in board["initiatives"]]
        task = json.loads(sat.reads(f"herdbook://task/{second}"))
        assert task["task"]["name"] == "two"
        assert [each["id"] for each in task["waits_for"]] == [first]
        with pytest.raises(MCPError, match="there is no task 'tsk_ffffffff'"):
            sat.reads("herdbook://task/tsk_ffffffff")


def test_who_waits_holds_up_nobody(otter: Desk, lynx: Desk) -> None:
    """Fifty listeners of one agent leave it free to do other things; then all hear the question."""
    waiting: list[Future[Any]] = [
        lynx.portal.start_task_soon(lynx.client.call_tool, "listen", {"wait": "10m"})
        for _ in range(50)
    ]
    assert lynx.does("status")["spaces"]
    assert not any(each.done() for each in waiting)
    asked = otter.portal.start_task_soon(
        otter.client.call_tool, "ask", {"question": "there?", "to": "lynx", "wait": "10m"}
    )
    heard = [each.result().structured_content["question"] for each in waiting]
    assert {each["question"] for each in heard} == {"there?"}
    lynx.does("answer", question=heard[0]["id"], text="here")
    assert asked.result().structured_content["answer"] == "here"


@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_what_install_writes_starts_the_server(person: Person, tmp_path: Path, scope: str) -> None:
    """A client that does what the file says has its tools; a preview leaves no trace."""
    folder = person.repository(tmp_path / "app")
    words = ["mcp", "install", "claude-code", scope]
    assert "nothing was changed" in person.runs(folder, *words, "--preview")
    file = folder / ".mcp.json" if scope == "--project" else person.home / ".claude.json"
    assert not file.exists()
    assert f"changed {file}" in person.runs(folder, *words)
    assert person.runs(folder, *words).startswith("nothing to change")
    entry = json.loads(file.read_text())["mcpServers"]["herdbook"]
    path = os.pathsep.join([str(Path(sys.executable).parent), person.variables["PATH"]])
    with desk(person, folder, command=[entry["command"], *entry["args"]], PATH=path) as sat:
        assert json.loads(told(sat.tries("ready"))) == {"tasks": []}
    person.runs(folder, "mcp", "uninstall", "claude-code", scope)
    assert not file.exists()
