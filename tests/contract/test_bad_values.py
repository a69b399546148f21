"""What breaks a rule is refused with its field and its reason, and the store holds what it held."""

from collections.abc import Callable, Sized
from datetime import datetime
from typing import Any

import pytest
from attrs import evolve

from herdbook.domain.errors import InvalidValue, StaleWrite, UnknownReference
from herdbook.domain.journal import Actor
from herdbook.domain.location.areas import Area, space_of
from herdbook.domain.plan.model import Phase, Proposal, ReviewComment, Task
from herdbook.domain.record.model import Account
from herdbook.ports.engine.dictionary import AGENTS, TASKS
from herdbook.ports.engine.query import any_of, at_least, find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.cases import for_each
from tests.contract.space import everything_in

NAIVE = datetime(2026, 1, 2, 3, 4, 5)  # noqa: DTZ001 - that it has no time zone is the point
STATUSES = "pending, in_progress, quality_review, completed, blocked"


def account(uow: UnitOfWork, **fields: object) -> None:
    uow.accounts.add(Account(**{"email": "ann@example.org", **fields}))


def task(uow: UnitOfWork, **fields: object) -> None:
    uow.tasks.add(Task(**{"name": "new", **fields}))


def comment(uow: UnitOfWork, **fields: object) -> None:
    given = {"phase_id": "pha", "file_path": "a", "line_number": 1, "line_type": "added"}
    uow.review_comments.add(ReviewComment(**{**given, "body": "b", **fields}))


def proposal(uow: UnitOfWork, **fields: object) -> None:
    given = {"agent_id": "agt", "initiative_id": "ini", "target_type": "task", "title": "t"}
    uow.proposals.add(Proposal(**{**given, "summary": "s", "content": "c", **fields}))


def _numbered(cases: Sized) -> list[str]:
    return [f"case {number}" for number in range(len(cases))]


LONG_ID = "may have at most 64 bytes"
NUL = "may not contain the character NUL"
BadRow = tuple[Callable[..., None], dict[str, object], str]
BAD_ROWS: list[BadRow] = [
    (task, {"name": "a\0b"}, f"name: {NUL}"),
    (task, {"description": "a\0b"}, f"description: {NUL}"),
    (task, {"name": "\ud800"}, "name: has half a surrogate pair at position 0"),
    (task, {"description": "ab\udfff"}, "description: has half a surrogate pair at position 2"),
    (task, {"id": "a\0b"}, f"id: {NUL}"),
    (task, {"id": "i" * 65}, f"id: {LONG_ID}"),
    (task, {"id": "é" * 33}, f"id: {LONG_ID}"),
    (task, {"assignee_id": "i" * 65}, f"assignee_id: {LONG_ID}"),
    (task, {"assignee_id": ""}, "assignee_id: may not be empty"),
    (task, {"name": ""}, "name: must have 1 to 500 characters, has 0"),
    (task, {"name": "n" * 501}, "name: must have 1 to 500 characters, has 501"),
    (task, {"name": b"bytes"}, "name: must be text, not bytes"),
    (task, {"name": None}, "name: must be text, not NoneType"),
    (task, {"status": "done"}, f"status: 'done' is not one of {STATUSES}"),
    (task, {"status": "PENDING"}, f"status: 'PENDING' is not one of {STATUSES}"),
    (task, {"status": None}, f"status: None is not one of {STATUSES}"),
    (task, {"priority": 2}, "priority: 2 is not one of low, medium, high"),
    (task, {"order": 2**63}, "order: does not fit into 64 bits"),
    (task, {"order": True}, "order: must be a whole number, not bool"),
    (task, {"order": 1.5}, "order: must be a whole number, not float"),
    (task, {"created_at": NAIVE}, "created_at: needs a time zone"),
    (account, {"exhausted_until": NAIVE}, "exhausted_until: needs a time zone"),
    (account, {"exhausted_until": "2026"}, "exhausted_until: must be a date and time, not str"),
    (account, {"is_exhausted": 1}, "is_exhausted: must be true or false, not int"),
    (account, {"credentials": "a\0b"}, f"credentials: {NUL}"),
    (comment, {"line_number": 0}, "line_number: must be at least 1, is 0"),
    (proposal, {"metadata": []}, "metadata: must be a JSON object, not list"),
    (proposal, {"metadata": {"a": float("nan")}}, "metadata: may not contain nan"),
    (proposal, {"metadata": {"a": {1}}}, "metadata: must be JSON, not set"),
    (proposal, {"metadata": {"a\0": 1}}, f"metadata: {NUL}"),
    (proposal, {"metadata": {"a": 2**64}}, "metadata: does not fit into 64 bits"),
]


def keep(store: Store, space: str) -> Task:
    """Add a row that is there before anything goes wrong."""
    return run(store, space, lambda uow: uow.tasks.add(Task(name="kept")))


@pytest.fixture
def kept(store: Store, space: str) -> Task:
    return keep(store, space)


@for_each("bad", BAD_ROWS, ids=_numbered(BAD_ROWS))
def test_a_bad_row_is_refused(store: Store, space: str, bad: BadRow) -> None:
    """The error says which field and why; what the transaction did before goes with it."""
    add, fields, said = bad
    kept = keep(store, space)
    where = space if add is not account else space_of(Area.RECORD, space.partition("/")[2])
    before = everything_in(store, where)

    def use_case(uow: UnitOfWork) -> None:
        if add is not account:
            uow.tasks.save(evolve(kept, name="changed"))
        add(uow, **fields)

    with pytest.raises(InvalidValue) as refusal:
        run(store, where, use_case)
    assert str(refusal.value) == said
    assert everything_in(store, where) == before


