"""The laws of claims, leases, fences, retries and reviews."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from herdbook.domain.clock import Stamp
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, StaleFence
from herdbook.domain.plan import claims
from herdbook.domain.plan.claims import (
    MAX_RETRIES,
    Claim,
    check_fence,
    end_lease,
    extend_lease,
    lease_is_over,
    may_take,
)
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    Phase,
    PhaseStatus,
    Task,
    TaskCategory,
    TaskStatus,
)
from herdbook.domain.plan.readiness import (
    Opening,
    OpeningKind,
    OpeningState,
    WaitingTask,
    queue_row,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = Stamp(NOW, 0, "node")
AGENTS = ("agt_a", "agt_b", "agt_c")

minutes = st.integers(1, 60).map(lambda each: timedelta(minutes=each))
agents = st.sampled_from(AGENTS)
tasks = st.builds(
    Task,
    id=st.just("tsk_1"),
    name=st.just("a task"),
    category=st.sampled_from(TaskCategory),
    status=st.sampled_from(TaskStatus),
    retry_count=st.integers(0, 5),
    assignee_id=st.none() | agents,
    fence=st.integers(0, 5),
    summary=st.none() | st.just("before"),
)
initiatives = st.none() | st.builds(
    Initiative,
    id=st.just("ini_1"),
    name=st.just("a goal"),
    quality_review=st.booleans(),
    execution_mode=st.sampled_from(ExecutionMode),
)
phases = st.builds(
    Phase,
    id=st.just("phs_1"),
    initiative_id=st.just("ini_1"),
    name=st.just("a phase"),
    status=st.sampled_from(PhaseStatus),
)


def an_opening(
    kind: OpeningKind = OpeningKind.WORK, lease_until: datetime | None = None
) -> Opening:
    """Make the opening of the task, held where there is a lease."""
    state = OpeningState.READY if lease_until is None else OpeningState.HELD
    return Opening(
        task_id="tsk_1",
        kind=kind,
        state=state,
        rank=1,
        order=0,
        created_at=NOW,
        lease_until=lease_until,
    )


def is_valid(task: Task, fence: int) -> bool:
    """Tell whether a write with this fence would be let through."""
    try:
        check_fence(task, fence)
    except StaleFence:
        return False
    return True


@given(minutes, minutes)
def test_a_lease_lasts_as_long_as_it_was_given(ttl: timedelta, later: timedelta) -> None:
    """A held task may be taken over from the end of its lease on, and not before."""
    assert lease_is_over(extend_lease(an_opening(), NOW, ttl), NOW + later) is (later >= ttl)


def test_what_nobody_holds_has_no_lease_to_end() -> None:
    """A ready opening is never taken over: it is simply taken."""
    assert not lease_is_over(an_opening(), NOW)


@given(minutes, minutes, minutes)
def test_a_heartbeat_never_shortens_a_lease(
    ttl: timedelta, later: timedelta, longer: timedelta
) -> None:
    """Holding on extends the lease or leaves it as it is."""
    held = extend_lease(an_opening(), NOW, ttl)
    assert extend_lease(held, NOW + later, longer).lease_until == NOW + max(ttl, later + longer)


@given(minutes)
def test_what_is_let_go_of_is_ready_at_once(ttl: timedelta) -> None:
    """Freeing an opening takes back exactly what holding it did."""
    assert end_lease(extend_lease(an_opening(), NOW, ttl)) == an_opening()


@given(st.integers(-100, 0))
def test_a_lease_needs_some_time(seconds: int) -> None:
    """A lease for nothing or less is refused."""
    with pytest.raises(InvalidValue, match="^ttl: "):
        extend_lease(an_opening(), NOW, timedelta(seconds=seconds))


def test_a_lease_ends_within_the_calendar() -> None:
    """A lease that no date can hold is refused."""
    with pytest.raises(InvalidValue, match="^ttl: "):
        extend_lease(an_opening(), NOW, timedelta.max)


@given(tasks, agents, st.sampled_from(OpeningKind), st.booleans())
def test_every_claim_moves_the_fence(
    task: Task, agent: str, kind: OpeningKind, expired: bool
) -> None:
    """A claim has the next fence, and taking over an expired lease counts a retry."""
    opening = an_opening(kind, NOW if expired else None)
    claimed = claims.claim(task, opening, agent, stamp=STAMP, lease_until=NOW)
    assert claimed.fence == task.fence + 1
    assert (claimed.claim_stamp, claimed.lease_until) == (STAMP, NOW)
    assert claimed.retry_count == task.retry_count + expired
    assert Claim(claimed, opening, {}).fence == claimed.fence


@given(tasks, agents)
def test_a_claim_for_work_gives_the_task_to_the_agent(task: Task, agent: str) -> None:
    """Who claims work is the assignee, and the task is in progress."""
    claimed = claims.claim(task, an_opening(), agent, stamp=STAMP, lease_until=NOW)
    assert (claimed.status, claimed.assignee_id) == (TaskStatus.IN_PROGRESS, agent)


@given(tasks, agents)
def test_a_claim_for_review_leaves_the_task_with_its_assignee(task: Task, agent: str) -> None:
    """A reviewer does not become the one who did the work."""
    review = an_opening(OpeningKind.REVIEW)
    claimed = claims.claim(task, review, agent, stamp=STAMP, lease_until=NOW)
    assert (claimed.status, claimed.assignee_id) == (task.status, task.assignee_id)


@given(tasks, agents, st.sampled_from(OpeningKind))
def test_nobody_reviews_their_own_work(task: Task, agent: str, kind: OpeningKind) -> None:
    """Everybody may take everything but the review of what they did."""
    own_review = kind is OpeningKind.REVIEW and task.assignee_id == agent
    assert may_take(an_opening(kind), task, agent) is not own_review


@given(tasks, st.integers(-1, 7))
def test_only_the_last_fence_of_a_held_task_is_valid(task: Task, fence: int) -> None:
    """A write is let through with the last fence, while there is work or a review to do."""
    held = task.status in (TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW)
    assert is_valid(task, fence) is (held and fence == task.fence)


@given(tasks, initiatives)
def test_work_is_reviewed_where_the_initiative_asks_for_it(
    task: Task, initiative: Initiative | None
) -> None:
    """Completed work waits for its review where there is to be one; all else is done."""
    reviewed = (
        initiative is not None
        and initiative.quality_review
        and task.status is TaskStatus.IN_PROGRESS
        and task.category is TaskCategory.EXECUTE
    )
    done = claims.complete(task, None, initiative)
    assert done.status is (TaskStatus.QUALITY_REVIEW if reviewed else TaskStatus.COMPLETED)
    assert done.assignee_id == task.assignee_id


@given(tasks, initiatives)
def test_who_completed_a_task_has_let_go_of_it(task: Task, initiative: Initiative | None) -> None:
    """The fence that completed a task, or passed it on to review, is not valid again."""
    task = claims.claim(task, an_opening(), AGENTS[0], stamp=STAMP, lease_until=NOW)
    assert not is_valid(claims.complete(task, None, initiative), task.fence)


@given(tasks, st.none() | st.just("") | st.just("after"))
def test_the_summary_is_kept(task: Task, summary: str | None) -> None:
    """Completing stores the summary, and without one leaves what was said before."""
    done = claims.complete(task, summary, None)
    assert done.summary == (task.summary if summary is None else summary)


@given(tasks, st.integers(0, 5))
def test_a_task_is_tried_again_until_it_failed_too_often(task: Task, max_retries: int) -> None:
    """A failure counts a retry and frees the task; beyond the allowed ones it is blocked."""
    failed = claims.fail(task, max_retries)
    blocked = task.retry_count + 1 > max_retries
    assert failed.status is (TaskStatus.BLOCKED if blocked else TaskStatus.PENDING)
    assert (failed.retry_count, failed.assignee_id) == (task.retry_count + 1, None)


def test_the_fourth_failure_blocks_a_task() -> None:
    """Three retries are allowed."""
    task = Task(id="tsk_1", name="a task")
    statuses = []
    for _ in range(MAX_RETRIES + 1):
        task = claims.fail(task)
        statuses.append(task.status)
    assert statuses == [TaskStatus.PENDING] * 3 + [TaskStatus.BLOCKED]


@given(tasks)
def test_a_retry_by_hand_starts_from_the_beginning(task: Task) -> None:
    """A person's retry frees the task and forgets the failures before."""
    again = claims.retry(task)
    assert (again.status, again.retry_count, again.assignee_id) == (TaskStatus.PENDING, 0, None)


