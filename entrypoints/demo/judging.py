"""How the demo grades: what is written into the record when a task was handed in."""

from typing import NamedTuple

from herdbook.domain.grading import is_halted, score_after
from herdbook.domain.record.model import Commit, Retrospective, Standing
from herdbook.domain.record.standing import (
    EntryContext,
    bug_entry,
    commit_entry,
    grade_entry,
    tool_entry,
)
from herdbook.entrypoints.demo.plot import Fate, Member
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

PROJECT = "app"
PROVIDER = "demo"
TOOLS = 12
"""How many tools each task is said to have taken."""


class Delivery(NamedTuple):
    """A task that was handed in, and the commit it ended with."""

    agent: str
    task: str
    commit_hash: str


def judge(uow: UnitOfWork, delivery: Delivery, member: Member) -> Standing:
    """Grade what was handed in, and where the plot wants it, find bugs until the agent is halted.

    All in one transaction: whoever sees the grade sees the bugs.
    """
    on = EntryContext(delivery.agent, uow.now, project=PROJECT, provider=PROVIDER)
    before = uow.standings.of_agent(delivery.agent)
    commit = commit_entry(on)
    uow.ledger.add_all([tool_entry(on, TOOLS), commit, grade_entry(on, *member.grades)])
    uow.commits.add(
        Commit(
            agent=delivery.agent,
            project=PROJECT,
            commit_hash=delivery.commit_hash,
            task=delivery.task,
            experience_gained=commit.points,
            at=uow.now,
        )
    )
    uow.retrospectives.add(
        Retrospective(
            agent=delivery.agent,
            project=PROJECT,
            commit_hash=delivery.commit_hash,
            task=delivery.task,
            agent_grade=member.grades[0],
            user_grade=member.grades[1],
            score_before=before.communication_score,
            score_after=score_after(before.communication_score, *member.grades),
            at=uow.now,
        )
    )
    if member.fate is Fate.HALTED:
        while not is_halted(uow.standings.of_agent(delivery.agent).skill_points):
            uow.ledger.add(bug_entry(on))
    return uow.standings.of_agent(delivery.agent)
