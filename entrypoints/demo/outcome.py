"""Whether the demo went as it had to: a sentence for each thing that is off."""

from collections.abc import Callable, Iterator
from typing import Final

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.conversation import ConversationStatus
from herdbook.domain.errors import AgentHalted
from herdbook.domain.grading import is_halted
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.entrypoints.demo.evidence import Evidence
from herdbook.entrypoints.demo.plot import CAST, STEPS, WORKTREES, Fate, of_fate

KILLED: Final = -9


def problems(evidence: Evidence) -> list[str]:
    """All that is off; nothing, if all went well."""
    return [sentence for check in CHECKS for sentence in check(evidence)]


def _the_plan(evidence: Evidence) -> Iterator[str]:
    """Every task is there, and what it waits for."""
    names = {task.id: task.name for task in evidence.tasks}
    for step in STEPS:
        found = [task for task in evidence.tasks if task.name == step.name]
        if len(found) != 1:
            yield f"the plan has {len(found)} tasks called {step.name!r}, not one"
            continue
        waits_for = {names.get(key, key) for key in evidence.waits_for[found[0].id]}
        if waits_for != set(step.after):
            yield f"{step.name!r} waits for {sorted(waits_for)}, not for {sorted(step.after)}"


def _the_tasks(evidence: Evidence) -> Iterator[str]:
    """Each is completed once, by the one the journal names."""
    names = {agent.id: agent.name for agent in evidence.agents}
    for task in evidence.tasks:
        completed = evidence.moves("completed", task.id)
        if task.status is not TaskStatus.COMPLETED:
            yield f"{task.name!r} is {task.status}, not completed"
        if len(completed) != 1:
            yield f"the journal tells {len(completed)} times that {task.name!r} was completed"
        for entry in completed:
            if entry.agent != names.get(task.assignee_id or ""):
                has = names.get(task.assignee_id or "", "nobody")
                yield f"{task.name!r} is {has}'s, and the journal says {entry.agent} completed it"


def _the_order(evidence: Evidence) -> Iterator[str]:
    """Nobody began what still waited for something."""
    names = {task.id: task.name for task in evidence.tasks}
    ended = {entry.key: entry.seq for entry in evidence.moves("completed")}
    for entry in evidence.moves("in_progress"):
        for other in evidence.waits_for.get(entry.key, ()):
            if ended.get(other, entry.seq) >= entry.seq:
                yield f"{names[entry.key]!r} was begun before {names[other]!r} was completed"


def _the_herd(evidence: Evidence) -> Iterator[str]:
    """Five agents worked in three worktrees, and each process ended as it should."""
    for member in CAST:
        if _agent(evidence, member.name) is None:
            yield f"{member.name} never came to work"
        wanted = KILLED if member.fate is Fate.KILLED else 0
        code = evidence.exit_codes.get(member.name)
        if code != wanted:
            yield f"the process of {member.name} ended with {code}, not with {wanted}"
    places = {agent.worktree_id for agent in evidence.agents}
    if len(places) != 1 + len(WORKTREES):
        yield f"the agents worked in {len(places)} worktrees, not in {1 + len(WORKTREES)}"


def _the_killed_one(evidence: Evidence) -> Iterator[str]:
    """It is known to have crashed, and another one did what it held."""
    name = of_fate(Fate.KILLED).name
    agent = _agent(evidence, name)
    if agent is None:
        return
    if agent.status is not AgentStatus.CRASHED:
        yield f"{name} was killed, and it is {agent.status} instead of crashed"
    held = [entry.key for entry in evidence.moves("in_progress") if entry.agent == name]
    if len(held) != 1:
        yield f"{name} was to be killed with one task in its hands, and claimed {len(held)}"
    for task in (each for each in evidence.tasks if each.id in held):
        yield from _taken_over(task, agent)


def _taken_over(task: Task, killed: Agent) -> Iterator[str]:
    if task.assignee_id in (None, killed.id):
        yield f"nobody took {task.name!r} over from {killed.name}"
    if task.retry_count != 1:
        yield f"{task.name!r} was taken over once, and its retries are {task.retry_count}"


def _the_halted_one(evidence: Evidence) -> Iterator[str]:
    """It did one task, was halted for it, and its next claim was refused."""
    name = of_fate(Fate.HALTED).name
    agent = _agent(evidence, name)
    if agent is None:
        return
    points = evidence.standings[name].skill_points
    if not is_halted(points):
        yield f"{name} has {points} skill points, so it is not halted"
    refused = agent.result.get("refused") if isinstance(agent.result, dict) else None
    if refused != AgentHalted.__name__:
        yield f"the next claim of {name} was not refused with {AgentHalted.__name__}"
    claims = [entry for entry in evidence.moves("in_progress") if entry.agent == name]
    if len(claims) != 1:
        yield f"{name} was to be halted after one task, and claimed {len(claims)}"
    for other, standing in evidence.standings.items():
        if other != name and not standing.active:
            yield f"{other} is halted, and nobody found a bug in its work"


def _the_questions(evidence: Evidence) -> Iterator[str]:
    """Everybody asked, and everything was answered."""
    for agent in evidence.agents:
        if not any(each.from_agent_id == agent.id for each in evidence.conversations):
            yield f"{agent.name} asked nobody anything"
    for each in evidence.conversations:
        if each.status is not ConversationStatus.ANSWERED or not each.answer:
            yield f"nobody answered {each.question!r}"


def _the_journal(evidence: Evidence) -> Iterator[str]:
    """It counts from one on and leaves nothing out."""
    numbers = [entry.seq for entry in evidence.journal]
    if numbers != list(range(1, len(numbers) + 1)):
        missing = sorted(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
        yield f"the journal is not gapless: it lacks {missing or 'nothing, and is out of order'}"


def _the_stores(evidence: Evidence) -> Iterator[str]:
    """The check of the stores finds nothing."""
    for flaw in evidence.flaws:
        yield f"{flaw.space}: {flaw.entity} {flaw.key or ''} {flaw.what}"


def _the_commits(evidence: Evidence) -> Iterator[str]:
    """Each task ended with a commit that git has, the record knows and both parties graded."""
    names = {task.id: task.name for task in evidence.tasks}
    for entry in evidence.moves("completed"):
        name = names.get(entry.key, entry.key)
        made = {
            each.hash
            for each in evidence.git_commits
            if (each.task_id, each.author) == (entry.key, entry.agent)
        }
        if not made:
            yield f"git has no commit of {entry.agent} for {name!r}"
        elif not any(each.commit_hash in made for each in evidence.kept_commits):
            yield f"the record knows no commit of {entry.agent} for {name!r}"
        elif not any(each.commit_hash in made for each in evidence.retrospectives):
            yield f"nobody graded {name!r}"


def _agent(evidence: Evidence, name: str) -> Agent | None:
    return next((each for each in evidence.agents if each.name == name), None)


CHECKS: Final[tuple[Callable[[Evidence], Iterator[str]], ...]] = (
    _the_plan,
    _the_tasks,
    _the_order,
    _the_herd,
    _the_killed_one,
    _the_halted_one,
    _the_questions,
    _the_journal,
    _the_stores,
    _the_commits,
)
