"""Verifies what the demo left in both stores, in git and of its processes, check by check."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import Conversation
from herdbook.domain.grading import is_halted
from herdbook.domain.journal import JournalEntry
from herdbook.domain.plan.model import Task
from herdbook.domain.plan_text.markdown import read_markdown
from herdbook.domain.record.model import Commit, Retrospective, Standing
from herdbook.entrypoints.demo.scenario import AGENTS, HALTED, KILLED, PLAN, WORKTREES
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.stores.store_check import Flaw

TASKS: Final = [
    task
    for initiative in read_markdown(PLAN).initiatives
    for phase in initiative.phases
    for task in phase.tasks
]
"""The planned tasks, in order."""
Expectations = Iterator[tuple[bool, str]]
"""What is expected: whether it is so, and the sentence to report if it is not."""


class GitCommit(NamedTuple):
    """A commit for a task: its hash, its author, and the id of the task."""

    hash: str
    author: str
    task_id: str


class DemoResult(NamedTuple):
    """All that the demo left."""

    tasks: list[Task]
    needs: Mapping[str, set[str]]
    agents: list[Agent]
    conversations: list[Conversation]
    journal: list[JournalEntry]
    standings: Mapping[str, Standing]
    retrospectives: list[Retrospective]
    commits: list[Commit]
    git_commits: list[GitCommit]
    flaws: list[Flaw]
    exit_codes: Mapping[str, int | None]

    def moves(self, status: str, **where: str) -> list[JournalEntry]:
        """The entries by which tasks came to a status, of one `key` or by one `agent`."""
        wanted = {"entity": "tasks", **where}
        moved = [entry for entry in self.journal if (entry.after or {}).get("status") == status]
        return [e for e in moved if all(getattr(e, name) == it for name, it in wanted.items())]

    def name_of(self, key: str | None) -> str:
        """The name of a task or an agent; its id if there is none such."""
        names = {task.id: task.name for task in self.tasks}
        names |= {agent.id: agent.name for agent in self.agents}
        return names.get(key or "", key or "nobody")

    def agents_called(self, name: str) -> list[Agent]:
        """The agent of this name, if it came."""
        return [agent for agent in self.agents if agent.name == name]

    def hashes_for(self, entry: JournalEntry) -> set[str]:
        """The hashes of the commits of who completed a task, for that task."""
        wanted = (entry.agent, entry.key)
        return {each.hash for each in self.git_commits if (each.author, each.task_id) == wanted}


def read_work(uow: UnitOfWork) -> dict[str, Any]:
    """What the demo left in the space of its work."""
    tasks = uow.tasks.page()
    return {
        "tasks": tasks,
        "needs": {each.id: {one.id for one in uow.tasks.dependencies(each.id)} for each in tasks},
        "agents": uow.agents.page(),
        "conversations": uow.conversations.page(),
        "journal": list(uow.journal.all_entries()),
    }


def read_record(uow: UnitOfWork) -> dict[str, Any]:
    """What the demo left in the record."""
    return {
        "standings": {agent.name: uow.standings.of_agent(agent.name) for agent in AGENTS},
        "retrospectives": uow.retrospectives.by_time(),
        "commits": uow.commits.by_time(),
    }


def problems(outcome: DemoResult) -> list[str]:
    """A sentence for everything that is not as expected."""
    return [sentence for each in CHECKS for holds, sentence in each(outcome) if not holds]


def _plan(out: DemoResult) -> Expectations:
    names = {planned.ref: planned.name for planned in TASKS}
    for planned in TASKS:
        found = [task for task in out.tasks if task.name == planned.name]
        yield len(found) == 1, f"the plan has {len(found)} tasks called {planned.name!r}, not one"
        wanted = sorted(names[ref] for ref in planned.after)
        for task in found:
            needs = sorted(out.name_of(key) for key in out.needs[task.id])
            yield needs == wanted, f"{task.name!r} waits for {needs}, not for {wanted}"


def _tasks(out: DemoResult) -> Expectations:
    for task in out.tasks:
        what, done = repr(task.name), out.moves("completed", key=task.id)
        yield task.status == "completed", f"{what} is {task.status}, not completed"
        yield len(done) == 1, f"the journal tells {len(done)} times that {what} was completed"
        has = out.name_of(task.assignee_id)
        for entry in done:
            by = f"{what} is {has}'s, and the journal says {entry.agent} completed it"
            yield entry.agent == has, by


def _order(out: DemoResult) -> Expectations:
    ended = {entry.key: entry.seq for entry in out.moves("completed")}
    for entry in out.moves("in_progress"):
        for other in out.needs.get(entry.key, ()):
            what, needed = repr(out.name_of(entry.key)), repr(out.name_of(other))
            in_order = ended.get(other, entry.seq) < entry.seq
            yield in_order, f"{what} was begun before {needed} was completed"


def _agents(out: DemoResult) -> Expectations:
    for agent in AGENTS:
        yield bool(out.agents_called(agent.name)), f"{agent.name} never came to work"
        code, wanted = out.exit_codes.get(agent.name), -9 if agent is KILLED else 0
        yield code == wanted, f"the process of {agent.name} ended with {code}, not with {wanted}"
    used, there = len({agent.worktree_id for agent in out.agents}), 1 + len(WORKTREES)
    yield used == there, f"the agents worked in {used} worktrees, not in {there}"


def _killed_agent(out: DemoResult) -> Expectations:
    name = KILLED.name
    for agent in out.agents_called(name):
        status = agent.status
        yield status == "crashed", f"{name} was killed, and it is {status} instead of crashed"
        held = [entry.key for entry in out.moves("in_progress", agent=name)]
        claimed = f"{name} was to be killed with one task in its hands, and claimed {len(held)}"
        yield len(held) == 1, claimed
        for task in (each for each in out.tasks if each.id in held):
            what, retries = repr(task.name), task.retry_count
            is_others = task.assignee_id not in (None, agent.id)
            yield is_others, f"nobody took {what} over from {name}"
            yield retries == 1, f"{what} was taken over once, and its retries are {retries}"


def _halted_agent(out: DemoResult) -> Expectations:
    name = HALTED.name
    for agent in out.agents_called(name):
        points = out.standings[name].skill_points
        yield is_halted(points), f"{name} has {points} skill points, so it is not halted"
        refused = isinstance(agent.result, dict) and agent.result.get("refused") == "AgentHalted"
        yield refused, f"the next claim of {name} was not refused with AgentHalted"
        count = len(out.moves("in_progress", agent=name))
        yield count == 1, f"{name} was to be halted after one task, and claimed {count}"
    for other, standing in out.standings.items():
        fine = other == name or standing.active
        yield fine, f"{other} is halted, and nobody found a bug in its work"


def _questions(out: DemoResult) -> Expectations:
    askers = {each.from_agent_id for each in out.conversations}
    for agent in out.agents:
        yield agent.id in askers, f"{agent.name} asked nobody anything"
    for each in out.conversations:
        answered = each.status == "answered" and bool(each.answer)
        yield answered, f"nobody answered {each.question!r}"


def _journal(out: DemoResult) -> Expectations:
    numbers = [entry.seq for entry in out.journal]
    lacks = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    gap = f"the journal is not gapless: it lacks {lacks or 'nothing, and is out of order'}"
    yield numbers == list(range(1, len(numbers) + 1)), gap


def _stores(out: DemoResult) -> Expectations:
    for flaw in out.flaws:
        yield False, f"{flaw.space}: {flaw.entity} {flaw.key or ''} {flaw.what}"


def _commits(out: DemoResult) -> Expectations:
    recorded = {each.commit_hash for each in out.commits}
    graded = {each.commit_hash for each in out.retrospectives}
    for entry in out.moves("completed"):
        who, what, made = entry.agent, repr(out.name_of(entry.key)), out.hashes_for(entry)
        yield bool(made), f"git has no commit of {who} for {what}"
        yield bool(made & recorded), f"the record knows no commit of {who} for {what}"
        yield bool(made & graded), f"nobody graded {what}"


CHECKS: Final[tuple[Callable[[DemoResult], Expectations], ...]] = (
    *(_plan, _tasks, _order, _agents, _killed_agent),
    *(_halted_agent, _questions, _journal, _stores, _commits),
)
