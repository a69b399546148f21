"""The hours before `serve --demo` is opened: what the herd has done until now.

Every change is made by the same operations as always, on stores whose clock says when it happened.
The commits of all are written at once at the end, with their times, and then recorded and graded.
"""

import heapq
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import Any, Final, NamedTuple

from herdbook.adapters import open_store
from herdbook.adapters.system.clock import system_clock
from herdbook.adapters.workspace import Workspace
from herdbook.domain.agents.model import AgentMode
from herdbook.domain.grading import Grade
from herdbook.domain.location.areas import Area
from herdbook.domain.location.resolve import StoreLocation
from herdbook.domain.plan_text.markdown import read_markdown
from herdbook.domain.record.events import HookEvent, Meaning, SessionSetup
from herdbook.entrypoints.context import AppContext, Identity
from herdbook.entrypoints.demo import herd_plan
from herdbook.entrypoints.demo.herd_plan import HALTED, HerdAgent
from herdbook.entrypoints.demo.sandbox import git
from herdbook.entrypoints.demo.scenario import MAIN, TRAILER
from herdbook.entrypoints.rpc.methods import methods
from herdbook.ports.engine.store import Store
from herdbook.services.agents import agent_lifecycle
from herdbook.services.plan_text.import_export import import_plan
from herdbook.services.record import grading, record_ingest

LENGTH: Final = timedelta(hours=6)
"""How long the herd has worked."""
LAST: Final = timedelta(minutes=12)
"""The end of it, in which questions are asked that nobody has answered yet."""
SEED: Final = 9
"""What the story is drawn from: the same number tells the same story."""
BEAT: Final = 20
"""Minutes between two signs of life."""
UNGRADED: Final = 2
"""So many of the last commits wait for the visitor's grade."""
LATER: Final = timedelta(minutes=3)
"""How long after a commit it is graded."""
STUBBORN: Final = "Make the form work without a mouse"
"""Every attempt at this task fails, until it is blocked."""
_AREAS = (Area.WORK, Area.RECORD)
Variables = Mapping[str, str]


class PastCommit(NamedTuple):
    """A commit that an agent made for a task, and the grades that it and you give it."""

    agent: HerdAgent
    at: datetime
    task_id: str
    task: str
    grades: tuple[Grade, Grade]


