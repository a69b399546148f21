"""Grades, bugs, reinstatements and activities of agents, written at once.

Who acts is the actor of the unit of work. A person may do all of it. An agent may give its own
commits its own grade, report bugs and record activities: the user's grade and the end of a halt are
the user's to give.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from herdbook.domain.errors import AlreadyExists, InvalidValue, NotFound
from herdbook.domain.grading import Grade, score_after
from herdbook.domain.record import standing as ledger
from herdbook.domain.record.events import (
    HookEvent,
    SessionSetup,
    commit_event_id,
    entry_id,
    name_of_agent,
)
from herdbook.domain.record.model import (
    UNKNOWN_PROVIDER,
    Activity,
    EventKind,
    Retrospective,
    ScoreEvent,
    Standing,
)
from herdbook.domain.record.standing import EntryContext, Grader
from herdbook.domain.record.standing_reasons import StandingReasons, explain_standing
from herdbook.ports.engine.dictionary import ACTIVITIES, RETROSPECTIVES, SCORE_EVENTS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, between, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.listing import Listing, list_page
from herdbook.services.record import record_ingest

E = TypeVar("E", Activity, Retrospective)

Crew = Mapping[str, SessionSetup]
"""The agents that are registered where somebody judges, by name, and what they run as."""
NO_CREW: Crew = MappingProxyType({})

_SCORED = (EventKind.GRADE, EventKind.COMMUNICATION)
_BY = {Grader.AGENT: "itself", Grader.USER: "the user"}


class GradeResult(NamedTuple):
    """The result of grading: the ledger entry, and the retrospective if both parties graded."""

    entry: ScoreEvent
    retrospective: Retrospective | None
    standing: Standing


class UngradedCommit(NamedTuple):
    """A commit of the record that lacks the grade of who asks, the party that is `missing`."""

    agent: str
    project: str
    commit_hash: str
    task: str
    at: datetime
    agent_grade: Grade | None
    user_grade: Grade | None
    missing: Grader


class _Work(NamedTuple):
    """A commit of an agent that is graded."""

    agent: str
    project: str
    commit_hash: str


def grade(
    uow: UnitOfWork,
    agent: str,
    project: str,
    commit_hash: str,
    *,
    agent_grade: Grade | None = None,
    user_grade: Grade | None = None,
    task: str | None = None,
    subject: str = "",
    agent_note: str = "",
    user_note: str = "",
    crew: Crew = NO_CREW,
) -> GradeResult:
    """Grade an agent's commit, as one party or as both; each party grades a commit once.

    One grade changes the score and is an activity with its note; the grade of the second party
    completes the retrospective. Both carry the setup that the commit was made with. Without a
    `task`, it is what the first party said, else that of the commit in the record, else `subject`.

    Raises AlreadyExists for a party that has graded the commit before, InvalidValue without any
    grade and for one that is not the acting agent's to give, and NotFound for an unknown agent.
    """
    parties = ((Grader.AGENT, agent_grade, agent_note), (Grader.USER, user_grade, user_note))
    given = {party: (each, note) for party, each, note in parties if each is not None}
    if not given:
        raise InvalidValue("grade", "nobody has given one; name --self, --user or both")
    _check_grader(uow, agent, given)
    _require_known(uow, agent, crew)
    work = _Work(agent, project, commit_hash)
    earlier = _earlier_grades(uow, work)
    for party in given:
        if party in earlier:
            whose = "the user's grade" if party is Grader.USER else "the agent's own grade"
            raise AlreadyExists(f"{whose} of {agent}'s commit", commit_hash)
    on = _occasion(uow, _setup(uow, agent, crew, work), agent, project)
    said = task or _task(uow, work, earlier) or subject
    if len(given) + len(earlier) == 1:
        ((party, (alone, note)),) = given.items()
        entry = _add_first_grade(uow, on, work, party, alone)
        _add_activity_of_grade(uow, work, party, alone, task=said, note=note)
        return GradeResult(entry, None, uow.standings.of_agent(agent))
    if not earlier:
        first = _add_first_grade(uow, on, work, Grader.AGENT, given[Grader.AGENT][0])
        return _complete(uow, on, work, first, given, task=said)
    ((party, first),) = earlier.items()
    activity = uow.activities.find(_activity_key(work, party))
    own = (Grade(first.points), "" if activity is None else activity.outcome)
    return _complete(uow, on, work, first, {party: own, **given}, task=said)


def ungraded_commits(
    uow: UnitOfWork,
    project: str,
    *,
    agent: str | None = None,
    limit: int = 20,
    crew: Crew = NO_CREW,
) -> Listing[UngradedCommit]:
    """The latest commits of a project that the acting party has not graded, newest first.

    Those of one agent, or of all; an acting agent gets its own. Raises NotFound for an unknown
    agent.
    """
    if agent is not None:
        _require_known(uow, agent, crew)
    acting = uow.actor.agent
    party = Grader.USER if acting is None else Grader.AGENT
    wanted = agent or acting
    judged = {(each.agent, each.commit_hash) for each in uow.retrospectives.of_project(project)}
    found: list[UngradedCommit] = []
    for commit in uow.commits.of_project(project):
        work = _Work(commit.agent, project, commit.commit_hash)
        if wanted not in (None, commit.agent) or (work.agent, work.commit_hash) in judged:
            continue
        given = {each: Grade(entry.points) for each, entry in _given_grades(uow, work).items()}
        if party in given:
            continue
        if len(found) == limit:
            return Listing(found, more=True)
        grades = given.get(Grader.AGENT), given.get(Grader.USER)
        found.append(UngradedCommit(*work, commit.task, commit.at, *grades, party))
    return Listing(found, len(found))


def report_bug(
    uow: UnitOfWork,
    agent: str,
    note: str | None = None,
    *,
    project: str | None = None,
    crew: Crew = NO_CREW,
) -> Standing:
    """Record a bug in an agent's work: it costs a skill point; without any left, it is halted.

    Raises NotFound for an unknown agent.
    """
    _require_known(uow, agent, crew)
    uow.ledger.add(ledger.bug_entry(_occasion(uow, _setup(uow, agent, crew), agent, project)))
    if note:
        add_activity(uow, agent, "bug", outcome=note, project=project)
    return uow.standings.of_agent(agent)


def reinstate(
    uow: UnitOfWork, agent: str, skill_points: int = 1, *, crew: Crew = NO_CREW
) -> Standing:
    """Reinstate a halted agent with these skill points, which a person may do.

    Raises InvalidValue if an agent acts or the agent is active, and NotFound for an unknown agent.
    """
    if uow.actor.agent is not None:
        raise _refuse_agent(uow, "reinstate", "to reinstate is a person's to decide")
    _require_known(uow, agent, crew)
    standing = uow.standings.of_agent(agent)
    if standing.active:
        reason = f"{agent!r} is not halted ({standing.skill_points} skill points)"
        raise InvalidValue("agent", f"{reason}. Nothing was written")
    on = _occasion(uow, _setup(uow, agent, crew), agent, None)
    uow.ledger.add(ledger.reinstatement_entry(on, skill_points))
    return uow.standings.of_agent(agent)


def standings(
    uow: UnitOfWork,
    events: Sequence[HookEvent] = (),
    agent: str | None = None,
    *,
    crew: Crew = NO_CREW,
) -> list[Standing]:
    """The standings of all agents or of one, counting buffered events; nothing is written.

    Raises NotFound for an agent that nobody knows.
    """
    if agent is not None:
        _require_known(uow, agent, crew, filter(None, map(name_of_agent, events)))
    return record_ingest.standings_with(uow, events, agent)


def standing_reasons(
    uow: UnitOfWork, found: Sequence[Standing], agent: str | None = None
) -> list[StandingReasons]:
    """What explains these standings, each by its retrospectives; `agent` if all are of one."""
    judged: dict[str, list[Retrospective]] = defaultdict(list)
    for each in uow.retrospectives.by_agent(agent):
        judged[each.agent].append(each)
    return [explain_standing(each, judged[each.agent], uow.experience) for each in found]


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
    return list_page(uow, _latest_first(ACTIVITIES, agent, limit, start))


def retrospectives(
    uow: UnitOfWork, agent: str | None = None, limit: int = 100, *, after: str | None = None
) -> list[Retrospective]:
    """A page of the retrospectives of all agents or of one, latest first, starting after a row."""
    start = None if after is None else uow.retrospectives.get(after)
    return list_page(uow, _latest_first(RETROSPECTIVES, agent, limit, start))


def _latest_first(kind: Kind[E], agent: str | None, limit: int, after: E | None) -> Query[E]:
    """A page of the rows of all agents or of one, by time."""
    of_agent = {} if agent is None else {"agent": agent}
    where = {**of_agent, "at": between(None, None)}
    return find(kind, where, descending=True, limit=limit, after=after)


def _check_grader(uow: UnitOfWork, agent: str, given: Iterable[Grader]) -> None:
    """Refuse grades that are not the acting agent's to give; a person may give both."""
    acting = uow.actor.agent
    if acting is None:
        return
    if Grader.USER in given:
        raise _refuse_agent(uow, "user", "the user's grade is a person's to give")
    if acting != agent:
        raise _refuse_agent(uow, "self", f"{agent!r} gives its own grade, or a person does")


