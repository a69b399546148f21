"""Phases follow their tasks, whatever changes these, and keep what a person set."""

from collections.abc import Callable

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    Phase,
    PhaseStatus,
    Task,
    TaskStatus,
)
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import crud, removal
from herdbook.services.plan import claims
from tests.cases import for_each
from tests.contract.turns import Begin

Leave = Callable[[UnitOfWork, str, str], object]

LEAVES: dict[str, Leave] = {
    "removed": lambda uow, task, _: removal.remove(uow, TASKS, [task], yes=True),
    "moved to another phase": lambda uow, task, other: crud.change(
        uow, TASKS, task, {"phase_id": other}
    ),
    "moved out of all phases": lambda uow, task, _: crud.change(
        uow, TASKS, task, {"phase_id": None}
    ),
}


def _plan(
    uow: UnitOfWork, mode: ExecutionMode, status: PhaseStatus
) -> tuple[Phase, Phase, Task, Task]:
    """Two phases, the second after the first, with an open task each."""
    uow.agents.add(Agent(name="otter"))
    initiative = uow.initiatives.add(Initiative(name="x", execution_mode=mode))
    first, second = uow.phases.add_all(
        [
            Phase(initiative_id=initiative.id, name="first", status=status),
            Phase(initiative_id=initiative.id, name="second", status=PhaseStatus.APPROVED),
        ]
    )
    uow.phases.add_dependency(second.id, first.id)
    return (
        first,
        second,
        *uow.tasks.add_all(
            [Task(name="open", phase_id=first.id), Task(name="next", phase_id=second.id)]
        ),
    )


@for_each("leave", LEAVES)
@for_each("status", [PhaseStatus.APPROVED, PhaseStatus.PENDING])
@for_each("done_before", [False, True])
def test_the_next_phase_opens_when_the_last_open_task_is_gone(
    begin: Begin, leave: str, status: PhaseStatus, *, done_before: bool
) -> None:
    """In a yolo initiative nobody would ever open it by hand."""
    with begin() as uow:
        first, second, task, following = _plan(uow, ExecutionMode.YOLO, status)
        if done_before:
            uow.tasks.add(Task(name="done", phase_id=first.id, status=TaskStatus.COMPLETED))
        uow.commit()
    with begin() as uow:
        assert [each.id for each in uow.tasks.ready(9, phase_id=second.id)] == []
        LEAVES[leave](uow, task.id, second.id)
        uow.commit()
    with begin() as uow:
        assert uow.phases.get(first.id).status is PhaseStatus.COMPLETED
        ready = {each.id for each in uow.tasks.ready(9, phase_id=second.id)}
        assert following.id in ready


@pytest.mark.parametrize("leave", LEAVES)
def test_a_phase_without_open_tasks_waits_for_its_review(begin: Begin, leave: str) -> None:
    """Where phases are reviewed, it is a person who lets the next one begin."""
    with begin() as uow:
        first, second, task, _ = _plan(uow, ExecutionMode.REVIEW_PER_PHASE, PhaseStatus.IN_PROGRESS)
        uow.commit()
    with begin() as uow:
        LEAVES[leave](uow, task.id, second.id)
        uow.commit()
    with begin() as uow:
        assert uow.phases.get(first.id).status is PhaseStatus.PENDING_REVIEW


def test_what_a_person_set_stays(begin: Begin) -> None:
    """A phase that was set to completed is not sent to its review by its last task."""
    with begin() as uow:
        first, _, task, _ = _plan(uow, ExecutionMode.REVIEW_PER_PHASE, PhaseStatus.APPROVED)
        uow.commit()
    with begin() as uow:
        agent = uow.agents.page()[0]
        claim = claims.claim(uow, agent.id, halts=NO_HALTS, phase_id=first.id)
        assert claim is not None
        uow.commit()
    with begin() as uow:
        crud.change(uow, PHASES, first.id, {"status": PhaseStatus.COMPLETED})
        uow.commit()
    with begin() as uow:
        claims.complete(uow, task.id, claim.fence)
        uow.commit()
    with begin() as uow:
        assert uow.phases.get(first.id).status is PhaseStatus.COMPLETED


def test_a_status_set_with_the_tasks_counts(begin: Begin) -> None:
    """A transaction that changes tasks and sets the status of their phase has the last word."""
    with begin() as uow:
        first, _, task, _ = _plan(uow, ExecutionMode.YOLO, PhaseStatus.APPROVED)
        uow.commit()
    with begin() as uow:
        crud.change(uow, TASKS, task.id, {"status": TaskStatus.COMPLETED})
        crud.change(uow, PHASES, first.id, {"status": PhaseStatus.BLOCKED})
        uow.commit()
    with begin() as uow:
        assert uow.phases.get(first.id).status is PhaseStatus.BLOCKED


