"""The checks of the demo can fail: each of them, on an outcome that was spoilt."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.domain.entity import evolve
from herdbook.domain.journal import Actor
from herdbook.domain.location.areas import Area
from herdbook.domain.plan_text.markdown import read_markdown
from herdbook.domain.record.model import Commit
from herdbook.domain.record.standing import EntryContext, commit_entry
from herdbook.entrypoints.demo.run import find_problems
from herdbook.entrypoints.demo.scenario import (
    AGENTS,
    BY_NAME,
    HALTED,
    KILLED,
    PLAN,
    QUESTIONS,
    DemoAgent,
)
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import messaging
from herdbook.services.agents import agent_lifecycle
from herdbook.services.plan import claims
from herdbook.services.plan_text.import_export import import_plan
from herdbook.services.record import grading
from herdbook.services.stores.store_check import Flaw, check
from tests.e2e.demo_checks import (
    CHECKS,
    TASKS,
    DemoResult,
    Expectations,
    GitCommit,
    problems,
    read_record,
    read_work,
)

WORK, RECORD, PROJECT = "work/demo", "record/you", "app"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def grade(uow: UnitOfWork, agent: str, task: str, commit_hash: str) -> None:
    """Record a commit and both grades; find bugs in the halted agent's work until it is halted."""
    uow.ledger.add(commit_entry(EntryContext(agent, uow.now, project=PROJECT, provider="demo")))
    uow.commits.add(
        Commit(
            agent=agent,
            project=PROJECT,
            commit_hash=commit_hash,
            task=task,
            experience_gained=5,
            at=uow.now,
        )
    )
    own, yours = BY_NAME[agent].grades
    graded = grading.grade(uow, agent, PROJECT, commit_hash, agent_grade=own, user_grade=yours)
    standing = graded.standing
    while agent == HALTED.name and standing.active:
        standing = grading.report_bug(uow, agent, project=PROJECT)


class Play:
    """The demo's story, told by use cases in one process instead of by five."""

    def __init__(self, work: Store, record: Store) -> None:
        self.work, self.record = work, record
        self.ids: dict[str, str] = {}
        self.commits: list[GitCommit] = []

    def does(self, member: DemoAgent, use_case: Callable[..., Any], *args: Any, **more: Any) -> Any:
        """Let an agent do something."""
        actor = Actor(agent=member.name, worktree=member.worktree)
        return run(self.work, WORK, use_case, *args, actor=actor, **more)

    def outcome(self) -> DemoResult:
        """Play it and gather what it left behind."""
        run(self.work, WORK, import_plan, read_markdown(PLAN))
        for pid, member in enumerate(AGENTS, start=1):
            came = self.does(member, agent_lifecycle.register, member.name, host="here", pid=pid)
            self.ids[member.name] = came.id
        for member in AGENTS:
            self.begins(member)
        gone = {AGENTS.index(KILLED) + 1: None}
        found = run(
            self.work, WORK, agent_lifecycle.find_crashed, "here", lambda pid: gone.get(pid, LATER)
        )
        assert [agent.name for agent in found] == [KILLED.name]
        rest = [member for member in AGENTS if member not in (KILLED, HALTED)]
        while unfinished := [member for member in rest if self.finishes(member)]:
            assert len(self.commits) <= len(TASKS), unfinished
        refused = {"refused": "AgentHalted"}
        self.does(HALTED, agent_lifecycle.stop, self.ids[HALTED.name], 0, refused)
        return DemoResult(
            **read(self.work, WORK, read_work),
            **read(self.record, RECORD, read_record),
            git_commits=self.commits,
            flaws=[*check(self.work), *check(self.record)],
            exit_codes=dict.fromkeys(BY_NAME, 0) | {KILLED.name: -9},
        )

    def begins(self, member: DemoAgent) -> None:
        """Claim a task, ask something, and hand the task in unless it is the one to be killed."""
        claim = self.does(member, claims.claim, self.ids[member.name], halts=NO_HALTS)
        whom, (question, reply) = BY_NAME[member.asks], QUESTIONS[member.name]
        ids = self.ids[member.name], self.ids[whom.name]
        asked = self.does(member, messaging.ask, *ids, question)
        self.does(whom, messaging.answer, asked.id, reply)
        if member is not KILLED:
            self.hands_in(member, claim)

    def finishes(self, member: DemoAgent) -> bool:
        """Do one more task; False if there is none."""
        claim = self.does(member, claims.claim, self.ids[member.name], halts=NO_HALTS)
        if claim is not None:
            self.hands_in(member, claim)
        return claim is not None

    def hands_in(self, member: DemoAgent, claim: Any) -> None:
        """Complete a task with a commit, and have it graded."""
        task = claim.task
        self.does(member, claims.complete, task.id, claim.fence, "done")
        commit_hash = sha256(task.id.encode()).hexdigest()[:40]
        self.commits.append(GitCommit(commit_hash, member.name, task.id))
        run(self.record, RECORD, grade, member.name, task.name, commit_hash)


