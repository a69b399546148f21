"""How git is started: what it may not do, how long it may take, and that nothing else starts it."""

import ast
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from herdbook.adapters.git import changes, facts, git_process, worktrees
from herdbook.adapters.git.git_process import ask_git, raise_complaint, run_git
from herdbook.adapters.git.status import status
from herdbook.domain.errors import InvalidValue, StoreBusy, StoreUnavailable
from tests.unit.adapters.git_repositories import git, known, made, settle

ROOT = Path(__file__).parents[3]
LAYERS = ("adapters", "domain", "entrypoints", "ports", "services")


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch, tmp_path / "home")


def fake_git(folder: Path, script: str) -> dict[str, str]:
    """Variables with which a script is started in git's place."""
    folder.mkdir()
    (folder / "git").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "git").chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_no_other_module_starts_git() -> None:
    """A call that starts a process with the word `git` in it stands in one file."""
    found = set()
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.List | ast.Tuple) and node.elts:
                    first = node.elts[0]
                    listed = isinstance(node, ast.List) or len(node.elts) > 1
                    if listed and isinstance(first, ast.Constant) and first.value == "git":
                        found.add(str(path.relative_to(ROOT)))
    assert found == {"adapters/git/git_process.py"}
    assert not any(
        "--git-dir" in path.read_text() and path.name != "git_process.py"
        for path in (ROOT / "adapters" / "git").glob("*.py")
    )


def test_a_question_has_no_terminal_no_input_and_no_transport(tmp_path: Path) -> None:
    """It leads a session of its own, and the variables that allow nothing are set."""
    tells = (
        "import os, sys; print(f'leads={os.getsid(0) == os.getpid()}\\nin={sys.stdin.read()!r}')"
    )
    variables = fake_git(tmp_path / "bin", f"env; exec '{sys.executable}' -c \"{tells}\"")
    variables |= {"GIT_SSH": "x", "GIT_EXTERNAL_DIFF": "x", "GIT_TRACE": "1", "SSH_ASKPASS": "x"}
    ended, told, _ = ask_git(["anything"], variables)
    assert ended == 0
    lines = dict(line.split("=", 1) for line in told.decode().splitlines() if "=" in line)
    assert lines["GIT_ALLOW_PROTOCOL"].startswith("none-")
    assert lines["GIT_NO_LAZY_FETCH"] == "1"
    assert lines["GIT_TERMINAL_PROMPT"] == "0"
    assert lines["GIT_ASKPASS"] == ""
    assert (lines["leads"], lines["in"]) == ("True", "''")
    assert not {"GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_TRACE", "SSH_ASKPASS"} & lines.keys()


