"""What an editor can do: resolve and answer comments, claim, complete, grade, dismiss; and live."""

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.errors import HerdbookError, InvalidValue
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Proposal, ProposalStatus, Task, TaskStatus
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.rpc.messages import RpcError
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import reviews
from tests.unit.entrypoints.lsp_editor import Editor, add_comment, phase_of, repository


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return repository(monkeypatch, tmp_path)


@pytest.fixture
def variables() -> dict[str, str]:
    """What the environment of the editor has besides."""
    return {}


@pytest.fixture
def editor(root: Path, variables: dict[str, str]) -> Iterator[Editor]:
    with Editor(root, **variables) as opened:
        yield opened


def _run(editor: Editor, action: dict[str, Any], *more: Any) -> Any:
    command = action["command"]
    return editor.run(command["command"], *command["arguments"], *more)


def _agent(app: AppContext, name: str = "brisk-otter") -> Agent:
    agent = Agent(name=name, status="running", worktree_id=app.workspace.worktree_id)
    app.identity.registers = name
    return app.run(Area.WORK, lambda uow: uow.agents.add(agent))


def test_a_comment_is_resolved_and_taken_up_again(editor: Editor, root: Path) -> None:
    """Resolved it is not shown, and at its line it can be taken up; others are not touched."""
    app = editor.get_context()
    phase = phase_of(app)
    first = add_comment(app, phase, 2)
    add_comment(app, phase, 3, "other")
    editor.begin()
    uri = editor.open(root / "a.py")
    shown = editor.sees(uri, "you: why?", "you: other")
    resolve, reply = editor.actions(uri, 1, diagnostics=shown)
    assert (resolve["kind"], resolve["diagnostics"]) == ("quickfix", shown[:1])
    assert reply["command"]["command"] == "herdbook.reply"
    assert _run(editor, resolve)["resolved"] is True
    editor.sees(uri, "you: other")
    (unresolve,) = editor.actions(uri, 1)
    assert unresolve["command"]["arguments"] == [first.id]
    _run(editor, unresolve)
    editor.sees(uri, "you: why?", "you: other")


def test_what_a_command_changes_is_shown_before_its_answer(editor: Editor, root: Path) -> None:
    """Some editors leave what comes right behind an answer until something else comes."""
    app = editor.get_context()
    first = add_comment(app, phase_of(app), 2)
    editor.begin()
    uri = editor.open(root / "a.py")
    editor.sees(uri, "you: why?")
    editor.run("herdbook.reply", first.id, "because")
    (shown,) = editor.shown(uri) or []
    assert shown["message"] == "you: why?\nyou: because"
    editor.run("herdbook.resolve", first.id)
    assert editor.shown(uri) == []
    editor.run("herdbook.unresolve", first.id)
    assert len(editor.shown(uri) or []) == 1


@pytest.mark.parametrize(("name", "is_told"), [("helix", True), ("Neovim", False)])
def test_a_refusal_is_shown_where_the_editor_would_hide_it(
    editor: Editor, name: str, is_told: bool
) -> None:
    """In the words of its error, and once in editors that show errors themselves."""
    app = editor.get_context()
    first = add_comment(app, phase_of(app), 2)
    editor.begin(clientInfo={"name": name})
    sentences = []
    for command, argument in (("herdbook.reply", first.id), ("herdbook.resolve", "rev_nothing")):
        with pytest.raises(HerdbookError) as refused:
            editor.run(command, argument)
        sentences.append({"type": 1, "message": str(refused.value)})
    with pytest.raises(RpcError) as unfit:
        editor.run("herdbook.claim", {"ttl": True})
    sentences.append({"type": 1, "message": unfit.value.message})
    said = [params for method, params in editor.told if method == "window/showMessage"]
    assert said == (sentences if is_told else [])


def test_actions_follow_the_text(editor: Editor, root: Path) -> None:
    """They are offered where the comment stands now, and only for the kinds that are asked for."""
    app = editor.get_context()
    add_comment(app, phase_of(app), 2)
    editor.begin()
    uri = editor.open(root / "a.py")
    editor.type(uri, {"text": "zero\n" + (root / "a.py").read_text()})
    assert editor.actions(uri, 1) == []
    assert len(editor.actions(uri, 2)) == 2
    assert len(editor.actions(uri, 2, only=["quickfix"])) == 2
    assert editor.actions(uri, 2, only=["source.organizeImports"]) == []


@pytest.mark.parametrize(
    ("variables", "author"), [({}, "you"), ({"HERDBOOK_AGENT": "brisk-otter"}, "brisk-otter")]
)
def test_a_reply_is_written_by_whoever_acts_here(
    root: Path, variables: dict[str, str], author: str
) -> None:
    """By the agent that the environment names, else by you; a text is needed."""
    with Editor(root, **variables) as editor:
        app = AppContext.at(root, os.environ)
        add_comment(app, phase_of(app), 2)
        _agent(app)
        editor.begin()
        uri = editor.open(root / "a.py")
        _, reply = editor.actions(uri, 1)
        with pytest.raises(InvalidValue, match="herdbook review reply rev_"):
            _run(editor, reply)
        _run(editor, reply, "because")
        editor.sees(uri, f"you: why?\n{author}: because")


