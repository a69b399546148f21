"""Hostile repositories: asking where we are and who works here runs nothing that others chose."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from herdbook.adapters.git import changes, facts, worktrees
from tests.attacks.conftest import GiveAway
from tests.attacks.hostile_git import (
    Canary,
    disturb,
    leave_event,
    make_promisor,
    publish_with_embedded_bare,
    set_traps,
)
from tests.e2e.conftest import Person
from tests.e2e.rpc_process import Pipes

FOREIGN = "belongs to another account"
# What a person types first in a folder, and what programs ask there by themselves.
QUESTIONS = (
    ("where",),
    ("status",),
    ("board",),
    ("plan",),
    ("doctor",),
    ("config",),
    ("standing",),
    ("worktree", "list"),
    ("advise", "--for", "."),
    ("recall", "anything"),
    ("flush",),
    ("hooks", "install", "git", "--preview"),
    ("hooks", "install", "claude-code", "--preview"),
)


@pytest.fixture
def shared(person: Person, tmp_path: Path, canary: Canary) -> Path:
    """A repository that fetches its HEAD with a program of its owner's."""
    repository = person.repository(tmp_path / "shared")
    make_promisor(repository / ".git", canary.program(repository / ".git" / "pwn.sh"))
    (repository / "victim").mkdir()
    return repository


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_a_repository_of_another_account_runs_nothing(
    words: tuple[str, ...],
    person: Person,
    shared: Path,
    canary: Canary,
    give_away: GiveAway,
) -> None:
    """Whatever is asked there, also where the folder one stands in is one's own."""
    variables = give_away(shared)
    if not variables:
        os.lchown(shared / "victim", 0, 0)
    leave_event(person, shared / "victim", tool_name="Read")
    for folder in (shared, shared / "victim"):
        person.tries(folder, *words, **variables)
    assert canary.ran() == set()


def test_a_repository_of_another_account_is_unknown_and_says_why(
    person: Person, shared: Path, give_away: GiveAway
) -> None:
    """It counts as no repository, in one sentence; what needs one is refused with the same."""
    variables = give_away(shared)
    answer = person.asks(shared / "victim", "where", **variables)
    assert answer["repository_id"] is None
    assert answer["doubt"].startswith(f"the repository at {shared} {FOREIGN}")
    assert "safe.directory" in answer["doubt"]
    shown = person.runs(shared / "victim", "where", **variables)
    assert f"none: the repository at {shared} {FOREIGN}" in shown
    told = person.tries(shared / "victim", "status", **variables)
    assert told.returncode == 0
    assert FOREIGN in told.stderr
    for words in (("worktree", "list"), ("worktree", "add", "new"), ("hooks", "install", "git")):
        told = person.tries(shared / "victim", *words, **variables)
        assert told.returncode != 0
        assert FOREIGN in told.stderr
        assert "Traceback" not in told.stderr
    assert not (shared.parent / "shared.worktrees").exists()


@pytest.mark.parametrize(
    ("values", "trusted"),
    [
        ([], False),
        (["*"], True),
        (["{repository}"], True),
        (["{repository}/victim"], False),
        (["{repository}", ""], False),
        (["", "{repository}"], True),
        (["*", "/elsewhere"], True),
    ],
)
def test_safe_directory_counts_as_it_does_for_git(
    values: list[str],
    trusted: bool,
    person: Person,
    tmp_path: Path,
    give_away: GiveAway,
) -> None:
    """In the user's own settings, and never in those of the repository."""
    repository = person.repository(tmp_path / "shared", origin="https://example.com/shared.git")
    person.git(repository, "config", "safe.directory", "*")
    own = tmp_path / "gitconfig"
    own.touch()
    for value in values:
        named = value.format(repository=repository)
        person.git(tmp_path, "config", "--file", str(own), "--add", "safe.directory", named)
    variables = {**give_away(repository), "GIT_CONFIG_GLOBAL": str(own)}
    answer = person.asks(repository, "where", **variables)
    assert (answer["repository_id"] is not None) == trusted
    assert (answer["doubt"] is None) == trusted


@pytest.mark.parametrize("value", ["{owner}", "{other}", "{owner} ", "x{owner}", ""])
def test_sudo_uses_what_belongs_to_who_called_it(
    value: str, person: Person, tmp_path: Path, give_away: GiveAway
) -> None:
    """And nobody else's; to any account but root the variable means nothing."""
    repository = person.repository(tmp_path / "theirs", origin="https://example.com/theirs.git")
    variables = give_away(repository)
    owner = repository.stat().st_uid
    caller = value.format(owner=owner, other=owner + 1)
    answer = person.asks(repository, "where", **variables, SUDO_UID=caller)
    allowed = value == "{owner}" and os.geteuid() == 0
    assert (answer["repository_id"] is not None) == allowed


