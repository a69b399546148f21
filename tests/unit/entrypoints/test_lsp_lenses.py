"""Who else is at a file: agents whose worktrees change it, above its first line."""

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Initiative, Task
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.lsp import lenses
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.unit.adapters.git_repositories import git
from tests.unit.entrypoints.lsp_editor import LONG, Editor, add_comment, phase_of, repository


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return repository(monkeypatch, tmp_path)


@pytest.fixture
def editor(root: Path) -> Iterator[Editor]:
    with Editor(root) as opened:
        yield opened


def _worktree(root: Path, name: str) -> Path:
    folder = root.with_name(name)
    git(root, "worktree", "add", "--quiet", "-b", name, folder)
    return folder


def _commits(folder: Path, name: str) -> None:
    (folder / name).write_text(f"by {folder.name}\n")
    git(folder, "add", name)
    git(folder, "commit", "--quiet", "-m", name)


def _agent(folder: Path, variables: dict[str, str], name: str, *tasks: str, **more: Any) -> Agent:
    """An agent at work in a worktree, with tasks that it holds."""
    there = AppContext.at(folder, variables)

    row = Agent(name=name, status="running", worktree_id=there.workspace.worktree_id, **more)
    agent = there.run(Area.WORK, lambda uow: uow.agents.add(row))

    def give(uow: UnitOfWork, task: str) -> None:
        uow.tasks.add(Task(name=task))
        claims.claim(uow, agent.id, halts=NO_HALTS)

    for task in tasks:
        there.run(Area.WORK, give, task)
    return agent


def _titles(editor: Editor, path: Path) -> list[str]:
    found = editor.ask("textDocument/codeLens", path.as_uri())
    assert all(each["range"]["start"] == {"line": 0, "character": 0} for each in found)
    return [each["command"]["title"] for each in found]


def test_an_agent_stands_above_the_files_its_branch_changes(editor: Editor, root: Path) -> None:
    """With its task and how many more; committed, changed or new, and above no other file."""
    side = _worktree(root, "side")
    _commits(side, "a.py")
    (side / "file").write_text("changed")
    (side / "new.py").write_text("new")
    _agent(side, editor.variables, "brisk-otter", "parse the\ndates", "print them")
    _agent(side, editor.variables, "calm-heron")
    editor.begin()
    for name in ("a.py", "file", "new.py"):
        first, second = _titles(editor, root / name)
        assert first.startswith("brisk-otter: parse the dates (task tsk_")
        assert first.endswith("), +1 more")
        assert second == "calm-heron (running)"
    assert _titles(editor, root / "other.py") == []


def test_what_the_trunk_alone_changed_is_no_agents_change(editor: Editor, root: Path) -> None:
    """A branch is compared with where it began, not with where others are by now."""
    side = _worktree(root, "side")
    _commits(side, "mine.py")
    _commits(root, "theirs.py")
    _agent(side, editor.variables, "brisk-otter")
    editor.begin()
    assert _titles(editor, root / "mine.py") == ["brisk-otter (running)"]
    assert _titles(editor, root / "theirs.py") == []


def test_a_branch_is_compared_with_the_one_of_its_initiative(editor: Editor, root: Path) -> None:
    """What the initiative has gathered already is not each agent's change."""
    gathered = _worktree(root, "login")
    _commits(gathered, "gathered.py")
    side = root.with_name("side")
    git(root, "worktree", "add", "--quiet", "-b", "side", side, "login")
    _commits(side, "mine.py")
    app = editor.get_context()
    goal = app.run(
        Area.WORK, lambda uow: uow.initiatives.add(Initiative(name="login", branch="login"))
    )
    _agent(side, editor.variables, "brisk-otter", initiative_id=goal.id)
    editor.begin()
    assert _titles(editor, root / "mine.py") == ["brisk-otter (running)"]
    assert _titles(editor, root / "gathered.py") == []


