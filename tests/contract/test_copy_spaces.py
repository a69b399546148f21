"""A copy is its source, whichever engines the two are of, and harms nobody."""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.domain.conversation import LogChunk
from herdbook.domain.entity import evolve
from herdbook.domain.errors import (
    CopyDiffers,
    InvalidValue,
    NotFound,
    SpaceRefused,
    StoreDamaged,
)
from herdbook.domain.journal import JournalCursor, OperationResult
from herdbook.domain.plan.model import Task
from herdbook.domain.plan.readiness import WaitingTask
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    CURSORS,
    DICTIONARY,
    HEADS,
    JOURNAL,
    OPERATIONS,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.digests import digest_space
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.services.stores.copy_spaces import CopiedSpace, copy
from herdbook.services.stores.store_check import check
from tests.contract import raw
from tests.contract.children import Died, apart
from tests.contract.conftest import ENGINES, SHARED
from tests.contract.inhabited import content, inhabit, record_of, rename, work_on
from tests.contract.rows import make, space_for
from tests.contract.space import HERE, everything_in, work_in
from tests.contract.wrapped import LosesAnswers, WrappedSession, WrappedStore

NewUrl = Callable[[str], str]
Other = Callable[[str], Store]

LACKING = {
    WAITING: WaitingTask(task_id="tsk_x", blockers=1),
    OPERATIONS: OperationResult(operation_id="op", at=datetime(2026, 1, 1, tzinfo=UTC)),
    CURSORS: JournalCursor(id="reader", seq=0, holder="x"),
}
"""Rows of kinds of which a space may have none."""


def _name(kind: Kind[Any]) -> str:
    return kind.name