@pytest.mark.parametrize("explicit", [False, True], ids=["all", "explicit"])
def test_a_bare_repository_that_came_with_a_clone_is_just_a_folder(
    explicit: bool,
    person: Person,
    tmp_path: Path,
    canary: Canary,
) -> None:
    """Standing in it is standing in the clone, whatever `safe.bareRepository` says."""
    published = publish_with_embedded_bare(person, tmp_path / "published", canary)
    person.git(tmp_path, "clone", "--quiet", str(published), "clone")
    person.git(tmp_path / "clone", "remote", "remove", "origin")
    variables = {}
    if explicit:
        own = tmp_path / "gitconfig"
        own.write_text("[safe]\n\tbareRepository = explicit\n")
        variables = {"GIT_CONFIG_GLOBAL": str(own)}
    at_top = person.asks(tmp_path / "clone", "where", **variables)
    for folder in ("docs", "docs/refs/heads"):
        assert person.asks(tmp_path / "clone" / folder, "where", **variables) == at_top
        for words in QUESTIONS:
            told = person.tries(tmp_path / "clone" / folder, *words, **variables)
            assert "Traceback" not in told.stderr
    assert canary.ran() == set()


def test_git_itself_would_run_what_came_with_the_clone(
    person: Person, tmp_path: Path, canary: Canary
) -> None:
    """The trap is a real one: without our care, git asked there runs it."""
    published = publish_with_embedded_bare(person, tmp_path / "published", canary)
    person.git(tmp_path, "clone", "--quiet", str(published), "clone")
    with pytest.raises(subprocess.CalledProcessError):
        person.git(tmp_path / "clone" / "docs", "rev-list", "HEAD")
    assert canary.ran() == {"x.sh"}


def test_a_flush_runs_nothing_where_an_event_happened(
    person: Person, app: Path, tmp_path: Path, canary: Canary
) -> None:
    """Events in a cloned bare repository are the clone's, and the others come along."""
    published = publish_with_embedded_bare(person, tmp_path / "published", canary)
    person.git(tmp_path, "clone", "--quiet", str(published), "clone")
    leave_event(person, tmp_path / "clone" / "docs", tool_name="Read")
    head = person.git(tmp_path / "clone", "rev-parse", "HEAD").strip()
    leave_event(person, tmp_path / "clone" / "docs", "post-commit", commit=head)
    leave_event(person, app, tool_name="Read")
    assert person.asks(app, "flush")["applied"] == 3
    assert canary.ran() == set()
    assert person.asks(app, "doctor")["ok"]


@pytest.fixture
def trapped(person: Person, tmp_path: Path, canary: Canary) -> Path:
    """An unpacked archive: the user's own files by their owner, with a config full of programs."""
    repository = person.repository(tmp_path / "trapped")
    person.runs(repository, "worktree", "add", "side")
    side = tmp_path / "trapped.worktrees" / "side"
    person.runs(side, "agent", "add", "brisk-otter")
    (side / "new.txt").write_text("not committed\n")
    set_traps(person, repository, canary)
    return repository


def test_the_traps_work_on_whoever_is_not_careful(
    person: Person, trapped: Path, canary: Canary
) -> None:
    """Ordinary questions to git do run these programs."""
    seen = set()
    for words in (("status",), ("log", "-1"), ("diff",), ("add", "a.txt"), ("add", "b.bin")):
        subprocess.run(["git", *words], cwd=trapped, env=person.variables, capture_output=True)  # noqa: PLW1510, S607
        disturb(trapped)
        seen |= canary.ran()
    assert seen >= {"fsmonitor", "gpg", "clean", "process"}


@pytest.mark.parametrize("words", QUESTIONS, ids=" ".join)
def test_no_question_runs_what_a_repository_configures(
    words: tuple[str, ...], person: Person, trapped: Path, canary: Canary
) -> None:
    """Neither in the main worktree nor in a linked one; the answer comes all the same."""
    leave_event(person, trapped, tool_name="Read")
    leave_event(person, trapped, "post-commit")
    for folder in (trapped, trapped.parent / "trapped.worktrees" / "side"):
        told = person.tries(folder, *words)
        assert told.returncode == 0, told.stderr
    assert canary.ran() == set()


