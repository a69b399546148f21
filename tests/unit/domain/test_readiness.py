"""The laws of when a task can be worked on, and of the row that keeps the answer."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.entity import evolve
from herdbook.domain.plan.claims import lease_is_over
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Priority,
    Task,
    TaskStatus,
)
from herdbook.domain.plan.readiness import (
    Opening,
    OpeningKind,
    OpeningState,
    WaitingTask,
    count_blockers,
    gate_is_open,
    is_ready,
    phase_is_open,
    queue_row,
)

START = datetime(2026, 1, 1, tzinfo=UTC)

moments = st.integers(0, 6).map(lambda minutes: START + timedelta(minutes=minutes))
tasks = st.builds(
    Task,
    id=st.just("tsk_1"),
    name=st.just("a task"),
    initiative_id=st.none() | st.just("ini_1"),
    status=st.sampled_from(TaskStatus),
    priority=st.sampled_from(Priority),
    order=st.integers(-2, 2),
    created_at=moments,
    updated_at=moments,
)
others = st.lists(tasks, max_size=3)
phases = st.builds(
    Phase,
    id=st.just("phs_1"),
    initiative_id=st.just("ini_2"),
    name=st.just("a phase"),
    status=st.sampled_from(PhaseStatus),
)
initiatives = st.builds(
    Initiative,
    id=st.just("ini_1"),
    name=st.just("a goal"),
    status=st.sampled_from(InitiativeStatus),
    execution_mode=st.sampled_from(ExecutionMode),
)


def an_opening(kind: OpeningKind, lease_until: datetime | None) -> Opening:
    """Make an opening as it may have stood before, held where there is a lease."""
    return Opening(
        task_id="tsk_1",
        kind=kind,
        state=OpeningState.READY if lease_until is None else OpeningState.HELD,
        rank=1,
        order=0,
        created_at=START,
        lease_until=lease_until,
    )


rows_before = st.none() | st.builds(an_opening, st.sampled_from(OpeningKind), st.none() | moments)


def says_ready(row: WaitingTask | Opening | None, now: datetime) -> bool:
    """Read from a task's row alone whether it may be claimed now."""
    if not isinstance(row, Opening) or row.blockers:
        return False
    return row.state is OpeningState.READY or lease_is_over(row, now)


@given(
    task=tasks,
    phase=st.none() | phases,
    gate_open=st.booleans(),
    depends_on=others,
    children=others,
    before=rows_before,
)
def test_every_unfinished_task_has_one_row(
    *,
    task: Task,
    phase: Phase | None,
    gate_open: bool,
    depends_on: list[Task],
    children: list[Task],
    before: Opening | None,
) -> None:
    """An unfinished task is waiting or open and a finished one neither, whatever was before."""
    blocked_by = count_blockers(task, gate_open=gate_open, depends_on=depends_on, children=children)
    row = queue_row(task, phase, blocked_by, before)
    assert (row is None) is task.is_finished
    if row is not None:
        assert row.task_id == task.id
        assert row.blockers == blocked_by


@given(
    task=tasks,
    gate_open=st.booleans(),
    depends_on=others,
    children=others,
    before=rows_before,
    now=moments,
)
def test_the_row_says_what_the_rule_says(
    *,
    task: Task,
    gate_open: bool,
    depends_on: list[Task],
    children: list[Task],
    before: Opening | None,
    now: datetime,
) -> None:
    """A task is ready by its row and its lease exactly when it is ready by the rule."""
    blocked_by = count_blockers(task, gate_open=gate_open, depends_on=depends_on, children=children)
    row = queue_row(task, None, blocked_by, before)
    assert says_ready(row, now) is is_ready(
        task,
        gate_open=gate_open,
        depends_on=depends_on,
        children=children,
        lease_until=row.lease_until if isinstance(row, Opening) else None,
        now=now,
    )


@given(tasks, st.integers(0, 3), rows_before)
def test_a_row_made_again_is_the_same(task: Task, blocked_by: int, before: Opening | None) -> None:
    """Deriving a row from itself changes nothing."""
    row = queue_row(task, None, blocked_by, before)
    again = row if isinstance(row, Opening) else None
    assert queue_row(task, None, blocked_by, again) == row


@given(tasks, st.integers(1, 3), rows_before)
def test_only_what_nobody_holds_waits(task: Task, blocked_by: int, before: Opening | None) -> None:
    """A blocked task waits, unless somebody holds it: they may finish what they began."""
    row = queue_row(task, None, blocked_by, before)
    if isinstance(row, Opening):
        assert row.state is OpeningState.HELD
    if task.status is TaskStatus.IN_PROGRESS:
        assert isinstance(row, Opening)


@given(tasks, rows_before)
def test_exactly_what_is_held_has_a_lease(task: Task, before: Opening | None) -> None:
    """A held opening ends some time, so that nobody waits forever; a ready one has no end."""
    row = queue_row(task, None, 0, before)
    if isinstance(row, Opening):
        assert (row.lease_until is not None) is (row.state is OpeningState.HELD)