def test_the_editor_is_asked_to_ask_again_when_agents_or_tasks_change(
    editor: Editor, root: Path
) -> None:
    """And then hears of it."""
    side = _worktree(root, "side")
    _commits(side, "a.py")
    editor.begin()
    assert _titles(editor, root / "a.py") == []
    _agent(side, editor.variables, "brisk-otter")
    editor.waits(lambda: "workspace/codeLens/refresh" in editor.asked)
    assert _titles(editor, root / "a.py") == ["brisk-otter (running)"]


def test_a_save_is_seen_at_once(
    editor: Editor, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git said before it is not good any more, and the editor is asked to ask again."""
    monkeypatch.setattr(lenses, "CACHE_SECONDS", 3_600.0)
    _agent(root, editor.variables, "brisk-otter")
    editor.begin()
    uri = editor.open(root / "a.py")
    assert _titles(editor, root / "a.py") == []
    editor.waits(lambda: "workspace/codeLens/refresh" in editor.asked)
    editor.asked.clear()
    (root / "a.py").write_text("changed")
    assert _titles(editor, root / "a.py") == []
    editor.say("didSave", uri)
    assert _titles(editor, root / "a.py") == ["brisk-otter (running)"]
    editor.waits(lambda: "workspace/codeLens/refresh" in editor.asked)


def test_a_look_that_was_begun_before_a_save_does_not_answer_for_it(
    editor: Editor, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither to who asks behind the save nor to who asks later."""
    _agent(root, editor.variables, "brisk-otter")
    begun, go_on = threading.Event(), threading.Event()
    ask = lenses.changes.uncommitted_paths

    def slowly(folder: str, variables: Mapping[str, str]) -> frozenset[str] | None:
        told = ask(folder, variables)
        if not begun.is_set():
            begun.set()
            go_on.wait(LONG)
        return told

    monkeypatch.setattr(lenses.changes, "uncommitted_paths", slowly)
    slow = lenses.Lenses(editor.get_context, go_on.set)
    try:
        assert slow.lenses_for("a.py", timeout=0.0) == []
        begun.wait(LONG)
        (root / "a.py").write_text("changed")
        slow.note_save(str(root / "a.py"))
        go_on.set()
        for _ in range(2):
            assert [each["command"]["title"] for each in slow.lenses_for("a.py", timeout=LONG)] == [
                "brisk-otter (running)"
            ]
    finally:
        slow.close()


def test_an_editor_that_cannot_refresh_is_not_asked_to(editor: Editor, root: Path) -> None:
    """It said nothing of it, so it may not know it."""
    editor.begin(capabilities={})
    _agent(root, editor.variables, "brisk-otter")
    app = editor.get_context()
    add_comment(app, phase_of(app), 1)
    editor.sees((root / "a.py").as_uri(), "you: why?")
    (root / "a.py").write_text("changed")
    assert _titles(editor, root / "a.py") == ["brisk-otter (running)"]
    assert editor.asked == []


def test_what_a_lens_tells_of_an_agent_is_shown(editor: Editor, root: Path) -> None:
    """Its command says what the agent is at."""
    agent = _agent(root, editor.variables, "brisk-otter", "parse")
    (root / "a.py").write_text("changed")
    editor.begin()
    (lens,) = editor.ask("textDocument/codeLens", (root / "a.py").as_uri())
    answer = editor.run(lens["command"]["command"], *lens["command"]["arguments"])
    assert answer["agent"]["id"] == agent.id
    shown = [params["message"] for name, params in editor.told if name == "window/showMessage"]
    assert [each.partition(" (tsk_")[0] for each in shown] == ["brisk-otter (running): parse"]


def test_a_slow_git_is_not_waited_for(editor: Editor, root: Path) -> None:
    """The editor gets what is known and is asked to ask again when there is more."""
    _agent(root, editor.variables, "brisk-otter")
    (root / "a.py").write_text("changed")
    editor.begin()
    late = lenses.Lenses(editor.get_context, lambda: editor.notify("late", None))
    try:
        assert late.lenses_for("a.py", timeout=0.0) == []
        editor.waits(lambda: ("late", None) in editor.told)
        assert [each["command"]["title"] for each in late.lenses_for("a.py")] == [
            "brisk-otter (running)"
        ]
    finally:
        late.close()