def _refuse_agent(uow: UnitOfWork, field: str, rule: str) -> InvalidValue:
    reason = f"{rule}, and agent {uow.actor.agent!r} acts here"
    return InvalidValue(field, f"{reason}. Nothing was written; ask the person who runs you")


def is_known(uow: UnitOfWork, agent: str) -> bool:
    """Whether the record has an event or an activity of an agent."""
    if uow.standings.of_agent(agent).last_event_id is not None:
        return True
    return bool(uow.activities.of_agent(agent, limit=1))


def _require_known(uow: UnitOfWork, agent: str, crew: Crew, buffered: Iterable[str] = ()) -> None:
    """Raise NotFound, with the names nearest to it, for an agent that nothing is known of."""
    others = set(buffered)
    if agent in crew or agent in others or is_known(uow, agent):
        return
    from difflib import get_close_matches  # noqa: PLC0415 - only for a name that is misspelt

    near = get_close_matches(agent, sorted({*others, *crew, *uow.standings.names()}))
    hint = f"did you mean {' or '.join(near)}? Nothing" if near else "nothing"
    raise NotFound("agent", agent, f"{hint} was written; `agent add` makes a new one known")


def _earlier_grades(uow: UnitOfWork, work: _Work) -> dict[Grader, ScoreEvent]:
    """The grades that the parties have given a commit one at a time.

    Raises AlreadyExists if both have graded it.
    """
    judged = uow.retrospectives.of_commit(*work)
    if judged is not None:
        raise AlreadyExists(f"the retrospective of {work.agent}'s commit", work.commit_hash)
    return _given_grades(uow, work)


