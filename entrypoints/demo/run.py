"""Runs the demo: starts the agents, kills one, grades what they deliver, and reports."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any, Final

from herdbook.domain.entity import evolve
from herdbook.domain.grading import is_halted
from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import InitiativeStatus
from herdbook.domain.record.model import Commit, Standing
from herdbook.domain.record.standing import EntryContext, commit_entry, tool_entry
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.demo import sandbox
from herdbook.entrypoints.demo.checks import (
    DemoResult,
    problems,
    read_record,
    read_work,
    summary_of,
)
from herdbook.entrypoints.demo.scenario import (
    AGENTS,
    BY_NAME,
    HALTED,
    KILLED,
    MAIN,
    PACES,
    PROJECT,
    PROVIDER,
    TASKS,
    add_plan,
)
from herdbook.entrypoints.demo.sentences import sentence_of
from herdbook.entrypoints.operations.agents.handlers import find_crashed
from herdbook.entrypoints.operations.board.handlers import board
from herdbook.entrypoints.operations.serialize import to_data
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import messaging
from herdbook.services.record import grading
from herdbook.services.stores.store_check import check

Answers = Iterator[dict[str, Any]]

REDRAW: Final = 0.5
"""Seconds between two boards."""
STUCK: Final = 120.0
"""Seconds without any news after which the demo is given up; it decides nothing else."""
TOOLS: Final = 12
"""How many tool calls each task is said to have taken."""


class GivenUp(Exception):
    """The demo cannot go on."""


def demo(app: AppContext, *, pace: str, keep: bool) -> Answers:
    """Let five agents work on an initiative in a folder of their own; lines, boards, a report."""
    with sandbox.sandbox(keep=keep) as folder:
        folders = sandbox.make_repository(folder)
        there = AppContext.at(folders[MAIN], os.environ, warn=app.warn)
        with (
            there.open(Area.WORK, create=True) as work,
            there.open(Area.RECORD, create=True) as record,
        ):
            running = Demo(there, work, record, folder, pace)
            yield {"told": f"{len(AGENTS)} agents come to work in {text_of(folder)}"}
            try:
                yield from running.play(folders)
            except GivenUp as error:
                running.off.append(str(error))
                yield {"told": f"the story ends here: {error}"}
            finally:
                running.end_processes()
            yield running.report(folder if keep else None)


class Demo:
    """A demo that is running: its processes, and what has been seen in the journal."""

    def __init__(
        self, app: AppContext, work: Store, record: Store, folder: Path, pace: str
    ) -> None:
        self.app, self.folder, self.pace = app, folder, pace
        self.work = (work, app.workspace.space(Area.WORK))
        self.record = (record, app.workspace.space(Area.RECORD))
        self.off: list[str] = []
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.names: dict[str, str] = {}
        """The names of rows by their ids."""
        self.first_tasks: dict[str, str] = {}
        """The id of the first task of each agent."""
        self.seen = 0
        self.news = self.drawn = time.monotonic()

    def play(self, folders: dict[str, Path]) -> Answers:
        """Let the agents work to the end; GivenUp if a process dies unasked or nothing happens."""
        initiative = self.run(add_plan)
        for agent in AGENTS:
            self.processes[agent.name] = self.start(agent.name, folders[agent.worktree])
        yield from self.until(lambda: BY_NAME.keys() <= set(self.names.values()))
        for number, agent in enumerate(AGENTS, start=1):
            self.run(_send_begin, agent.name)
            yield from self.until(lambda count=number: len(self.first_tasks) == count)  # type: ignore[misc]
        end = time.monotonic() + PACES[self.pace].work
        yield from self.until(lambda: time.monotonic() >= end)
        victim, task = self.processes[KILLED.name], self.names[self.first_tasks[KILLED.name]]
        yield {"told": f"somebody kills process {victim.pid}: {KILLED.name} at {task!r}"}
        victim.kill()
        victim.wait()
        find_crashed(self.app)
        yield from self.until(lambda: all(p.poll() is not None for p in self.processes.values()))
        done = evolve(initiative, status=InitiativeStatus.COMPLETED)
        self.run(lambda uow: uow.initiatives.save(done))
        yield from self.look()

    def start(self, name: str, folder: Path) -> subprocess.Popen[bytes]:
        """Start the process of an agent; what it prints goes to a file."""
        module = "herdbook.entrypoints.demo.agent"
        with self.output_of(name).open("wb") as file:
            return subprocess.Popen(  # noqa: S603 - our own module, and names of the scenario
                [sys.executable, "-P", "-m", module, name, self.pace, str(os.getpid())],
                cwd=folder,
                env={**os.environ, "HERDBOOK_AGENT": name, **sandbox.author_variables(name)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                # Ctrl-C reaches this process only: it ends the agents, and the git they started.
                start_new_session=True,
            )

    def output_of(self, name: str) -> Path:
        """The file with what an agent's process printed."""
        return self.folder / f"{name}.txt"

    def end_processes(self) -> None:
        """End the processes that still run, each with its group."""
        for process in self.processes.values():
            if process.poll() is None:
                # It has not been waited for, so the number is still its own.
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def until(self, condition: Callable[[], bool]) -> Answers:
        """Watch the journal and the processes until a condition holds; GivenUp if it cannot."""
        while True:
            yield from self.look()
            for name, process in self.processes.items():
                if process.poll() and (name, process.poll()) != (KILLED.name, -signal.SIGKILL):
                    said = self.output_of(name).read_text(errors="replace").strip().splitlines()
                    ended = f"the process of {name} ended with {process.poll()}, unasked"
                    raise GivenUp(f"{ended}; the last it said: {said[-1] if said else 'nothing'}")
            if condition():
                return
            if time.monotonic() - self.news > STUCK:
                raise GivenUp(f"nothing has happened for {STUCK:g} s")
            time.sleep(PACES[self.pace].look)

    def look(self) -> Answers:
        """Read what is new in the journal, and grade what was completed as soon as it was."""
        while entries := read(*self.work, lambda uow: uow.journal.since(self.seen)):
            for entry in entries:
                self.seen, self.news = entry.seq, time.monotonic()
                self.note(entry)
                if line := sentence_of(entry, self.names):
                    yield {"told": line}
                status = (entry.after or {}).get("status")
                if (entry.entity, status) == ("tasks", "completed") and entry.agent:
                    yield {"told": self.grade(entry.agent, entry.key)}
        if sys.stdout.isatty() and time.monotonic() - self.drawn >= REDRAW:
            self.drawn = time.monotonic()
            yield {"board": board(self.app, initiative=None, watch=False)}

    def note(self, entry: JournalEntry) -> None:
        """Remember the names of new rows, and what each agent claimed first."""
        after: dict[str, Any] = dict(entry.after or {})
        if entry.op is Op.ADD:
            self.names[entry.key] = after.get("name") or after.get("branch") or entry.key
        if entry.entity == "tasks" and after.get("status") == "in_progress" and entry.agent:
            self.first_tasks.setdefault(entry.agent, entry.key)

    def grade(self, agent: str, task_id: str) -> str:
        """Grade a completed task by its commit; the sentence about it."""
        task, commits = self.names[task_id], sandbox.commits_in(self.app.workspace.folder)
        made = [each.hash for each in commits if (each.task_id, each.author) == (task_id, agent)]
        if not made:
            raise GivenUp(f"{agent} handed in {task!r} without a commit")
        standing = run(*self.record, grade, agent, task, made[0], actor=self.app.actor)
        own, yours = (given.label for given in BY_NAME[agent].grades)
        score = standing.communication_score
        line = f"{agent} calls {task!r} {own}, you call it {yours}: score {score}"
        if standing.active:
            return line
        bugs = "a bug" if standing.bugs == 1 else f"{standing.bugs} bugs"
        return f"{line}; {bugs} in it, and {agent} is halted"

    def run(self, use_case: Callable[..., Any], *args: Any) -> Any:
        """Run a use case as the person, not as an agent of this worktree."""
        return run(*self.work, use_case, *args, actor=self.app.actor)

    def report(self, kept: Path | None) -> dict[str, Any]:
        """What each agent did, how the journal ends, what is off, and what to try next."""
        outcome = DemoResult(
            **read(*self.work, read_work),
            **read(*self.record, read_record),
            git_commits=sandbox.commits_in(self.app.workspace.folder),
            flaws=[*check(self.work[0]), *check(self.record[0])],
            exit_codes={name: process.poll() for name, process in self.processes.items()},
        )
        off = self.off or problems(outcome)  # where it was given up, all else follows from that
        came = [agent for each in AGENTS for agent in outcome.agents_called(each.name)]
        last = [{**to_data(e), "name": self.names.get(e.key)} for e in outcome.journal[-10:]]
        commands = ["demo --keep", "task add 'my first task'", "status"]
        if kept is not None:
            commands = ["status", f"log list {HALTED.name}", "journal list --since 60"]
            commands = [f"-C {quote(str(kept / 'app'))} {words}" for words in commands]
        return {
            "ok": not off,
            "off": off,
            "tasks": len(TASKS),
            "agents": [summary_of(outcome, agent) for agent in came],
            "journal": last,
            "folder": None if kept is None else text_of(kept),
            "next": [f"herdbook {words}" for words in commands],
        }


def grade(uow: UnitOfWork, agent: str, task: str, commit_hash: str) -> Standing:
    """Record a commit and both grades; find bugs in the halted agent's work until it is halted.

    All in one transaction: who sees the grade sees the bugs.
    """
    on = EntryContext(agent, uow.now, project=PROJECT, provider=PROVIDER)
    committed = commit_entry(on)
    uow.ledger.add_all([tool_entry(on, TOOLS), committed])
    own, yours = BY_NAME[agent].grades
    uow.commits.add(
        Commit(
            agent=agent,
            project=PROJECT,
            commit_hash=commit_hash,
            task=task,
            experience_gained=committed.points,
            at=uow.now,
        )
    )
    graded = grading.grade(uow, agent, PROJECT, commit_hash, agent_grade=own, user_grade=yours)
    standing = graded.standing
    while agent == HALTED.name and not is_halted(standing.skill_points):
        standing = grading.report_bug(uow, agent, project=PROJECT)
    return standing


def _send_begin(uow: UnitOfWork, name: str) -> None:
    agent = uow.agents.by_name(name)
    if agent is None:
        raise GivenUp(f"{name} is not known any more")
    messaging.send(uow, "please begin", recipient_id=agent.id)
