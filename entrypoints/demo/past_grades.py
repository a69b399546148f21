"""Records the commits of the past, and what was thought of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.location.areas import Area
from herdbook.domain.record.events import HookEvent, Meaning, SessionSetup
from herdbook.entrypoints.demo.commit_stream import PastCommit
from herdbook.entrypoints.demo.herd_plan import HALTED
from herdbook.services.record import grading, record_ingest

if TYPE_CHECKING:
    from herdbook.entrypoints.demo.past_day import PastDay

UNGRADED = 2
"""So many of the last commits wait for the visitor's grade."""
LATER = timedelta(minutes=3)
"""How long after a commit it is graded."""


def record_commits(day: "PastDay", hashes: Sequence[str]) -> None:
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
        at=_microseconds(commit.at),
        name="post-commit",
        meaning=Meaning.COMMIT,
        agent=agent.name,
        setup=SessionSetup(agent.provider, agent.model, AgentMode.EXECUTE),
        project=project,
        commit_hash=key,
        subject=commit.task,
    )


def _microseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)
