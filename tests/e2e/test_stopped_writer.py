"""The program answers while another process is stopped in the midst of a write."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import PROGRAM, Person

STOPS = """
import os, signal, sys
from pathlib import Path

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.context import AppContext
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work

here = AppContext.at(Path.cwd(), os.environ)
with here.open(Area.WORK) as store, unit_of_work(store, here.workspace.space(Area.WORK)) as uow:
    uow.tasks.add(Task(name="of the one that was stopped"))
    os.kill(os.getpid(), signal.SIGSTOP)
    uow.commit()
"""
LIMIT = 60.0
"""A command that waits for ever is far beyond this."""
INTERRUPTED = 130


@contextmanager
def stopped_writer(person: Person, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of this person that is stopped in the midst of a write."""
    process = subprocess.Popen([sys.executable, "-c", STOPS], cwd=folder, env=person.variables)
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        yield process
    finally:
        process.send_signal(signal.SIGCONT)
        assert process.wait(LIMIT) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("status",),
        ("board",),
        ("journal", "list"),
        ("task", "list"),
        ("check",),
        ("sql", "SELECT name FROM tasks"),
        ("where",),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_what_only_reads_answers(words: tuple[str, ...], person: Person, app: Path) -> None:
    """It shows what was committed before, and does not wait."""
    person.runs(app, "task", "add", "before")
    with stopped_writer(person, app):
        ended = subprocess.run(
            [PROGRAM, *words],
            cwd=app,
            env=person.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
    assert ended.returncode == 0, ended.stderr
    assert "of the one that was stopped" not in ended.stdout
    if words[0] in ("board", "task", "sql"):
        assert "before" in ended.stdout


def test_what_writes_gives_up_and_names_the_process(person: Person, app: Path) -> None:
    """With the patience that is set, and with the exit code of a conflict."""
    person.chooses("lmdb", "patience = 1.5")
    person.runs(app, "task", "add", "before")
    with stopped_writer(person, app) as writer:
        ended = person.tries(app, "task", "add", "mine")
    assert ended.returncode == 4
    assert f"is held by process {writer.pid} (python) since " in ended.stderr
    assert "gave up after 1.5 s. Nothing was written" in ended.stderr
    assert "mine" not in person.runs(app, "task", "list")
    assert "of the one that was stopped" in person.runs(app, "task", "list")


@pytest.mark.parametrize("engine", ["lmdb", "duckdb"])
def test_an_interrupt_ends_a_command_that_waits(person: Person, app: Path, engine: str) -> None:
    """As every program ends that somebody has had enough of, hours before its patience does."""
    person.chooses(engine, "patience = 7200")
    person.runs(app, "task", "add", "before")
    with stopped_writer(person, app):
        words = [PROGRAM, "task", "add", "mine"]
        waiting = subprocess.Popen(words, cwd=app, env=person.variables)
        time.sleep(2.0)
        assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(LIMIT) == INTERRUPTED
    assert "mine" not in person.runs(app, "task", "list")