@pytest.mark.parametrize("variables", [{"HERDBOOK_AGENT": "brisk-otter"}])
def test_a_task_is_claimed_and_completed(editor: Editor) -> None:
    """By the agent that acts here, or by one that is named, as the command line does it."""
    app = editor.get_context()
    agent = _agent(app)
    app.run(Area.WORK, lambda uow: uow.tasks.add_all([Task(name="parse"), Task(name="print")]))
    editor.begin()
    held = editor.run("herdbook.claim")
    assert held["task"]["assignee_id"] == agent.id
    done = editor.run("herdbook.complete", {"task": held["task"]["id"], "summary": "see parser.py"})
    assert (done["status"], done["summary"]) == (TaskStatus.COMPLETED, "see parser.py")
    assert editor.run("herdbook.claim", {"agent": agent.name})["task"]["name"] != done["name"]
    assert editor.run("herdbook.claim")["task"] is None
    said = [params["message"] for name, params in editor.told if name == "window/showMessage"]
    firsts = [sentence.partition(":")[0] for sentence in said]
    assert firsts == ["claimed", "completed", "claimed", "no task is ready"]


def test_a_commit_is_graded(editor: Editor) -> None:
    """With the grades of both parties, into the record."""
    _agent(editor.get_context())
    editor.begin()
    grades = {"agent": "brisk-otter", "commit": "HEAD", "self": "good", "user": "excellence"}
    editor.run("herdbook.grade", grades)
    app = editor.get_context()
    (retrospective,) = app.read(Area.RECORD, lambda uow: uow.retrospectives.page())
    assert (retrospective.agent, retrospective.user_grade) == ("brisk-otter", 5)
    assert editor.run("herdbook.grade") == []
    said = [params["message"] for name, params in editor.told if name == "window/showMessage"]
    assert said == ["the grade is written down", "0 commits wait for your grade"]


def test_proposals_and_agents_are_dismissed(editor: Editor) -> None:
    """Which of the two is meant is told by the id, or by the name of the parameter."""
    app = editor.get_context()
    phase = phase_of(app)

    def add(uow: UnitOfWork) -> tuple[Agent, Proposal]:
        agent = uow.agents.add(Agent(name="moth", status="crashed"))
        row = {"target_type": "task", "title": "split it", "summary": "s", "content": "c"}
        of = {"agent_id": agent.id, "initiative_id": phase.initiative_id}
        return agent, uow.proposals.add(Proposal(**row, **of))

    agent, proposal = app.run(Area.WORK, add)
    editor.begin()
    answer = editor.run("herdbook.dismiss", proposal.id)
    assert answer["status"] == ProposalStatus.DISMISSED
    assert editor.run("herdbook.dismiss", agent.id)["user_dismissed_at"] is not None
    assert editor.run("herdbook.dismiss", {"agent_id": agent.id})["name"] == "moth"


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("herdbook.resolve", ["rev_nothing"]),
        ("herdbook.reply", []),
        ("herdbook.reply", ["rev_nothing", "x", "y", "z"]),
        ("herdbook.agent", [7]),
        ("herdbook.unheard", []),
        ("task.remove", ["x"]),
    ],
)
def test_a_command_that_cannot_be_done_is_refused(
    editor: Editor, command: str, arguments: list[Any]
) -> None:
    """With an error of ours, which the editor shows."""
    editor.begin()
    with pytest.raises(HerdbookError):
        editor.run(command, *arguments)


def test_what_another_process_does_to_comments_is_shown_at_once(editor: Editor, root: Path) -> None:
    """By the journal: a comment that is made, replied to, resolved, taken up again, removed."""
    app = AppContext.at(root, editor.variables)
    phase = phase_of(app)
    editor.begin()
    uri = editor.open(root / "a.py")
    first = add_comment(app, phase, 2)
    editor.sees(uri, "you: why?")
    app.run(Area.WORK, reviews.reply, first.id, "because")
    editor.sees(uri, "you: why?\nyou: because")
    app.run(Area.WORK, reviews.resolve, first.id)
    editor.sees(uri)
    app.run(Area.WORK, reviews.unresolve, first.id)
    editor.sees(uri, "you: why?\nyou: because")
    app.run(Area.WORK, lambda uow: uow.review_comments.remove(first.id))
    editor.sees(uri)


def test_a_store_that_comes_later_is_found(editor: Editor, root: Path) -> None:
    """An editor may be there before anything is written down."""
    editor.begin()
    uri = editor.open(root / "a.py")
    assert editor.lines(uri) == []
    app = AppContext.at(root, editor.variables)
    add_comment(app, phase_of(app), 2)
    editor.sees(uri, "you: why?")


def test_a_store_in_trouble_is_told_of_once_and_does_not_end_the_server(
    editor: Editor, root: Path
) -> None:
    """When it is whole again, what it holds is shown."""
    app = AppContext.at(root, editor.variables)
    add_comment(app, phase_of(app), 2)
    store = root / ".git" / "herdbook" / "work.lmdb"
    whole = root / ".git" / "herdbook" / "kept"
    shutil.move(store, whole)
    store.mkdir()
    (store / "data.mdb").write_bytes(b"no store" * 1_000)
    editor.begin()
    editor.waits(lambda: any("followed" in each for each in editor.logged()))
    uri = editor.open(root / "a.py")
    assert editor.lines(uri) == []
    assert editor.actions(uri, 1) == []
    shutil.rmtree(store)
    shutil.move(whole, store)
    editor.sees(uri, "you: why?")
    assert sum("followed" in each for each in editor.logged()) == 1


def test_no_thread_is_left_when_the_editor_goes(root: Path) -> None:
    """Neither one that follows nor one that asks git, in whatever state it is left."""
    before = set(threading.enumerate())
    with Editor(root) as editor:
        app = editor.get_context()
        add_comment(app, phase_of(app), 2)
        editor.begin()
        uri = editor.open(root / "a.py")
        editor.ask("textDocument/codeLens", uri)
    with Editor(root):
        pass
    assert set(threading.enumerate()) <= before