on_shared = pytest.mark.parametrize("engine", SHARED, indirect=True)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once."""
    monkeypatch.setattr("herdbook.ports.engine.retry.FIRST_PAUSE", 0)


@pytest.fixture(scope="module")
def other(new_url: NewUrl) -> Iterator[Other]:
    """Gives another store of an engine, kept for all tests of this file."""
    stores: dict[str, Store] = {}
    with ExitStack() as stack:

        def give(engine: str) -> Store:
            if engine not in stores:
                stores[engine] = stack.enter_context(open_store(new_url(engine)))
            return stores[engine]

        yield give


@pytest.fixture
def source(other: Other) -> Store:
    """A store to copy from."""
    return other("memory")


def digest(store: Store, space: str) -> str:
    """The digest of a space."""
    with store.transaction(space, write=False) as session:
        return digest_space(session, store.dictionary).whole


def copied(source: Store, target: Store, space: str, **options: Any) -> CopiedSpace:
    """Copy one space; what is told of it."""
    (told,) = copy(source, target, [space], **options).spaces
    return told


@pytest.mark.parametrize("origin", ENGINES)
def test_a_copy_has_the_same_content_and_can_be_worked_on(
    origin: str, store: Store, other: Other, space: str
) -> None:
    """Every row, the journal and the digests are equal; work goes on where it was."""
    source, record = other(origin), record_of(space)
    for each in (space, record):
        inhabit(source, each)
    told = copy(source, store, [space, record]).spaces
    for each in (space, record):
        assert content(store, each) == content(source, each)
    assert [each.digest for each in told] == [digest(source, space), digest(source, record)]
    assert [each.digest for each in told] == [digest(store, space), digest(store, record)]
    before = content(store, space)[JOURNAL.name]
    work_on(store, space)
    after = content(store, space)[JOURNAL.name]
    assert after[: len(before)] == before
    assert [entry.seq for entry in after] == list(range(1, len(after) + 1))
    assert check(store, [space, record]) == []


def test_secrets_arrive_as_they_are_and_nobody_sees_them(
    source: Store, store: Store, space: str
) -> None:
    """A copy never writes `***` over a value, and its report shows none."""
    record = record_of(space)
    with work_in(source, record) as uow:
        account = make(uow, ACCOUNTS, full=True)
        uow.commit()
    told = copied(source, store, record)
    with work_in(store, record, write=False) as uow:
        assert uow.accounts.get(account.id).credentials.reveal() == account.credentials.reveal()
    assert "s3cr3t" not in repr(told)


def test_a_second_copy_brings_over_what_has_changed(
    source: Store, store: Store, space: str
) -> None:
    """Rows that came, changed, went, and that took a unique name from one another."""
    inhabit(source, space)
    with work_in(source, space) as uow:
        for key in ("a", "b", "c"):
            make(uow, AGENTS, id=f"agt_{key}", name=key)
        uow.log_chunks.add(
            LogChunk(id="log_x", agent_id="x", agent_name="x", session_number=1, content="x")
        )
        uow.commit()
    copied(source, store, space)
    with work_in(source, space) as uow:
        rename(uow, "agt_b", "free")
        rename(uow, "agt_a", "b")
        rename(uow, "agt_b", "a")
        uow.agents.remove("agt_c")
        make(uow, AGENTS, id="agt_0", name="c")
        uow.log_chunks.remove("log_x")
        uow.commit()
    work_on(source, space)
    told = copied(source, store, space, batch=3)
    assert content(store, space) == content(source, space)
    assert told.removed == 2
    again = copied(source, store, space)
    assert (again.written, again.removed, again.digest) == (0, 0, told.digest)
    assert check(store, [space]) == []


def test_a_target_with_a_history_of_its_own_is_refused(
    source: Store, store: Store, space: str
) -> None:
    """It keeps every row, and the refusal says what to do instead."""
    for each in (source, store):
        inhabit(each, space)
    before = everything_in(store, space)
    with pytest.raises(SpaceRefused, match="history of its own.*`merge` adds.*Nothing"):
        copy(source, store, [space])
    assert everything_in(store, space) == before


def test_a_copy_that_was_worked_in_is_refused(source: Store, store: Store, space: str) -> None:
    """What was done there, if only a line of a log, is not overwritten by its source."""
    inhabit(source, space)
    copied(source, store, space)
    log(store, space)
    before = everything_in(store, space)
    with pytest.raises(SpaceRefused):
        copy(source, store, [space])
    assert everything_in(store, space) == before


def log(store: Store, space: str) -> None:
    """Add a line of a log, which is all that no journal tells of."""
    put_in(store, space, LogChunk(agent_id="x", agent_name="x", session_number=1, content="x"))


@pytest.mark.parametrize("fill", [inhabit, log])
def test_a_copy_of_one_store_is_not_overwritten_by_another(
    fill: Callable[[Store, str], None], source: Store, store: Store, space: str
) -> None:
    """Even where nobody has worked in it, and the other one is further on; its own goes on."""
    for _ in range(2):
        fill(source, space)
        copied(source, store, space)
    before = everything_in(store, space)
    with open_store("memory://") as stranger:
        for _ in range(2):
            fill(stranger, space)
        with pytest.raises(SpaceRefused, match="history of its own"):
            copy(stranger, store, [space])
    assert everything_in(store, space) == before


def test_what_has_moved_can_move_back(source: Store, store: Store, space: str) -> None:
    """Over the store it once came from, as long as nobody has worked there since."""
    inhabit(source, space)
    copied(source, store, space)
    work_on(store, space)
    copied(store, source, space)
    assert content(source, space) == content(store, space)
    work_on(source, space)
    copied(source, store, space)
    assert content(source, space) == content(store, space)
    work_on(store, space)
    log(source, space)
    with pytest.raises(SpaceRefused):
        copy(store, source, [space])


def test_an_unfinished_copy_is_told_and_is_no_source(
    source: Store, store: Store, other: Other, space: str
) -> None:
    """Until it is finished; and it is finished by its own source alone, if nobody worked in it."""
    inhabit(source, space)
    with pytest.raises(InterruptedError):
        copy(source, store, [space], batch=5, progress=_stop)
    assert [flaw.what for flaw in check(store, [space]) if "unfinished copy" in flaw.what]
    with pytest.raises(SpaceRefused, match="unfinished copy"):
        copy(store, source, [space])
    stranger = other("lmdb")
    inhabit(stranger, space)
    with pytest.raises(SpaceRefused, match="unfinished copy of another store"):
        copy(stranger, store, [space])
    copied(source, store, space)
    assert content(store, space) == content(source, space)


def _stop(_space: str, _done: int, _total: int) -> None:
    raise InterruptedError


def test_nobody_works_in_an_unfinished_copy_unnoticed(
    source: Store, store: Store, space: str
) -> None:
    """What goes into the journal is refused there, and what does not is kept."""
    inhabit(source, space)
    with pytest.raises(InterruptedError):
        copy(source, store, [space], batch=5, progress=_stop)
    refused = pytest.raises(StoreDamaged, match="a copy that was not finished")
    with refused, work_in(store, space) as uow:
        uow.tasks.add(Task(name="in between"))
        uow.commit()
    log(store, space)
    before = everything_in(store, space)
    with pytest.raises(SpaceRefused, match="somebody has worked"):
        copy(source, store, [space])
    assert everything_in(store, space) == before


def test_a_copy_stops_where_somebody_else_writes(source: Store, store: Store, space: str) -> None:
    """What comes in between is not overwritten; the copy says so at its next step."""
    inhabit(source, space)
    chunk = LogChunk(id="log_x", agent_id="x", agent_name="x", session_number=1, content="x")

    def disturb(_space: str, done: int, total: int) -> None:
        if done < total:
            put_in(store, space, chunk)

    with pytest.raises(SpaceRefused, match="in which somebody has worked"):
        copy(source, store, [space], batch=20, progress=disturb)
    with work_in(store, space, write=False) as uow:
        assert uow.log_chunks.get("log_x").content == "x"


def put_in(store: Store, space: str, chunk: LogChunk) -> None:
    """Add a line of a log, in a transaction of its own."""
    with work_in(store, space) as uow:
        uow.log_chunks.add(chunk)
        uow.commit()


def test_what_is_equal_in_python_but_not_in_json_is_brought_over(
    source: Store, store: Store, space: str
) -> None:
    """A document is copied as it is written, and its digest is of that."""
    for result in ({"a": 1}, {"a": True}, {"a": 1.0}):
        with work_in(source, space) as uow:
            agent = uow.agents.find("agt_a") or make(uow, AGENTS, id="agt_a")
            uow.session.replace(AGENTS, [evolve(agent, result=result)])
            uow.commit()
        copied(source, store, space)
        with work_in(store, space, write=False) as uow:
            assert repr(uow.agents.get("agt_a").result) == repr(result)


@pytest.mark.parametrize("kind", [kind for kind in DICTIONARY if kind is not HEADS], ids=_name)
def test_a_digest_tells_of_any_row(source: Store, space: str, kind: Kind[Any]) -> None:
    """Of whatever kind it is that a store lost one of."""
    where = space_for(kind, space)
    inhabit(source, where)
    with source.transaction(where, write=True) as session:
        before = digest_space(session, source.dictionary)
        if kind.name not in before.kinds:
            session.insert(kind, [LACKING[kind]])
        else:
            session.delete(kind, [kind.key_of(session.select(find(kind, limit=1))[0])])
        after = digest_space(session, source.dictionary)
    assert before.differing_kinds(after) == (kind.name,)
    assert before.whole != after.whole


def copy_and_die(origin: str, url: str, steps: int, seconds: float) -> CopiedSpace:
    """Copy a few rows at a time; die after some steps, or at any moment after some time."""
    rest = iter(range(steps, -1, -1))

    def step(_space: str, _done: int, _total: int) -> None:
        if not next(rest, 1):
            os.kill(os.getpid(), signal.SIGKILL)

    with open_store(origin) as source, open_store(url) as target:
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
        timer.daemon = True
        timer.start()
        told = copied(source, target, HERE, batch=10, progress=step)
        timer.cancel()
    return told


@on_shared
def test_a_copy_that_was_killed_is_finished_by_the_next(engine: str, new_url: NewUrl) -> None:
    """Whenever the processes before it died, the two are the same in the end."""
    chance = random.Random(engine)
    origin, url = new_url("lmdb"), new_url(engine)
    with open_store(origin) as source:
        inhabit(source, HERE)
    for steps in (0, chance.randrange(1, 8)):
        with pytest.raises(Died):
            apart(copy_and_die, origin, url, steps, 600)
    for _ in range(4):
        with suppress(Died):
            apart(copy_and_die, origin, url, 10_000, chance.uniform(0.001, 0.15))
    told = apart(copy_and_die, origin, url, 10_000, 600)
    with open_store(origin) as source, open_store(url) as target:
        assert content(target, HERE) == content(source, HERE)
        assert told.digest == digest(source, HERE) == digest(target, HERE)
        assert check(target) == []


@on_shared
def test_the_source_is_only_read(engine: str, new_url: NewUrl) -> None:
    """Behind the adapter's back not a row of it is another afterwards."""
    url = new_url(engine)
    with open_store(url) as source:
        inhabit(source, HERE)
    before = raw.rows(engine, url)
    with open_store(url) as source, open_store("memory://") as target:
        copy(source, target)
    assert raw.rows(engine, url) == before


