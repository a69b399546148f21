"""Agents follow what they hold: claims, reviews and lost leases move them."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.entity import evolve
from herdbook.domain.errors import NotFound
from herdbook.domain.plan.claims import LEASE, Claim
from herdbook.domain.plan.model import (
    Initiative,
    Phase,
    PhaseStatus,
    ProposalTarget,
    Task,
    TaskStatus,
)
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, OPENINGS, PHASES, PROPOSALS, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import crud, removal
from herdbook.services.agents import agent_lifecycle
from herdbook.services.journal import undo
from herdbook.services.plan import claims
from herdbook.services.plan.status import status
from tests.contract.claims import (
    BLINK,
    add_agents,
    add_initiative,
    add_phase,
    add_tasks,
    claim_for,
    do,
)
from tests.contract.holdings import Holdings, check_agents
from tests.contract.turns import Begin

IDLE, RUNNING, WAITING, STOPPED, CRASHED = AgentStatus
E = TypeVar("E")
Way = Callable[[UnitOfWork, str, int], Task]

SHARES = {"memory": 1, "lmdb": 4, "postgres": 20, "duckdb": 50}
"""How many programs run on the fastest store for each that runs on this one."""

_numbers = itertools.count(1)


class Step:
    """One change with its choices made."""

    def __init__(self, uow: UnitOfWork, choices: Sequence[int]) -> None:
        self.uow = uow
        self._choices = itertools.cycle(choices)

    def one_of(self, values: Sequence[E]) -> E:
        """One of some values; NotFound if there is none."""
        if not values:
            raise NotFound("choice", "any")
        return values[next(self._choices) % len(values)]

    def row(self, kind: Kind[E]) -> E:
        """A row that is there."""
        return self.one_of(self.uow.select(find(kind)))


def _claim(step: Step) -> None:
    ttl = step.one_of([LEASE, BLINK])
    claims.claim(step.uow, step.row(AGENTS).id, halts=NO_HALTS, ttl=ttl, max_retries=2)


def _end(step: Step) -> None:
    held = TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW
    task = step.one_of([task for task in step.uow.select(find(TASKS)) if task.status in held])
    way = step.one_of([claims.complete, claims.complete, claims.fail, claims.release])
    way(step.uow, task.id, task.fence)


def _retry(step: Step) -> None:
    claims.retry(step.uow, step.row(TASKS).id)


def _move_phase(step: Step) -> None:
    phase = evolve(step.row(PHASES), initiative_id=step.row(INITIATIVES).id)
    step.uow.phases.save(phase)


def _move_task(step: Step) -> None:
    step.uow.tasks.save(evolve(step.row(TASKS), phase_id=step.row(PHASES).id))


def _assign(step: Step) -> None:
    step.uow.tasks.save(evolve(step.row(TASKS), assignee_id=step.row(AGENTS).id))


def _remove(step: Step) -> None:
    step.uow.remove(TASKS, [step.row(TASKS).id])


def _crash(step: Step) -> None:
    chosen = step.row(AGENTS)
    step.uow.agents.save(evolve(chosen, host="here", pid=7))
    agent_lifecycle.find_crashed(step.uow, "here", lambda _: None)
    agent_lifecycle.resume(step.uow, chosen.id)


def _pause(step: Step) -> None:
    agent = step.row(AGENTS)
    way = step.one_of([agent_lifecycle.wait, agent_lifecycle.stop, agent_lifecycle.resume])
    way(step.uow, agent.id)


def _ask(step: Step) -> None:
    """Ask in the middle of a transaction, so that it has to follow twice."""
    step.uow.select(find(OPENINGS))


STEPS: list[Callable[[Step], None]] = [
    *[_claim] * 8,
    *[_end] * 6,
    _retry,
    _move_phase,
    _move_task,
    _assign,
    _remove,
    _crash,
    _pause,
    *[_ask] * 3,
]
steps = st.tuples(st.sampled_from(STEPS), st.lists(st.integers(0, 30), min_size=4, max_size=4))
programs = st.lists(st.lists(steps, min_size=1, max_size=6), min_size=3, max_size=10)


def _plan(store: Store) -> str:
    """A space of its own: three agents, two reviewed initiatives and six tasks that are open."""
    space = f"work/current-{next(_numbers)}"
    with unit_of_work(store, space) as uow:
        uow.agents.add_all([Agent(name=name) for name in ("otter", "heron", "vole")])
        initiatives = uow.initiatives.add_all(
            [Initiative(name="x", quality_review=True) for _ in range(2)]
        )
        phases = uow.phases.add_all(
            [
                Phase(initiative_id=each.id, name="x", status=PhaseStatus.APPROVED)
                for each in initiatives
            ]
        )
        uow.tasks.add_all([Task(name="x", phase_id=phases[n % 2].id) for n in range(6)])
        uow.commit()
    return space


def test_agents_follow_every_program(store: Store, engine: str) -> None:
    """Whatever is claimed, handed in, lost, moved or removed, and however much of it at once."""

    @settings(max_examples=max(2, 2 * settings.default.max_examples // SHARES[engine]))
    @given(program=programs)
    def holds(program: list[list[tuple[Callable[[Step], None], list[int]]]]) -> None:
        space = _plan(store)
        for transaction in program:
            with unit_of_work(store, space) as uow:
                for change, chosen in transaction:
                    with suppress(NotFound):
                        change(Step(uow, chosen))
                uow.commit()
            with unit_of_work(store, space, write=False) as uow:
                check_agents(Holdings(uow))

    holds()


def _agent(begin: Begin, agent_id: str) -> Agent:
    with begin(write=False) as uow:
        return uow.agents.get(agent_id)


def _at(begin: Begin, agent_id: str) -> tuple[str | None, str | None, AgentStatus]:
    agent = _agent(begin, agent_id)
    return agent.task_id, agent.initiative_id, agent.status


@pytest.mark.parametrize("way", [claims.complete, claims.fail, claims.release])
def test_an_agent_is_at_what_it_claimed_until_that_ends(begin: Begin, way: Way) -> None:
    """It is running then and idle after, and stays with the initiative."""
    initiative = add_initiative(begin)
    (task,) = add_tasks(begin, Task(name="x", initiative_id=initiative.id))
    agent = do(begin, agent_lifecycle.register, "otter")
    assert (agent.task_id, agent.status) == (None, IDLE)
    claim = claim_for(begin, agent.id)
    assert _at(begin, agent.id) == (task.id, initiative.id, RUNNING)
    with begin(write=False) as uow:
        assert [each.id for each in uow.agents.of_task(task.id)] == [agent.id]
        assert [each.id for each in uow.agents.of_initiative(initiative.id)] == [agent.id]
    do(begin, way, task.id, claim.fence)
    assert _at(begin, agent.id) == (None, initiative.id, IDLE)


def test_an_agent_of_a_phase_is_at_its_initiative(begin: Begin) -> None:
    """The task names the phase alone; an agent moves with both of them."""
    one, other = add_initiative(begin), add_initiative(begin)
    phase = add_phase(begin, one, PhaseStatus.APPROVED)
    (task,) = add_tasks(begin, Task(name="x", phase_id=phase.id))
    (agent,) = add_agents(begin)
    claim_for(begin, agent)
    assert _at(begin, agent) == (task.id, one.id, RUNNING)
    do(begin, crud.change, PHASES, phase.id, {"initiative_id": other.id})
    assert _at(begin, agent) == (task.id, other.id, RUNNING)
    do(begin, crud.change, TASKS, task.id, {"phase_id": None})
    assert _at(begin, agent) == (task.id, None, RUNNING)


def test_an_agent_with_two_tasks_is_at_the_later_and_then_at_the_other(begin: Begin) -> None:
    """The end of a task it is not at does not move it."""
    first, second, third = add_tasks(begin, *(Task(name="x", order=n) for n in range(3)))
    (agent,) = add_agents(begin)
    fences = [claim_for(begin, agent).fence for _ in range(3)]
    assert _at(begin, agent)[0] == third.id
    do(begin, claims.complete, first.id, fences[0])
    assert _at(begin, agent)[0] == third.id
    do(begin, claims.complete, third.id, fences[2])
    assert _at(begin, agent) == (second.id, None, RUNNING)


def test_undo_of_an_end_leaves_an_agent_where_it_was(begin: Begin) -> None:
    """A task that is held again was not claimed again: only the end of its own task moves it."""
    first, second = add_tasks(begin, *(Task(name="x", order=n) for n in range(2)))
    (agent,) = add_agents(begin)
    fences = [claim_for(begin, agent).fence for _ in range(2)]
    do(begin, claims.complete, first.id, fences[0])
    do(begin, undo.undo)
    assert _at(begin, agent) == (second.id, None, RUNNING)
    do(begin, claims.complete, second.id, fences[1])
    assert _at(begin, agent) == (first.id, None, RUNNING)
    do(begin, undo.undo)
    assert _at(begin, agent) == (second.id, None, RUNNING)


def test_whoever_loses_a_lease_is_no_longer_at_the_task(begin: Begin) -> None:
    """A lease that is over is lost when another takes the task, and not before."""
    (task,) = add_tasks(begin, Task(name="x"))
    slow, quick = add_agents(begin, 2)
    claim_for(begin, slow, ttl=BLINK)
    assert _at(begin, slow) == (task.id, None, RUNNING)
    claim_for(begin, quick)
    assert (_at(begin, slow), _at(begin, quick)) == ((None, None, IDLE), (task.id, None, RUNNING))


def test_whoever_loses_a_lease_once_too_often_is_no_longer_at_the_task(begin: Begin) -> None:
    """The task is blocked on the way of another's claim, which gets nothing."""
    add_tasks(begin, Task(name="x"))
    slow, other = add_agents(begin, 2)
    claim_for(begin, slow, ttl=BLINK)
    assert claim_for(begin, other, max_retries=0) is None
    assert _at(begin, slow) == (None, None, IDLE)


