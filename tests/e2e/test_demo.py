"""`herdbook demo`: the whole story with real processes, and what happens when it is disturbed."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from herdbook.adapters import open_store
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.demo.scenario import AGENTS, HALTED, KILLED, QUESTIONS, TRAILER
from herdbook.ports.unit_of_work.run import read
from herdbook.services.stores.store_check import check
from tests.e2e.conftest import PROGRAM, Files, Person
from tests.e2e.demo_checks import (
    TASKS,
    DemoResult,
    GitCommit,
    problems,
    read_record,
    read_work,
)
from tests.unit.entrypoints.terminals import Terminal

CAME = re.compile(r"(\S+) comes to work in '(\S+)', as process (\d+)\n")
PATIENCE = 120
"""How many seconds count as stuck; it decides nothing else."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    return folder


Demo = tuple[subprocess.Popen[str], dict[str, int]]
"""A demo, and the processes of its agents by their names."""


@contextmanager
def under_way(person: Person, place: Path) -> Iterator[Demo]:
    """A demo that nobody will see the end of, once all agents have come."""
    with subprocess.Popen(
        [PROGRAM, "demo", "--pace", "slow"],
        env={**person.variables, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        try:
            assert demo.stdout is not None
            pids: dict[str, int] = {}
            while len(pids) < len(AGENTS):
                line = demo.stdout.readline()
                assert line, demo.communicate()[1]
                if came := CAME.fullmatch(line):
                    pids[came[1]] = int(came[3])
            yield demo, pids
        finally:
            demo.kill()


def wait_until_gone(pids: dict[str, int]) -> None:
    """Wait until none of these processes runs any more."""
    found = [psutil.Process(pid) for pid in pids.values() if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(found, timeout=PATIENCE)
    assert alive == []


def test_the_demo_tells_the_story_and_leaves_nothing(
    person: Person, place: Path, everything_in: Callable[[Path], Files]
) -> None:
    """From the first claim to the last commit; neither its folder nor anything at home is left."""
    before = everything_in(person.home)
    story = person.runs(person.home, "demo", "--pace", "fast", TMPDIR=str(place))
    killed, halted = KILLED.name, HALTED.name
    assert len(CAME.findall(story)) == len(AGENTS)
    assert {where for _, where, _ in CAME.findall(story)} == {"main", "service", "page"}
    for agent in AGENTS:
        question, reply = QUESTIONS[agent.name]
        assert f"{agent.name} claims '" in story
        assert f"{agent.name} asks {agent.asks}: {question}" in story
        assert f"{agent.asks} answers: {reply}" in story
    assert story.index(f"{killed} at {TASKS[0].name!r}") < story.index(f"{killed} is found crashed")
    assert f"{halted} claims in vain (AgentHalted: " in story
    for task in TASKS:
        assert story.count(f" completes {task.name!r}: ") == 1
    assert f"all {len(TASKS)} tasks are done, each once, and every check passes" in story
    assert story.count("\n  herdbook ") == 3
    assert list(place.iterdir()) == []
    assert everything_in(person.home) == before


def result_in(person: Person, folder: Path) -> DemoResult:
    """What a demo left in its folder: in both stores, and in git."""
    fields = f"--format=%H%x09%an%x09%(trailers:key={TRAILER},valueonly)"
    log = person.git(folder / "app", "log", "--all", fields).splitlines()
    commits = [line.split("\t") for line in log]
    work_folder = folder / "app" / ".git" / "herdbook" / "work.lmdb"
    record_folder = folder / "home" / ".local" / "share" / "herdbook" / "record.lmdb"
    with (
        open_store(f"lmdb://{work_folder}", area=Area.WORK) as work,
        open_store(f"lmdb://{record_folder}", area=Area.RECORD) as record,
    ):
        (work_space,), (record_space,) = work.spaces(), record.spaces()
        left = read(work, work_space, read_work)
        return DemoResult(
            **left,
            **read(record, record_space, read_record),
            git_commits=[GitCommit(*each) for each in commits if each[-1]],
            flaws=[*check(work), *check(record)],
            exit_codes={
                each.name: -9 if each.status == "crashed" else each.exit_code
                for each in left["agents"]
            },
        )


def test_what_is_kept_can_be_looked_at(
    person: Person, place: Path, everything_in: Callable[[Path], Files]
) -> None:
    """With --keep: a real repository, real stores, and commands to try that work as printed."""
    told = person.runs(
        person.home, "demo", "--pace", "fast", "--keep", "--json", TMPDIR=str(place)
    ).splitlines()
    *story, report = (json.loads(line) for line in told)
    assert all(list(each) == ["event"] for each in story)
    assert (report["ok"], report["problems"]) == (True, [])
    assert len(report["journal"]) == 10
    (folder,) = place.iterdir()
    assert Path(report["folder"]).samefile(folder)
    log = person.git(folder / "app", "log", "--all", "--format=%s %an").splitlines()
    done = [f"{task} {each['agent']}" for each in report["agents"] for task in each["tasks"]]
    assert sorted(log) == sorted([*done, "begin you"])
    assert problems(result_in(person, folder)) == []
    shell = shutil.which("sh")
    assert shell is not None
    before = everything_in(person.home)
    path = f"{PROGRAM.parent}{os.pathsep}{person.variables['PATH']}"
    for command in report["next"]:
        ended = subprocess.run(
            [shell, "-c", command],
            env={**person.variables, "PATH": path},
            check=False,
            capture_output=True,
            text=True,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        assert ended.stdout
    assert everything_in(person.home) == before


@contextmanager
def on_terminal(person: Person, place: Path, pace: str, kind: str) -> Iterator[Terminal]:
    """A demo on a terminal of some kind."""
    screen, line = pty.openpty()
    demo = subprocess.Popen(
        [PROGRAM, "demo", "--pace", pace],
        stdin=line,
        stdout=line,
        stderr=line,
        start_new_session=True,
        env={
            **person.variables,
            "TMPDIR": str(place),
            "TERM": kind,
            "COLUMNS": "100",
            "LINES": "30",
        },
    )
    os.close(line)
    try:
        yield Terminal(screen, demo)
    finally:
        demo.kill()
        demo.wait()
        os.close(screen)


def test_on_a_terminal_there_is_a_board(person: Person, place: Path) -> None:
    """It has the screen for itself while the story goes on, and the report follows it."""
    with on_terminal(person, place, "fast", "xterm-256color") as terminal:
        terminal.wait_for(re.escape("\x1b[?1049h"))
        terminal.wait_for(r"tasks: .*let people sign in.*of 5 done.* claims '")
        terminal.wait_for(re.escape("\x1b[?1049l"))
        terminal.wait_for("what each did.*every check passes.*try next")
        assert terminal.end() == 0


def test_a_terminal_that_cannot_draw_shows_the_story(person: Person, place: Path) -> None:
    """Line by line, as in a pipe."""
    with on_terminal(person, place, "fast", "dumb") as terminal:
        terminal.wait_for(f"\n{AGENTS[0].name} claims '.*what each did.*every check passes")
        assert terminal.end() == 0
        assert "\x1b" not in terminal.shown


def test_control_c_on_the_board_leaves_the_terminal_as_it_was(person: Person, place: Path) -> None:
    """And nothing else."""
    with on_terminal(person, place, "slow", "xterm-256color") as terminal:
        terminal.wait_for(" claims '")  # of any: the screen has room for the last lines only
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for(re.escape("\x1b[?1049l"))
        assert terminal.end() == 130
        assert "Traceback" not in terminal.shown
        assert list(place.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_interrupts_the_demo_finds_nothing_left(
    person: Person, place: Path, number: signal.Signals
) -> None:
    """The agents' processes are ended and the folder is gone."""
    with under_way(person, place) as (demo, pids):
        demo.send_signal(number)
        _, complaint = demo.communicate(timeout=PATIENCE)
        assert (demo.returncode, complaint) == (130, "")
        assert not any(psutil.pid_exists(pid) for pid in pids.values())
        assert list(place.iterdir()) == []


def test_a_reader_that_leaves_ends_the_demo(person: Person, place: Path) -> None:
    """`herdbook demo | head` leaves neither processes nor a folder."""
    with under_way(person, place) as (demo, pids):
        assert demo.stdout is not None
        demo.stdout.close()
        assert demo.wait(PATIENCE) == 0
        assert not any(psutil.pid_exists(pid) for pid in pids.values())
        assert list(place.iterdir()) == []


def test_agents_end_when_nobody_directs_them(person: Person, place: Path) -> None:
    """A demo that is killed outright takes its agents with it."""
    with under_way(person, place) as (demo, pids):
        demo.kill()
        demo.wait(PATIENCE)
        wait_until_gone(pids)


def test_an_agent_that_dies_unasked_is_told(person: Person, place: Path) -> None:
    """The demo says which one and ends with 1."""
    with under_way(person, place) as (demo, pids):
        last = AGENTS[-1].name
        os.kill(pids[last], signal.SIGKILL)
        story, _ = demo.communicate(timeout=PATIENCE)
        assert demo.returncode == 1
        assert f"problem: the process of {last} ended with -9, unasked" in story
        assert list(place.iterdir()) == []


def test_what_is_off_ends_the_board_with_1(person: Person, place: Path) -> None:
    """A terminal learns of it as a pipe does."""
    with on_terminal(person, place, "slow", "xterm-256color") as terminal:
        terminal.wait_for(" claims '")  # of any: the screen has room for the last lines only
        last = AGENTS[-1].name
        agents = psutil.Process(terminal.process.pid).children()
        (agent,) = (each for each in agents if last in each.cmdline())
        agent.kill()
        terminal.wait_for(f"problem: the process of {last} ended with -9, unasked")
        assert terminal.end() == 1
