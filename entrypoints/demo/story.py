"""The demo, directed: `herdbook demo`."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from herdbook.adapters.system.processes import process_start
from herdbook.domain.entity import evolve
from herdbook.domain.journal import JournalEntry, Op
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import InitiativeStatus
from herdbook.entrypoints.context import AppContext, text_of
from herdbook.entrypoints.demo import narration, stage, troupe
from herdbook.entrypoints.demo.evidence import commits_in, deeds, gather
from herdbook.entrypoints.demo.judging import Delivery, judge
from herdbook.entrypoints.demo.outcome import problems
from herdbook.entrypoints.demo.plot import (
    CAST,
    MAIN,
    NAMED,
    PACES,
    STEPS,
    Fate,
    Member,
    add_plan,
    of_fate,
)
from herdbook.entrypoints.demo.troupe import Troupe
from herdbook.entrypoints.operations.board.handlers import board
from herdbook.entrypoints.operations.serialize import to_data
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import messaging
from herdbook.services.agents import agent_lifecycle

Told = Iterator[dict[str, Any]]

DRAWN: Final = 0.5
"""How many seconds lie between two boards."""
STUCK: Final = 120.0
"""After how many seconds without any news the story is given up; it decides nothing else."""
TAIL: Final = 10


class GivenUp(Exception):
    """The story cannot go on."""


def demo(here: AppContext, *, pace: str, keep: bool) -> Told:
    """Let five agents work on an initiative in a folder of their own, and tell what happens."""
    with stage.built(keep=keep) as folder:
        places = stage.set_up(folder)
        there = AppContext.at(places[MAIN], os.environ, warn=here.warn)
        with (
            there.open(Area.WORK, create=True) as work,
            there.open(Area.RECORD, create=True) as record,
        ):
            story = Story(there, work, record, folder=folder, places=places, pace=pace)
            yield {"told": f"{len(CAST)} agents come to work in {text_of(folder)}"}
            yield from story.told()
            yield report(story, folder if keep else None)


class Story:
    """What has happened so far, and where."""

    def __init__(
        self,
        here: AppContext,
        work: Store,
        record: Store,
        *,
        folder: Path,
        places: Mapping[str, Path],
        pace: str,
    ) -> None:
        self.here = here
        self.work = (work, here.workspace.space(Area.WORK))
        self.record = (record, here.workspace.space(Area.RECORD))
        self.folder = folder
        self.places = places
        self.pace = pace
        self.off: list[str] = []
        self.exit_codes: dict[str, int | None] = {}
        self._seen = 0
        self._names: dict[str, str] = {}
        self._came: set[str] = set()
        self._held: dict[str, str] = {}
        self._killed: str | None = None
        self._watched = sys.stdout.isatty()
        self._drawn = self._news = time.monotonic()

    def told(self) -> Told:
        """Play it from the beginning to the end; what went wrong on the way is in `off`."""
        initiative = self._run(add_plan)
        try:
            with troupe.started(self.folder, self.places, self.pace) as processes:
                yield from self._played(processes)
        except GivenUp as error:
            self.off.append(str(error))
            yield {"told": f"the story ends here: {error}"}
            return
        done = evolve(initiative, status=InitiativeStatus.COMPLETED)
        self._run(lambda uow: uow.initiatives.save(done))
        yield from self._look()

    def _played(self, processes: Troupe) -> Told:
        yield from self._until(processes, lambda: len(self._came) == len(CAST))
        for member in CAST:
            self._run(self._let_begin, member)
            yield from self._until(processes, partial(self._held.__contains__, member.name))
        end = time.monotonic() + PACES[self.pace].work
        yield from self._until(processes, lambda: time.monotonic() >= end)
        yield from self._kill(processes)
        yield from self._until(processes, partial(troupe.has_ended, processes))
        yield from self._look()
        self.exit_codes = {name: process.poll() for name, process in processes.items()}

    def _until(self, processes: Troupe, so: Callable[[], bool]) -> Told:
        """Watch until something is so; GivenUp if a process dies unasked or nothing happens."""
        while True:
            yield from self._look()
            ended = troupe.unexpected_end(processes, self.folder, self._killed)
            if ended is not None:
                raise GivenUp(ended)
            if so():
                return
            if time.monotonic() - self._news > STUCK:
                raise GivenUp(f"nothing has happened for {STUCK:g} s")
            time.sleep(PACES[self.pace].look)

    def _let_begin(self, uow: UnitOfWork, member: Member) -> None:
        agent = uow.agents.by_name(member.name)
        if agent is None:
            raise GivenUp(f"{member.name} is not known any more")
        messaging.send(uow, "please begin", recipient_id=agent.id)

    def _kill(self, processes: Troupe) -> Told:
        """End one agent as a power cut would, and look who is gone."""
        name = of_fate(Fate.KILLED).name
        task = self._names[self._held[name]]
        self._killed = name
        yield {"told": f"somebody kills process {processes[name].pid}: {name} at {task!r}"}
        processes[name].kill()
        processes[name].wait()
        self._run(agent_lifecycle.find_crashed, self.here.workspace.host, process_start)

    def _look(self) -> Told:
        """Tell what is new in the journal, and do what follows from it."""
        while entries := read(*self.work, lambda uow: uow.journal.since(self._seen)):
            for entry in entries:
                self._seen = entry.seq
                self._news = time.monotonic()
                self._note(entry)
                line = narration.sentence(entry, self._names)
                if line is not None:
                    yield {"told": line}
                yield from self._judged(entry)
        if self._watched and time.monotonic() - self._drawn >= DRAWN:
            self._drawn = time.monotonic()
            yield {"board": board(self.here, initiative=None, watch=False)}

    def _note(self, entry: JournalEntry) -> None:
        after: dict[str, Any] = dict(entry.after or {})
        if entry.op is Op.ADD:
            self._names[entry.key] = after.get("name") or after.get("branch") or entry.key
            if entry.entity == "agents":
                self._came.add(after["name"])
        if entry.entity == "tasks" and after.get("status") == "in_progress" and entry.agent:
            self._held.setdefault(entry.agent, entry.key)

    def _judged(self, entry: JournalEntry) -> Told:
        """Grade what was handed in, as soon as it was."""
        done = entry.entity == "tasks" and (entry.after or {}).get("status") == "completed"
        if not done or entry.agent is None:
            return
        made = [
            each.hash
            for each in commits_in(self.places[MAIN])
            if (each.task_id, each.author) == (entry.key, entry.agent)
        ]
        if not made:
            raise GivenUp(f"{entry.agent} handed in {self._names[entry.key]!r} without a commit")
        delivery = Delivery(entry.agent, self._names[entry.key], made[0])
        member = NAMED[entry.agent]
        standing = run(*self.record, judge, delivery, member, actor=self.here.actor)
        yield {"told": narration.verdict(delivery, member, standing)}

    def named(self, entry: JournalEntry) -> dict[str, Any]:
        """An entry with what its row is called."""
        return {**to_data(entry), "name": self._names.get(entry.key)}

    def _run(self, use_case: Callable[..., Any], *args: Any) -> Any:
        """Do something as the person, whoever else is at work here."""
        return run(*self.work, use_case, *args, actor=self.here.actor)


def report(story: Story, kept: Path | None) -> dict[str, Any]:
    """What each did, how the journal ends, what is off, and what to try next."""
    evidence = gather(story.work, story.record, commits_in(story.places[MAIN]), story.exit_codes)
    off = story.off or problems(evidence)  # where it was given up, all else follows from that
    return {
        "ok": not off,
        "off": off,
        "tasks": len(STEPS),
        "agents": deeds(evidence),
        "journal": [story.named(entry) for entry in evidence.journal[-TAIL:]],
        "folder": None if kept is None else text_of(kept),
        "next": _next(kept),
    }


def _next(kept: Path | None) -> list[str]:
    if kept is None:
        return ["herdbook demo --keep", "herdbook task add 'my first task'", "herdbook status"]
    from shlex import quote  # noqa: PLC0415 - only here

    program = f"herdbook -C {quote(str(kept / 'app'))}"
    return [
        f"{program} status",
        f"{program} log list {of_fate(Fate.HALTED).name}",
        f"{program} journal list --since 60",
    ]
