"""What a text may change in the plan that is kept."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.plan.model import Phase, PhaseStatus, Task, TaskStatus
from herdbook.domain.plan_text.changes import (
    STEP,
    SortPosition,
    apply_status,
    assign_orders,
    phase_status_refusal,
    task_status_refusal,
)
from tests.cases import for_each

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PENDING, IN_PROGRESS, REVIEW, COMPLETED, BLOCKED = TaskStatus


@for_each(
    ("before", "after"),
    [
        (PENDING, COMPLETED),
        (PENDING, BLOCKED),
        (BLOCKED, PENDING),
        (BLOCKED, COMPLETED),
        (IN_PROGRESS, PENDING),
        (IN_PROGRESS, COMPLETED),
        (IN_PROGRESS, BLOCKED),
        (REVIEW, COMPLETED),
    ],
)
def test_a_text_moves_a_task_that_nobody_holds(before: TaskStatus, after: TaskStatus) -> None:
    """It can be completed, blocked, and freed of what blocked it or of who abandoned it."""
    task = Task(name="x", status=before)
    assert task_status_refusal(task, after, held=False) is None
    assert apply_status(task, after).status is after


@for_each("status", TaskStatus)
def test_a_text_does_not_move_what_somebody_holds(status: TaskStatus) -> None:
    """Not even to where it would be next."""
    task = Task(name="x", status=IN_PROGRESS)
    assert task_status_refusal(task, status, held=True) == "somebody holds it"


@for_each(
    ("before", "after"),
    [
        *((COMPLETED, each) for each in (PENDING, IN_PROGRESS, REVIEW, BLOCKED)),
        *((REVIEW, each) for each in (PENDING, IN_PROGRESS, BLOCKED)),
        *((PENDING, each) for each in (IN_PROGRESS, REVIEW)),
        (BLOCKED, IN_PROGRESS),
    ],
)
def test_a_text_takes_nothing_back_and_claims_nothing(
    before: TaskStatus, after: TaskStatus
) -> None:
    """What is completed or under review stays so, and only a claim begins something."""
    assert task_status_refusal(Task(name="x", status=before), after, held=False)


def test_a_task_that_is_freed_is_tried_from_the_start() -> None:
    """Nobody has it, and its failures are forgotten where they had blocked it."""
    blocked = Task(name="x", status=BLOCKED, retry_count=4, assignee_id="agt_1")
    freed = apply_status(blocked, PENDING)
    assert (freed.retry_count, freed.assignee_id) == (0, None)
    abandoned = Task(name="x", status=IN_PROGRESS, retry_count=2, assignee_id="agt_1")
    freed = apply_status(abandoned, PENDING)
    assert (freed.retry_count, freed.assignee_id) == (2, None)


def test_a_phase_goes_onwards_only() -> None:
    """Blocking it and freeing it aside; what is completed stays completed."""
    way = ["pending", "approved", "in_progress", "pending_review", "completed"]
    steps = {status: place for place, status in enumerate(way)}
    for before in PhaseStatus:
        for after in PhaseStatus:
            if before is after:
                continue
            onwards = steps.get(after, 9) > steps.get(before, -1)
            may = onwards and before is not PhaseStatus.COMPLETED
            phase = Phase(initiative_id="ini_1", name="x", status=before)
            assert (phase_status_refusal(phase, after) is None) == may, (before, after)


def place(order: int, key: str = "x") -> SortPosition:
    """Where a task stands among others of its age."""
    return order, NOW, key


@for_each(
    ("siblings", "expected"),
    [
        ([], []),
        ([None, None], [1 * STEP, 2 * STEP]),
        ([place(0, "a"), place(0, "b"), place(7)], [0, 0, 7]),
        ([place(0), None, place(10)], [0, 5, 10]),
        ([place(0), None, None, place(3)], [0, 1, 2, 3]),
        ([None, place(5)], [5 - STEP, 5]),
        ([place(5), None], [5, 5 + STEP]),
        ([place(3), place(1), place(2)], [1 - STEP, 1, 2]),
        ([place(2), place(3), place(1)], [2, 3, 3 + STEP]),
        ([place(0), None, place(1), place(5_000)], [0, STEP, 2 * STEP, 5_000]),
        ([place(0, "a"), None, place(0, "b")], [0, STEP, 2 * STEP]),
        ([place(0, "b"), place(0, "a")], [-STEP, 0]),
    ],
)
def test_as_many_as_can_keep_their_order(
    siblings: list[SortPosition | None], expected: list[int]
) -> None:
    """The others are put in between, and what follows moves on where there is no room."""
    assert assign_orders(siblings, range(1, len(siblings) + 1)) == expected


@given(
    st.lists(
        st.none()
        | st.tuples(st.integers(-5, 5), st.integers(0, 10_000)).map(
            lambda pair: place(pair[0], f"{pair[1]:05}")
        ),
        unique_by=lambda each: each[2] if each else object(),
        max_size=12,
    )
)
def test_tasks_come_in_the_order_they_are_given(siblings: list[SortPosition | None]) -> None:
    """Sorted by their new order, and by age and id where that is equal, they stand as asked."""
    found = assign_orders(siblings, range(1, len(siblings) + 1))
    # A new one is younger than all that were there, and two new ones cannot be told apart.
    ages = [
        (number, each is None, each[2] if each else "")
        for number, each in zip(found, siblings, strict=True)
    ]
    assert sorted(ages) == ages
    new = [number for number, each in zip(found, siblings, strict=True) if each is None]
    assert len(set(new)) == len(new)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 10_000)), unique=True))
def test_tasks_that_are_in_order_keep_theirs(pairs: list[tuple[int, int]]) -> None:
    """Importing what was exported moves nothing."""
    siblings = sorted(place(order, f"{key:05}") for order, key in pairs)
    assert assign_orders(siblings, range(1, len(pairs) + 1)) == [each[0] for each in siblings]