@pytest.fixture
def review(begin: Begin) -> tuple[Claim, str, str]:
    """A review that was claimed: with it, who did the work and who reviews it."""
    initiative = add_initiative(begin, quality_review=True)
    add_tasks(begin, Task(name="x", initiative_id=initiative.id))
    author, reviewer = add_agents(begin, 2)
    claim = claim_for(begin, author)
    do(begin, claims.complete, claim.task.id, claim.fence)
    assert _at(begin, author)[::2] == (None, IDLE)
    return claim_for(begin, reviewer), author, reviewer


@pytest.mark.parametrize("way", [claims.complete, claims.fail, claims.release])
def test_a_reviewer_is_at_the_review(
    begin: Begin, review: tuple[Claim, str, str], way: Way
) -> None:
    """And the one who handed the work in is not, whatever becomes of the review."""
    claim, author, reviewer = review
    task = claim.task
    assert _at(begin, reviewer) == (task.id, task.initiative_id, RUNNING)
    with begin(write=False) as uow:
        at_work = {row.agent.id: row.task for row in status(uow).rows if row.agent is not None}
    assert at_work == {author: None, reviewer: task}
    do(begin, way, task.id, claim.fence)
    assert [_at(begin, each)[::2] for each in (author, reviewer)] == [(None, IDLE)] * 2


