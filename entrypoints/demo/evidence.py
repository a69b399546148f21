"""What the demo left behind: in both stores, in git, and of its processes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import Conversation
from herdbook.domain.journal import JournalEntry
from herdbook.domain.plan.model import Task
from herdbook.domain.record.model import Commit, Retrospective, Standing
from herdbook.entrypoints.demo.agent import TRAILER
from herdbook.entrypoints.demo.plot import CAST
from herdbook.entrypoints.demo.stage import git
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.stores.store_check import Flaw, check


class GitCommit(NamedTuple):
    """A commit as git tells it: its hash, whose it is, and the task it is for."""

    hash: str
    author: str
    task_id: str


class Evidence(NamedTuple):
    """All that the outcome is judged by."""

    tasks: tuple[Task, ...]
    waits_for: Mapping[str, tuple[str, ...]]
    agents: tuple[Agent, ...]
    conversations: tuple[Conversation, ...]
    journal: tuple[JournalEntry, ...]
    standings: Mapping[str, Standing]
    retrospectives: tuple[Retrospective, ...]
    kept_commits: tuple[Commit, ...]
    git_commits: tuple[GitCommit, ...]
    flaws: tuple[Flaw, ...]
    exit_codes: Mapping[str, int | None]

    def moves(self, status: str, task_id: str | None = None) -> list[JournalEntry]:
        """The entries by which tasks came to a status, or by which this one did."""
        return [
            entry
            for entry in self.journal
            if entry.entity == "tasks"
            and (entry.after or {}).get("status") == status
            and task_id in (None, entry.key)
        ]


Place = tuple[Store, str]
"""A store and a space in it."""


def gather(
    work: Place,
    record: Place,
    git_commits: tuple[GitCommit, ...],
    exit_codes: Mapping[str, int | None],
) -> Evidence:
    """Read it all, each space as it was at one moment."""
    flaws = [flaw for store, _ in (work, record) for flaw in check(store)]
    return Evidence(
        **read(*work, _of_work),
        **read(*record, _of_record),
        git_commits=git_commits,
        flaws=tuple(flaws),
        exit_codes=exit_codes,
    )


def _of_work(uow: UnitOfWork) -> dict[str, Any]:
    tasks = uow.tasks.page()
    return {
        "tasks": tuple(tasks),
        "waits_for": {
            task.id: tuple(each.id for each in uow.tasks.dependencies(task.id)) for task in tasks
        },
        "agents": tuple(uow.agents.page()),
        "conversations": tuple(uow.conversations.page()),
        "journal": tuple(uow.journal.all_entries()),
    }


def _of_record(uow: UnitOfWork) -> dict[str, Any]:
    return {
        "standings": {member.name: uow.standings.of_agent(member.name) for member in CAST},
        "retrospectives": tuple(uow.retrospectives.by_time()),
        "kept_commits": tuple(uow.commits.by_time()),
    }


def commits_in(folder: Path) -> tuple[GitCommit, ...]:
    """Every commit of a repository that names a task, whichever branch it is on."""
    told = git(folder, "log", "--all", f"--format=%H%x09%an%x09%(trailers:key={TRAILER},valueonly)")
    found = (line.split("\t") for line in told.splitlines() if line)
    return tuple(GitCommit(*each) for each in found if each[-1])


def deeds(evidence: Evidence) -> list[dict[str, Any]]:
    """What each agent did, in the order in which they began."""
    return [_deeds_of(evidence, agent) for agent in sorted(evidence.agents, key=_turn)]


def _turn(agent: Agent) -> int:
    return [member.name for member in CAST].index(agent.name)


def _deeds_of(evidence: Evidence, agent: Agent) -> dict[str, Any]:
    standing = evidence.standings[agent.name]
    own = [each for each in evidence.retrospectives if each.agent == agent.name]
    names = {task.id: task.name for task in evidence.tasks}
    asked = [each for each in evidence.conversations if each.from_agent_id == agent.id]
    answered = [each for each in evidence.conversations if each.to_agent_id == agent.id]
    return {
        "agent": agent.name,
        "worktree_id": agent.worktree_id,
        "ended": agent.status.value,
        "tasks": [
            names[each.key] for each in evidence.moves("completed") if each.agent == agent.name
        ],
        "commits": sum(each.author == agent.name for each in evidence.git_commits),
        "asked": len(asked),
        "answered": sum(each.answer is not None for each in answered),
        "grades": [each.user_grade.label for each in own],
        "score": standing.communication_score,
        "skill_points": standing.skill_points,
        "experience_points": standing.experience_points,
        "halted": not standing.active,
    }
