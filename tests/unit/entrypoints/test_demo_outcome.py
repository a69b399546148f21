"""The demo notices when it did not go as it had to: each check, on an outcome that was spoilt."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.domain.entity import evolve
from herdbook.domain.journal import Actor
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.demo.evidence import Evidence, GitCommit, deeds, gather
from herdbook.entrypoints.demo.judging import Delivery, judge
from herdbook.entrypoints.demo.outcome import CHECKS, problems
from herdbook.entrypoints.demo.plot import CAST, NAMED, STEPS, Fate, Member, add_plan, of_fate
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import messaging
from herdbook.services.agents import agent_lifecycle
from herdbook.services.plan import claims
from herdbook.services.stores.store_check import Flaw

WORK, RECORD = "work/demo", "record/you"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


class Play:
    """The demo's story, told by use cases in one process instead of by five."""

    def __init__(self, work: Store, record: Store) -> None:
        self.work, self.record = work, record
        self.ids: dict[str, str] = {}
        self.commits: list[GitCommit] = []

    def does(self, member: Member, use_case: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Let an agent do something."""
        actor = Actor(agent=member.name, worktree=member.worktree)
        return run(self.work, WORK, use_case, *args, actor=actor, **more)

    def evidence(self) -> Evidence:
        """Play it and gather what it left behind."""
        run(self.work, WORK, add_plan)
        for pid, member in enumerate(CAST, start=1):
            came = self.does(member, agent_lifecycle.register, member.name, host="here", pid=pid)
            self.ids[member.name] = came.id
        for member in CAST:
            self.begins(member)
        killed, halted = of_fate(Fate.KILLED), of_fate(Fate.HALTED)
        gone = {CAST.index(killed) + 1: None}
        found = run(
            self.work, WORK, agent_lifecycle.find_crashed, "here", lambda pid: gone.get(pid, LATER)
        )
        assert [agent.name for agent in found] == [killed.name]
        rest = [member for member in CAST if member.fate is Fate.FINE]
        while unfinished := [member for member in rest if self.finishes(member)]:
            assert len(self.commits) <= len(STEPS), unfinished
        self.does(
            halted, agent_lifecycle.stop, self.ids[halted.name], 0, {"refused": "AgentHalted"}
        )
        codes = dict.fromkeys(NAMED, 0) | {killed.name: -9}
        return gather((self.work, WORK), (self.record, RECORD), tuple(self.commits), codes)

    def begins(self, member: Member) -> None:
        """Claim a task, ask something, and hand the task in unless it is the one to be killed."""
        claim = self.does(member, claims.claim, self.ids[member.name], halts=NO_HALTS)
        whom = NAMED[member.asks]
        ids = self.ids[member.name], self.ids[whom.name]
        asked = self.does(member, messaging.ask, *ids, member.question)
        self.does(whom, messaging.answer, asked.id, member.reply)
        if member.fate is not Fate.KILLED:
            self.hands_in(member, claim)

    def finishes(self, member: Member) -> bool:
        """Do one more task; False if there is none."""
        claim = self.does(member, claims.claim, self.ids[member.name], halts=NO_HALTS)
        if claim is not None:
            self.hands_in(member, claim)
        return claim is not None

    def hands_in(self, member: Member, claim: Any) -> None:
        """Complete a task with a commit, and have it graded."""
        task = claim.task
        self.does(member, claims.complete, task.id, claim.fence, "done")
        commit_hash = sha256(task.id.encode()).hexdigest()[:40]
        self.commits.append(GitCommit(commit_hash, member.name, task.id))
        delivery = Delivery(member.name, task.name, commit_hash)
        run(self.record, RECORD, judge, delivery, member)


@pytest.fixture
def evidence() -> Iterator[Evidence]:
    """What the demo leaves behind when all goes well."""
    with (
        open_store("memory://", area=Area.WORK, create=True) as work,
        open_store("memory://", area=Area.RECORD, create=True) as record,
    ):
        yield Play(work, record).evidence()


def swapped(rows: tuple[Any, ...], at: int, **changes: Any) -> tuple[Any, ...]:
    """Rows of which one is different."""
    return (*rows[:at], evolve(rows[at], **changes), *rows[at + 1 :])


def agent(found: Evidence, fate: Fate, **changes: Any) -> Evidence:
    """The one that something happens to, spoilt."""
    at = [each.name for each in found.agents].index(of_fate(fate).name)
    return found._replace(agents=swapped(found.agents, at, **changes))


def task(found: Evidence, name: str, **changes: Any) -> Evidence:
    """A task, spoilt."""
    at = [each.name for each in found.tasks].index(name)
    return found._replace(tasks=swapped(found.tasks, at, **changes))


def without(found: Evidence, status: str) -> Evidence:
    """A journal that forgot the first move of a task to a status."""
    first = found.moves(status)[0]
    return found._replace(journal=tuple(each for each in found.journal if each is not first))


def again(found: Evidence, status: str) -> Evidence:
    """A journal that tells the first move of a task to a status once more, at its end."""
    more = evolve(found.moves(status)[0], seq=len(found.journal) + 1)
    return found._replace(journal=(*found.journal, more))


def by_another(found: Evidence) -> Evidence:
    """A journal that has a task completed by somebody who did not."""
    at = found.journal.index(found.moves("completed")[-1])
    return found._replace(journal=swapped(found.journal, at, agent=of_fate(Fate.KILLED).name))


def too_early(found: Evidence) -> Evidence:
    """A journal in which the last task was begun before anything else happened."""
    at = found.journal.index(found.moves("in_progress")[-1])
    return found._replace(journal=swapped(found.journal, at, seq=0))


def not_taken_over(found: Evidence) -> Evidence:
    """The killed one's task, still in its hands."""
    (killed,) = (each for each in found.agents if each.name == of_fate(Fate.KILLED).name)
    return task(found, FIRST, assignee_id=killed.id)


def halted(found: Evidence, name: str, *, is_so: bool) -> Evidence:
    """An agent's standing, spoilt."""
    standing = evolve(found.standings[name], skill_points=0 if is_so else 1, active=not is_so)
    return found._replace(standings={**found.standings, name: standing})


FIRST, LAST = STEPS[0].name, STEPS[-1].name
SPOILT: dict[str, tuple[Callable[[Evidence], Evidence], str]] = {
    "a task is missing": (
        lambda e: e._replace(tasks=e.tasks[1:]),
        "the plan has 0 tasks called",
    ),
    "a dependency is missing": (
        lambda e: e._replace(waits_for=dict.fromkeys(e.waits_for, ())),
        f"{LAST!r} waits for [], not for",
    ),
    "a task is not completed": (
        lambda e: task(e, LAST, status="blocked"),
        f"{LAST!r} is blocked, not completed",
    ),
    "a task was never completed": (lambda e: without(e, "completed"), "the journal tells 0 times"),
    "a task was completed twice": (lambda e: again(e, "completed"), "the journal tells 2 times"),
    "another one completed it": (
        by_another,
        f"the journal says {of_fate(Fate.KILLED).name} completed it",
    ),
    "a task was begun too early": (too_early, f"{LAST!r} was begun before"),
    "an agent never came": (
        lambda e: e._replace(agents=e.agents[:-1]),
        "never came to work",
    ),
    "a process died": (
        lambda e: e._replace(exit_codes={**e.exit_codes, CAST[2].name: 1}),
        f"the process of {CAST[2].name} ended with 1, not with 0",
    ),
    "a worktree was not used": (
        lambda e: e._replace(agents=tuple(evolve(each, worktree_id="one") for each in e.agents)),
        "the agents worked in 1 worktrees, not in 3",
    ),
    "nobody noticed the crash": (
        lambda e: agent(e, Fate.KILLED, status="running"),
        "is running instead of crashed",
    ),
    "the killed one held nothing": (
        lambda e: without(e, "in_progress"),
        "was to be killed with one task in its hands, and claimed 0",
    ),
    "nobody took over": (not_taken_over, f"nobody took {FIRST!r} over"),
    "no retry was counted": (
        lambda e: task(e, FIRST, retry_count=0),
        "was taken over once, and its retries are 0",
    ),
    "nobody was halted": (
        lambda e: halted(e, of_fate(Fate.HALTED).name, is_so=False),
        "has 1 skill points, so it is not halted",
    ),
    "the halted one was not refused": (
        lambda e: agent(e, Fate.HALTED, result={"done": []}),
        "was not refused with AgentHalted",
    ),
    "the halted one went on": (
        lambda e: e._replace(
            journal=(
                *e.journal,
                evolve(e.moves("in_progress")[1], seq=len(e.journal) + 1),
            )
        ),
        "was to be halted after one task, and claimed 2",
    ),
    "somebody else was halted": (
        lambda e: halted(e, CAST[2].name, is_so=True),
        f"{CAST[2].name} is halted, and nobody found a bug",
    ),
    "somebody asked nothing": (
        lambda e: e._replace(conversations=e.conversations[1:]),
        "asked nobody anything",
    ),
    "a question has no answer": (
        lambda e: e._replace(
            conversations=swapped(e.conversations, 0, answer=None, status="pending")
        ),
        "nobody answered",
    ),
    "the journal has a gap": (
        lambda e: e._replace(journal=(*e.journal[:4], *e.journal[5:])),
        "the journal is not gapless: it lacks [5]",
    ),
    "a store is not whole": (
        lambda e: e._replace(flaws=(Flaw(WORK, "tasks", "tsk_1", "is not as it was written"),)),
        "tasks tsk_1 is not as it was written",
    ),
    "git has no commit": (lambda e: e._replace(git_commits=()), "git has no commit of"),
    "the record has no commit": (
        lambda e: e._replace(kept_commits=()),
        "the record knows no commit of",
    ),
    "nobody graded": (lambda e: e._replace(retrospectives=()), "nobody graded"),
}


def test_where_all_went_well_nothing_is_off(evidence: Evidence) -> None:
    """And each agent has its deeds."""
    assert problems(evidence) == []
    told = deeds(evidence)
    assert [each["agent"] for each in told] == [member.name for member in CAST]
    assert sum(len(each["tasks"]) for each in told) == len(STEPS)
    assert [each["halted"] for each in told] == [m.fate is Fate.HALTED for m in CAST]


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_off_is_told(evidence: Evidence, name: str) -> None:
    """In a sentence that names it."""
    spoil, sentence = SPOILT[name]
    told = problems(spoil(evidence))
    assert any(sentence in each for each in told), told


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__)
def test_every_check_can_fail(
    evidence: Evidence, check: Callable[[Evidence], Iterator[str]]
) -> None:
    """Some way to spoil the outcome makes it speak."""
    assert any(list(check(spoil(evidence))) for spoil, _ in SPOILT.values())


def test_whoever_is_asked_stays_to_the_end() -> None:
    """Nobody asks one that is killed or halted, so that every question can be answered."""
    assert all(NAMED[member.asks].fate is Fate.FINE for member in CAST)
    assert len({member.question for member in CAST}) == len(CAST)


def test_every_agent_can_begin_at_once() -> None:
    """There are as many tasks that wait for nothing as there are agents."""
    assert sum(not step.after for step in STEPS) >= len(CAST)
