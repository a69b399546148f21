"""A person moves tasks on the board, on every store: what is done, and what is refused and why."""

import pytest

from herdbook.domain.errors import InvalidValue, StaleFence
from herdbook.domain.journal import Actor
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims, dependencies
from herdbook.services.plan.board_model import BoardState, state_of
from herdbook.services.plan.move_task import move_task, possible_moves
from tests.contract.claims import add_agents, add_tasks, claim_for, do
from tests.contract.turns import Begin


def state(begin: Begin, task_id: str) -> BoardState:
    """The state of a task on the board."""
    with begin(write=False) as uow:
        return state_of(uow.tasks.get(task_id), uow.openings.find(task_id))


def test_a_held_task_is_taken_from_its_agent(begin: Begin) -> None:
    """The agent notices by its fence."""
    (agent,) = add_agents(begin)
    (task,) = add_tasks(begin, Task(name="parse"))
    held = claim_for(begin, agent)
    do(begin, move_task, task.id, "ready")
    assert state(begin, task.id) is BoardState.READY
    other = do(begin, claims.claim, agent, halts=NO_HALTS)
    assert other.task.fence > held.task.fence
    with pytest.raises(StaleFence):
        do(begin, claims.complete, task.id, held.task.fence)
    do(begin, move_task, task.id, "completed")
    assert state(begin, task.id) is BoardState.COMPLETED


def test_a_task_goes_round_by_hand(begin: Begin) -> None:
    """Ready, blocked, ready, completed and open again; twice the same is no change."""
    (task,) = add_tasks(begin, Task(name="parse"))
    for target in ("blocked", "ready", "completed", "ready", "ready"):
        do(begin, move_task, task.id, target)
        assert state(begin, task.id) == target


@pytest.mark.parametrize("target", ["held", "waiting", "review"])
def test_states_that_come_by_other_ways_are_refused(begin: Begin, target: str) -> None:
    """The refusal says which way."""
    (task,) = add_tasks(begin, Task(name="parse"))
    with pytest.raises(InvalidValue, match="Nothing was written"):
        do(begin, move_task, task.id, target)
    assert state(begin, task.id) is BoardState.READY


def test_a_refusal_says_what_is_in_the_way(begin: Begin) -> None:
    """What a task waits for, who holds it, that it is done, or that an agent asks."""
    (agent,) = add_agents(begin)
    first, second = add_tasks(begin, Task(name="parse"), Task(name="test it"))
    do(begin, dependencies.add_task_dependencies, second.id, [first.id])
    with pytest.raises(InvalidValue, match="it waits for 'parse'"):
        do(begin, move_task, second.id, "ready")
    claim_for(begin, agent)
    with pytest.raises(InvalidValue, match="holds it"):
        do(begin, move_task, first.id, "blocked")
    do(begin, move_task, first.id, "completed")
    with pytest.raises(InvalidValue, match="is completed"):
        do(begin, move_task, first.id, "blocked")
    with begin(actor=Actor(agent="otter")) as uow, pytest.raises(InvalidValue, match="a person"):
        move_task(uow, second.id, "ready")


def test_a_task_in_review_stays_there_until_it_is_completed(begin: Begin) -> None:
    """A person may complete it."""
    (task,) = add_tasks(begin, Task(name="parse", status=TaskStatus.QUALITY_REVIEW))
    with pytest.raises(InvalidValue, match="reviews it"):
        do(begin, move_task, task.id, "ready")
    do(begin, move_task, task.id, "completed")
    assert state(begin, task.id) is BoardState.COMPLETED


def test_what_can_be_moved_where_is_told_before_it_is_tried(begin: Begin) -> None:
    """For a task in every state; and the reasons are those of the refusals."""
    (agent,) = add_agents(begin)
    first, second, *_ = add_tasks(
        begin,
        Task(name="held", order=1),
        Task(name="waiting", order=2),
        Task(name="ready", order=3),
        Task(name="blocked", status=TaskStatus.BLOCKED),
        Task(name="review", order=9, status=TaskStatus.QUALITY_REVIEW),
        Task(name="completed", status=TaskStatus.COMPLETED),
    )
    do(begin, dependencies.add_task_dependencies, second.id, [first.id])
    claim_for(begin, agent)
    with begin(write=False) as uow:
        tasks = uow.tasks.page()
        told = {task.id: possible_moves(uow, task.id) for task in tasks}
    assert {state(begin, task.id): task.name for task in tasks} == {s: s.value for s in BoardState}
    for task in tasks:
        assert [each.state for each in told[task.id]] == [s for s in BoardState if s != task.name]
        for each in told[task.id]:
            assert each.reason == _refusal(begin, task.id, each.state)


def _refusal(begin: Begin, task_id: str, target: BoardState) -> str | None:
    """Why a task is not moved; None if it would be, which is not committed."""
    with begin() as uow:
        try:
            move_task(uow, task_id, target)
        except InvalidValue as error:
            return error.reason.removesuffix(". Nothing was written")
    return None