def _given_grades(uow: UnitOfWork, work: _Work) -> dict[Grader, ScoreEvent]:
    found = uow.get(SCORE_EVENTS, [_entry_key(work, party) for party in Grader])
    return {party: entry for party, entry in zip(Grader, found, strict=True) if entry is not None}


def _add_first_grade(
    uow: UnitOfWork, on: EntryContext, work: _Work, party: Grader, given: Grade
) -> ScoreEvent:
    key = _entry_key(work, party)
    return uow.ledger.add(ledger.communication_entry(on._replace(id=key), given))


def _add_activity_of_grade(
    uow: UnitOfWork, work: _Work, party: Grader, given: Grade, *, task: str, note: str
) -> None:
    """Keep what the first party said: a ledger entry holds no words."""
    uow.activities.add(
        Activity(
            id=_activity_key(work, party),
            agent=work.agent,
            project=work.project,
            task=task,
            actions=f"{work.commit_hash[:12]} was graded {given.label} by {_BY[party]}",
            outcome=note,
            decisions="",
            at=uow.now,
        )
    )


def _complete(
    uow: UnitOfWork,
    on: EntryContext,
    work: _Work,
    first: ScoreEvent,
    given: Mapping[Grader, tuple[Grade, str]],
    *,
    task: str,
) -> GradeResult:
    """Add the second of two grades, given in this order, to the ledger entry of the first.

    The points of its entry make both count as their sum, also where the score is at its lowest.
    """
    opening, closing = (each for each, _ in given.values())
    before = _score_before(uow, first)
    after = score_after(before, opening, closing)
    retrospective = uow.retrospectives.add(
        Retrospective(
            **work._asdict(),
            task=task,
            agent_grade=given[Grader.AGENT][0],
            user_grade=given[Grader.USER][0],
            score_before=before,
            score_after=after,
            agent_note=given[Grader.AGENT][1],
            user_note=given[Grader.USER][1],
            at=uow.now,
        )
    )
    key = _entry_key(work, list(given)[-1])
    points = after - score_after(before, opening)
    entry = uow.ledger.add(ledger.completing_entry(on._replace(id=key), points))
    return GradeResult(entry, retrospective, uow.standings.of_agent(work.agent))


def _score_before(uow: UnitOfWork, entry: ScoreEvent) -> int:
    """The communication score of the agent before a ledger entry."""
    place = ledger.entry_order(entry)
    earlier = [
        each
        for each in uow.ledger.of_agent(entry.agent)
        if each.kind in _SCORED and ledger.entry_order(each) < place
    ]
    return ledger.fold(entry.agent, earlier, uow.experience).communication_score


def _entry_key(work: _Work, party: Grader) -> str:
    return f"{SCORE_EVENTS.prefix}_{ledger.grade_key(*work, party)}"


def _activity_key(work: _Work, party: Grader) -> str:
    return f"{ACTIVITIES.prefix}_{ledger.grade_key(*work, party)}"


def _setup(
    uow: UnitOfWork, agent: str, crew: Crew, work: _Work | None = None
) -> ScoreEvent | Standing | SessionSetup:
    """What a commit was made with, else what the agent ran as last, else as it is registered."""
    commit = None if work is None else uow.commits.of_hash(*work)
    if commit is not None:
        own = uow.ledger.find(entry_id(commit_event_id(commit)))
        if own is not None and own.provider != UNKNOWN_PROVIDER:
            return own
    standing = uow.standings.of_agent(agent)
    if standing.provider != UNKNOWN_PROVIDER:
        return standing
    return crew.get(agent, standing)


def _occasion(
    uow: UnitOfWork,
    setup: ScoreEvent | Standing | SessionSetup,
    agent: str,
    project: str | None,
) -> EntryContext:
    return EntryContext(
        agent=agent,
        at=uow.now,
        project=project,
        provider=setup.provider or UNKNOWN_PROVIDER,
        model=setup.model,
        mode=setup.mode,
    )


def _task(uow: UnitOfWork, work: _Work, earlier: Iterable[Grader]) -> str:
    for party in earlier:
        said = uow.activities.find(_activity_key(work, party))
        if said is not None and said.task:
            return said.task
    commit = uow.commits.of_hash(*work)
    return "" if commit is None else commit.task
