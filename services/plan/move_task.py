"""Move a task to another state of the board, as a person does by hand: one rule for all."""

from collections.abc import Callable, Mapping

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.domain.plan.readiness import holder_of
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import claims, wait_reasons
from herdbook.services.plan.board_model import BoardState, state_of


def move_task(uow: UnitOfWork, task_id: str, state: str) -> Task:
    """Bring a task into a state: `ready`, `blocked` or `completed`.

    What an agent holds is taken from it, under its own fence, so that it notices. Raises
    InvalidValue, with the reason, for a state that a task gets in another way, and for an agent:
    agents claim, and finish what they have claimed.
    """
    if uow.actor.agent is not None:
        raise InvalidValue("state", "a person moves tasks; an agent uses claim, done and release")
    task = uow.tasks.get(task_id)
    now = state_of(task, uow.openings.find(task_id))
    target = BoardState(state)
    if now is target:
        return task
    return _MOVES[target](uow, task, now)


def _to_ready(uow: UnitOfWork, task: Task, now: BoardState) -> Task:
    if now is BoardState.HELD:
        return claims.release(uow, task.id, task.fence)
    if now is BoardState.BLOCKED:
        return claims.retry(uow, task.id)
    if now is BoardState.COMPLETED:
        return uow.tasks.save(evolve(task, status=TaskStatus.PENDING))
    if now is BoardState.REVIEW:
        raise _refuse("it waits for another agent that reviews it; `herdbook claim` takes that too")
    raise _refuse(wait_reasons.describe_task(uow, task))


def _to_blocked(uow: UnitOfWork, task: Task, now: BoardState) -> Task:
    if now is BoardState.HELD:
        raise _refuse(f"{_holder(uow, task)} holds it; move it to ready first")
    if now is BoardState.COMPLETED:
        raise _refuse("it is completed; move it to ready first")
    return uow.tasks.save(evolve(task, status=TaskStatus.BLOCKED))


def _to_completed(uow: UnitOfWork, task: Task, now: BoardState) -> Task:
    if now is BoardState.HELD:
        return claims.complete(uow, task.id, task.fence)
    return uow.tasks.save(evolve(task, status=TaskStatus.COMPLETED))


def _to_held(_: UnitOfWork, task: Task, __: BoardState) -> Task:
    raise _refuse(f"an agent holds what it claims: `herdbook claim {task.id} --agent NAME`")


def _to_waiting(_: UnitOfWork, task: Task, __: BoardState) -> Task:
    raise _refuse(f"it waits if it depends on others: `herdbook task after {task.id} OTHERS`")


def _to_review(_: UnitOfWork, __: Task, ___: BoardState) -> Task:
    raise _refuse("a task comes to its review when its agent is done, if its initiative says so")


def _refuse(reason: str) -> InvalidValue:
    return InvalidValue("state", f"{reason}. Nothing was written")


def _holder(uow: UnitOfWork, task: Task) -> str:
    holder = holder_of(task, uow.openings.find(task.id))
    agent = None if holder is None else uow.agents.find(holder)
    return "somebody" if agent is None else agent.name


_MOVES: Mapping[BoardState, Callable[[UnitOfWork, Task, BoardState], Task]] = {
    BoardState.READY: _to_ready,
    BoardState.HELD: _to_held,
    BoardState.WAITING: _to_waiting,
    BoardState.BLOCKED: _to_blocked,
    BoardState.REVIEW: _to_review,
    BoardState.COMPLETED: _to_completed,
}