@pytest.fixture
def outcome() -> Iterator[DemoResult]:
    """What the demo leaves behind when all goes well."""
    with (
        open_store("memory://", area=Area.WORK, create=True) as work,
        open_store("memory://", area=Area.RECORD, create=True) as record,
    ):
        yield Play(work, record).outcome()


def swapped(rows: list[Any], at: int, **changes: Any) -> list[Any]:
    """Rows of which one is different."""
    return [*rows[:at], evolve(rows[at], **changes), *rows[at + 1 :]]


def agent(found: DemoResult, which: DemoAgent, **changes: Any) -> DemoResult:
    """The one that something happens to, spoilt."""
    at = [each.name for each in found.agents].index(which.name)
    return found._replace(agents=swapped(found.agents, at, **changes))


def task(found: DemoResult, name: str, **changes: Any) -> DemoResult:
    """A task, spoilt."""
    at = [each.name for each in found.tasks].index(name)
    return found._replace(tasks=swapped(found.tasks, at, **changes))


def without(found: DemoResult, status: str) -> DemoResult:
    """A journal that forgot the first move of a task to a status."""
    first = found.moves(status)[0]
    return found._replace(journal=[each for each in found.journal if each is not first])


def again(found: DemoResult, status: str) -> DemoResult:
    """A journal that tells the first move of a task to a status once more, at its end."""
    more = evolve(found.moves(status)[0], seq=len(found.journal) + 1)
    return found._replace(journal=[*found.journal, more])


def by_another(found: DemoResult) -> DemoResult:
    """A journal that has a task completed by somebody who did not."""
    at = found.journal.index(found.moves("completed")[-1])
    return found._replace(journal=swapped(found.journal, at, agent=KILLED.name))


def too_early(found: DemoResult) -> DemoResult:
    """A journal in which the last task was begun before anything else happened."""
    at = found.journal.index(found.moves("in_progress")[-1])
    return found._replace(journal=swapped(found.journal, at, seq=0))


def not_taken_over(found: DemoResult) -> DemoResult:
    """The killed one's task, still in its hands."""
    (killed,) = (each for each in found.agents if each.name == KILLED.name)
    return task(found, FIRST, assignee_id=killed.id)


def halted(found: DemoResult, name: str, *, is_so: bool) -> DemoResult:
    """An agent's standing, spoilt."""
    standing = evolve(found.standings[name], skill_points=0 if is_so else 1, active=not is_so)
    return found._replace(standings={**found.standings, name: standing})


