"""A halted agent gets no work, whoever calls the use case that gives it out."""

from collections.abc import Callable
from functools import partial

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.errors import AgentHalted, AlreadyExists, StoreUnavailable
from herdbook.domain.plan.claims import Claim
from herdbook.domain.plan.model import Task
from herdbook.domain.record.events import SessionSetup
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.world.halts import NO_HALTS, FixedHalts, Halt
from herdbook.services.agents import introduction
from herdbook.services.agents.halts import OUT_OF_REACH, RecordHalts
from herdbook.services.plan import claims
from herdbook.services.record import grading
from tests.contract.turns import Begin


@pytest.fixture
def agent(store: Store, space: str) -> Agent:
    """An agent, and a task that it could take."""
    run(store, space, lambda uow: uow.tasks.add(Task(name="x")))
    return run(store, space, lambda uow: uow.agents.add(Agent(name="otter")))


def _is_free(begin: Begin) -> bool:
    with begin(write=False) as uow:
        return len(claims.ready(uow)) == 1


def test_who_gives_out_work_must_say_who_is_halted(begin: Begin, agent: Agent) -> None:
    """There is no way to claim that leaves the question out."""
    with begin() as uow, pytest.raises(TypeError, match="halts"):
        claims.claim(uow, agent.id)  # type: ignore[call-arg]
    assert _is_free(begin)


def test_a_halted_agent_claims_nothing(
    store: Store, space: str, begin: Begin, agent: Agent
) -> None:
    """The refusal says how it stands, and others may still have the task."""
    halts = FixedHalts(Halt("otter", -1))
    with pytest.raises(AgentHalted, match="otter"):
        run(store, space, claims.claim, agent.id, halts=halts)
    assert _is_free(begin)
    other = run(store, space, lambda uow: uow.agents.add(Agent(name="heron")))
    assert run(store, space, claims.claim, other.id, halts=halts) is not None


@pytest.mark.parametrize("apart", [False, True])
def test_what_the_record_says_counts_in_a_claim(
    store: Store, fresh: Callable[..., Store], space: str, agent: Agent, *, apart: bool
) -> None:
    """One in the same store is asked before the claim: DuckDB does not nest transactions."""
    record = fresh() if apart else store
    records = space.replace("work/", "record/")

    def attempt() -> Claim | None:
        halts = RecordHalts(partial(read, record, records))
        if not apart:
            halts.find(agent.name)
        return run(store, space, claims.claim, agent.id, halts=halts)

    crew = {"otter": SessionSetup()}
    while run(record, records, grading.report_bug, "otter", crew=crew).active:
        pass
    with pytest.raises(AgentHalted, match="otter"):
        attempt()
    assert read(store, space, claims.ready) != []
    run(record, records, grading.reinstate, "otter")
    assert attempt() is not None


def test_where_the_record_is_out_of_reach_the_journal_says_so(
    store: Store, space: str, begin: Begin, agent: Agent
) -> None:
    """The agent may go on; a person is warned once, and can find it later."""

    def fail(_: object) -> None:
        raise StoreUnavailable("record", "is gone")

    said: list[str] = []
    halts = RecordHalts(fail, said.append)
    run(store, space, lambda uow: uow.tasks.add(Task(name="y")))
    for _ in range(2):
        claim = run(store, space, claims.claim, agent.id, halts=halts)
        assert claim is not None
        with begin(write=False) as uow:
            assert uow.journal.of_row(TASKS, claim.task.id)[-1].note == OUT_OF_REACH
    (sentence,) = said
    assert "otter" in sentence
    assert "is gone" in sentence


def test_an_agent_whose_process_is_gone_is_introduced_at_once(store: Store, space: str) -> None:
    """In the same transaction it is found to have crashed; one that lives is not replaced."""
    alive = {7: None, 8: None}

    def introduce(session: str, pid: int) -> Agent:
        return run(
            store,
            space,
            introduction.introduce,
            "otter",
            halts=NO_HALTS,
            host="barn",
            pid=pid,
            started_at_of=lambda number: now if number in alive else None,
            session_id=session,
        )

    now = run(store, space, lambda uow: uow.now)
    first = introduce("one", 7)
    with pytest.raises(AlreadyExists):
        introduce("two", 8)
    del alive[7]
    again = introduce("two", 8)
    assert (again.id, again.session_id, again.pid) == (first.id, "two", 8)
    with pytest.raises(AgentHalted):
        run(
            store,
            space,
            introduction.introduce,
            "heron",
            halts=FixedHalts(Halt("heron", 0)),
            host="barn",
            pid=8,
            started_at_of=lambda _: now,
        )


def test_a_name_is_free_until_somebody_has_it(store: Store, space: str) -> None:
    """The agent of a session keeps the name it has."""
    name = read(store, space, introduction.free_name, None, "one")
    run(store, space, lambda uow: uow.agents.add(Agent(name=name, session_id="one")))
    assert read(store, space, introduction.free_name, None, "one") == name
    assert read(store, space, introduction.free_name, None, "two") != name