BAD_KEYS: list[tuple[Any, str]] = [
    ("a\0b", NUL),
    ("\ud800", "has half a surrogate pair at position 0"),
    ("i" * 65, LONG_ID),
    ("i" * 100_000, LONG_ID),
    (7, "must be text, not int"),
    (b"tsk", "must be text, not bytes"),
    (None, "must be text, not NoneType"),
]


@for_each(("key", "said"), BAD_KEYS, ids=_numbered(BAD_KEYS))
def test_a_key_that_no_row_can_have_is_refused(
    store: Store, space: str, key: Any, said: str
) -> None:
    """Asking, saving, removing and looking up by it all say the same on every store."""
    kept = keep(store, space)
    acts: list[tuple[str, Callable[[UnitOfWork], object]]] = [
        ("id", lambda uow: uow.tasks.find(key)),
        ("id", lambda uow: uow.tasks.get_many([kept.id, key])),
        ("id", lambda uow: uow.tasks.remove(key)),
        ("parent_task_id", lambda uow: uow.tasks.save(evolve(kept, parent_task_id=key))),
        ("assignee_id", lambda uow: uow.tasks.select(find(TASKS, {"assignee_id": key}))),
        ("assignee_id", lambda uow: uow.tasks.select(find(TASKS, {"assignee_id": any_of([key])}))),
    ]
    before = everything_in(store, space)
    for field, act in acts:
        if key is None and field != "id":
            continue  # an empty reference is one
        with pytest.raises(InvalidValue) as refusal:
            run(store, space, act)
        assert str(refusal.value) == f"{field}: {said}"
    assert everything_in(store, space) == before


BAD_QUESTIONS: list[tuple[Callable[[], object], str]] = [
    (lambda: find(TASKS, {"status": "done"}), f"status: 'done' is not one of {STATUSES}"),
    (lambda: find(AGENTS, {"name": "a\0b"}), f"name: {NUL}"),
    (
        lambda: find(TASKS, {"status": "pending", "created_at": at_least(NAIVE)}),
        "needs a time zone",
    ),
    (lambda: find(TASKS, {"colour": "red"}), "colour: tasks has no such field"),
    (lambda: find(TASKS, {"priority": "low"}), "tasks: no lookup is declared for priority"),
    (lambda: find(TASKS, limit=0), "limit: must be a whole number of at least 1, is 0"),
    (lambda: find(TASKS, limit=True), "limit: must be a whole number of at least 1, is True"),
]


@for_each(("ask", "said"), BAD_QUESTIONS, ids=_numbered(BAD_QUESTIONS))
def test_a_question_that_means_nothing_is_refused(ask: Callable[[], object], said: str) -> None:
    """It is told when it is put, before any store is asked."""
    with pytest.raises(InvalidValue) as refusal:
        ask()
    assert said in str(refusal.value)


@for_each(
    ("operation_id", "said"),
    [("", "may not be empty"), ("o" * 65, LONG_ID), ("a\0b", NUL), (7, "must be text, not int")],
)
def test_an_operation_needs_a_proper_id(
    store: Store, space: str, operation_id: Any, said: str
) -> None:
    """Nothing is done under an id that could not be kept."""
    keep(store, space)
    before = everything_in(store, space)
    with pytest.raises(InvalidValue) as refusal:
        run(store, space, task, operation_id=operation_id)
    assert str(refusal.value) == f"operation_id: {said}"
    assert everything_in(store, space) == before


@pytest.mark.usefixtures("kept")
def test_an_answer_that_cannot_be_kept_is_refused(store: Store, space: str) -> None:
    """An operation whose answer could not be given again is not done."""
    before = everything_in(store, space)

    def use_case(uow: UnitOfWork) -> set[str]:
        task(uow)
        return {"a set"}

    with pytest.raises(InvalidValue) as refusal:
        run(store, space, use_case, operation_id="op")
    assert str(refusal.value) == "result: a set cannot be kept as the answer of an operation"
    assert everything_in(store, space) == before


def test_an_actor_is_checked_like_a_row() -> None:
    """Who did it cannot be what no journal could tell."""
    with pytest.raises(InvalidValue) as refusal:
        Actor(agent="a\0b")
    assert str(refusal.value) == f"agent: {NUL}"


def test_a_version_that_went_stale_is_refused(store: Store, space: str, kept: Task) -> None:
    """Who saves what somebody else has saved since hears both versions, and nothing changes."""
    run(store, space, lambda uow: uow.tasks.save(evolve(kept, name="theirs")))
    before = everything_in(store, space)
    with pytest.raises(StaleWrite) as refusal:
        run(store, space, lambda uow: uow.tasks.save(evolve(kept, name="ours")))
    assert str(refusal.value) == (
        f"task {kept.id!r} has changed since it was read: you hold version 1, the store holds 2. "
        "Nothing was written; read it again"
    )
    assert everything_in(store, space) == before


def test_a_reference_to_nothing_is_refused(store: Store, space: str, kept: Task) -> None:
    """The error names the field, what it should have named, and what it named instead."""
    before = everything_in(store, space)
    with pytest.raises(UnknownReference) as refusal:
        run(
            store,
            space,
            lambda uow: uow.phases.add(Phase(id="pha_1", initiative_id="ini_none", name="p")),
        )
    assert str(refusal.value) == (
        "initiative_id of phase 'pha_1' names initiative 'ini_none', which does not exist"
    )
    assert everything_in(store, space) == before
    assert read(store, space, lambda uow: uow.tasks.get(kept.id)) == kept