class Measuring(WrappedSession):
    """A session that notes how many rows it was given in all."""

    noted: list[int]

    def __init__(self, session: Any, noted: list[int]) -> None:
        super().__init__(session)
        self.noted = noted
        noted.append(0)

    def insert(self, kind: Kind[Any], rows: list[Any]) -> None:
        self.noted[-1] += len(rows)
        self._session.insert(kind, rows)


def test_no_transaction_carries_more_rows_than_asked(
    source: Store, store: Store, space: str
) -> None:
    """However large a store is, its copy needs room for a batch."""
    inhabit(source, space)
    noted: list[int] = []
    target: Any = WrappedStore(store, lambda session: Measuring(session, noted))
    told = copied(source, target, space, batch=7)
    assert max(noted) == 7
    # The head is replaced; the note is written when it begins and when it ends.
    assert sum(noted) == told.rows - 1 + 2 + (store.url.partition(":")[0] != "postgresql")


class Losing(WrappedSession):
    """A session that takes what it is given, but for a task."""

    def insert(self, kind: Kind[Any], rows: list[Any]) -> None:
        self._session.insert(kind, rows[1:] if kind is TASKS else rows)


def test_a_copy_that_is_not_equal_is_an_error(source: Store, store: Store, space: str) -> None:
    """It names where the two differ, and the copy stays unfinished until it is equal."""
    inhabit(source, space)
    target: Any = WrappedStore(store, Losing)
    with pytest.raises(CopyDiffers, match="differs from its source in tasks") as refusal:
        copy(source, target, [space])
    assert refusal.value.kinds == ("tasks",)
    assert any("unfinished copy" in flaw.what for flaw in check(store, [space]))
    assert copied(source, store, space).digest == digest(store, space)