@pytest.fixture
def reviewed(person: Person, trapped: Path, canary: Canary) -> str:
    """A phase that an agent works on in the linked worktree, where files of all traps changed."""
    side = trapped.parent / "trapped.worktrees" / "side"
    person.runs(trapped, "initiative", "add", "goal", "--branch", "side")
    phase: str = person.asks(trapped, "phase", "add", "one", "--initiative", "goal")["id"]
    person.runs(trapped, "phase", "approve", phase)
    person.runs(trapped, "task", "add", "first", "--phase", phase)
    person.runs(side, "claim", "--agent", "brisk-otter")
    unset = ("filter.trap.clean=", "filter.trap.required=", "filter.process.required=")
    unset += ("filter.process.process=", "core.fsmonitor=false", f"core.hooksPath={os.devnull}")
    words = [word for each in unset for word in ("-c", each)]
    (side / ".gitattributes").write_text("* diff=trap filter=trap\n*.md diff=trap merge=trap\n")
    for name in ("a.txt", "b.bin", "c.md"):
        (side / name).write_text(f"{name} changed\n")
    (side / "deep").mkdir()
    (side / "deep" / ".gitattributes").write_text("* diff=trap -text\n")
    (side / "deep" / "d.txt").write_text("deep\n")
    person.git(side, *words, "add", "--all")
    person.git(side, *words, "commit", "--quiet", "--message=work")
    (side / "a.txt").write_text("changed again\n")
    canary.ran()
    return phase


def test_the_diff_traps_work_on_whoever_is_not_careful(
    person: Person, trapped: Path, reviewed: str, canary: Canary
) -> None:
    """Git's own diff runs the external program, and the conversion to text where that is off."""
    assert reviewed
    plain = ["-c", "core.fsmonitor=false", "diff"]
    for words in ([*plain, "main", "side"], [*plain, "--no-ext-diff", "main", "side"]):
        subprocess.run(["git", *words], cwd=trapped, env=person.variables, capture_output=True)  # noqa: PLW1510, S607
    assert canary.ran() & {"external", "diff-command"}
    smudge = [word for each in ("smudge", "required") for word in ("-c", f"filter.trap.{each}=")]
    plain = [*smudge, *plain, "--no-ext-diff", "main", "side"]
    subprocess.run(["git", *plain], cwd=trapped, env=person.variables, capture_output=True)  # noqa: PLW1510, S607
    assert "textconv" in canary.ran()


def test_a_review_runs_nothing_that_a_repository_configures(
    person: Person, trapped: Path, reviewed: str, canary: Canary
) -> None:
    """No external diff, conversion, filter, pager or hook; the lines are those of the commits."""
    side = trapped.parent / "trapped.worktrees" / "side"
    variables = {"GIT_EXTERNAL_DIFF": str(canary.program(trapped.parent / "from-variable"))}
    variables |= {"GIT_PAGER": str(canary.program(trapped.parent / "pager-variable"))}
    for folder in (trapped, side):
        answer = person.asks(folder, "review", "diff", reviewed, **variables)
        lines = {
            each["path"]: [line["text"] for hunk in each["hunks"] for line in hunk["lines"]]
            for each in answer["files"]
        }
        assert lines["c.md"] == ["c.md changed"]
        assert lines["deep/d.txt"] == ["deep"]
        assert answer["source"]["uncommitted"] == 1
        person.runs(folder, "review", "diff", reviewed, "--file", "c.md", **variables)
        person.runs(folder, "review", "queue", **variables)
    comment = json.dumps([{"file": "c.md", "line": 1, "body": "why?"}])
    person.runs(trapped, "review", "submit", reviewed, "--comments", comment, **variables)
    person.runs(trapped, "review", "diff", reviewed, "--file", "c.md", **variables)
    assert canary.ran() == set()


def test_what_commands_ask_on_their_way_runs_nothing(
    person: Person, trapped: Path, canary: Canary
) -> None:
    """Grading looks for a commit, and removing a worktree asks first whether it is clean."""
    leave_event(person, trapped, "post-commit")
    person.runs(trapped, "flush")
    person.runs(trapped, "grade", "otter", "HEAD", "--self", "good", "--user", "good")
    told = person.tries(trapped, "worktree", "remove", "side", "--json", "--full")
    assert json.loads(told.stderr)["error"]["type"] == "WorktreeInUse"
    assert "brisk-otter" in told.stderr
    person.runs(trapped, "agent", "stop", "--agent", "brisk-otter")
    told = person.tries(trapped, "worktree", "remove", "side")
    assert "changes that are not committed" in told.stderr
    assert canary.ran() == set()