@pytest.mark.parametrize(
    "remote",
    ["url = {git_dir}", "url = ext::{program}", "url = none::x", "url = ::x", "vcs = none"],
)
@pytest.mark.parametrize("variable", ["GIT_NO_LAZY_FETCH", None])
def test_what_is_missing_is_fetched_by_no_transport(
    remote: str, variable: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a git that does not know how to leave fetching alone, and with helpers as aliases."""
    repository = made(tmp_path / "repo", origin=None)
    git_dir = repository / ".git"
    program_of_theirs = git_dir / "fetch"
    program_of_theirs.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\nexit 1\n")
    program_of_theirs.chmod(0o755)
    with (git_dir / "config").open("a") as config:
        config.write(
            "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = evil\n"
            f'[protocol]\n\tallow = always\n[protocol "ext"]\n\tallow = always\n'
            f"[alias]\n\tremote-none = !{program_of_theirs}\n\tremote- = !{program_of_theirs}\n"
            f'[remote "evil"]\n\tpromisor = true\n\tuploadpack = {program_of_theirs}\n'
            f"\t{remote.format(git_dir=git_dir, program=program_of_theirs)}\n"
        )
    (git_dir / "refs" / "heads" / "main").write_text("0123456789" * 4 + "\n")
    if variable is not None:
        monkeypatch.delitem(git_process._SAFE_VARIABLES, variable)  # as if git did not know it
    # Git gives up, or dies when it writes to a fetch that has given up before.
    with pytest.raises((InvalidValue, StoreUnavailable), match=r"bad object|not allowed|signal 13"):
        facts(repository)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("start", [ask_git, run_git])
def test_a_git_that_takes_too_long_is_ended(
    start: Callable[..., tuple[int, bytes, str]], tmp_path: Path
) -> None:
    """It is told so, within moments, and no longer there."""
    pid = tmp_path / "pid"
    variables = fake_git(tmp_path / "bin", f"echo $$ >'{pid}'; exec sleep 600")
    begun = time.monotonic()
    with pytest.raises(StoreBusy, match="slow to answer"):
        start(["anything"], variables, 0.5)
    assert time.monotonic() - begun < 60
    assert not psutil.pid_exists(int(pid.read_text()))


def test_what_a_question_has_started_is_ended_with_it(tmp_path: Path) -> None:
    """Also where it holds on to the output, and would let nobody read to its end."""
    pid = tmp_path / "pid"
    variables = fake_git(tmp_path / "bin", f"sleep 600 & echo $! >'{pid}'; wait")
    with pytest.raises(StoreBusy):
        ask_git(["anything"], variables, 0.5)
    process = int(pid.read_text())
    deadline = time.monotonic() + 60
    while psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_what_was_asked_for_may_tidy_up_when_it_takes_too_long(tmp_path: Path) -> None:
    """It is told to end before it is made to."""
    variables = fake_git(
        tmp_path / "bin",
        f"trap 'touch \"{tmp_path}/tidy\"; exit 1' TERM; while :; do sleep 0.1; done",
    )
    with pytest.raises(StoreBusy):
        run_git(["anything"], variables, 0.5)
    assert (tmp_path / "tidy").exists()


def test_an_interrupted_question_leaves_nothing_running(tmp_path: Path) -> None:
    """Ctrl-C ends git too, although it has no terminal."""
    pid = tmp_path / "pid"
    variables = fake_git(
        tmp_path / "bin", f"echo $$ >'{pid}.new'; mv '{pid}.new' '{pid}'; exec sleep 600"
    )
    script = (
        "import os; from herdbook.adapters.git.git_process import ask_git; ask_git([], os.environ)"
    )
    asking = subprocess.Popen([sys.executable, "-c", script], env=variables, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not pid.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    asking.send_signal(signal.SIGINT)
    _, told = asking.communicate(timeout=60)
    assert b"KeyboardInterrupt" in told
    assert not psutil.pid_exists(int(pid.read_text()))


def test_every_question_of_the_worktrees_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing, looking for changes, the facts and all that is asked before a worktree is added."""
    repository = made(tmp_path / "repo", origin=None)
    here = known(repository)
    variables = fake_git(tmp_path / "bin", "exec sleep 600")
    monkeypatch.setenv("PATH", variables["PATH"])
    begun = time.monotonic()
    limits = []
    run = git_process._run

    def quickly(
        words: list[str], environment: dict[str, str], patience: float, **how: bool
    ) -> object:
        limits.append(patience)
        return run(words, environment, 0.05, **how)

    monkeypatch.setattr(git_process, "_run", quickly)
    questions: list[Callable[[], object]] = [
        lambda: facts(repository),
        lambda: worktrees.list_worktrees(here),
        lambda: worktrees.is_clean(repository),
        lambda: worktrees.add(here, tmp_path / "new", "new"),
        lambda: changes.uncommitted_paths(str(repository), os.environ),
    ]
    for question in questions:
        with pytest.raises(StoreBusy):
            question()
    assert len(limits) == len(questions)
    assert all(0 < limit <= 120 for limit in limits)
    assert time.monotonic() - begun < 60


def test_a_checkout_that_takes_too_long_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the folder nor the branch nor a lock stays."""
    repository = made(tmp_path / "repo")
    (repository / ".gitattributes").write_text("file filter=slow\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "--quiet", "-m", "filter")
    git(repository, "config", "filter.slow.smudge", "exec sleep 600")
    before = git(repository, "for-each-ref"), git(repository, "worktree", "list")
    monkeypatch.setattr(run_git, "__defaults__", (1.0,))
    with pytest.raises(StoreBusy):
        worktrees.add(known(repository), tmp_path / "deep" / "new", "new")
    monkeypatch.undo()
    settle(monkeypatch, tmp_path / "home")
    assert (git(repository, "for-each-ref"), git(repository, "worktree", "list")) == before
    assert not (tmp_path / "deep").exists()


def test_troubles_of_the_system_are_none_of_the_callers() -> None:
    """They are told apart by how git ends its sentence; a signal is named."""
    with pytest.raises(StoreUnavailable, match="No space left on device"):
        raise_complaint("git", 128, "cannot write: No space left on device")
    with pytest.raises(StoreUnavailable, match="signal 9"):
        raise_complaint("git", -9, "")
    with pytest.raises(InvalidValue, match="gave no reason"):
        raise_complaint("git", 1, "")


@pytest.mark.parametrize(
    ("complaint", "sentence"),
    [
        ("detected dubious ownership in repository at '/a b'", "the repository at /a b belongs"),
        ("unsafe repository ('/a' is owned by someone else)", "the repository at /a belongs"),
        ("detected dubious ownership in repository at '/cut", "the repository at /cut belongs"),
        (
            "cannot use bare repository '/a' (safe.bareRepository is 'explicit')",
            "the bare repository at /a is not used",
        ),
    ],
)
def test_what_git_would_not_use_is_said_in_one_sentence(complaint: str, sentence: str) -> None:
    """As git of this and of earlier versions puts it, and without anything to delete or to run."""
    said = git_process.trust_refusal(complaint)
    assert said is not None
    assert said.startswith(sentence)
    with pytest.raises(InvalidValue, match=sentence):
        raise_complaint("git", 128, complaint)
    assert git_process.trust_refusal("not a git repository") is None


def filtered(folder: Path, name: str) -> Path:
    """A repository in which every text goes through a filter of this name."""
    repository = made(folder / "repo")
    (repository / ".gitattributes").write_text(f"file filter={name}\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "--quiet", "-m", "attributes")
    return repository


def runs(tmp_path: Path, then: str) -> str:
    """A filter that leaves a trace."""
    return f"touch '{tmp_path}/ran'; {then}"


def touch(path: Path) -> None:
    os.utime(path, (1, 1))


def test_a_filter_of_the_user_runs_and_one_of_the_repository_does_not(tmp_path: Path) -> None:
    """Where both name one, the user's counts, and files are what it makes of them."""
    repository = filtered(tmp_path, "up")
    own = tmp_path / "settings"
    command = runs(tmp_path, "tr a-z A-Z")
    git(tmp_path, "config", "--file", own, "filter.up.clean", command)
    git(repository, "config", "filter.up.clean", "tr a-z A-Z")
    git(repository, "add", "--renormalize", "file")
    git(repository, "commit", "--quiet", "-m", "in capitals")
    git(repository, "config", "filter.up.clean", f"touch '{tmp_path}/pwned'; cat")
    git(repository, "config", "filter.up.required", "true")
    touch(repository / "file")
    variables = {**os.environ, "GIT_CONFIG_GLOBAL": str(own)}
    assert changes.uncommitted_paths(str(repository), variables) == set()
    assert (tmp_path / "ran").exists()
    # Without the user's own, a file whose time has changed counts as changed.
    touch(repository / "file")
    assert changes.uncommitted_paths(str(repository), os.environ) == {"file"}
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("key", ["clean", "process"])
@pytest.mark.parametrize("name", ["plain", "wíth.dots and blanks", "UPPER", 'quo"ted', "a=b"])
def test_a_filter_of_any_name_is_left_out(key: str, name: str, tmp_path: Path) -> None:
    """One that cannot be left out makes the question unanswered, and does not run either."""
    repository = filtered(tmp_path, name)
    git(repository, "config", f"filter.{name}.{key}", runs(tmp_path, "cat"))
    git(repository, "config", f"filter.{name}.required", "true")
    touch(repository / "file")
    ended, told, complaint = status(str(repository), os.environ, 60, untracked="normal")
    assert not (tmp_path / "ran").exists()
    if "=" in name:
        assert (ended, told) == (128, b"")
        assert "nothing was compared" in complaint
        assert changes.uncommitted_paths(str(repository), os.environ) is None
        with pytest.raises(InvalidValue, match="nothing was compared"):
            worktrees.is_clean(repository)
    else:
        assert ended == 0
        assert b"file" not in told


def test_a_filter_that_an_included_file_names_is_the_repositorys(tmp_path: Path) -> None:
    """Whose settings they are is told by the file that includes them."""
    repository = filtered(tmp_path, "far")
    more = tmp_path / "more"
    git(tmp_path, "config", "--file", more, "filter.far.clean", runs(tmp_path, "cat"))
    git(repository, "config", "include.path", more)
    touch(repository / "file")
    assert changes.uncommitted_paths(str(repository), os.environ) == set()
    assert not (tmp_path / "ran").exists()
