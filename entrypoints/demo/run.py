"""Runs the demo: starts the agents, kills one, and grades what they deliver."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, Final

from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.location.areas import Area
from herdbook.domain.plan_text.markdown import read_markdown
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.demo import sandbox, scenario
from herdbook.entrypoints.demo.sandbox import Crew
from herdbook.entrypoints.hooks import spool_flush
from herdbook.entrypoints.operations.agents.handlers import find_crashed
from herdbook.entrypoints.operations.board.handlers import board
from herdbook.entrypoints.operations.stores.handlers import check
from herdbook.services.plan_text.import_export import import_plan

Answers = Iterator[dict[str, Any]]

REDRAW: Final = 0.5
"""Seconds between two boards."""
STUCK: Final = 120.0
"""Seconds without any news after which the demo is given up; it decides nothing else."""
SENTENCES: Final = {
    ("agents", "add"): "{name} comes to work in {place!r}, as process {pid}",
    ("agents", "crashed"): "{name} is found crashed: its process is gone",
    ("agents", "refused"): "{name} claims in vain ({refused}: {why}) and leaves",
    ("agents", "stopped"): "{name} leaves, having done {count} tasks",
    ("tasks", "in_progress"): "{who} claims {name!r}",
    ("tasks", "completed"): "{who} completes {name!r}: {summary}",
    ("tasks", "pending"): "{name!r} is free again, and its next try is number {next_try}",
    ("tasks", "fence"): "{who} takes {name!r} over",
    ("conversations", "add"): "{who} asks {whom}: {question}",
    ("conversations", "answered"): "{who} answers: {answer}",
    ("initiatives", "add"): "the initiative {name!r} begins",
    ("initiatives", "completed"): "the initiative {name!r} is completed",
    ("phases", "completed"): "the phase {name!r} is completed",
}
"""A sentence for each event, by the kind of row and what happened to it."""


class GivenUp(Exception):
    """The demo cannot continue."""


def demo(app: AppContext, *, pace: str, keep: bool) -> Answers:
    """Let five agents work on an initiative in a folder of their own; lines, boards, a report."""
    with sandbox.sandbox(keep=keep) as folder:
        folders = sandbox.make_repository(folder)
        there = AppContext.at(folders[scenario.MAIN], os.environ, warn=app.warn)
        with there.stores.hold():
            running = Demo(there, pace)
            yield {"event": f"{len(scenario.AGENTS)} agents come to work in {text_of(folder)}"}
            try:
                yield from running.play(folders)
            except GivenUp as error:
                running.problems.append(str(error))
                yield {"event": f"the demo ends here: {error}"}
            finally:
                running.end_processes()
            report = running.report()
        commands = ["demo --keep", "task add 'my first task'", "status"]
        if keep:
            commands = ["status", f"log list {scenario.HALTED.name}", "journal list --after 60"]
            commands = [f"-C {quote(str(folders[scenario.MAIN]))} {words}" for words in commands]
        report["next"] = [f"herdbook {words}" for words in commands]
        yield {**report, "folder": text_of(folder) if keep else None}


class Demo(Crew):
    """A demo that is running: its processes, and what has been seen in the journal."""

    def __init__(self, app: AppContext, pace: str) -> None:
        super().__init__(app, "agent", pace, subprocess.PIPE)
        self.work_time, self.look_time = scenario.PACES[pace]
        self.names: dict[str, str] = {}  # of rows, by their ids
        self.first_tasks: dict[str, str] = {}  # by agent
        self.completed: list[tuple[str, str]] = []  # agent and task
        self.problems: list[str] = []
        self.news = self.drawn = time.monotonic()

    def play(self, folders: dict[str, Path]) -> Answers:
        """Let the agents work to the end; GivenUp if a process dies unasked or nothing happens."""
        added = self.app.run(Area.WORK, import_plan, read_markdown(scenario.PLAN)).added
        for agent in scenario.AGENTS:
            self.start(agent.name, folders[agent.worktree])
        yield from self.until(lambda: scenario.BY_NAME.keys() <= set(self.names.values()))
        ids = {name: key for key, name in self.names.items()}
        for number, agent in enumerate(scenario.AGENTS, start=1):
            self.call("message.add", content="begin", recipient_id=ids[agent.name])
            yield from self.until(lambda count=number: len(self.first_tasks) == count)  # type: ignore[misc]
        end = time.monotonic() + self.work_time
        yield from self.until(lambda: time.monotonic() >= end)
        victim, task = self.processes[scenario.KILLED.name], self.first_tasks[scenario.KILLED.name]
        yield {"event": f"somebody kills process {victim.pid}: {scenario.KILLED.name} at {task!r}"}
        victim.kill()
        victim.wait()
        find_crashed(self.app)
        yield from self.until(lambda: all(p.poll() is not None for p in self.processes.values()))
        self.call("initiative.set", id=added[0].id, status="completed")
        yield from self.look()

    def until(self, condition: Callable[[], bool]) -> Answers:
        """Watch the journal and the processes until a condition holds; GivenUp if it cannot."""
        while True:
            yield from self.look()
            for name, process in self.processes.items():
                killed = process.poll() == -signal.SIGKILL and name == scenario.KILLED.name
                if process.poll() and not killed:
                    output = process.communicate()[1].decode(errors="replace").strip()
                    ended = f"the process of {name} ended with {process.poll()}, unasked"
                    raise GivenUp(f"{ended}; its last output: {output[-200:] or 'none'}")
            if condition():
                return
            if time.monotonic() - self.news > STUCK:
                raise GivenUp(f"nothing has happened for {STUCK:g} s")
            time.sleep(self.look_time)  # a pace at which people can read along

    def look(self) -> Answers:
        """Read what is new in the journal, and grade what was completed as soon as it was."""
        for entry in self.read_journal():
            self.news = time.monotonic()
            after: dict[str, Any] = dict(entry.after or {})
            if entry.op is Op.ADD:
                self.names[entry.key] = after.get("name") or after.get("branch") or entry.key
            if line := sentence_of(entry, self.names):
                yield {"event": line}
            if entry.entity == "tasks" and entry.agent:
                task = self.names[entry.key]
                if after.get("status") == "in_progress":
                    self.first_tasks.setdefault(entry.agent, task)
                if after.get("status") == "completed":
                    self.completed.append((entry.agent, task))
                    yield {"event": self.grade(entry.agent, task, entry.key)}
        if sys.stdout.isatty() and time.monotonic() - self.drawn >= REDRAW:
            self.drawn = time.monotonic()
            yield {"board": board(self.app, initiative=None, watch=False)}

    def grade(self, agent: str, task: str, task_id: str) -> str:
        """Grade a completed task by its commit; the sentence about it.

        Bugs come first: the agent waits for the grade, and may not claim before it is halted.
        """
        (commit,) = self.find_commits(task_id)
        spool_flush.flush(self.app)
        while agent == scenario.HALTED.name and self.call("bug", agent=agent)["active"]:
            continue
        own, yours = (each.label for each in scenario.BY_NAME[agent].grades)
        graded = self.call("grade", agent=agent, commit=commit, self=own, user=yours)
        standing = graded["standing"]
        score, bugs = standing["communication_score"], standing["bugs"]
        line = f"{agent} calls {task!r} {own}, you call it {yours}: score {score}"
        return line if standing["active"] else f"{line}; bugs in it: {bugs}, and {agent} is halted"

    def report(self) -> dict[str, Any]:
        """What each agent did, how the journal ends, and a sentence for each problem."""
        agents = {each["name"]: each for each in self.call("agent.list")}
        standings = {each["agent"]: each for each in self.call("standing")}
        tasks = [each["name"] for each in self.call("task.list")]
        stores = check(self.app, area=None, repair=False)["stores"]
        # If it was given up, all other problems follow from that.
        problems = self.problems or [
            *find_problems(tasks, [task for _, task in self.completed], agents),
            *(f"{flaw.entity} {flaw.what}" for each in stores for flaw in each["flaws"]),
        ]
        return {
            "ok": not problems,
            "problems": problems,
            "tasks": len(tasks),
            "agents": [
                {
                    "agent": name,
                    "ended": agents[name]["status"],
                    "tasks": [task for who, task in self.completed if who == name],
                    "standing": standings.get(name),
                }
                for name in scenario.BY_NAME
                if name in agents
            ],
            "journal": self.call("journal.since", seq=max(0, self.seen - 10)),
        }


def find_problems(
    tasks: Sequence[str], completed: Sequence[str], agents: Mapping[str, dict[str, Any]]
) -> Iterator[str]:
    """A sentence for everything that did not go as the scenario has it."""
    for task in tasks:
        if completed.count(task) != 1:
            yield f"{task!r} was completed {completed.count(task)} times, not once"
    for agent in scenario.AGENTS:
        status = agents.get(agent.name, {}).get("status", "missing")
        wanted = "crashed" if agent is scenario.KILLED else "stopped"
        if status != wanted:
            yield f"{agent.name} is {status}, not {wanted}"
    if "refused" not in (agents.get(scenario.HALTED.name, {}).get("result") or {}):
        yield f"the second claim of {scenario.HALTED.name} was not refused"


def sentence_of(entry: JournalEntry, names: Mapping[str, str]) -> str | None:
    """The sentence for a journal entry, given the names of rows by their ids; None if none."""
    after: dict[str, Any] = dict(entry.after or {})
    result = after.get("result") or {}
    event = after.get("status") or ("fence" if "fence" in after else "")
    if entry.op is not Op.SAVE:
        event = entry.op.value
    elif "refused" in result:
        event = "refused"
    known = {
        "who": entry.agent or entry.person or "somebody",
        "whom": names.get(after.get("to_agent_id", ""), "somebody"),
        "place": names.get(entry.worktree or "", "no worktree"),
        "count": len(result.get("done", ())),
        "next_try": after.get("retry_count", 0) + 1,
        "name": names.get(entry.key, entry.key),
    }
    template = SENTENCES.get((entry.entity, event))
    return template and template.format(**{**after, **result, **known})
