"""How long people wait for a command, over bare `python -c pass` in the same run.

The installed program is started in a real repository with a full herd, in turn with an interpreter
that does nothing. Run with `make bench`.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from herdbook.domain.agents.model import Agent
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.context import AppContext
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan.claims import claim

ROUNDS = 40
AGENTS, TASKS = 100, 1_000
BARS = {"where": 80.0, "status": 150.0, "task list": 150.0, "prime": 150.0}
PRIME_TO_STATUS = 1.2
"""How much longer than `status` `prime` may take as a whole: hosts wait for it at each start."""


def repository(folder: Path, variables: dict[str, str]) -> Path:
    """A repository with an origin, in which a hundred agents hold a task each."""
    root = folder / "app"
    git = shutil.which("git") or "git"
    for words in (
        ["init", "--quiet", str(root)],
        ["-C", str(root), "remote", "add", "origin", "https://example.com/team/app.git"],
    ):
        subprocess.run([git, *words], check=True, env=variables)
    here = AppContext.at(root, variables)
    with here.open(Area.WORK, create=True) as store:
        for use_case in (here.record_worktree, fill):
            run(store, here.workspace.space(Area.WORK), use_case, actor=here.actor)
    return root


def fill(uow: UnitOfWork) -> None:
    """Let a hundred agents work on a thousand tasks."""
    agents = uow.agents.add_all(
        [Agent(name=f"agent-{number:03}", status="running") for number in range(AGENTS)]
    )
    uow.tasks.add_all([Task(name=f"task {number}", order=number) for number in range(TASKS)])
    for agent in agents:
        claim(uow, agent.id, halts=NO_HALTS)


def main() -> int:
    """Print what each command adds to a bare interpreter; say which bars were missed."""
    program = shutil.which("herdbook", path=str(Path(sys.executable).parent))
    assert program is not None, "`make setup` installs it"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "HERDBOOK_BACKUP": "off",
            "USER": "bench",
        }
        os.environ.update(variables)  # what this process writes itself belongs there too
        root = repository(folder, variables)
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            **{command: [program, *command.split()] for command in BARS},
        }
        times: dict[str, list[float]] = {each: [] for each in commands}
        for _ in range(ROUNDS):
            for each, words in commands.items():
                start = time.perf_counter()
                subprocess.run(
                    words, check=True, cwd=root, env=variables, stdout=subprocess.DEVNULL
                )
                times[each].append((time.perf_counter() - start) * 1_000)
    bare = statistics.median(times["bare"])
    print(f"python -c pass: {bare:.1f} ms (median of {ROUNDS})")
    for command, bar in BARS.items():
        over = statistics.median(times[command]) - bare
        verdict = "" if over <= bar else "  missed"
        print(f"herdbook {command}: {over:+.1f} ms over it, bar {bar:.0f}{verdict}")
    ratio = statistics.median(times["prime"]) / statistics.median(times["status"])
    verdict = "" if ratio <= PRIME_TO_STATUS else "  missed"
    print(f"herdbook prime: {ratio:.2f} of status, bar {PRIME_TO_STATUS}{verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
