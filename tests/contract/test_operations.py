"""Use cases that are run: once, whole, and again if the world got in the way."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import cast

import pytest

from herdbook.adapters.stores.open_store import PATIENCE
from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound, StoreUnavailable
from herdbook.domain.journal import Actor, OperationResult
from herdbook.domain.plan.model import Task, TaskStatus
from herdbook.domain.record.model import Account
from herdbook.domain.secret import Secret
from herdbook.ports.engine.dictionary import AGENTS, JOURNAL, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Session, Store, TryAgain
from herdbook.ports.unit_of_work.run import read, retry, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.cases import for_each
from tests.contract.counted import CountingStore
from tests.contract.rows import make
from tests.contract.turns import Begin
from tests.contract.wrapped import LosesAnswers, WrappedSession, WrappedStore


@pytest.fixture(autouse=True, scope="module")
def _no_pause() -> Iterator[None]:
    """What is tried again is tried at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("herdbook.ports.engine.retry.FIRST_PAUSE", 0)
        yield


def _tasks(begin: Begin) -> list[Task]:
    with begin(write=False) as uow:
        return uow.select(find(TASKS))


def _add_task(uow: UnitOfWork, name: str = "x") -> Task:
    return uow.tasks.add(Task(name=name))


def _operations(begin: Begin) -> list[OperationResult]:
    with begin(write=False) as uow:
        return uow.operations.page()


def test_a_use_case_is_run_and_committed(store: Store, space: str, begin: Begin) -> None:
    """With its arguments, by whoever it is; its result is handed on and nothing else is kept."""
    task = run(store, space, _add_task, name="x", actor=Actor(person="ada"))
    assert _tasks(begin) == [task]
    assert _operations(begin) == []
    with begin(write=False) as uow:
        (entry,) = uow.journal.of_row(TASKS, task.id)
    assert (entry.person, entry.operation_id) == ("ada", None)


def test_a_use_case_that_changes_nothing_is_not_committed(
    store: Store, space: str, begin: Begin
) -> None:
    """The head of the journal stays where it was, and the engine is asked to keep nothing."""
    run(store, space, _add_task)
    with begin(write=False) as uow:
        head = uow.session.head
    counts: Counter[str] = Counter()
    counting = cast("Store", CountingStore(store, counts))
    assert run(counting, space, lambda uow: len(uow.tasks.page())) == 1
    assert counts == {"writes": 1}
    with begin(write=False) as uow:
        assert uow.session.head == head
    run(counting, space, _add_task)
    assert counts["commits"] == 1


def test_what_is_derived_alone_is_committed(store: Store, space: str, begin: Begin) -> None:
    """A lease that is held for longer lasts, though no row of the journal tells of it."""
    agent = run(store, space, lambda uow: uow.agents.add(Agent(name="otter")))
    run(store, space, _add_task)
    claim = run(store, space, claims.claim, agent.id, halts=NO_HALTS)
    assert claim is not None
    longer = timedelta(hours=9)
    held = run(store, space, claims.heartbeat, claim.task.id, claim.fence, ttl=longer)
    with begin(write=False) as uow:
        assert uow.openings.get(claim.task.id) == held
    assert held.lease_until > claim.opening.lease_until


def test_an_operation_that_changes_nothing_is_remembered(
    store: Store, space: str, begin: Begin
) -> None:
    """So that it answers the second time as it did the first."""
    assert run(store, space, lambda uow: len(uow.tasks.page()), operation_id="op") == 0
    run(store, space, _add_task)
    assert run(store, space, lambda uow: len(uow.tasks.page()), operation_id="op") == 0
    assert [each.operation_id for each in _operations(begin)] == ["op"]


def test_without_an_operation_id_every_call_counts(store: Store, space: str, begin: Begin) -> None:
    """Nothing is remembered that was not asked to be."""
    tasks = [run(store, space, _add_task) for _ in range(2)]
    assert {task.id for task in _tasks(begin)} == {task.id for task in tasks}
    assert len(tasks) == 2