class ClockedStores:
    """A provider of stores that say the time of `now`, which anybody may set."""

    def __init__(self, app: AppContext) -> None:
        self.now = system_clock()
        self._numbers = Random(7)  # noqa: S311 - the same rows every time
        self._stack = ExitStack()
        self._stores: dict[Area, Store] = {}
        for area in _AREAS:
            with app.open(area, create=True):  # by its own rules: private, and known to the user
                location = app.workspace.locate(area)
            store = open_store(location.url, area=area, clock=lambda: self.now, ids=self._next_id)
            self._stores[area] = self._stack.enter_context(store)

    def _next_id(self) -> str:
        return self._numbers.randbytes(10).hex()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Close the stores at the end."""
        with self._stack:
            yield

    @contextmanager
    def open(self, area: Area, *, create: bool = False) -> Iterator[Store]:  # noqa: ARG002 - a port
        """The store of an area, which is open."""
        yield self._stores[area]

    @contextmanager
    def open_at(
        self,
        location: StoreLocation,
        *,
        create: bool = False,  # noqa: ARG002 - as above
        verify: bool = False,  # noqa: ARG002 - as above
    ) -> Iterator[Store]:
        """The store at a location, which is one of these."""
        yield self._stores[location.area]

    def find(self, area: Area) -> Any:
        """The store of an area."""
        return self.open(area)


class PastDay:
    """The herd at work before anybody looked, from the first claim until a moment."""

    def __init__(
        self, folders: Mapping[str, Path], end: datetime, variables: Variables, seed: int
    ) -> None:
        self.end = end
        self.stores = ClockedStores(AppContext.at(folders[MAIN], variables))
        self.chance = Random(seed)  # noqa: S311 - the same story every time
        self.methods = methods()
        self.person = self._context(folders[MAIN], variables)
        self.agents = {
            each.name: self._context(folders[each.worktree], variables, each.name)
            for each in herd_plan.ALL
        }
        self.held: dict[str, dict[str, Any]] = {}  # the claims, by agent
        self.commits: list[PastCommit] = []
        self._events: list[tuple[datetime, int, Callable[[], None]]] = []
        self._numbers = count()

    def _context(self, folder: Path, variables: Variables, name: str | None = None) -> AppContext:
        workspace = Workspace(folder, variables)
        return AppContext(workspace, self.stores, Identity(workspace, name))

    def call(self, who: str | None, method: str, **parameters: Any) -> Any:
        """Call an operation as an agent, or as the person."""
        app = self.person if who is None else self.agents[who]
        return self.methods[method](app, parameters)

    def plan(self, minutes: float, act: Callable[[], None], after: datetime | None = None) -> None:
        """Let something happen so many minutes after the present, or after another moment."""
        at = (after or self.stores.now) + timedelta(minutes=minutes)
        heapq.heappush(self._events, (at, next(self._numbers), act))

    def play(self) -> None:
        """Let everything happen that happens until the end."""
        begin = self.end - LENGTH
        self.plan(0, self._begin, begin)
        self.plan(120, lambda: self._import(herd_plan.OTHERS[0]), begin)
        self.plan(215, lambda: self._import(herd_plan.OTHERS[1]), begin)
        self.plan(290, lambda: self._import(herd_plan.OTHERS[2]), begin)
        for number, agent in enumerate(herd_plan.ALL):
            self.plan(3 + 7 * number, partial(self._come, agent), begin)
        while self._events and self._events[0][0] < self.end - LAST:
            self.stores.now, _, act = heapq.heappop(self._events)
            act()
        self._end()

    def _begin(self) -> None:
        for each in (herd_plan.SIGN_IN, herd_plan.SEARCH):
            self._import(each)
        for name in ("Measure", "Index"):
            (phase,) = self.call(None, "phase.list", name=name)
            self.call(None, "phase.approve", phase_ids=[phase["id"]])

    def _import(self, text: str) -> None:
        self.person.run(Area.WORK, import_plan, read_markdown(text.encode()))

    def _come(self, agent: HerdAgent) -> None:
        setup = {"provider": agent.provider, "model": agent.model}
        app = self.agents[agent.name]
        app.identity.registers = agent.name
        app.run(Area.WORK, agent_lifecycle.register, agent.name, **setup)
        self._claim(agent)

    def _claim(self, agent: HerdAgent) -> None:
        claim = self.call(agent.name, "task.claim")
        if claim["task"] is None:
            self.plan(self.chance.uniform(4, 12), lambda: self._claim(agent))
            return
        self.held[agent.name] = claim
        name = claim["task"]["name"]
        self._log(agent, f"began {name!r}, building on {len(claim['summaries'])} summaries")
        if self.chance.random() < 0.3:  # noqa: PLR2004 - nearly every third
            self.plan(self.chance.uniform(2, 8), lambda: self._ask(agent))
        self.plan(BEAT, lambda: self._renew_one(agent, claim))
        minutes = 9.0 if name == STUBBORN else self.chance.uniform(20, 62)
        self.plan(minutes, lambda: self._finish(agent))

    def _renew_one(self, agent: HerdAgent, claim: dict[str, Any]) -> None:
        """Keep a claim, now and again, for as long as it lasts."""
        if self.held.get(agent.name) is claim:
            task, fence = claim["task"]["id"], claim["fence"]
            self.call(agent.name, "task.heartbeat", task=task, fence=fence)
            self.plan(BEAT, lambda: self._renew_one(agent, claim))

    def _ask(self, agent: HerdAgent) -> None:
        """Ask another agent, which answers after a while; not for a task that is over."""
        if agent.name not in self.held:
            return
        there = [each["name"] for each in self.call(None, "agent.list")]
        if len(there) == 1:
            return
        other = self.chance.choice([each for each in there if each != agent.name])
        question, answer = self.chance.choice(herd_plan.TO_EACH_OTHER)
        task = self.held[agent.name]["task"]["id"]
        asked = self.call(agent.name, "conversation.add", question=question, to=other, task=task)
        key = asked["id"]

        def reply() -> None:
            self.call(other, "conversation.answer", conversation_id=key, text=answer)

        self.plan(self.chance.uniform(1, 5), reply)

    def _finish(self, agent: HerdAgent) -> None:
        claim = self.held.pop(agent.name)
        task, fence = claim["task"], claim["fence"]
        if task["name"] == STUBBORN or self.chance.random() < agent.failing:
            reason = self.chance.choice(herd_plan.REASONS)
            self.call(agent.name, "task.fail", task=task["id"], fence=fence)
            self._log(agent, f"gave {task['name']!r} up: {reason}")
        else:
            grades = self.chance.choice(agent.grades)
            made = PastCommit(agent, self.stores.now, task["id"], task["name"], grades)
            self.commits.append(made)
            summary = f"done in {herd_plan.file_of(task['name'])}"
            self.call(agent.name, "task.done", task=task["id"], fence=fence, summary=summary)
            self._log(agent, f"completed {task['name']!r}")
        if agent is HALTED:  # its work was not good; it is halted and claims no more
            self.call(agent.name, "agent.stop", exit_code=0)
        else:
            self.plan(self.chance.uniform(0.5, 6), lambda: self._claim(agent))

    def _log(self, agent: HerdAgent, text: str) -> None:
        self.call(agent.name, "log.add", content=f"{text}\n")

    def _end(self) -> None:
        """What waits for the visitor: questions, a proposal and a message, all of them recent."""
        holders = [each for each in herd_plan.AGENTS if each.name in self.held]
        asking = zip(holders[1::2], herd_plan.TO_PERSON, (11, 4), strict=False)
        last: list[tuple[int, Callable[[], None]]] = [
            *((ago, partial(self._wait, who, *question)) for who, question, ago in asking),
            (8, partial(self._propose, holders[0])),
            (6, partial(self._write, holders[-1])),
            (2, self._renew),
        ]
        for minutes, act in sorted(last, key=lambda each: -each[0]):
            self.stores.now = self.end - timedelta(minutes=minutes)
            act()
        self.stores.now = self.end

    def _wait(self, agent: HerdAgent, question: str, answers: tuple[str, ...]) -> None:
        asked = [{"question": question, "options": list(answers)}]
        self.call(agent.name, "agent.wait", questions=asked)

    def _propose(self, agent: HerdAgent) -> None:
        title, why = herd_plan.PROPOSALS[0]
        (initiative,) = self.call(None, "initiative.list", name="Let people sign in")
        proposal = {"title": title, "summary": why, "content": title, "target_type": "task"}
        self.call(agent.name, "proposal.add", initiative_id=initiative["id"], **proposal)

    def _write(self, agent: HerdAgent) -> None:
        text = herd_plan.MESSAGES[0]
        self.call(agent.name, "message.add", content=text, requires_response=True)

    def _renew(self) -> None:
        for name, claim in self.held.items():
            self._renew_one(herd_plan.BY_NAME[name], claim)


def write_commits(folders: Mapping[str, Path], commits: Sequence[PastCommit]) -> list[str]:
    """Write commits to the branches of their agents; their hashes, in the same order.

    Raises InvalidValue if git refuses them.
    """
    marks = folders[MAIN].parent / "marks"
    heads = {branch: git(folder, "rev-parse", "HEAD").strip() for branch, folder in folders.items()}
    with TemporaryFile() as stream:
        stream.writelines(_stream(commits, heads))
        stream.seek(0)
        git(folders[MAIN], "fast-import", "--quiet", f"--export-marks={marks}", reads=stream)
    lines = (line.split() for line in marks.read_text().splitlines())
    hashes = {int(mark.removeprefix(":")): name for mark, name in lines}
    marks.unlink()
    for folder in folders.values():
        git(folder, "reset", "--hard", "--quiet")
    return [hashes[number] for number in range(1, len(commits) + 1)]


def _stream(commits: Sequence[PastCommit], heads: Mapping[str, str]) -> Iterator[bytes]:
    begun: set[str] = set()
    for number, each in enumerate(commits, start=1):
        agent, branch = each.agent, each.agent.worktree
        who = f"{agent.name} <{agent.name}@example.com> {int(each.at.timestamp())} +0000"
        yield f"commit refs/heads/{branch}\nmark :{number}\n".encode()
        yield f"author {who}\ncommitter {who}\n".encode()
        yield _data(f"{each.task}\n\n{TRAILER}: {each.task_id}\n")
        if branch not in begun:
            yield f"from {heads[branch]}\n".encode()
            begun.add(branch)
        yield f"M 100644 inline {herd_plan.file_of(each.task)}\n".encode()
        yield _data(herd_plan.code_of(each.task, agent.name))


def _data(text: str) -> bytes:
    content = text.encode()
    return b"data %d\n%s\n" % (len(content), content)


def record_commits(day: PastDay, hashes: Sequence[str]) -> None:
    """Record commits, have them graded soon after, and halt the one whose work has bugs."""
    app, project = day.person, str(day.person.workspace.repository_id)
    commits = list(zip(day.commits, hashes, strict=True))
    events = [_event(each, key, project) for each, key in commits]
    app.run_unattended(Area.RECORD, record_ingest.flush, events)
    for number, (each, key) in enumerate(commits):
        day.stores.now = each.at + LATER
        own, yours = each.grades
        is_graded = number < len(commits) - UNGRADED
        app.run_unattended(
            Area.RECORD,
            grading.grade,
            each.agent.name,
            project,
            key,
            agent_grade=own,
            user_grade=yours if is_graded else None,
        )
        while each.agent is HALTED and day.call(None, "bug", agent=HALTED.name)["active"]:
            continue
    day.stores.now = day.end


def _event(commit: PastCommit, key: str, project: str) -> HookEvent:
    agent = commit.agent
    return HookEvent(
        id=f"past-{key[:12]}",
        at=int(commit.at.timestamp() * 1_000_000),
        name="post-commit",
        meaning=Meaning.COMMIT,
        agent=agent.name,
        setup=SessionSetup(agent.provider, agent.model, AgentMode.EXECUTE),
        project=project,
        commit_hash=key,
        subject=commit.task,
    )


def make_past(folders: Mapping[str, Path], seed: int = SEED) -> None:
    """Let the herd have worked for some hours in a repository, until now."""
    day = PastDay(folders, system_clock(), os.environ, seed)
    with day.stores.hold():
        day.play()
        hashes = write_commits(folders, day.commits)
        record_commits(day, hashes)