@given(tasks)
def test_giving_back_is_no_failure(task: Task) -> None:
    """A task given back untried counts no retry, and its fence is not valid any more."""
    back = claims.release(task)
    review = task.status is TaskStatus.QUALITY_REVIEW
    assert back.retry_count == task.retry_count
    assert back.status is (task.status if review else TaskStatus.PENDING)
    assert back.assignee_id == (task.assignee_id if review else None)
    assert not is_valid(back, task.fence)


@given(tasks, st.sampled_from([claims.fail, claims.release, claims.retry]))
def test_a_fence_never_moves_back(task: Task, let_go: Callable[[Task], Task]) -> None:
    """Whatever frees a task, no fence of it is given twice."""
    assert let_go(task).fence >= task.fence


class HandToHand(RuleBasedStateMachine):
    """A task among three agents who claim, forget, fail, give back, complete and review.

    Agents write with every fence they were ever given, as a process does that was asleep for long.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.task = Task(id="tsk_1", name="a task", created_at=NOW, updated_at=NOW)
        self.given: dict[int, str] = {}
        self.row: WaitingTask | Opening | None = None
        self.initiative = Initiative(id="ini_1", name="a goal")

    @initialize(quality_review=st.booleans())
    def begin(self, quality_review: bool) -> None:
        """Put the task into an initiative with or without reviews."""
        self.initiative = evolve(self.initiative, quality_review=quality_review)
        self.keep(self.task)

    def keep(self, task: Task) -> None:
        """Store the task, and derive its row as a unit of work does."""
        assert task.fence >= self.task.fence
        before = self.row if isinstance(self.row, Opening) else None
        self.task = evolve(task, updated_at=self.now)
        blocked = int(task.status is TaskStatus.BLOCKED)
        self.row = queue_row(self.task, None, blocked, before)

    @rule(wait=minutes)
    def time_passes(self, wait: timedelta) -> None:
        """Let leases run out."""
        self.now += wait

    @rule(agent=agents, ttl=minutes)
    def claim(self, agent: str, ttl: timedelta) -> None:
        """Claim the task if it is ready or its lease is over."""
        row = self.row
        if not isinstance(row, Opening) or not may_take(row, self.task, agent):
            return
        if row.state is OpeningState.HELD and not lease_is_over(row, self.now):
            return
        self.row = extend_lease(row, self.now, ttl)
        stamp = Stamp(self.now, len(self.given), "node")
        until = self.row.lease_until
        claimed = claims.claim(self.task, row, agent, stamp=stamp, lease_until=until)
        assert claimed.fence not in self.given
        self.keep(claimed)
        self.given[claimed.fence] = agent

    @precondition(lambda self: self.given)
    @rule(data=st.data(), what=st.sampled_from(["heartbeat", "complete", "fail", "release"]))
    def write(self, data: st.DataObject, what: str) -> None:
        """Write on behalf of any claim there ever was; only the valid one is let through."""
        fence = data.draw(st.sampled_from(sorted(self.given)))
        if not is_valid(self.task, fence):
            return
        assert fence == max(self.given)
        row = self.row
        assert isinstance(row, Opening)
        if what == "heartbeat":
            self.row = extend_lease(row, self.now, timedelta(minutes=5))
        elif what == "complete":
            reviewer = self.task.status is TaskStatus.QUALITY_REVIEW
            assert (self.given[fence] == self.task.assignee_id) is not reviewer
            self.keep(claims.complete(self.task, "done", self.initiative))
        elif what == "fail":
            self.keep(claims.fail(self.task))
        else:
            self.row = end_lease(row)
            self.keep(claims.release(self.task))

    @precondition(lambda self: self.task.status is TaskStatus.BLOCKED)
    @rule()
    def retry(self) -> None:
        """Let a person free the task."""
        self.keep(claims.retry(self.task))

    @invariant()
    def at_most_one_fence_is_valid(self) -> None:
        """There are never two agents whose writes would both be let through."""
        valid = [fence for fence in self.given if is_valid(self.task, fence)]
        held = isinstance(self.row, Opening) and self.row.state is OpeningState.HELD
        assert len(valid) == held

    @invariant()
    def the_task_has_one_row(self) -> None:
        """An unfinished task is waiting or open; a finished one is neither."""
        assert (self.row is None) is (self.task.is_finished and self.task.fence > 0)


def test_a_task_passed_from_hand_to_hand_never_has_two_valid_fences() -> None:
    """Whatever agents do and forget, one fence is valid while a task is held, and else none."""
    run_state_machine_as_test(HandToHand)
