"""Move a task to another state of the board, as a person does by hand: one rule for all."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import claims, wait_reasons
from herdbook.services.plan.board_model import BoardState, state_of


class TaskMove(NamedTuple):
    """A state that a task could be moved to; `reason` says why it cannot, and is None if it can."""

    state: BoardState
    reason: str | None


def move_task(uow: UnitOfWork, task_id: str, state: str) -> Task:
    """Bring a task into a state: `ready`, `blocked` or `completed`.

    What an agent holds is taken from it, under its own fence, so that it notices. Raises
    InvalidValue, with the reason, for a state that a task gets in another way, and for an agent:
    agents claim, and finish what they have claimed.
    """
    if uow.actor.agent is not None:
        raise InvalidValue("state", "a person moves tasks; an agent uses claim, done and release")
    task = uow.tasks.get(task_id)
    now, target = state_of(task, uow.openings.find(task_id)), BoardState(state)
    if now is target:
        return task
    reason = _REASONS[target](uow, task, now)
    if reason is not None:
        raise InvalidValue("state", f"{reason}. Nothing was written")
    return _MOVES[target](uow, task, now)


def possible_moves(uow: UnitOfWork, task_id: str) -> list[TaskMove]:
    """The states that a task is not in, and for each why a person cannot move it there, if so."""
    task = uow.tasks.get(task_id)
    now = state_of(task, uow.openings.find(task_id))
    return [
        TaskMove(state, _REASONS[state](uow, task, now)) for state in BoardState if state is not now
    ]


def _to_ready(uow: UnitOfWork, task: Task, now: BoardState) -> Task:
    if now is BoardState.HELD:
        return claims.release(uow, task.id, task.fence)
    if now is BoardState.BLOCKED:
        return claims.retry(uow, task.id)
    return uow.tasks.save(evolve(task, status=TaskStatus.PENDING))


def _to_blocked(uow: UnitOfWork, task: Task, _: BoardState) -> Task:
    return uow.tasks.save(evolve(task, status=TaskStatus.BLOCKED))


def _to_completed(uow: UnitOfWork, task: Task, now: BoardState) -> Task:
    if now is BoardState.HELD:
        return claims.complete(uow, task.id, task.fence)
    return uow.tasks.save(evolve(task, status=TaskStatus.COMPLETED))


def _not_ready(uow: UnitOfWork, task: Task, now: BoardState) -> str | None:
    if now is BoardState.REVIEW:
        return "it waits for another agent that reviews it; `herdbook claim` takes that too"
    return wait_reasons.describe_task(uow, task) if now is BoardState.WAITING else None


def _not_blocked(uow: UnitOfWork, task: Task, now: BoardState) -> str | None:
    if now is BoardState.HELD:
        return f"{_holder(uow, task)} holds it; move it to ready first"
    return "it is completed; move it to ready first" if now is BoardState.COMPLETED else None


def _not_held(_: UnitOfWork, task: Task, __: BoardState) -> str:
    return f"an agent holds what it claims: `herdbook claim {task.id} --agent NAME`"


def _not_waiting(_: UnitOfWork, task: Task, __: BoardState) -> str:
    return f"it waits if it depends on others: `herdbook task after {task.id} OTHERS`"


def _not_review(_: UnitOfWork, __: Task, ___: BoardState) -> str:
    return "a task comes to its review when its agent is done, if its initiative says so"


def _nothing(_: UnitOfWork, __: Task, ___: BoardState) -> None:
    return None


def _holder(uow: UnitOfWork, task: Task) -> str:
    agent = uow.agents.find_holder(task, uow.openings.find(task.id))
    return "somebody" if agent is None else agent.name


_REASONS: Mapping[BoardState, Callable[[UnitOfWork, Task, BoardState], str | None]] = {
    BoardState.READY: _not_ready,
    BoardState.HELD: _not_held,
    BoardState.WAITING: _not_waiting,
    BoardState.BLOCKED: _not_blocked,
    BoardState.REVIEW: _not_review,
    BoardState.COMPLETED: _nothing,
}
"""Why a task in a state cannot be moved to another; None if it can."""
_MOVES: Mapping[BoardState, Callable[[UnitOfWork, Task, BoardState], Task]] = {
    BoardState.READY: _to_ready,
    BoardState.BLOCKED: _to_blocked,
    BoardState.COMPLETED: _to_completed,
}