def test_a_worktree_goes_without_a_program_of_the_repository(
    person: Person, trapped: Path, canary: Canary
) -> None:
    """Git looks for changes before it removes one, with filters and a monitor if it may."""
    other = trapped.parent / "trapped.worktrees" / "other"
    unset = [f"filter.trap.{each}=" for each in ("clean", "smudge", "required")]
    unset += [f"filter.process.{each}=" for each in ("process", "required")]
    unset += ["core.fsmonitor=false", f"core.hooksPath={os.devnull}"]
    words = [word for each in unset for word in ("-c", each)]
    person.git(trapped, *words, "worktree", "add", "--quiet", str(other))
    disturb(other)
    assert canary.ran() == set()
    person.runs(trapped, "worktree", "remove", str(other))
    assert not other.exists()
    person.runs(trapped, "worktree", "prune")
    assert canary.ran() == set()


def test_a_new_worktree_is_made_without_the_monitor_of_the_repository(
    person: Person, trapped: Path, canary: Canary
) -> None:
    """A checkout runs the hooks that belong to it; who watches for changes is no part of one."""
    first = person.git(trapped, "rev-list", "--max-parents=0", "HEAD").strip()
    (trapped / ".git" / "programs" / "hooks" / "reference-transaction").unlink()  # it forbids all
    canary.ran()
    person.runs(trapped, "worktree", "add", "other", "--base", first)
    ran = canary.ran()
    assert "fsmonitor" not in ran
    assert "post-checkout" in ran


def test_an_editor_that_looks_runs_nothing(person: Person, trapped: Path, canary: Canary) -> None:
    """The lenses ask git for what every worktree changes."""
    person.runs(trapped, "agent", "add", "calm-heron")
    (trapped / "a.txt").write_text("changed\n")
    uri = (trapped / "a.txt").as_uri()
    with Pipes(person, trapped, headers=True) as server:
        folders = [{"uri": trapped.as_uri(), "name": "trapped"}]
        server.call("initialize", 1, capabilities={}, workspaceFolders=folders)
        server.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        text = {"uri": uri, "languageId": "text", "version": 1, "text": "x\n"}
        server.send(
            {
                "jsonrpc": "2.0",
                "method": "textDocument/didOpen",
                "params": {"textDocument": text},
            },
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "textDocument/codeLens",
                "params": {"textDocument": {"uri": uri}},
            },
        )
        answer = server.receive()
        while answer.get("id") != 2:
            answer = server.receive()
        (lens,) = answer["result"]
        assert lens["command"]["title"].startswith("calm-heron")
    assert canary.ran() == set()


def test_changes_are_found_without_running_anything(
    person: Person, trapped: Path, canary: Canary, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not committed, compared and read back is git's answer, without its filters."""
    monkeypatch.setattr(os, "environ", dict(person.variables))
    (trapped / "a.txt").write_text("changed\n")
    assert changes.uncommitted_paths(str(trapped), person.variables) == {"a.txt"}
    assert not worktrees.is_clean(trapped)
    (trapped / "a.txt").write_text("a.txt\n")
    disturb(trapped)
    assert changes.uncommitted_paths(str(trapped), person.variables) == set()
    assert worktrees.is_clean(trapped)
    (trapped / "b.bin").write_text("b.bin, changed\n")
    head = changes.commit_of(str(trapped), "HEAD", person.variables)
    first = changes.commit_of(str(trapped), "HEAD~2", person.variables)
    assert head is not None
    assert first is not None
    assert changes.changed_paths(str(trapped), first, head, person.variables) == {
        ".gitattributes",
        "a.txt",
        "b.bin",
        "part",
    }
    assert changes.text_at(str(trapped), head, "a.txt", person.variables) == "a.txt\n"
    known = facts(trapped, environment=person.variables)
    assert known is not None
    assert len(worktrees.list_worktrees(known)) == 2
    assert canary.ran() == set()


@pytest.mark.parametrize("url", ["{git_dir}", "ext::{program}", "ssh://example.com/x"])
def test_what_a_partial_clone_lacks_is_not_fetched(
    url: str, person: Person, trapped: Path, canary: Canary
) -> None:
    """Not by any transport, although the repository's config allows all of them."""
    git_dir = trapped / ".git"
    program = canary.program(git_dir / "programs" / "fetch")
    named = url.format(git_dir=git_dir, program=program)
    with (git_dir / "config").open("a") as config:
        config.write(
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = evil\n"
            f'[remote "evil"]\n\tpromisor = true\n\turl = {named}\n\tuploadpack = {program}\n'
        )
    (git_dir / "herdbook-repository-id").unlink()
    (git_dir / "refs" / "heads" / "main").write_text("0123456789" * 4 + "\n")
    leave_event(person, trapped, "post-commit")
    for words in QUESTIONS:
        told = person.tries(trapped, *words)
        assert "Traceback" not in told.stderr
    assert canary.ran() == set()
