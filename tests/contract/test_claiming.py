"""Who works on what: claims and the fences that guard them, on every store."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from herdbook.domain.entity import NEVER, evolve
from herdbook.domain.errors import InvalidValue, NotFound, StaleFence
from herdbook.domain.plan.claims import LEASE, Claim
from herdbook.domain.plan.model import (
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Priority,
    Task,
    TaskStatus,
)
from herdbook.domain.plan.readiness import Opening, OpeningState
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from herdbook.services.plan.wait_reasons import A_PERSON, SAMPLE, describe_wait
from tests.cases import for_each
from tests.contract.claims import (
    BLINK,
    add_agents,
    add_tasks,
    claim_for,
    do,
    every_write,
    everything,
    get_task,
    ready_ids,
)
from tests.contract.rows import make
from tests.contract.turns import Begin, in_turn

_, IN_PROGRESS, _, COMPLETED, BLOCKED = TaskStatus


def test_the_most_urgent_task_is_ready_first(begin: Begin) -> None:
    """Priority decides, then order, then age, then the id."""
    low, high = Priority.LOW, Priority.HIGH
    rows = [
        Task(name="6", priority=low, order=-9),
        Task(name="5", order=2),
        Task(name="3", order=1),
        Task(name="4", order=1),
        Task(name="2", priority=high, order=9),
        Task(name="1", priority=high, order=8),
    ]
    in_turn(begin, TASKS, rows)
    with begin() as uow:
        twins = [Task(id=f"twin_{each}", name=each, order=3, priority=low) for each in "ba"]
        uow.tasks.add_all(twins)
        uow.commit()
    with begin(write=False) as uow:
        names = [task.name for task in claims.ready(uow)]
    assert names == ["1", "2", "3", "4", "5", "6", "a", "b"]
    (agent,) = add_agents(begin)
    assert [claim_for(begin, agent).task.name for _ in names] == names
    assert claim_for(begin, agent) is None


def test_ready_gives_the_first_of_many(begin: Begin) -> None:
    """A limit cuts the line behind the most urgent."""
    tasks = add_tasks(begin, *(Task(name="x", order=order) for order in (3, 1, 2)))
    assert ready_ids(begin, limit=2) == [tasks[1].id, tasks[2].id]


def test_ready_and_claim_keep_to_an_initiative_or_a_phase(begin: Begin) -> None:
    """What is asked for within something is never outside of it, expired leases included."""
    with begin() as uow:
        here, there = (uow.initiatives.add(Initiative(name="x")) for _ in range(2))
        phases = [
            uow.phases.add(Phase(initiative_id=i.id, name="x", status=PhaseStatus.APPROVED))
            for i in (here, here, there)
        ]
        for phase in phases:
            make(uow, TASKS, id=f"t{phases.index(phase)}", phase_id=phase.id)
        make(uow, TASKS, id="t3", initiative_id=there.id, order=1)
        make(uow, TASKS, id="t4", order=2)
        uow.commit()
    (agent,) = add_agents(begin)
    for _ in range(2):
        assert sorted(ready_ids(begin, initiative_id=here.id)) == ["t0", "t1"]
        assert ready_ids(begin, initiative_id=there.id) == ["t2", "t3"]
        assert ready_ids(begin, phase_id=phases[1].id) == ["t1"]
        assert ready_ids(begin, initiative_id=here.id, phase_id=phases[1].id) == ["t1"]
        assert ready_ids(begin, initiative_id=there.id, phase_id=phases[1].id) == []
        assert claim_for(begin, agent, phase_id=phases[1].id, ttl=BLINK).task.id == "t1"
        assert claim_for(begin, agent, initiative_id=there.id, ttl=BLINK).task.id == "t2"


def test_a_claim_puts_the_task_into_the_agents_hands(begin: Begin) -> None:
    """In progress, assigned, one fence further and under a lease, as it is kept."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x", priority=Priority.HIGH, order=7))
    with begin() as uow:
        stamp = uow.stamp
        claim = claims.claim(uow, agent, halts=NO_HALTS)
        now = uow.now
        uow.commit()
    claimed = evolve(
        task,
        status=IN_PROGRESS,
        assignee_id=agent,
        fence=1,
        claim_stamp=stamp,
        lease_until=now + LEASE,
        updated_at=now,
        version=2,
    )
    opening = Opening(
        task_id=task.id,
        state=OpeningState.HELD,
        rank=0,
        order=7,
        created_at=task.created_at,
        lease_until=now + LEASE,
    )
    assert claim == Claim(claimed, opening, {})
    with begin(write=False) as uow:
        assert uow.tasks.get(task.id) == claimed
        assert uow.openings.get(task.id) == opening


