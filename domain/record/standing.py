"""Ledger entries, and the fold that computes an agent's standing from them."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import reduce
from hashlib import sha256
from typing import Any, NamedTuple

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.entity import default_instance, evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.grading import Experience, Grade, grow_by_many, is_halted
from herdbook.domain.record.model import UNKNOWN_PROVIDER, EventKind, ScoreEvent, Standing

DEFAULTS = default_instance(Experience)

_PER_UNIT = (EventKind.TOOL, EventKind.COMMAND, EventKind.COMMIT)
_COLLAPSED = (EventKind.TOOL, EventKind.COMMAND)


class Grader(StrEnum):
    """Who grades a commit: the agent that made it, or the user."""

    AGENT = "agent"
    USER = "user"


class EntryContext(NamedTuple):
    """What every ledger entry records: the agent, the time, the place and the setup."""

    agent: str
    at: datetime
    id: str = ""
    session_id: str | None = None
    project: str | None = None
    provider: str = UNKNOWN_PROVIDER
    model: str | None = None
    mode: AgentMode | None = None


def _make_entry(on: EntryContext, kind: EventKind, count: int, points: int) -> ScoreEvent:
    return ScoreEvent(
        id=on.id,
        agent=on.agent,
        kind=kind,
        count=count,
        points=points,
        session_id=on.session_id,
        project=on.project,
        provider=on.provider,
        model=on.model,
        mode=on.mode,
        at=on.at,
    )


def tool_entry(on: EntryContext, count: int = 1, rules: Experience = DEFAULTS) -> ScoreEvent:
    """The entry for tools used successfully."""
    return _make_entry(on, EventKind.TOOL, count, count * rules.tool)


def command_entry(on: EntryContext, count: int = 1, rules: Experience = DEFAULTS) -> ScoreEvent:
    """The entry for commands that ended successfully."""
    return _make_entry(on, EventKind.COMMAND, count, count * rules.command)


def commit_entry(on: EntryContext, count: int = 1, rules: Experience = DEFAULTS) -> ScoreEvent:
    """The entry for commits."""
    return _make_entry(on, EventKind.COMMIT, count, count * rules.commit)


def grade_entry(on: EntryContext, agent_grade: Grade, user_grade: Grade) -> ScoreEvent:
    """The entry for a commit that both parties graded."""
    return _make_entry(on, EventKind.GRADE, 1, int(agent_grade) + int(user_grade))


def communication_entry(on: EntryContext, grade: Grade) -> ScoreEvent:
    """The entry for a grade that one party gave alone."""
    return _make_entry(on, EventKind.COMMUNICATION, 1, int(grade))


def completing_entry(on: EntryContext, points: int) -> ScoreEvent:
    """The entry for the grade of the second party, by which a commit is graded by both."""
    return _make_entry(on, EventKind.GRADE, 1, points)


def bug_entry(on: EntryContext, count: int = 1) -> ScoreEvent:
    """The entry for bugs in an agent's work; its points are the skill points they cost."""
    return _make_entry(on, EventKind.BUG, count, -count)


def reinstatement_entry(on: EntryContext, skill_points: int = 1) -> ScoreEvent:
    """The entry for a person's decision to give an agent these skill points to continue with.

    Raises InvalidValue for fewer than one.
    """
    event = _make_entry(on, EventKind.REINSTATE, 1, skill_points)
    _check_points(event)
    return event


def standing_id(agent: str) -> str:
    """The id of an agent's standing: the same in every record that knows the agent's name."""
    # A name typed in another encoding arrives with lone surrogates: it gets an id that no row
    # has, so that a lookup finds nothing instead of failing.
    return "std_" + sha256(agent.encode(errors="surrogatepass")).hexdigest()[:20]


def grade_key(agent: str, project: str, commit_hash: str, party: Grader) -> str:
    """What ends the ids of the rows of a party's grade of a commit: the same in every record.

    So a party's second grade of a commit, or the same one from another record, finds the first. At
    one moment the agent's sorts before the user's.
    """
    identity = f"{agent}\0{project}\0{commit_hash}".encode(errors="surrogatepass")
    return f"{sha256(identity).hexdigest()[:32]}_{party}"


def first_standing(agent: str) -> Standing:
    """The standing of an agent without ledger entries."""
    return Standing(id=standing_id(agent), agent=agent)


def _check_points(event: ScoreEvent) -> None:
    if event.kind in _PER_UNIT and (event.points < 0 or event.points % event.count):
        raise InvalidValue(
            "points", f"{event.points} is not worth the same for each of {event.count} {event.kind}"
        )
    if event.kind is EventKind.REINSTATE and event.points < 1:
        raise InvalidValue("points", f"must be at least 1 to reinstate, is {event.points}")