def test_an_edit_of_a_reviewed_task_moves_nobody(
    begin: Begin, review: tuple[Claim, str, str]
) -> None:
    """The review goes on under the same claim."""
    claim, _, reviewer = review
    before = _agent(begin, reviewer)
    do(begin, crud.change, TASKS, claim.task.id, {"name": "y"})
    assert _agent(begin, reviewer) == before


def test_a_review_that_another_takes_over_is_lost(
    begin: Begin, review: tuple[Claim, str, str]
) -> None:
    """Also beside a task that the reviewer took since, at which it stays."""
    claim, author, reviewer = review
    do(begin, claims.release, claim.task.id, claim.fence)
    (late,) = add_agents(begin)
    claim_for(begin, reviewer, ttl=BLINK)
    claim_for(begin, late)
    assert _at(begin, reviewer)[::2] == (None, IDLE)
    assert _at(begin, late)[::2] == (claim.task.id, RUNNING)
    (other,) = add_tasks(begin, Task(name="z"))
    claim_for(begin, late)
    assert _at(begin, late)[::2] == (other.id, RUNNING)
    with begin() as uow:
        claims.complete(uow, other.id, uow.tasks.get(other.id).fence)
        uow.commit()
    assert _at(begin, late)[::2] == (claim.task.id, RUNNING)
    assert _at(begin, author)[::2] == (None, IDLE)


def test_one_that_waits_still_waits_whatever_it_claims(begin: Begin) -> None:
    """Only to resume it ends that; it is running then if it is at something, else idle."""
    (task,) = add_tasks(begin, Task(name="x"))
    (agent,) = add_agents(begin)
    do(begin, agent_lifecycle.wait, agent, ["which port?"])
    claim = claim_for(begin, agent)
    assert _at(begin, agent) == (task.id, None, WAITING)
    assert do(begin, agent_lifecycle.resume, agent).status is RUNNING
    do(begin, agent_lifecycle.wait, agent, ["which host?"])
    do(begin, claims.complete, task.id, claim.fence)
    assert _at(begin, agent) == (None, None, WAITING)
    assert do(begin, agent_lifecycle.resume, agent).status is IDLE