def test_a_claim_that_is_not_committed_leaves_no_trace(begin: Begin) -> None:
    """The task is as ready as before."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x"))
    with begin() as uow:
        before = everything(uow)
        assert claims.claim(uow, agent, halts=NO_HALTS).task.id == task.id
    with begin(write=False) as uow:
        assert everything(uow) == before
    assert ready_ids(begin) == [task.id]


def test_every_task_is_claimed_exactly_once(begin: Begin) -> None:
    """Agents that claim at the same time never get the same one, and leave none."""
    agents = add_agents(begin, 3)
    tasks = add_tasks(begin, *(Task(name="x", order=n) for n in range(12)))

    def work(agent: str) -> list[str]:
        claimed = []
        while claim := claim_for(begin, agent):
            claimed.append(claim.task.id)
        return claimed

    with ThreadPoolExecutor(len(agents)) as pool:
        shares = list(pool.map(work, agents))
    given = [task_id for share in shares for task_id in share]
    assert sorted(given) == sorted(task.id for task in tasks)
    for agent, share in zip(agents, shares, strict=True):
        for task_id in share:
            assert get_task(begin, task_id).assignee_id == agent


def test_one_unit_of_work_claims_one_task_after_the_other(begin: Begin) -> None:
    """What was claimed a moment ago is not claimed again."""
    (agent,) = add_agents(begin)
    tasks = add_tasks(begin, *(Task(name="x", order=n) for n in range(2)))
    with begin() as uow:
        given = [claims.claim(uow, agent, halts=NO_HALTS) for _ in range(3)]
        uow.commit()
    assert [claim and claim.task.id for claim in given] == [tasks[0].id, tasks[1].id, None]


def test_nobody_claims_for_an_unknown_agent(begin: Begin) -> None:
    """The agent is named, and the task stays ready."""
    (task,) = add_tasks(begin, Task(name="x"))
    with begin() as uow:
        with pytest.raises(NotFound) as refusal:
            claims.claim(uow, "agt_missing", halts=NO_HALTS)
        uow.commit()
    assert (refusal.value.entity, refusal.value.key) == ("agent", "agt_missing")
    assert ready_ids(begin) == [task.id]


def test_a_claimer_sees_the_summaries_of_what_the_task_depended_on(begin: Begin) -> None:
    """Of each direct dependency, None where nothing was said."""
    (agent,) = add_agents(begin)
    with begin() as uow:
        far, near, silent, last = (make(uow, TASKS, order=n) for n in range(4))
        pairs = [(near.id, far.id), (last.id, near.id), (last.id, silent.id)]
        uow.tasks.add_dependencies(pairs)
        uow.commit()
    for summary in ("Far", "Near", None):
        claim = claim_for(begin, agent)
        do(begin, claims.complete, claim.task.id, claim.fence, summary)
    claim = claim_for(begin, agent)
    assert (claim.task.id, claim.summaries) == (last.id, {near.id: "Near", silent.id: None})


@every_write
def test_a_write_with_an_old_fence_is_refused(begin: Begin, write: Callable[..., object]) -> None:
    """Who lost a task to another can do nothing to it any more."""
    slow, fast = add_agents(begin, 2)
    (task,) = add_tasks(begin, Task(name="x"))
    old = claim_for(begin, slow, ttl=BLINK)
    new = claim_for(begin, fast)
    assert (old.fence, new.fence) == (1, 2)
    with begin() as uow:
        before = everything(uow)
        with pytest.raises(StaleFence) as refusal:
            write(uow, task.id, old.fence)
        uow.commit()
    assert (refusal.value.fence, refusal.value.current) == (1, 2)
    with begin(write=False) as uow:
        assert refusal.value.holder == uow.agents.get(fast).name
    told = str(refusal.value)
    assert f"Stop working on this task; {refusal.value.holder} holds it since" in told
    assert "`herdbook claim` takes another" in told
    with begin(write=False) as uow:
        assert everything(uow) == before


@every_write
@for_each("ending", [claims.complete, claims.fail, claims.release], ids=lambda it: it.__name__)
def test_a_write_after_letting_go_is_refused(
    begin: Begin, ending: Callable[..., object], write: Callable[..., object]
) -> None:
    """A claim ends with its first ending, whatever is said later."""
    (agent,) = add_agents(begin)
    add_tasks(begin, Task(name="x"))
    claim = claim_for(begin, agent)
    do(begin, ending, claim.task.id, claim.fence)
    after = get_task(begin, claim.task.id)
    with begin() as uow:
        with pytest.raises(StaleFence):
            write(uow, claim.task.id, claim.fence)
        uow.commit()
    assert get_task(begin, claim.task.id) == after


@every_write
def test_a_write_to_a_task_that_is_not_there_names_it(
    begin: Begin, write: Callable[..., object]
) -> None:
    """An unknown task is not a stale one."""
    with begin() as uow, pytest.raises(NotFound):
        write(uow, "tsk_missing", 1)


def test_an_agent_that_holds_nothing_is_told_so_by_its_name(begin: Begin) -> None:
    """And how it gets a task."""
    (agent,) = add_agents(begin)
    with begin(write=False) as uow, pytest.raises(NotFound) as refusal:
        claims.own_task(uow, agent)
    with begin(write=False) as uow:
        name = uow.agents.get(agent).name
    assert str(refusal.value) == f"{name} holds no task; `herdbook claim` takes one"


def test_only_the_holder_needs_no_fence(begin: Begin) -> None:
    """Another agent is told who holds the task, and a person that the fence is needed."""
    holder, other = add_agents(begin, 2)
    (task,) = add_tasks(begin, Task(name="x"))
    claim = claim_for(begin, holder)
    with begin(write=False) as uow:
        name = uow.agents.get(holder).name
        assert claims.own_fence(uow, task.id, holder) == claim.stamp
        with pytest.raises(StaleFence, match=re.escape(f"this task; {name} holds it since")):
            claims.own_fence(uow, task.id, other)
        with pytest.raises(InvalidValue, match="must be given, as `claim` printed it"):
            claims.own_fence(uow, task.id, None)


def test_it_is_said_why_no_task_is_ready(begin: Begin) -> None:
    """How many tasks wait, for what, and how many are held: of all, an initiative or a phase."""
    (agent,) = add_agents(begin)
    with begin() as uow:
        goal = uow.initiatives.add(Initiative(name="Login"))
        rest = uow.initiatives.add(Initiative(name="Old", status=InitiativeStatus.ARCHIVED))
        schema = uow.phases.add(Phase(name="Schema", initiative_id=goal.id))
        api = Phase(name="API", initiative_id=goal.id, status=PhaseStatus.APPROVED)
        later = uow.phases.add(api)
        uow.phases.add_dependency(later.id, schema.id)
        for phase, count in ((schema, 2), (later, 1)):
            uow.tasks.add_all([Task(name="x", phase_id=phase.id) for _ in range(count)])
        first, second = uow.tasks.add_all([Task(name="x", initiative_id=goal.id) for _ in "ab"])
        uow.tasks.add_dependency(second.id, first.id)
        uow.tasks.add(Task(name="x", initiative_id=rest.id))
        uow.tasks.add(Task(name="x", status=BLOCKED))
        uow.commit()
    assert claim_for(begin, agent).task.id == first.id
    assert claim_for(begin, agent) is None
    approve = f"`herdbook phase approve {schema.id}`"
    to_be_approved = f"2 wait for phase 'Schema' to be approved ({approve})"
    others = ["1 waits for phase 'Schema' to be completed", "1 waits for other tasks"]
    alien = [
        "1 waits for initiative 'Old' to be active again (it is archived)",
        "1 waits for a person, who can use `herdbook task retry`",
    ]
    with begin(write=False) as uow:
        for within, expected in (
            ({}, [to_be_approved, *others, *alien, "1 is held by agents"]),
            ({"initiative_id": goal.id}, [to_be_approved, *others, "1 is held by agents"]),
            ({"phase_id": schema.id}, [to_be_approved]),
            ({"phase_id": later.id}, others[:1]),
        ):
            head, _, said = describe_wait(uow, **within).partition(": ")
            assert head == "no task is ready"
            assert sorted(said.split(", ")) == sorted(", ".join(expected).split(", "))


def test_tasks_beyond_a_sample_are_counted(begin: Begin) -> None:
    """What they wait for is not read."""
    with begin() as uow:
        first = uow.tasks.add(Task(name="x", status=COMPLETED))
        rows = uow.tasks.add_all([Task(name="x", status=BLOCKED) for _ in range(SAMPLE + 2)])
        uow.commit()
    with begin(write=False) as uow:
        assert describe_wait(uow) == f"no task is ready: {SAMPLE} wait {A_PERSON}, 2 more wait"
    with begin() as uow:
        uow.tasks.remove_all([row.id for row in (first, *rows)])
        uow.commit()
    with begin(write=False) as uow:
        empty = "no task is ready: every task is completed, or there is none"
        assert describe_wait(uow) == empty


def test_a_unit_of_work_claims_what_it_has_just_made_ready(begin: Begin) -> None:
    """What was added, finished or released a moment ago counts before the commit already."""
    (agent,) = add_agents(begin)
    with begin() as uow:
        first, second = (make(uow, TASKS, order=n) for n in range(2))
        uow.tasks.add_dependency(first.id, second.id)
        claim = claims.claim(uow, agent, halts=NO_HALTS)
        assert claim.task.id == second.id
        assert claims.claim(uow, agent, halts=NO_HALTS) is None
        claims.complete(uow, second.id, claim.fence)
        assert [task.id for task in claims.ready(uow)] == [first.id]
        claim = claims.claim(uow, agent, halts=NO_HALTS)
        claims.fail(uow, first.id, claim.fence)
        claim = claims.claim(uow, agent, halts=NO_HALTS)
        assert (claim.task.id, claim.task.retry_count) == (first.id, 1)
        uow.commit()
    assert get_task(begin, first.id) == claim.task
    assert ready_ids(begin) == []


def test_a_unit_of_work_does_not_claim_what_it_has_just_taken_away(begin: Begin) -> None:
    """What was finished, blocked or removed a moment ago is not given out, expired or not."""
    (agent,) = add_agents(begin)
    tasks = add_tasks(begin, *(Task(name="x", order=n) for n in range(5)))
    done, gone, blocked, waits, left = tasks
    finished = claim_for(begin, agent, ttl=BLINK)
    assert finished.task.id == done.id
    with begin() as uow:
        claims.complete(uow, done.id, finished.fence)
        uow.tasks.remove(gone.id)
        uow.tasks.save(evolve(blocked, status=BLOCKED))
        uow.tasks.add_dependency(waits.id, left.id)
        assert claims.claim(uow, agent, halts=NO_HALTS).task.id == left.id
        assert claims.claim(uow, agent, halts=NO_HALTS) is None
        uow.commit()
    assert get_task(begin, done.id).status is COMPLETED


def test_a_claim_outlives_its_agent(begin: Begin) -> None:
    """A removed agent's task is in nobody's hands, and anybody's once the lease is over."""
    gone, other = add_agents(begin, 2)
    (task,) = add_tasks(begin, Task(name="x"))
    claim_for(begin, gone, ttl=BLINK)
    with begin() as uow:
        uow.agents.remove(gone)
        uow.commit()
    orphan = get_task(begin, task.id)
    assert (orphan.status, orphan.assignee_id) == (IN_PROGRESS, None)
    assert claim_for(begin, other).task.assignee_id == other


def test_a_task_that_is_in_progress_without_a_claim_is_free_for_all(begin: Begin) -> None:
    """Set by hand or imported, it counts as held until its last change."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="x", status=IN_PROGRESS, updated_at=NEVER))
    claim = claim_for(begin, agent)
    assert (claim.task.id, claim.fence, claim.task.retry_count) == (task.id, 1, 1)
