"""A flipped byte in a DuckDB file or in its log kills nobody and is never believed."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from herdbook.adapters import open_store
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import run

SPACE = "work/here"
FLIPS = Path(__file__).with_name("duckdb_flips.py")
WRITER = """
import os, signal, sys
from herdbook.adapters import open_store
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import run

store = open_store(f"duckdb://{sys.argv[1]}")
store._file.linger = 3600
for number in range(8):
    task = Task(name=f"in the log {number}", description="x" * 300)
    run(store, "work/here", lambda uow: uow.tasks.add(task))
os.kill(os.getpid(), signal.SIGKILL)
"""


def damaged(path: Path, which: str, seed: int, count: int) -> list[str]:
    """Flip bytes of a store, or of the log that a killed writer has left; what came of each."""
    with open_store(f"duckdb://{path}") as store:
        for number in range(20):
            task = Task(name=f"task {number}", description="x" * 500)
            run(store, SPACE, lambda uow, task=task: uow.tasks.add(task))
    if which == "log":
        ended = subprocess.run([sys.executable, "-c", WRITER, path], check=False)
        assert ended.returncode == -signal.SIGKILL
    words = [sys.executable, FLIPS, path, which, str(seed), str(count)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=1_800)
    lines = ended.stdout.splitlines()
    assert (ended.returncode, ended.stderr) == (0, ""), lines[-1:]
    assert len(lines) == count
    return lines


def check(lines: list[str]) -> None:
    """Whoever reads is told of the damage, or finds everything as it was."""
    outcomes = {line.split()[-1] for line in lines}
    assert outcomes <= {"whole", "StoreDamaged", "StoreUnavailable"}, lines
    assert "StoreDamaged" in outcomes


@pytest.mark.parametrize("which", ["file", "log"])
@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_byte_is_noticed_or_means_nothing(tmp_path: Path, which: str, seed: int) -> None:
    """No signal, no other error, no other answer."""
    check(damaged(tmp_path / "store.duckdb", which, seed, 25))


@pytest.mark.soak
@pytest.mark.parametrize("which", ["file", "log"])
@pytest.mark.parametrize("seed", range(100, 110))
def test_many_flipped_bytes_are_noticed_or_mean_nothing(
    tmp_path: Path, which: str, seed: int
) -> None:
    """The same, two thousand times."""
    check(damaged(tmp_path / "store.duckdb", which, seed, 100))
