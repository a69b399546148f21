"""Keeps the herd of `serve --demo` at work: `python -m herdbook.entrypoints.demo.herd PACE`.

Its working folder is the main worktree. It starts a process for each agent, starts it again when it
ended, kills one now and then, grades what they deliver, and plans more when nothing is left. It
ends, and all agents with it, when its standard input does: with whoever started it.
"""

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from herdbook.adapters.git.worktree_list import list_worktrees
from herdbook.domain.errors import AlreadyExists, HerdbookError
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import ExecutionMode, InitiativeStatus, TaskStatus
from herdbook.domain.plan_text.markdown import read_markdown
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.demo import herd_plan
from herdbook.entrypoints.demo.sandbox import Crew
from herdbook.entrypoints.hooks import spool_flush
from herdbook.entrypoints.operations.agents.handlers import find_crashed
from herdbook.services.plan_text.import_export import import_plan

LOOK: Final = 0.5
"""Seconds between two looks at what is new."""
STAGGER, GRADED, RESTART, IDLE, KILL, TIDY = 1.5, 5.0, 15.0, 10.0, 150.0, 10.0
"""Seconds: between two starts, until a grade, until an agent comes back, without anything ready
until more is planned, between two kills, and between two looks at finished initiatives."""


class Herd(Crew):
    """The processes of the agents, and what is due to happen."""

    def __init__(self, app: AppContext, pace: str) -> None:
        super().__init__(app, "live_agent", pace, subprocess.DEVNULL)
        self.chance = Random()  # noqa: S311 - a herd does not do the same twice
        self.starts = {
            each.name: self.later(number * STAGGER)
            for number, each in enumerate(herd_plan.AGENTS, start=1)
        }
        self.grades: list[tuple[float, str, str]] = []  # when, agent and task
        self.seen = app.read(Area.WORK, lambda uow: uow.journal.last())
        self.planned = len(self.call("initiative.list"))
        self.idle_until = self.later(IDLE)
        self.kill_at = self.later(KILL)
        self.tidy_at = self.later(TIDY)

    def later(self, seconds: float) -> float:
        """The time so many seconds from now, at the pace of this herd."""
        return time.monotonic() + seconds * float(self.pace)

    def step(self) -> None:
        """Do everything that is due."""
        self.start_agents()
        self.note_completed()
        self.grade_commits()
        now = time.monotonic()
        if self.call("board", limit=1)["tasks"]["ready"]:
            self.idle_until = self.later(IDLE)
        elif now >= self.idle_until:
            self.plan_more()
        if now >= self.kill_at:
            self.kill_one()
        if now >= self.tidy_at:
            self.close_initiatives()

    def start_agents(self) -> None:
        """Start the agents that are due, and plan the return of those that ended."""
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                del self.processes[name]
                self.starts[name] = self.later(RESTART)
        for name, at in list(self.starts.items()):
            if time.monotonic() >= at:
                del self.starts[name]
                self.start(name, self.folder_of(herd_plan.BY_NAME[name].worktree))

    def folder_of(self, branch: str) -> Path:
        """The worktree of a branch; the main one if somebody has removed it."""
        facts = self.app.workspace.facts
        worktrees = [] if facts is None else list_worktrees(facts)
        found = [each.path for each in worktrees if each.branch == branch]
        return Path(found[0]) if found else self.app.workspace.folder

    def note_completed(self) -> None:
        """Note which tasks were completed, so that they are graded soon."""
        for entry in self.read_journal():
            done = (entry.after or {}).get("status") == TaskStatus.COMPLETED
            if entry.entity == "tasks" and done and entry.agent in herd_plan.BY_NAME:
                self.grades.append((self.later(GRADED), entry.agent, entry.key))

    def grade_commits(self) -> None:
        """Grade what was delivered a while ago, unless the visitor has done it."""
        now = time.monotonic()
        due = [each for each in self.grades if each[0] <= now]
        self.grades = [each for each in self.grades if each[0] > now]
        for _, agent, task in due:
            commits = self.find_commits(task)
            if not commits:
                continue
            spool_flush.flush(self.app)
            own, yours = self.chance.choice(herd_plan.BY_NAME[agent].grades)
            given = {"agent": agent, "commit": commits[0]}
            with suppress(AlreadyExists):
                self.call("grade", **given, self=own.label, user=yours.label)

    def plan_more(self) -> None:
        """Import the next plan; from the second round on under a name of its own."""
        again, at = divmod(self.planned, len(herd_plan.PLANS))
        head, _, rest = herd_plan.PLANS[at].partition("\n")
        text = f"{head} ({again + 1})\n{rest}" if again else f"{head}\n{rest}"
        self.app.run(Area.WORK, import_plan, read_markdown(text.encode()))
        self.planned += 1
        self.idle_until = self.later(IDLE)

    def kill_one(self) -> None:
        """Kill the process of an agent that works, as a full memory would; it is found crashed."""
        self.kill_at = self.later(KILL)
        working = [each["name"] for each in self.call("agent.list", status="running")]
        names = [name for name in self.processes if name in working]
        if names:
            process = self.processes[self.chance.choice(names)]
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            find_crashed(self.app)

    def close_initiatives(self) -> None:
        """Complete initiatives of which everything is done and that nobody wants to review."""
        self.tidy_at = self.later(TIDY)
        for each in self.call("initiative.list", status=InitiativeStatus.ACTIVE):
            if each["execution_mode"] != ExecutionMode.YOLO:
                continue
            now = self.call("progress", initiative=each["id"])["now"]
            age = datetime.now(UTC) - datetime.fromisoformat(each["updated_at"])
            if now["done"] == now["total"] and age > timedelta(seconds=TIDY):
                self.call("initiative.set", id=each["id"], status=InitiativeStatus.COMPLETED)


def main(pace: str) -> None:
    """Keep the herd at work until standard input ends."""
    app = AppContext.at(Path.cwd(), os.environ)
    with app.stores.hold():
        herd = Herd(app, pace)
        try:
            while not select.select([sys.stdin], [], [], LOOK)[0]:
                with suppress(HerdbookError):  # whoever looks may remove what is worked on
                    herd.step()
        finally:
            herd.end_processes()


if __name__ == "__main__":
    main(*sys.argv[1:])