def test_an_operation_is_applied_once(store: Store, space: str, begin: Begin) -> None:
    """The second call answers as the first did and does not run the use case at all."""
    first = run(store, space, _add_task, "first", operation_id="op-1")
    assert run(store, space, _add_task, "second", operation_id="op-1") == first
    assert _tasks(begin) == [first]
    with begin(write=False) as uow:
        (entry,) = uow.journal.since(0)
    assert (entry.key, entry.operation_id) == (first.id, "op-1")


def test_different_operations_are_applied_each(store: Store, space: str, begin: Begin) -> None:
    """An id stands for one request, and not for its content."""
    tasks = [run(store, space, _add_task, operation_id=name) for name in ("op-1", "op-2")]
    assert {task.id for task in _tasks(begin)} == {task.id for task in tasks}
    assert len(tasks) == 2


def test_an_operation_is_known_in_its_space_only(store: Store, space: str) -> None:
    """The same id in another space is another operation."""
    first = run(store, space, _add_task, operation_id="op-1")
    other = run(store, f"{space}-other", _add_task, operation_id="op-1")
    assert first.id != other.id


@for_each(
    "result",
    [
        None,
        True,
        0,
        -(2**63),
        2.5,
        "text · ünï→\U0001f404",
        "",
        [],
        (),
        {},
        [1, [None, "two"], (3, [])],
        {"a": [1, {"b": None}], "value": 2, "row": "tasks"},
        TaskStatus.PENDING,
    ],
    ids=repr,
)
def test_a_plain_result_is_answered_again(store: Store, space: str, result: object) -> None:
    """Equal, and of the same shape: a list stays a list and a tuple a tuple."""
    first = run(store, space, lambda _: result, operation_id="op-1")
    again = run(store, space, lambda _: "other", operation_id="op-1")
    assert first is result
    assert again == result
    assert isinstance(result, type(again))


def test_rows_are_answered_again_as_they_were(store: Store, space: str, begin: Begin) -> None:
    """Alone or in lists, with all their fields, even after they have changed since."""

    def add_two(uow: UnitOfWork) -> list[object]:
        return [make(uow, TASKS, full=True), (make(uow, AGENTS, full=True), "and")]

    first = run(store, space, add_two, operation_id="op-1")
    task, (agent, _) = first
    with begin() as uow:
        uow.tasks.save(evolve(task, name="changed"))
        uow.agents.remove(agent.id)
        uow.commit()
    assert run(store, space, add_two, operation_id="op-1") == first


def test_a_row_is_answered_again_with_its_secrets(store: Store, space: str, begin: Begin) -> None:
    """The answer that is kept has none: they are read from the row, as long as it is there."""
    record = space.replace("work", "record", 1)

    def add_account(uow: UnitOfWork) -> Account:
        return uow.accounts.add(Account(email="a", credentials=Secret("s3cr3t")))

    first = run(store, record, add_account, operation_id="op-1")
    again = run(store, record, add_account, operation_id="op-1")
    assert again == first
    assert (again.credentials, again.config) == (Secret("s3cr3t"), None)
    with begin(space=record) as uow:
        (operation,) = uow.operations.page()
        assert "s3cr3t" not in repr(operation.result)
        uow.accounts.remove(first.id)
        uow.commit()
    gone = run(store, record, add_account, operation_id="op-1")
    assert gone == evolve(first, credentials=None)


def test_a_claim_is_answered_again(store: Store, space: str, begin: Begin) -> None:
    """An agent whose answer was lost asks again and gets its own task, not another one."""
    with begin() as uow:
        agent = make(uow, AGENTS)
        first, second, last = (make(uow, TASKS, order=n) for n in range(3))
        uow.tasks.save(evolve(first, status=TaskStatus.COMPLETED, summary="Done"))
        uow.tasks.add_dependency(second.id, first.id)
        uow.commit()
    claim = run(store, space, claims.claim, agent.id, halts=NO_HALTS, operation_id="op-1")
    assert (claim.task.id, claim.summaries) == (second.id, {first.id: "Done"})
    assert run(store, space, claims.claim, agent.id, halts=NO_HALTS, operation_id="op-1") == claim
    other = run(store, space, claims.claim, agent.id, halts=NO_HALTS, operation_id="op-2")
    assert other.task.id == last.id
    assert run(store, space, claims.claim, agent.id, halts=NO_HALTS, operation_id="op-3") is None


