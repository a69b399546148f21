"""Hooks as agents and git start them, many at once, while somebody reads and is killed."""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from herdbook.adapters.user_state import spool
from herdbook.entrypoints.hooks.hosts import local_command
from tests.e2e.conftest import PROGRAM, Files, Person

CROWD = 200
HEAVY = {"re", "json", "argparse", "pathlib", "attr", "herdbook.entrypoints.cli.run_command"}
READER = """
import os, signal, sys
from herdbook.adapters.user_state import spool
spool.QUIET_SECONDS = float(sys.argv[1])
while True:
    taken = spool.take_batch()
    with open(sys.argv[2], "a") as store:
        for event in taken:
            store.write(event.id + " " + str(event.raw["n"]) + "\\n")
        store.flush()
        os.fsync(store.fileno())
    taken.confirm()
"""


def start_all(person: Person, numbers: Iterable[int]) -> list[subprocess.Popen[bytes]]:
    """Start a hook for each number, all at once."""
    started = []
    for number in numbers:
        hook = subprocess.Popen(
            shlex.split(local_command("PostToolUse")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=person.variables,
        )
        assert hook.stdin is not None
        hook.stdin.write(json.dumps({"n": number, "text": "x" * (number * 50)}).encode())
        started.append(hook)
    for hook in started:
        assert hook.stdin is not None
        hook.stdin.close()
    return started


def end_all(hooks: list[subprocess.Popen[bytes]]) -> None:
    """Wait for all of them; each must have said nothing and ended well."""
    for hook in hooks:
        assert hook.stdout is not None
        assert hook.stdout.read() == b""
        hook.stdout.close()
        assert hook.wait() == 0


def test_two_hundred_hooks_at_once_lose_nothing(person: Person) -> None:
    """Every one has left its own line, whole."""
    end_all(start_all(person, range(CROWD)))
    taken = spool.take_batch()
    assert sorted(each.raw["n"] for each in taken) == list(range(CROWD))
    assert taken.aside == []
    assert len({each.id for each in taken}) == CROWD


@pytest.mark.parametrize("quiet", [60.0, -1.0], ids=["kept", "at-once"])
def test_a_reader_that_is_killed_again_and_again_loses_nothing(
    person: Person, tmp_path: Path, quiet: float
) -> None:
    """What hooks leave meanwhile is read by the next one; doubles have the same id.

    Also where a file that was read goes at once, so that hooks meet files that are gone.
    """
    store = tmp_path / "store"
    for round_number in range(5):
        reader = subprocess.Popen(
            [sys.executable, "-c", READER, str(quiet), str(store)], env=person.variables
        )
        end_all(start_all(person, range(round_number * 40, round_number * 40 + 40)))
        reader.send_signal(signal.SIGKILL)
        reader.wait()
    kept = dict(line.split() for line in store.read_text().splitlines() if " " in line)
    kept |= {each.id: str(each.raw["n"]) for each in spool.take_batch()}
    assert sorted(int(number) for number in kept.values()) == list(range(CROWD))
    assert spool.read_rejected() == []


def test_a_hook_typed_by_hand_spools_as_the_installed_one(person: Person, tmp_path: Path) -> None:
    """With the agent and the session that the variables name."""
    told = person.tries(
        tmp_path, "hook", "Stop", stdin='{"a": 1}', HERDBOOK_AGENT="otter", HERDBOOK_SESSION="s"
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    (event,) = spool.take_batch()
    assert (event.event, event.cwd, event.raw) == ("Stop", str(tmp_path), {"a": 1})
    assert event.env == {"HERDBOOK_AGENT": "otter", "HERDBOOK_SESSION": "s"}


def test_a_hook_typed_by_hand_imports_nothing_heavy(person: Person, tmp_path: Path) -> None:
    """Neither the command line nor what it stands on."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", PROGRAM, "hook", "Stop"],
        cwd=tmp_path,
        env=person.variables,
        input=b"{}",
        capture_output=True,
        check=True,
    )
    bare = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "pass"],
        env=person.variables,
        capture_output=True,
        check=True,
    )
    before, loaded = (
        {line.split(b"|")[-1].strip().decode() for line in each.stderr.splitlines()}
        for each in (bare, told)
    )
    assert "herdbook.entrypoints.hooks.hook" in loaded
    assert HEAVY & (loaded - before) == set()


def test_installing_for_a_project_and_taking_it_out_changes_nothing(
    person: Person, app: Path, everything_in: Callable[[Path], Files]
) -> None:
    """For every program there is, in the worktree and in git's own folder."""
    before = everything_in(app)
    targets = ("claude-code", "codex", "opencode", "git")
    (app / "sub").mkdir()
    for target in targets:
        words = ("hooks", "install", target, "--project")
        shown = person.asks(app / "sub", *words, "--preview")
        assert (shown["done"], bool(shown["changes"])) == (False, True)
        done = person.asks(app / "sub", *words)
        assert (done["done"], done["changes"]) == (True, shown["changes"])
        assert person.asks(app / "sub", *words)["changes"] == []
    assert (app / ".claude" / "settings.local.json").exists()
    for target in targets:
        person.runs(app / "sub", "hooks", "uninstall", target, "--project")
    (app / "sub").rmdir()
    assert everything_in(app) == before


def test_git_has_no_hooks_of_a_user(person: Person, app: Path) -> None:
    """And nothing is for the project and the user at once."""
    for words, reason in (
        (("git", "--user"), "belong to a repository"),
        (("codex", "--project", "--user"), "not both"),
    ):
        told = person.tries(app, "hooks", "install", *words)
        assert told.returncode == 2
        assert reason in told.stderr
    assert list(person.home.iterdir()) == []


def test_the_end_of_a_session_brings_the_spool_into_the_record(person: Person, app: Path) -> None:
    """The hook hands over to a process of its own and is gone; nothing waits after a while."""
    told = {"session_id": "s1", "hook_event_name": "PostToolUse", "tool_name": "Bash"}
    me = {"HERDBOOK_AGENT": "brisk-otter"}
    for event in ("PostToolUse", "PostToolUse", "SessionEnd"):
        given = json.dumps({**told, "hook_event_name": event})
        ended = person.tries(app, "hook", event, stdin=given, **me)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    events = spool.folder() / "events.jsonl"
    for _ in range(600):
        if not events.exists() and (person.data / "record.lmdb" / "herdbook.json").exists():
            break
        time.sleep(0.1)
    (standing,) = person.asks(app, "standing", "brisk-otter")
    assert standing["experience_points"] == 2
    assert not events.exists()


def test_a_push_brings_the_spool_into_the_record(person: Person, app: Path, tmp_path: Path) -> None:
    """By the hook that is installed for git; committing alone writes to no store."""
    person.runs(app, "hooks", "install", "git")
    person.git(tmp_path, "init", "--quiet", "--bare", "remote.git")
    person.git(app, "remote", "set-url", "origin", str(tmp_path / "remote.git"))
    person.variables["HERDBOOK_AGENT"] = "brisk-otter"
    person.git(app, "commit", "--quiet", "--allow-empty", "--message=work")
    record = person.data / "record.lmdb" / "herdbook.json"
    events = spool.folder() / "events.jsonl"
    assert (events.exists(), record.exists()) == (True, False)
    person.git(app, "push", "--quiet", "origin", "main")
    for _ in range(600):
        if not events.exists() and record.exists():
            break
        time.sleep(0.1)
    assert not events.exists()
    (standing,) = person.asks(app, "standing", "brisk-otter")
    assert (standing["commits"], standing["experience_points"]) == (1, 5)


def test_a_command_is_worth_two_points_and_writes_to_no_store(person: Person, app: Path) -> None:
    """As OpenCode tells of one."""
    me = {"HERDBOOK_AGENT": "brisk-otter"}
    person.tries(app, "hook", "command.executed", stdin=json.dumps({"session_id": "s1"}), **me)
    assert not (person.data / "record.lmdb").exists()
    (standing,) = person.asks(app, "standing", "brisk-otter")
    assert standing["experience_points"] == 2