FIRST, LAST = TASKS[0].name, TASKS[-1].name
SPOILT: dict[str, tuple[Callable[[DemoResult], DemoResult], str]] = {
    "a task is missing": (
        lambda e: e._replace(tasks=e.tasks[1:]),
        "the plan has 0 tasks called",
    ),
    "a dependency is missing": (
        lambda e: e._replace(needs={key: set() for key in e.needs}),
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
        f"the journal says {KILLED.name} completed it",
    ),
    "a task was begun too early": (too_early, f"{LAST!r} was begun before"),
    "an agent never came": (
        lambda e: e._replace(agents=e.agents[:-1]),
        "never came to work",
    ),
    "a process died": (
        lambda e: e._replace(exit_codes={**e.exit_codes, AGENTS[2].name: 1}),
        f"the process of {AGENTS[2].name} ended with 1, not with 0",
    ),
    "a worktree was not used": (
        lambda e: e._replace(agents=[evolve(each, worktree_id="one") for each in e.agents]),
        "the agents worked in 1 worktrees, not in 3",
    ),
    "nobody noticed the crash": (
        lambda e: agent(e, KILLED, status="running"),
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
        lambda e: halted(e, HALTED.name, is_so=False),
        "has 1 skill points, so it is not halted",
    ),
    "the halted one was not refused": (
        lambda e: agent(e, HALTED, result={"done": []}),
        "was not refused with AgentHalted",
    ),
    "the halted one went on": (
        lambda e: e._replace(
            journal=[
                *e.journal,
                evolve(e.moves("in_progress")[1], seq=len(e.journal) + 1),
            ]
        ),
        "was to be halted after one task, and claimed 2",
    ),
    "somebody else was halted": (
        lambda e: halted(e, AGENTS[2].name, is_so=True),
        f"{AGENTS[2].name} is halted, and nobody found a bug",
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
        lambda e: e._replace(journal=[*e.journal[:4], *e.journal[5:]]),
        "the journal is not gapless: it lacks [5]",
    ),
    "a store is not whole": (
        lambda e: e._replace(flaws=[Flaw(WORK, "tasks", "tsk_1", "is not as it was written")]),
        "tasks tsk_1 is not as it was written",
    ),
    "git has no commit": (lambda e: e._replace(git_commits=[]), "git has no commit of"),
    "the record has no commit": (
        lambda e: e._replace(commits=[]),
        "the record knows no commit of",
    ),
    "nobody graded": (lambda e: e._replace(retrospectives=[]), "nobody graded"),
}


def test_where_all_went_well_nothing_is_off(outcome: DemoResult) -> None:
    """And each agent is there, and one of them is halted."""
    assert problems(outcome) == []
    assert {each.name for each in outcome.agents} == set(BY_NAME)
    assert len(outcome.moves("completed")) == len(TASKS)
    halted = {name for name, standing in outcome.standings.items() if not standing.active}
    assert halted == {HALTED.name}


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_off_is_told(outcome: DemoResult, name: str) -> None:
    """In a sentence that names it."""
    spoil, sentence = SPOILT[name]
    told = problems(spoil(outcome))
    assert any(sentence in each for each in told), told


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.__name__)
def test_every_check_can_fail(
    outcome: DemoResult, check: Callable[[DemoResult], Expectations]
) -> None:
    """Some way to spoil the outcome makes it speak."""
    spoilt = [spoil(outcome) for spoil, _ in SPOILT.values()]
    assert any(not holds for each in spoilt for holds, _ in check(each))


def test_whoever_is_asked_stays_to_the_end() -> None:
    """Nobody asks one that is killed or halted, so that every question can be answered."""
    assert not {member.asks for member in AGENTS} & {KILLED.name, HALTED.name}
    assert len({question for question, _ in QUESTIONS.values()}) == len(AGENTS)


def test_every_agent_can_begin_at_once() -> None:
    """There are as many tasks that wait for nothing as there are agents."""
    assert sum(not task.after for task in TASKS) >= len(AGENTS)


GOOD_END = {
    agent.name: {
        "status": "crashed" if agent is KILLED else "stopped",
        "result": {"refused": "AgentHalted"} if agent is HALTED else {"done": []},
    }
    for agent in AGENTS
}


@pytest.mark.parametrize(
    ("completed", "ends", "sentence"),
    [
        (["a", "b"], {}, None),
        (["a"], {}, "'b' was completed 0 times, not once"),
        (["a", "b", "a"], {}, "'a' was completed 2 times, not once"),
        (
            ["a", "b"],
            {KILLED.name: {"status": "running"}},
            f"{KILLED.name} is running, not crashed",
        ),
        (["a", "b"], {"quick-lynx": {}}, "quick-lynx is missing, not stopped"),
        (
            ["a", "b"],
            {HALTED.name: {"status": "stopped", "result": {"done": []}}},
            f"the second claim of {HALTED.name} was not refused",
        ),
    ],
)
def test_the_demo_itself_reports_what_went_wrong(
    completed: list[str], ends: dict[str, Any], sentence: str | None
) -> None:
    """In one sentence, and with none if nothing did."""
    found = list(find_problems(["a", "b"], completed, {**GOOD_END, **ends}))
    assert found == ([] if sentence is None else [sentence])