@for_each(
    "result",
    [object, {1, 2}, b"bytes", timedelta(1), float("nan"), 2**63, "\0", {1: 2}],
    ids=repr,
)
def test_a_result_that_cannot_be_kept_is_refused(
    store: Store, space: str, begin: Begin, result: object
) -> None:
    """With nothing done; without an operation id any result will do."""

    def add(uow: UnitOfWork) -> object:
        _add_task(uow)
        return result

    with pytest.raises(InvalidValue, match="result"):
        run(store, space, add, operation_id="op-1")
    assert (_tasks(begin), _operations(begin)) == ([], [])
    assert run(store, space, add) is result


@for_each("operation_id", ["", "x" * 65, "\0"])
def test_an_operation_id_must_be_an_id(
    store: Store, space: str, begin: Begin, operation_id: str
) -> None:
    """What no store could keep is refused before anything is done."""
    with pytest.raises(InvalidValue, match="operation_id"):
        run(store, space, _add_task, operation_id=operation_id)
    assert _tasks(begin) == []


def test_a_use_case_that_raises_stores_nothing(store: Store, space: str, begin: Begin) -> None:
    """Neither its changes nor its operation: asked again, it is tried again."""

    def fails(uow: UnitOfWork) -> None:
        _add_task(uow)
        raise NotFound("task", "other")

    with pytest.raises(NotFound):
        run(store, space, fails, operation_id="op-1")
    assert (_tasks(begin), _operations(begin)) == ([], [])
    task = run(store, space, _add_task, operation_id="op-1")
    assert _tasks(begin) == [task]


MANY = 20
"""More failures than anybody used to wait for."""


class Flaky:
    """A use case that the world gets in the way of, the first few times."""

    def __init__(self, failures: int = 0, error: type[Exception] = TryAgain) -> None:
        self.calls = 0
        self._failures = failures
        self._error = error

    def __call__(self, uow: UnitOfWork) -> Task:
        """Add a task, and fail or not."""
        self.calls += 1
        task = _add_task(uow)
        if self.calls <= self._failures:
            raise self._error("here", "the world")
        return task


@pytest.mark.parametrize("operation_id", [None, "op-1"])
def test_a_use_case_is_tried_again_from_the_start(
    store: Store, space: str, begin: Begin, operation_id: str | None
) -> None:
    """As often as it takes, and what failed attempts did is undone."""
    use_case = Flaky(MANY)
    task = run(store, space, use_case, operation_id=operation_id)
    assert (use_case.calls, _tasks(begin)) == (MANY + 1, [task])


class Impatient(WrappedStore):
    """A store that waits for others only briefly."""

    patience = 0.3


def test_a_use_case_is_not_tried_for_ever(store: Store, space: str, begin: Begin) -> None:
    """When the store's patience has passed, and not before, the caller is told."""
    use_case = Flaky(1_000_000)
    began = time.monotonic()
    with pytest.raises(TryAgain):
        run(Impatient(store, lambda session: session), space, use_case)
    assert time.monotonic() - began >= Impatient.patience
    assert use_case.calls > 1
    assert _tasks(begin) == []


def test_patience_begins_with_the_first_failure(store: Store, space: str, begin: Begin) -> None:
    """What worked for longer than the patience before it failed is tried again all the same."""
    use_case = Flaky(1)

    def works_long(uow: UnitOfWork) -> Task:
        time.sleep(Impatient.patience * 1.2)
        return use_case(uow)

    task = run(Impatient(store, lambda session: session), space, works_long)
    assert (use_case.calls, _tasks(begin)) == (2, [task])


@for_each("error", [StoreUnavailable, NotFound, ValueError])
def test_no_other_error_is_tried_again(store: Store, space: str, error: type[Exception]) -> None:
    """Only what may go better the next time is."""
    use_case = Flaky(1, error)
    with pytest.raises(error):
        run(store, space, use_case)
    assert use_case.calls == 1


