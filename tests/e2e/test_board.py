"""The board and the plan, from the keyboard: once, watched, piped and for documents."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import PROGRAM, Person, at_work
from tests.e2e.test_command_line import HEAVY, loaded
from tests.unit.entrypoints.terminals import STUCK, Terminal

ALTERNATE, BACK = "\x1b[?1049h", "\x1b[?1049l"
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"


def plan(person: Person, folder: Path) -> dict[str, str]:
    """An initiative with two tasks in a phase, one after the other, by the names of their rows."""
    ids = {"login": person.asks(folder, "initiative", "add", "login")["id"]}
    words = ("phase", "add", "schema", "--initiative", ids["login"], "--status", "approved")
    ids["schema"] = person.asks(folder, *words)["id"]
    for name in ("tables", "parser"):
        ids[name] = person.asks(folder, "task", "add", name, "--phase", ids["schema"])["id"]
    person.runs(folder, "task", "after", ids["parser"], ids["tables"])
    return ids


def test_progress_tells_phases_pace_and_forecast(person: Person, app: Path) -> None:
    """A plan without tasks, one of two tasks of which one is done, and names that nobody knows."""
    assert "has no tasks" in person.runs(app, "progress")
    ids = plan(person, app)
    person.runs(app, "agent", "add", "otter")
    claim = person.asks(app, "claim", "--agent", "otter")
    person.runs(app, "task", "complete", claim["task"]["id"], "--fence", str(claim["fence"]))
    person.runs(app, "task", "add", "loose")
    text = person.runs(app, "progress")
    assert "1 of 3 tasks done, 2 left" in text
    assert re.search(r"schema .*1 of 2\n", text)
    assert re.search(r"without a phase .*0 of 1\n", text)
    assert "completed: 1 in the last hour" in text
    assert "forecast: unknown" in text
    told = person.asks(app, "progress", "--initiative", "login")
    assert (told["now"]["done"], told["now"]["total"]) == (1, 2)
    assert told["phases"][0]["id"] == ids["schema"]
    assert "nobody" in person.tries(app, "progress", "--initiative", "nobody").stderr


def resize(screen: int, lines: int, columns: int) -> None:
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


@contextmanager
def on_a_terminal(
    person: Person, folder: Path, *words: str, **variables: str
) -> Iterator[tuple[Terminal, int]]:
    """A command on a terminal of 40 lines and 120 columns, and the terminal itself."""
    screen, line = pty.openpty()
    resize(screen, 40, 120)
    process = subprocess.Popen(
        [PROGRAM, *words],
        cwd=folder,
        env={**person.variables, "TERM": "xterm-256color", **variables},
        stdin=line,
        stdout=line,
        stderr=line,
        start_new_session=True,
    )
    os.close(line)
    try:
        yield Terminal(screen, process), screen
    finally:
        process.kill()
        process.wait()
        os.close(screen)


def test_the_board_shows_the_plan_and_who_holds_what(person: Person, app: Path) -> None:
    """For people in words, for programs as JSON."""
    ids = plan(person, app)
    at_work(person, app, "brisk-otter")
    text = person.runs(app, "board")
    assert "login  active, review_per_phase" in text
    assert re.search(r"held +\* \w{6}  tables +brisk-otter, ", text)
    assert re.search(r"waiting +\* \w{6}  parser +for tables", text)
    assert "* critical path: tables → parser" in text
    answer = person.asks(app, "board", "--initiative", ids["login"])
    (phase,) = answer["initiatives"][0]["phases"]
    (held,) = phase["tasks"]["held"]["shown"]
    assert (held["id"], held["agent"], held["critical"]) == (ids["tables"], "brisk-otter", True)
    assert held["waits_for_you"] is False
    assert answer["tasks"]["waiting"] == 1


def test_before_anything_is_planned_the_board_says_so(person: Person, app: Path) -> None:
    """No store is no error, and none is made by looking."""
    assert "the plan is empty" in person.runs(app, "board")
    assert "nothing is left to do" in person.runs(app, "plan")
    assert not (app / ".herdbook").exists()


def test_the_plan_is_drawn_as_a_tree_and_for_documents(person: Person, app: Path) -> None:
    """One format at a time."""
    ids = plan(person, app)
    assert person.runs(app, "plan").splitlines()[2:] == [
        "1 * tables     ready",
        "2 * └─ parser  waiting",
    ]
    assert person.runs(app, "plan", "--mermaid").startswith("flowchart LR\n  subgraph p1")
    text = person.runs(app, "plan", "--dot", "--phase", ids["schema"])
    assert text.startswith("digraph plan {")
    answer = person.asks(app, "plan", "--dot", "--initiative", ids["login"])
    assert answer["text"] == text.removesuffix("\n")
    assert [task["after"] for task in answer["tasks"]] == [[], [ids["tables"]]]
    assert person.tries(app, "plan", "--dot", "--mermaid").returncode == 2
    assert person.runs(app, "plan", "--svg").startswith("<svg ")
    assert person.tries(app, "plan", "--dot", "--svg").returncode == 2
    assert person.tries(app, "plan", "--phase", "nobody").returncode == 3


@pytest.mark.parametrize("command", ["board", "plan"])
def test_rich_is_loaded_only_when_a_person_looks(person: Person, app: Path, command: str) -> None:
    """A pipe does not wait for colours."""
    plan(person, app)
    assert not loaded(person, app, command) & HEAVY
    with on_a_terminal(person, app, command) as (terminal, _):
        terminal.wait_for("\x1b\\[1;35m[^\n]*tables")
        assert terminal.end() == 0
    with on_a_terminal(person, app, command, NO_COLOR="1") as (terminal, _):
        assert terminal.end() == 0
        assert "tables" in terminal.shown
        assert "\x1b" not in terminal.shown


def test_a_watched_board_follows_the_plan_and_leaves_the_terminal_clean(
    person: Person, app: Path
) -> None:
    """It shows changes and new sizes; Ctrl-C is no error, and all is as it was before."""
    ids = plan(person, app)
    with on_a_terminal(person, app, "board", "--watch") as (terminal, screen):
        before = terminal.modes()
        terminal.wait_for(re.escape(ALTERNATE))
        terminal.wait_for("ready[^\n]*tables")
        person.runs(app, "task", "set", ids["tables"], "--name", "columns")
        terminal.wait_for("ready[^\n]*columns")
        resize(screen, 5, 40)
        os.kill(terminal.process.pid, signal.SIGWINCH)
        terminal.wait_for("… and [0-9]+ more lines")
        os.kill(terminal.process.pid, signal.SIGINT)
        assert terminal.end() == 0
        assert SHOWN in terminal.shown
        assert terminal.shown.rstrip().endswith(BACK)
        assert "Traceback" not in terminal.shown
        assert terminal.modes() == before


def test_a_watched_board_that_is_ended_from_outside_leaves_the_terminal_clean(
    person: Person, app: Path
) -> None:
    """With the exit code of a program that was terminated."""
    plan(person, app)
    with on_a_terminal(person, app, "board", "--watch") as (terminal, _):
        terminal.wait_for("ready[^\n]*tables")
        terminal.process.terminate()
        assert terminal.end() == 128 + signal.SIGTERM
        assert terminal.shown.rstrip().endswith(BACK)


@contextmanager
def watched(person: Person, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`board --watch --json` in a pipe."""
    process = subprocess.Popen(
        [PROGRAM, "board", "--watch", "--json"],
        cwd=folder,
        env=person.variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def line_of(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def test_a_watched_board_in_a_pipe_is_a_line_of_json_for_each_change(
    person: Person, app: Path
) -> None:
    """It begins before there is a store, which watching does not make, and ends well."""
    with watched(person, app) as process:
        assert line_of(process)["initiatives"] == []
        assert not (app / ".herdbook").exists()
        ids = plan(person, app)
        answer = line_of(process)
        while answer["tasks"]["waiting"] != 1:
            answer = line_of(process)
        person.runs(app, "task", "rm", ids["parser"], "--yes")
        after = line_of(process)
        while after["tasks"]["waiting"]:
            after = line_of(process)
        assert after["seq"] > answer["seq"]
        assert after["tasks"]["ready"] == 1
        process.send_signal(signal.SIGINT)
        out, told = process.communicate(timeout=STUCK)
        assert (process.returncode, out, told) == (0, "", "")


def test_the_board_is_used_by_keys_on_a_terminal(person: Person, app: Path) -> None:
    """Choose, look, claim, answer and quit; the terminal is as it was before."""
    plan(person, app)
    person.registers(app, "otter")
    person.runs(app, "message", "add", "which port?", "--agent", "otter")
    with on_a_terminal(person, app, "board", "--watch", HERDBOOK_AGENT="otter") as (terminal, _):
        before = terminal.modes()
        terminal.wait_for("j/k move")
        terminal.type("j")
        terminal.wait_for("> ")
        terminal.type("\r")
        terminal.wait_for("history:")
        terminal.type("x")
        terminal.wait_for("j/k move")
        terminal.type("c")
        terminal.wait_for("claimed \\w{6}  tables")
        terminal.wait_for("held")
        terminal.type("q")
        assert terminal.end() == 0
        assert terminal.shown.rstrip().endswith(BACK)
        assert terminal.modes() == before
    assert person.asks(app, "task", "show", "tables")["holder"] == "otter"
    with on_a_terminal(person, app, "board", "--watch") as (terminal, _):
        terminal.wait_for("j/k move")
        terminal.type("a")
        terminal.wait_for("answer to 'which port\\?'")
        terminal.type("8080\r")
        terminal.wait_for("message \\w{6} '8080'")
        terminal.type("q")
        assert terminal.end() == 0
    (reply,) = person.asks(app, "message", "inbox", "--agent", "otter")
    assert reply["content"] == "8080"
    person.runs(app, "agent", "wait", "otter", "--questions", "may I merge?")
    assert re.search(r"held .*tables +otter waits for you, ", person.runs(app, "board"))
    with on_a_terminal(person, app, "board", "--watch") as (terminal, _):
        terminal.wait_for("waits for you")
        terminal.type("a")
        terminal.wait_for("answer to 'may I merge\\?'")
        terminal.type("yes\r")
        terminal.wait_for("agent \\w{6} 'otter': running")
        terminal.type("q")
        assert terminal.end() == 0
    assert person.asks(app, "agent", "show", "otter")["status"] == "running"


def test_a_watched_board_finds_crashed_agents(person: Person, app: Path) -> None:
    """Nobody has to ask for it: the task of a process that is gone is free again."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    plan(person, app)
    person.runs(app, "agent", "add", "otter", "--pid", str(process.pid))
    person.runs(app, "claim", "tables", "--agent", "otter", "--ttl", "5h")
    process.kill()
    process.wait()
    with watched(person, app) as watching:
        assert watching.stdout is not None
        while json.loads(watching.stdout.readline())["tasks"]["held"]:
            pass
        watching.send_signal(signal.SIGINT)
    assert person.asks(app, "agent", "show", "otter")["status"] == "crashed"


@pytest.mark.parametrize("backend", ["lmdb", "duckdb"])
def test_a_board_of_very_many_tasks_counts_them_for_each_initiative(
    person: Person, app: Path, backend: str
) -> None:
    """Also of tasks without a phase, of which it reads only the first thousand of each state."""
    person.chooses(backend)
    sizes = {"One": 1400, "Two": 1200}
    lines = [
        line
        for name, size in sizes.items()
        for line in (f"# {name}", *(f"- [{'x '[n % 2]}] {name} {n}" for n in range(size)))
    ]
    (app / "plan.md").write_text("\n".join(lines))
    person.runs(app, "import", "plan", "plan.md")
    text = person.runs(app, "board")
    assert "tasks: 1300 ready" in text
    for name, size in sizes.items():
        part = text[text.index(f"\n{name} ") :]
        assert f"without a phase  {size // 2} of {size} done" in part
        assert f"and {size // 2 - 10} more" in part
    assert "tasks: 600 ready" in person.runs(app, "board", "--initiative", "Two")
    assert "2 of 1,200" in person.runs(app, "task", "list", "--initiative", "Two", "--limit", "2")