def test_one_that_had_ended_and_claims_has_come_back(begin: Begin) -> None:
    """What it left when it ended goes; what it lost meanwhile makes it no less ended."""
    add_tasks(begin, *(Task(name="x", order=n) for n in range(2)))
    ended, other = add_agents(begin, 2)
    claim_for(begin, ended, ttl=BLINK)
    do(begin, agent_lifecycle.stop, ended, 3, {"ok": False})
    claim_for(begin, other)
    assert _at(begin, ended)[::2] == (None, STOPPED)
    claim = claim_for(begin, ended)
    agent = _agent(begin, ended)
    assert (agent.task_id, agent.status) == (claim.task.id, RUNNING)
    assert (agent.exit_code, agent.result) == (None, None)


def test_a_crash_frees_a_review_beside_a_task(begin: Begin, review: tuple[Claim, str, str]) -> None:
    """Both are free for others at once, and the agent is at nothing."""
    claim, _, reviewer = review
    (task,) = add_tasks(begin, Task(name="z"))
    claim_for(begin, reviewer)
    with begin() as uow:
        uow.agents.save(evolve(uow.agents.get(reviewer), host="here", pid=7))
        uow.commit()
    (crashed,) = do(begin, agent_lifecycle.find_crashed, "here", lambda _: None)
    assert (crashed.task_id, crashed.status) == (None, CRASHED)
    assert _agent(begin, reviewer) == crashed
    (late,) = add_agents(begin)
    taken = {claim_for(begin, late).task.id for _ in range(2)}
    assert taken == {claim.task.id, task.id}


def test_a_task_that_is_removed_leaves_its_agent_idle(begin: Begin) -> None:
    """With all that belongs to its initiative, too."""
    initiative = add_initiative(begin)
    add_tasks(begin, Task(name="x", initiative_id=initiative.id))
    (agent,) = add_agents(begin)
    claim_for(begin, agent)
    do(begin, removal.remove, INITIATIVES, [initiative.id], yes=True)
    assert _at(begin, agent) == (None, None, IDLE)


def test_an_agent_set_to_a_task_by_hand_stays_there_until_it_ends(begin: Begin) -> None:
    """Nobody has to claim it for that; what the agent holds itself goes before it."""
    initiative = add_initiative(begin)
    first, second = add_tasks(
        begin, *(Task(name="x", order=n, initiative_id=initiative.id) for n in range(2))
    )
    (agent,) = add_agents(begin)
    do(begin, crud.change, AGENTS, agent, {"task_id": second.id})
    assert _at(begin, agent) == (second.id, initiative.id, RUNNING)
    claim = claim_for(begin, agent)
    assert _at(begin, agent)[0] == first.id
    do(begin, crud.change, AGENTS, agent, {"task_id": second.id, "initiative_id": None})
    assert _at(begin, agent) == (first.id, initiative.id, RUNNING)
    do(begin, claims.complete, first.id, claim.fence)
    do(begin, crud.change, AGENTS, agent, {"task_id": second.id})
    do(begin, crud.change, TASKS, second.id, {"status": TaskStatus.COMPLETED})
    assert _at(begin, agent) == (None, initiative.id, IDLE)


def test_an_agent_without_a_task_is_at_the_initiative_it_proposes_for(begin: Begin) -> None:
    """One with a task stays at that one's."""
    own, other = add_initiative(begin), add_initiative(begin)
    add_tasks(begin, Task(name="x", initiative_id=own.id))
    (agent,) = add_agents(begin)

    def propose(initiative: Initiative) -> None:
        values = {
            "agent_id": agent,
            "initiative_id": initiative.id,
            "target_type": ProposalTarget.TASK,
            "title": "x",
            "summary": "x",
            "content": "x",
        }
        do(begin, crud.add, PROPOSALS, values)

    propose(other)
    assert _at(begin, agent) == (None, other.id, IDLE)
    claim_for(begin, agent)
    propose(other)
    assert _at(begin, agent)[1] == own.id


def test_an_agent_of_an_older_program_follows_from_its_next_step(begin: Begin) -> None:
    """It holds a task, and its row does not tell."""
    (task,) = add_tasks(begin, Task(name="x"))
    (agent,) = add_agents(begin)
    with begin() as uow:
        uow.reactions.disable()
        claims.claim(uow, agent, halts=NO_HALTS)
        uow.commit()
    assert _at(begin, agent) == (None, None, IDLE)
    do(begin, crud.change, TASKS, task.id, {"name": "y"})
    assert _at(begin, agent) == (task.id, None, RUNNING)