def test_a_question_is_asked_again(store: Store, space: str, begin: Begin) -> None:
    """A read needs no operation id: it changes nothing; it too ends some time."""
    with begin() as uow:
        task = _add_task(uow)
        uow.commit()
    calls = []

    def ask(uow: UnitOfWork, failures: int) -> Task:
        calls.append(uow)
        if len(calls) <= failures:
            raise TryAgain("here", "the world")
        return uow.tasks.get(task.id)

    assert read(store, space, ask, MANY) == task
    assert len(calls) == MANY + 1
    calls.clear()
    impatient = Impatient(store, lambda session: session)
    with pytest.raises(TryAgain):
        read(impatient, space, ask, 1_000_000)
    assert len(calls) > 1


def test_what_may_be_done_twice_is_insisted_on(store: Store) -> None:
    """Until it is done, or patience has passed; and a store says what its patience is."""
    assert store.patience == PATIENCE
    calls: list[int] = []

    def work(failures: int) -> int:
        calls.append(failures)
        if len(calls) <= failures:
            raise TryAgain("here", "the world")
        return len(calls)

    assert retry(lambda: work(MANY), store.patience) == MANY + 1
    with pytest.raises(TryAgain):
        retry(lambda: work(1_000_000), 0.1)


class OnlyTheFirst:
    """Wraps the first session of a store, and lets the others be."""

    def __init__(self, wrap: Callable[[Session], WrappedSession]) -> None:
        self._wraps = [wrap]

    def __call__(self, session: Session) -> Session | WrappedSession:
        """Wrap a session, or not."""
        return self._wraps.pop()(session) if self._wraps else session


def test_a_commit_whose_answer_was_lost_is_not_applied_twice(
    store: Store, space: str, begin: Begin
) -> None:
    """With an operation id the second attempt finds what the first one did."""
    use_case = Flaky()
    losing = WrappedStore(store, OnlyTheFirst(LosesAnswers))
    task = run(losing, space, use_case, operation_id="op-1")
    assert (use_case.calls, _tasks(begin)) == (1, [task])


def test_a_commit_whose_answer_was_lost_is_not_repeated_unasked(
    store: Store, space: str, begin: Begin
) -> None:
    """Without an operation id nobody knows whether it happened, and the caller is told."""
    use_case = Flaky()
    losing = WrappedStore(store, OnlyTheFirst(LosesAnswers))
    with pytest.raises(TryAgain):
        run(losing, space, use_case)
    assert use_case.calls == 1
    assert len(_tasks(begin)) == 1


class Stumbles(WrappedSession):
    """A session that loses a race on the way to its commit."""

    def insert(self, kind: Kind[object], rows: list[object]) -> None:
        """Fail to write the journal."""
        if kind is JOURNAL:
            raise TryAgain("here", "the world")
        self._session.insert(kind, rows)


def test_what_never_came_to_its_commit_is_tried_again(
    store: Store, space: str, begin: Begin
) -> None:
    """Also without an operation id: it certainly did not happen."""
    use_case = Flaky()
    stumbling = WrappedStore(store, OnlyTheFirst(Stumbles))
    task = run(stumbling, space, use_case)
    assert (use_case.calls, _tasks(begin)) == (2, [task])


def test_answers_are_forgotten_after_seven_days(store: Store, space: str, begin: Begin) -> None:
    """By whichever operation comes next; younger ones are kept."""
    week = timedelta(days=7)
    with begin() as uow:
        ages = {"old": week, "older": week * 9, "young": week - timedelta(minutes=1)}
        for name, age in ages.items():
            operation = OperationResult(operation_id=name, result={"value": name}, at=uow.now - age)
            uow.operations.add(operation)
        uow.commit()
    assert run(store, space, lambda _: "new", operation_id="now") == "new"
    assert {each.operation_id for each in _operations(begin)} == {"young", "now"}
    assert run(store, space, lambda _: "new", operation_id="young") == "young"
    assert run(store, space, lambda _: "new", operation_id="old") == "new"


def test_operations_are_not_journalled(store: Store, space: str, begin: Begin) -> None:
    """An operation that changed nothing leaves the journal as it was."""
    run(store, space, lambda _: None, operation_id="op-1")
    with begin(write=False) as uow:
        assert uow.journal.last() == 0
        assert uow.journal.since(0) == []