@given(tasks, moments)
def test_a_lease_outlives_other_changes(task: Task, lease_until: datetime) -> None:
    """A change to a task in somebody's hands does not touch the lease."""
    task = evolve(task, status=TaskStatus.IN_PROGRESS)
    row = queue_row(task, None, 0, an_opening(OpeningKind.WORK, lease_until))
    assert isinstance(row, Opening)
    assert row.lease_until == lease_until


@given(tasks)
def test_a_lost_lease_is_over_at_the_last_change(task: Task) -> None:
    """A held task without a row counts as held until it was changed last."""
    task = evolve(task, status=TaskStatus.IN_PROGRESS)
    row = queue_row(task, None, 0, None)
    assert isinstance(row, Opening)
    assert row.lease_until == task.updated_at


@given(tasks, moments)
def test_work_that_is_done_opens_its_review_at_once(task: Task, lease_until: datetime) -> None:
    """The lease of the work does not hold up the review of it."""
    task = evolve(task, status=TaskStatus.QUALITY_REVIEW)
    row = queue_row(task, None, 0, an_opening(OpeningKind.WORK, lease_until))
    assert isinstance(row, Opening)
    assert (row.kind, row.state) == (OpeningKind.REVIEW, OpeningState.READY)


@given(tasks, st.none() | phases)
def test_a_row_stands_in_the_queues_of_its_task(task: Task, phase: Phase | None) -> None:
    """A row has the place of its task, and the initiative of its phase before the task's own."""
    row = queue_row(task, phase, 0, None)
    if isinstance(row, Opening):
        assert (row.rank, row.order, row.created_at) == (
            task.priority.rank,
            task.order,
            task.created_at,
        )
        assert row.initiative_id == (phase.initiative_id if phase else task.initiative_id)


def test_what_is_urgent_stands_first() -> None:
    """High priority ranks before medium, and medium before low."""
    ordered = sorted(Priority, key=lambda priority: priority.rank)
    assert ordered == [Priority.HIGH, Priority.MEDIUM, Priority.LOW]


@given(tasks, others, others, st.data())
def test_what_is_taken_away_never_blocks(
    task: Task, depends_on: list[Task], children: list[Task], data: st.DataObject
) -> None:
    """Removing a dependency releases what waited for it and holds up nothing."""
    kept = data.draw(st.lists(st.sampled_from(depends_on), unique_by=id)) if depends_on else []
    before = count_blockers(task, gate_open=True, depends_on=depends_on, children=children)
    after = count_blockers(task, gate_open=True, depends_on=kept, children=children)
    gone = [each for each in depends_on if not any(each is other for other in kept)]
    assert before - after == sum(not each.is_finished for each in gone)


@given(tasks, others, others)
def test_a_closed_gate_counts_once(
    task: Task, depends_on: list[Task], children: list[Task]
) -> None:
    """The gate of a task is one thing in its way, whatever closes it."""
    closed = count_blockers(task, gate_open=False, depends_on=depends_on, children=children)
    assert closed == 1 + count_blockers(
        task, gate_open=True, depends_on=depends_on, children=children
    )


@given(tasks, moments)
def test_an_untouched_task_is_ready_exactly_when_it_is_to_be_claimed(
    task: Task, now: datetime
) -> None:
    """Without lease, gate, dependency and child, what is pending or to be reviewed is ready."""
    ready = is_ready(task, gate_open=True, depends_on=(), children=(), lease_until=None, now=now)
    assert ready is (task.status in (TaskStatus.PENDING, TaskStatus.QUALITY_REVIEW))


@given(phases, st.none() | initiatives)
def test_a_phase_is_open_when_approved_begun_or_yolo(
    phase: Phase, initiative: Initiative | None
) -> None:
    """A phase is open once it is approved, and a pending one in an initiative that runs yolo."""
    yolo = initiative is not None and initiative.execution_mode is ExecutionMode.YOLO
    let_in = {PhaseStatus.APPROVED, PhaseStatus.IN_PROGRESS} | (
        {PhaseStatus.PENDING} if yolo else set()
    )
    assert phase_is_open(phase, initiative) is (phase.status in let_in)


@given(st.none() | initiatives, st.none() | phases, st.lists(phases, max_size=3))
def test_a_gate_is_open_when_all_above_let_through(
    initiative: Initiative | None, phase: Phase | None, waits_for: list[Phase]
) -> None:
    """The initiative must be active, the phase open, and what the phase waits for completed."""
    expected = (initiative is None or initiative.status is InitiativeStatus.ACTIVE) and (
        phase is None
        or (
            phase_is_open(phase, initiative)
            and {each.status for each in waits_for} <= {PhaseStatus.COMPLETED}
        )
    )
    assert gate_is_open(initiative, phase, waits_for) is expected
