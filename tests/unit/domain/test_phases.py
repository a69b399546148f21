"""How a phase follows its tasks: every combination of a change and a phase, as a table."""

from itertools import product

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    Phase,
    PhaseStatus,
    Task,
    TaskStatus,
)
from herdbook.domain.plan.phases import (
    FINISHED,
    TaskChange,
    follow_tasks,
    reopen,
    summarize_changes,
)

HERE, ELSEWHERE = "pha_1", "pha_2"
OPEN = Task(id="tsk_1", name="x", phase_id=HERE)
BEGUN = evolve(OPEN, status=TaskStatus.IN_PROGRESS, fence=1)
DONE = evolve(OPEN, status=TaskStatus.COMPLETED)
AWAY = evolve(OPEN, phase_id=ELSEWHERE)

CHANGES = {
    "added": (None, OPEN),
    "moved here": (AWAY, OPEN),
    "reopened": (DONE, OPEN),
    "claimed": (OPEN, BEGUN),
    "taken over": (BEGUN, evolve(BEGUN, fence=2)),
    "moved here while in work": (evolve(BEGUN, phase_id=ELSEWHERE), BEGUN),
    "finished": (BEGUN, DONE),
    "removed": (OPEN, None),
    "moved away": (OPEN, AWAY),
    "renamed": (OPEN, evolve(OPEN, name="y")),
    "removed when done": (DONE, None),
    "added when done": (None, DONE),
}
BEGINS = {"claimed", "taken over", "moved here while in work"}
COMES = {"added", "moved here", "reopened"}
LEAVES = {"removed", "moved away"}


def _expected(name: str, status: PhaseStatus, *, yolo: bool, left: bool) -> PhaseStatus:
    if name in BEGINS:
        return PhaseStatus.IN_PROGRESS
    if name in COMES:
        return PhaseStatus.IN_PROGRESS if status in FINISHED else status
    if name not in {"finished", *LEAVES} or left or status in FINISHED:
        return status
    stays = status is PhaseStatus.BLOCKED or (status is PhaseStatus.PENDING and not yolo)
    if stays and name in LEAVES:
        return status
    return PhaseStatus.COMPLETED if yolo else PhaseStatus.PENDING_REVIEW


def test_every_change_in_every_phase() -> None:
    """The rule is what the table says, whatever the phase was and whatever is left in it."""
    wrong = []
    for (name, pair), status, yolo, left in product(
        CHANGES.items(), PhaseStatus, (False, True), (False, True)
    ):
        phase = Phase(id=HERE, initiative_id="ini_1", name="x", status=status)
        mode = ExecutionMode.YOLO if yolo else ExecutionMode.REVIEW_PER_PHASE
        initiative = Initiative(id="ini_1", name="x", execution_mode=mode)
        tasks = summarize_changes(HERE, [TaskChange(*pair)])
        after = follow_tasks(phase, tasks, lambda it=initiative: it, lambda some=left: some)
        expected = _expected(name, status, yolo=yolo, left=left)
        if after != evolve(phase, status=expected):
            wrong.append((name, status, yolo, left, after.status, expected))
    assert not wrong


def test_what_happens_elsewhere_is_nothing_here() -> None:
    """Changes of tasks that never were in a phase say nothing about it."""
    assert not any(summarize_changes("pha_3", [TaskChange(*each) for each in CHANGES.values()]))


@pytest.mark.parametrize("status", PhaseStatus)
def test_only_a_finished_phase_is_reopened(status: PhaseStatus) -> None:
    """Any other is the very same."""
    phase = Phase(id=HERE, initiative_id="ini_1", name="x", status=status)
    if status in FINISHED:
        assert reopen(phase) == evolve(phase, status=PhaseStatus.IN_PROGRESS)
    else:
        assert reopen(phase) is phase
