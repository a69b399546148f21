"""What the record shows of each setup of agents: its commits, their grades and their bugs."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from attrs import evolve, frozen

from herdbook.domain.agents.model import AgentMode
from herdbook.domain.grading import Grade
from herdbook.domain.record.events import commit_event_id, entry_id
from herdbook.domain.record.model import (
    UNKNOWN_PROVIDER,
    Commit,
    EventKind,
    Retrospective,
    ScoreEvent,
)


@frozen
class Setup:
    """What an agent runs as, which can be chosen again for the next project."""

    provider: str
    model: str | None = None
    mode: AgentMode | None = None

    def __str__(self) -> str:
        return " ".join(part for part in (self.provider, self.model, self.mode) if part)


@frozen(kw_only=True)
class Observation:
    """A piece of work by a setup: whether it had a bug, its mean grade, and a note about it.

    `user_grade` is the person's part of the mean grade.
    """

    setup: Setup
    at: datetime
    bug: bool = False
    grade: float | None = None
    user_grade: Grade | None = None
    committed: bool = True
    project: str | None = None
    note: str = ""


def observe(
    commits: Iterable[Commit],
    retrospectives: Iterable[Retrospective],
    events: Iterable[ScoreEvent],
) -> list[Observation]:
    """Read the record: each commit with its grades and whether bugs were found in it.

    A commit counts for the setup of its own entry in the ledger. One without an entry counts for
    the setup that the ledger has for its agent at that time; where it has none, the commit is left
    out. A bug counts against the agent's last commit before it that has none yet
    (in its project, if it names one); without such a commit it is an observation of its own.
    """
    ledger = sorted(events, key=lambda each: (each.at, each.id))
    setups = _setup_history(ledger)
    own = {each.id: _setup_of(each) for each in ledger if each.kind is EventKind.COMMIT}
    works: dict[str, list[Observation]] = defaultdict(list)
    for agent, work in _observe_commits(commits, retrospectives, setups, own):
        works[agent].append(work)
    for its in works.values():
        its.sort(key=lambda each: each.at)
    for event in ledger:
        if event.kind is EventKind.BUG:
            works[event.agent] = _assign_bug(works[event.agent], event, setups)
    return sorted((each for its in works.values() for each in its), key=lambda each: each.at)


def _setup_of(event: ScoreEvent) -> Setup:
    return Setup(event.provider, event.model, event.mode)


def _setup_history(ledger: Iterable[ScoreEvent]) -> dict[str, list[tuple[datetime, Setup]]]:
    known: dict[str, list[tuple[datetime, Setup]]] = defaultdict(list)
    for event in ledger:
        setup = _setup_of(event)
        before = known[event.agent][-1][1] if known[event.agent] else setup
        # An entry without a model or mode keeps the previous one, unless the provider changed.
        if setup.provider in (before.provider, UNKNOWN_PROVIDER):
            model, mode = setup.model or before.model, setup.mode or before.mode
            setup = Setup(before.provider, model, mode)
        if not known[event.agent] or setup != before:
            known[event.agent].append((event.at, setup))
    return known


def _setup_at(known: Sequence[tuple[datetime, Setup]], at: datetime) -> Setup | None:
    """The setup of the agent at that time, or its first one where the ledger starts later."""
    earlier = [setup for since, setup in known if since <= at]
    if earlier:
        return earlier[-1]
    return known[0][1] if known else None


def _observe_commits(
    commits: Iterable[Commit],
    retrospectives: Iterable[Retrospective],
    setups: dict[str, list[tuple[datetime, Setup]]],
    own: dict[str, Setup],
) -> Iterator[tuple[str, Observation]]:
    made = {(each.agent, each.project, each.commit_hash): each for each in commits}
    judged = {(each.agent, each.project, each.commit_hash): each for each in retrospectives}
    for key in sorted(made.keys() | judged.keys()):
        agent, project, _ = key
        judgement = judged.get(key)
        at = made[key].at if key in made else judged[key].at
        setup = own.get(entry_id(commit_event_id(made[key]))) if key in made else None
        setup = setup or _setup_at(setups.get(agent, ()), at)
        if setup is None:
            continue
        work = Observation(setup=setup, at=at, project=project)
        if judgement is not None:
            grade = (judgement.agent_grade + judgement.user_grade) / 2
            note = judgement.user_note or judgement.agent_note
            work = evolve(work, grade=grade, user_grade=judgement.user_grade, note=note)
        yield agent, work


def _assign_bug(
    works: Sequence[Observation],
    event: ScoreEvent,
    setups: dict[str, list[tuple[datetime, Setup]]],
) -> list[Observation]:
    blamed = [
        place
        for place, work in enumerate(works)
        if not work.bug and work.at <= event.at and event.project in (None, work.project)
    ][-event.count :]
    marked = [
        evolve(work, bug=True) if place in blamed else work for place, work in enumerate(works)
    ]
    setup = _setup_at(setups[event.agent], event.at)
    if blamed or setup is None:
        return marked
    alone = Observation(setup=setup, at=event.at, bug=True, committed=False, project=event.project)
    return [*marked, alone]