def test_only_the_end_of_a_transaction_counts(begin: Begin) -> None:
    """A task that leaves and another that comes leave the phase as it is, also if asked between."""
    with begin() as uow:
        first, second, task, other = _plan(uow, ExecutionMode.YOLO, PhaseStatus.APPROVED)
        uow.commit()
    with begin() as uow:
        removal.remove(uow, TASKS, [task.id], yes=True)
        assert uow.tasks.ready(9, phase_id=second.id)  # asks for what follows from the phases
        crud.change(uow, TASKS, other.id, {"phase_id": first.id})
        uow.commit()
    with begin() as uow:
        assert uow.phases.get(first.id).status is PhaseStatus.APPROVED


def test_a_task_that_comes_and_goes_in_one_transaction_changes_nothing(begin: Begin) -> None:
    """A finished phase is not left open by it, also if it was asked for between."""
    with begin() as uow:
        first, *_ = _plan(uow, ExecutionMode.REVIEW_PER_PHASE, PhaseStatus.APPROVED)
        uow.phases.save(evolve(uow.phases.get(first.id), status=PhaseStatus.COMPLETED))
        uow.commit()
    with begin() as uow:
        late = uow.tasks.add(Task(name="late", phase_id=first.id))
        uow.tasks.ready(9)
        assert uow.phases.get(first.id).status is PhaseStatus.IN_PROGRESS
        uow.tasks.remove(late.id)
        uow.commit()
    with begin() as uow:
        assert uow.phases.get(first.id).status is PhaseStatus.COMPLETED


def test_the_mode_that_counts_is_the_last_one(begin: Begin) -> None:
    """An initiative that stops being yolo in the same transaction has its phases reviewed."""
    with begin() as uow:
        first, second, task, _ = _plan(uow, ExecutionMode.YOLO, PhaseStatus.APPROVED)
        uow.commit()
    with begin() as uow:
        crud.change(uow, TASKS, task.id, {"status": TaskStatus.COMPLETED})
        assert uow.tasks.ready(9, phase_id=second.id)
        careful = {"execution_mode": ExecutionMode.REVIEW_PER_PHASE}
        crud.change(uow, INITIATIVES, first.initiative_id, careful)
        uow.commit()
    with begin() as uow:
        assert uow.phases.get(first.id).status is PhaseStatus.PENDING_REVIEW
        assert uow.tasks.ready(9, phase_id=second.id) == []


def test_a_phase_that_has_followed_can_be_changed_in_the_same_transaction(begin: Begin) -> None:
    """Who renames it has not set its status, also if that had followed the tasks by then."""
    with begin() as uow:
        first, second, task, _ = _plan(uow, ExecutionMode.YOLO, PhaseStatus.APPROVED)
        uow.commit()
    with begin() as uow:
        crud.change(uow, TASKS, task.id, {"status": TaskStatus.COMPLETED})
        assert uow.tasks.ready(9, phase_id=second.id)
        assert uow.phases.get(first.id).status is PhaseStatus.COMPLETED
        crud.change(uow, PHASES, first.id, {"name": "renamed"})
        late = uow.tasks.add(Task(name="late", phase_id=first.id))
        uow.commit()
    with begin() as uow:
        phase = uow.phases.get(first.id)
        assert (phase.name, phase.status) == ("renamed", PhaseStatus.APPROVED)
        assert [each.id for each in uow.tasks.ready(9, phase_id=first.id)] == [late.id]


def test_a_status_that_is_set_after_the_phase_has_followed_stays(begin: Begin) -> None:
    """As one does that is set before."""
    with begin() as uow:
        first, second, task, _ = _plan(uow, ExecutionMode.YOLO, PhaseStatus.APPROVED)
        uow.commit()
    with begin() as uow:
        crud.change(uow, TASKS, task.id, {"status": TaskStatus.COMPLETED})
        assert uow.tasks.ready(9, phase_id=second.id)
        crud.change(uow, PHASES, first.id, {"status": PhaseStatus.BLOCKED})
        uow.tasks.add(Task(name="late", phase_id=first.id))
        uow.commit()
    with begin() as uow:
        assert uow.phases.get(first.id).status is PhaseStatus.BLOCKED


def test_a_phase_that_has_followed_can_be_removed_in_the_same_transaction(begin: Begin) -> None:
    """Its tasks leave it first, so that its removal changes no task; then tasks change again."""
    with begin() as uow:
        first, second, task, _ = _plan(uow, ExecutionMode.YOLO, PhaseStatus.APPROVED)
        uow.commit()
    with begin() as uow:
        crud.change(uow, TASKS, task.id, {"phase_id": second.id})
        assert uow.tasks.ready(9, phase_id=first.id) == []
        assert uow.phases.get(first.id).status is PhaseStatus.COMPLETED
        uow.phases.remove(first.id)
        assert task.id in {each.id for each in uow.tasks.ready(9, phase_id=second.id)}
        uow.tasks.add(Task(name="late", phase_id=second.id))
        uow.commit()
    with begin() as uow:
        assert uow.phases.find(first.id) is None
