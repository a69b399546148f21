"""A process that was stopped while it holds the store makes others give up after one patience."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Person

PATIENCE = 6.0
"""Long enough that a machine's being busy for a moment does not look like a second wait."""
HOLDER = """
import sys
from herdbook.adapters import open_store
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from herdbook.adapters.system.ids import random_id

with open_store(sys.argv[1]) as store:
    with unit_of_work(store, "work/held", ids=random_id) as uow:
        uow.tasks.add(Task(name="never there"))
        print("holding", flush=True)
        sys.stdin.readline()
"""
COMMANDS = [
    ("status",),
    ("task", "list"),
    ("task", "add", "x"),
    ("board",),
    ("journal", "list"),
    ("sql", "SELECT 1 AS a"),
]


@pytest.fixture
def held(person: Person, app: Path) -> Path:
    """A repository with a DuckDB store."""
    person.chooses("duckdb", f"patience = {PATIENCE}")
    person.runs(app, "task", "add", "the first")
    return app


def seconds(person: Person, folder: Path, *words: str) -> tuple[float, int, str]:
    """How long a command takes, how it ends, and what it says."""
    begun = time.monotonic()
    told = person.starts(folder, *words)
    return time.monotonic() - begun, told.returncode, told.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_gives_up_after_one_patience(
    person: Person, held: Path, words: tuple[str, ...]
) -> None:
    """It names the process that holds the store, and does not wait a second time."""
    free, code, _ = seconds(person, held, *words)
    assert code == 0
    store = person.asks(held, "where")["areas"]["work"]["url"]
    command = [sys.executable, "-c", HOLDER, store]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "holding\n"
            holder.send_signal(signal.SIGSTOP)
            waited, code, said = seconds(person, held, *words)
        finally:
            holder.kill()
    assert code != 0
    assert f"process {holder.pid} " in said
    assert waited >= PATIENCE
    # To start takes as long as without the holder, at most; on a busy machine that is seconds.
    assert waited < free + 1.3 * PATIENCE
