"""Grades, bugs, reinstatements and activities of agents, written at once."""

from typing import NamedTuple

from herdbook.domain.errors import AlreadyExists, InvalidValue
from herdbook.domain.grading import Grade, score_after
from herdbook.domain.record import standing as ledger
from herdbook.domain.record.model import Activity, Retrospective, ScoreEvent, Standing
from herdbook.domain.record.standing import EntryContext
from herdbook.ports.engine.dictionary import COMMITS, RETROSPECTIVES
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


class GradeResult(NamedTuple):
    """The result of grading: the ledger entry, and the retrospective if both parties graded."""

    entry: ScoreEvent
    retrospective: Retrospective | None
    standing: Standing


def grade(
    uow: UnitOfWork,
    agent: str,
    project: str,
    commit_hash: str,
    *,
    agent_grade: Grade | None = None,
    user_grade: Grade | None = None,
    task: str | None = None,
    agent_note: str = "",
    user_note: str = "",
) -> GradeResult:
    """Grade an agent's commit: two grades make a retrospective, one alone changes the score.

    Without a `task`, it is taken from the commit in the record. Raises AlreadyExists if both
    parties have graded it before, and InvalidValue without any grade.
    """
    judged = uow.retrospectives.of_commit(agent, project, commit_hash)
    if judged is not None:
        raise AlreadyExists(RETROSPECTIVES.title, judged.id, ("agent", "project", "commit_hash"))
    before = uow.standings.of_agent(agent)
    on = _occasion(uow, before, project)
    if agent_grade is None or user_grade is None:
        alone = user_grade if agent_grade is None else agent_grade
        if alone is None:
            raise InvalidValue("grade", "nobody has given one; name --self, --user or both")
        entry = uow.ledger.add(ledger.communication_entry(on, alone))
        return GradeResult(entry, None, uow.standings.of_agent(agent))
    retrospective = uow.retrospectives.add(
        Retrospective(
            agent=agent,
            project=project,
            commit_hash=commit_hash,
            task=_task(uow, agent, project, commit_hash) if task is None else task,
            agent_grade=agent_grade,
            user_grade=user_grade,
            score_before=before.communication_score,
            score_after=score_after(before.communication_score, agent_grade, user_grade),
            agent_note=agent_note,
            user_note=user_note,
            at=uow.now,
        )
    )
    entry = uow.ledger.add(ledger.grade_entry(on, agent_grade, user_grade))
    return GradeResult(entry, retrospective, uow.standings.of_agent(agent))


def report_bug(
    uow: UnitOfWork, agent: str, note: str | None = None, *, project: str | None = None
) -> Standing:
    """Record a bug in an agent's work: it costs a skill point; without any left, it is halted."""
    uow.ledger.add(ledger.bug_entry(_occasion(uow, uow.standings.of_agent(agent), project)))
    if note:
        add_activity(uow, agent, "bug", outcome=note, project=project)
    return uow.standings.of_agent(agent)


def reinstate(uow: UnitOfWork, agent: str, skill_points: int = 1) -> Standing:
    """Reinstate a halted agent with these skill points; raises InvalidValue if it is active."""
    standing = uow.standings.of_agent(agent)
    if standing.active:
        reason = f"{agent!r} is not halted ({standing.skill_points} skill points)"
        raise InvalidValue("agent", f"{reason}. Nothing was written")
    uow.ledger.add(ledger.reinstatement_entry(_occasion(uow, standing, None), skill_points))
    return uow.standings.of_agent(agent)


def add_activity(
    uow: UnitOfWork,
    agent: str,
    task: str,
    *,
    actions: str = "",
    outcome: str = "",
    decisions: str = "",
    project: str | None = None,
) -> Activity:
    """Record what an agent did, the outcome and its decisions."""
    return uow.activities.add(
        Activity(
            agent=agent,
            project=project,
            task=task,
            actions=actions,
            outcome=outcome,
            decisions=decisions,
            at=uow.now,
        )
    )


def activities(
    uow: UnitOfWork, agent: str | None = None, limit: int = 100, *, after: str | None = None
) -> list[Activity]:
    """A page of the activities of all agents or of one, latest first, starting after a row."""
    start = None if after is None else uow.activities.get(after)
    if agent is None:
        return uow.activities.by_time(limit=limit, descending=True, after=start)
    return uow.activities.of_agent(agent, limit=limit, descending=True, after=start)


def retrospectives(
    uow: UnitOfWork, agent: str | None = None, limit: int = 100, *, after: str | None = None
) -> list[Retrospective]:
    """A page of the retrospectives of all agents or of one, latest first, starting after a row."""
    start = None if after is None else uow.retrospectives.get(after)
    if agent is None:
        return uow.retrospectives.by_time(limit=limit, descending=True, after=start)
    return uow.retrospectives.of_agent(agent, limit=limit, descending=True, after=start)


def _occasion(uow: UnitOfWork, standing: Standing, project: str | None) -> EntryContext:
    """An occasion now, with the agent's last setup: the grader knows no other."""
    return EntryContext(
        agent=standing.agent,
        at=uow.now,
        session_id=None,
        project=project,
        provider=standing.provider,
        model=standing.model,
        mode=standing.mode,
    )


def _task(uow: UnitOfWork, agent: str, project: str, commit_hash: str) -> str:
    where = {"agent": agent, "project": project, "commit_hash": commit_hash}
    known = uow.select(find(COMMITS, where, limit=1))
    return known[0].task if known else ""
