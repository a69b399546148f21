"""The balance of an agent-tracker's agent: ledger entries for what only its totals know.

The tracker has totals per agent, and single entries for its commits and grades only. The balance
makes the fold of all entries equal the totals, in this order: a promotion if the experience was
reset since, the skill points that promotions brought, commits that are only counted, the experience
of tools and commands, one entry for each bug, and all other changes of the score.

Where the rules cannot express the totals, the result is as near as they allow: experience is never
less than what the single entries are worth by themselves, nor enough for the next skill point;
fewer skill points than the bugs explain become more bugs, because a halted agent must stay halted;
and an agent that was set inactive with skill points left is not inactive here.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Experience
from herdbook.domain.record.model import EventKind, ScoreEvent
from herdbook.domain.record.standing import (
    EntryContext,
    apply,
    bug_entry,
    fold,
    reinstatement_entry,
)
from herdbook.services.agent_tracker.fields import whole_number

MOST_BUGS = 10_000
SINGLE_ENDINGS = "abcdf"
"""The endings of the ids of entries that an agent has once; bugs are numbered single entries."""
MOMENT = timedelta(microseconds=1)


def balance(
    fields: Mapping[str, Any], events: Iterable[ScoreEvent], on: EntryContext, rules: Experience
) -> list[ScoreEvent]:
    """The entries that lead from an agent's single entries to its totals; `on.id` begins their ids.

    Their time is later than that of every single entry, and never before the given time.

    Raises InvalidValue for a number of bugs out of range, and for skill points too far below zero.
    """
    single = list(events)
    on = on._replace(at=max([on.at, *(event.at + MOMENT for event in single)]))
    now = fold(on.agent, single, rules)
    entries: list[ScoreEvent] = []

    def enter(ending: str, event: ScoreEvent) -> None:
        nonlocal now
        entries.append(evolve(event, id=on.id + ending))
        now = apply(now, entries[-1], rules)

    bugs = whole_number(fields, "total_bugs", 0)
    if not 0 <= bugs <= MOST_BUGS:
        raise InvalidValue("total_bugs", f"must be between 0 and {MOST_BUGS}, is {bugs}")
    skill = whole_number(fields, "skill_points", now.skill_points - bugs)
    experience = max(0, whole_number(fields, "experience_points", now.experience_points))
    score = max(0, whole_number(fields, "communication_score", now.communication_score))
    before_bugs = skill + bugs
    if experience < now.experience_points and before_bugs > now.skill_points:
        missing = rules.per_skill_point * now.skill_points - now.experience_points
        enter("a", _event(on, EventKind.TOOL, 1, missing))
    if before_bugs > now.skill_points:
        enter("b", reinstatement_entry(on, before_bugs - now.skill_points))
    uncounted = whole_number(fields, "total_commits", 0) - now.commits
    if uncounted > 0:
        enter("c", _event(on, EventKind.COMMIT, uncounted, 0))
    most = rules.per_skill_point * now.skill_points - 1
    if min(experience, most) > now.experience_points:
        enter("d", _event(on, EventKind.TOOL, 1, min(experience, most) - now.experience_points))
    found = now.skill_points - skill
    if found > MOST_BUGS:
        raise InvalidValue("skill_points", f"{skill} is too far below zero to be expressed by bugs")
    for number in range(found):
        enter(f"e{number:05}", bug_entry(on))
    if score != now.communication_score:
        enter("f", _event(on, EventKind.COMMUNICATION, 1, score - now.communication_score))
    return entries


def _event(on: EntryContext, kind: EventKind, count: int, points: int) -> ScoreEvent:
    return ScoreEvent(
        agent=on.agent,
        kind=kind,
        count=count,
        points=points,
        provider=on.provider,
        model=on.model,
        at=on.at,
    )