def test_a_copy_whose_answers_are_lost_goes_on(source: Store, store: Store, space: str) -> None:
    """Every commit of it may be tried again."""
    inhabit(source, space)
    odd = iter(range(10_000))
    target: Any = WrappedStore(
        store, lambda session: LosesAnswers(session) if next(odd) % 2 else session
    )
    told = copied(source, target, space, batch=20)
    assert content(store, space) == content(source, space)
    assert told.digest == digest(store, space)


def test_a_source_that_moves_on_is_copied_as_it_was(store: Store, space: str) -> None:
    """The copy is of one moment, says that there is a later one, and can be brought up to it."""
    with open_store("memory://") as source:
        inhabit(source, space)
        before = content(source, space)

        def disturb(_space: str, done: int, total: int) -> None:
            if done < total and len(content(source, space)["tasks"]) == len(before["tasks"]):
                work_on(source, space)

        assert copied(source, store, space, batch=20, progress=disturb).moved_on
        assert content(store, space) == before
        assert not copied(source, store, space).moved_on
        assert content(store, space) == content(source, space)


def test_other_spaces_of_a_target_are_left_alone(source: Store, store: Store, space: str) -> None:
    """A copy writes in the spaces that it copies."""
    neighbour = f"{space}-neighbour"
    inhabit(store, neighbour)
    before = everything_in(store, neighbour)
    inhabit(source, space)
    copied(source, store, space)
    assert everything_in(store, neighbour) == before


def test_all_spaces_are_copied_unless_some_are_named(store: Store, space: str) -> None:
    """A store comes with everything that anybody has written in it."""
    with open_store("memory://") as source:
        spaces = [f"record/{space[5:]}", space]
        for each in spaces:
            inhabit(source, each)
        assert [each.space for each in copy(source, store).spaces] == sorted(spaces)
        with pytest.raises(NotFound):
            copy(source, store, ["work/misspelt"])


def test_a_store_is_not_copied_into_itself(store: Store, space: str) -> None:
    """Neither under one name nor under two."""
    inhabit(store, space)
    with pytest.raises(InvalidValue, match="target"):
        copy(store, store, [space])


def test_a_batch_has_at_least_one_row(source: Store, store: Store) -> None:
    """Nobody waits for a copy that cannot go on."""
    with pytest.raises(InvalidValue, match="batch"):
        copy(source, store, batch=0)


def test_progress_ends_with_everything(source: Store, store: Store, space: str) -> None:
    """It never goes back and never beyond."""
    inhabit(source, space)
    seen: list[tuple[int, int]] = []
    copied(
        source, store, space, batch=9, progress=lambda _, done, total: seen.append((done, total))
    )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len({total for _, total in seen}) == 1
    assert seen[-1][0] == seen[-1][1]
    assert len(seen) > 3


def test_a_transaction_ends_early_where_rows_are_large(
    source: Store, store: Store, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room is counted in bytes too, once it is known how large the rows of a kind are."""
    monkeypatch.setattr("herdbook.services.stores.copy_spaces.TRANSACTION_BYTES", 20_000)
    with work_in(source, space) as uow:
        uow.tasks.add_all([Task(name="x", description="x" * 2_000) for _ in range(200)])
        uow.commit()
    noted: list[int] = []
    target: Any = WrappedStore(store, lambda session: Measuring(session, noted))
    copied(source, target, space)
    assert max(noted) < 200
    assert len(noted) > 20
    assert content(store, space) == content(source, space)