def apply(standing: Standing, event: ScoreEvent, rules: Experience = DEFAULTS) -> Standing:
    """The standing after this entry; an entry that `is_late` needs a `fold` instead.

    Raises InvalidValue for an entry of another agent, and for points that do not fit its kind.
    """
    if event.agent != standing.agent:
        raise InvalidValue("agent", f"{event.agent!r} does not stand as {standing.agent!r}")
    _check_points(event)
    skill, experience = standing.skill_points, standing.experience_points
    score, commits, bugs = standing.communication_score, standing.commits, standing.bugs
    step = rules.per_skill_point
    if event.kind in _PER_UNIT:
        unit = event.points // event.count
        skill, experience = grow_by_many(skill, experience, unit, event.count, step)
        commits += event.count if event.kind is EventKind.COMMIT else 0
    elif event.kind is EventKind.BUG:
        skill -= event.count
        bugs += event.count
    elif event.kind is EventKind.REINSTATE:
        skill = max(skill, 0) + event.points
    else:
        score = max(0, score + event.points)
        if event.kind is EventKind.GRADE:
            skill, experience = grow_by_many(skill, experience, rules.grade, event.count, step)
    return evolve(
        standing,
        **_setup_after(standing, event),
        skill_points=skill,
        experience_points=experience,
        communication_score=score,
        commits=commits,
        bugs=bugs,
        active=not is_halted(skill),
        last_event_at=event.at,
        last_event_id=event.id,
    )


def _setup_after(standing: Standing, event: ScoreEvent) -> dict[str, Any]:
    """The setup of the agent after an entry.

    What an agent did tells what it runs as. What it was given (a grade, a bug) tells of an earlier
    moment, so it counts only where nothing else is known. What an entry leaves open stays, unless
    it is of another provider.
    """
    known = standing.provider != UNKNOWN_PROVIDER
    if known and event.kind not in _PER_UNIT:
        return {}
    told = event.provider != UNKNOWN_PROVIDER
    provider = event.provider if told else standing.provider
    if known and provider != standing.provider:
        return {"provider": provider, "model": event.model, "mode": event.mode}
    return {
        "provider": provider,
        "model": standing.model if event.model is None else event.model,
        "mode": standing.mode if event.mode is None else event.mode,
    }


def entry_order(event: ScoreEvent) -> tuple[datetime, str]:
    """Sort key of the ledger: by time, then by id."""
    return event.at, event.id


def fold(agent: str, events: Iterable[ScoreEvent], rules: Experience = DEFAULTS) -> Standing:
    """The standing of an agent after all these entries, in whichever order they are given."""
    return reduce(
        lambda standing, event: apply(standing, event, rules),
        sorted(events, key=entry_order),
        first_standing(agent),
    )


def is_late(standing: Standing, event: ScoreEvent) -> bool:
    """Whether the entry belongs before the last one that was applied (or is that one)."""
    if standing.last_event_at is None or standing.last_event_id is None:
        return False
    return entry_order(event) <= (standing.last_event_at, standing.last_event_id)


def collapse(events: Iterable[ScoreEvent], others: Iterable[ScoreEvent] = ()) -> list[ScoreEvent]:
    """Merge equal tool or command entries that follow one another, in place of the last of them.

    Two are equal if they differ only in id, time and count, and each unit is worth the same. They
    follow one another if no other entry of their agent is between them, neither of `events` nor of
    `others`, so the fold stays exactly the same.
    """
    events = list(events)
    own = {event.id for event in events}
    last: dict[str, tuple[object, ...] | None] = {}
    merged: list[ScoreEvent] = []
    place: dict[str, int] = {}
    for event in sorted([*events, *others], key=entry_order):
        like = _likeness(event) if event.id in own else None
        if event.id not in own:
            last[event.agent] = None
        elif like is not None and like == last.get(event.agent):
            before = merged[place[event.agent]]
            both = {"count": before.count + event.count, "points": before.points + event.points}
            merged[place[event.agent]] = evolve(event, **both)
        else:
            last[event.agent], place[event.agent] = like, len(merged)
            merged.append(event)
    return sorted(merged, key=entry_order)


def _likeness(event: ScoreEvent) -> tuple[object, ...] | None:
    """What equal entries have in common; None for one that is never merged."""
    if event.kind not in _COLLAPSED or event.points % event.count:
        return None
    unit = event.points // event.count
    setup = (event.provider, event.model, event.mode)
    return (event.session_id, event.kind, event.project, unit, *setup)
