"""Undo of a transaction, claims of named tasks and the search, on every store."""

from datetime import timedelta

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.errors import (
    AlreadyExists,
    InvalidValue,
    NotFound,
    StaleWrite,
    TaskNotClaimable,
)
from herdbook.domain.plan.model import ChangeSetStatus, Initiative, Phase, Task, TaskStatus
from herdbook.domain.plan.readiness import OpeningState
from herdbook.ports.engine.dictionary import INITIATIVES, TASKS
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import removal, search
from herdbook.services.journal import undo
from herdbook.services.plan import claims, phases, proposals
from tests.contract.claims import do
from tests.contract.proposed import add_plan, propose
from tests.contract.turns import Begin


def test_a_removed_plan_comes_back_as_it_was(begin: Begin) -> None:
    """Every row with its id and version, and what follows from them; twice is once."""
    plan = add_plan(begin)
    with begin(write=False) as uow:
        before = uow.tasks.page(), uow.phases.page(), uow.initiatives.page()
    do(begin, removal.remove, INITIATIVES, [plan.initiative.id], yes=True)
    found = do(begin, undo.undo)
    assert any(plan.initiative.id in each for each in found.restored)
    with begin(write=False) as uow:
        assert (uow.tasks.page(), uow.phases.page(), uow.initiatives.page()) == before
        assert find_differences(uow) == []
        assert any((each.note or "").endswith(found.tx) for each in uow.journal.since(found.seq))
    with begin() as uow, pytest.raises(AlreadyExists):
        undo.undo(uow, found.tx)


def test_the_last_change_of_who_acts_is_taken_back_and_then_the_one_before(begin: Begin) -> None:
    """Changes of others and what was taken back already are passed over."""
    for name, agent in (("one", None), ("two", "otter"), ("three", None)):
        with begin() as uow:
            if agent is not None:
                uow.act_as(agent)
            uow.tasks.add(Task(name=name))
            uow.commit()
    left = []
    for agent in (None, None, "otter"):
        with begin() as uow:
            if agent is not None:
                uow.act_as(agent)
            undo.undo(uow)
            uow.commit()
        with begin(write=False) as uow:
            left.append(sorted(task.name for task in uow.tasks.page()))
    assert left == [["one", "two"], ["two"], []]
    with begin() as uow, pytest.raises(NotFound, match="nothing lately"):
        undo.undo(uow)


def test_what_changed_since_is_refused_field_by_field(begin: Begin) -> None:
    """Another field may have changed; nothing is written where it is the same."""
    task = do(begin, lambda uow: uow.tasks.add(Task(name="x", priority="low")))
    with begin() as uow:
        uow.tasks.save(evolve(task, priority="high"))
        tx = uow.tx
        uow.commit()
    do(begin, lambda uow: uow.tasks.save(evolve(uow.tasks.get(task.id), priority="medium")))
    with begin() as uow, pytest.raises(StaleWrite) as refusal:
        undo.undo(uow, tx)
    assert refusal.value.fields == ("priority",)
    do(begin, undo.undo)
    do(begin, lambda uow: uow.tasks.save(evolve(uow.tasks.get(task.id), description="new")))
    do(begin, undo.undo, tx)
    with begin(write=False) as uow:
        assert uow.tasks.get(task.id).priority == "low"
        assert uow.tasks.get(task.id).description == "new"


def test_a_change_is_named_by_the_number_of_an_entry(begin: Begin) -> None:
    """With or without a hash; a number that no entry has is not found."""
    do(begin, lambda uow: uow.tasks.add(Task(name="x")))
    with begin(write=False) as uow:
        last = uow.journal.last()
    assert do(begin, undo.undo, f"#{last}").removed
    for named in ("#999", "999", "0", "tx_nothing", "9" * 40):
        with begin() as uow, pytest.raises(NotFound):
            undo.undo(uow, named)


def test_a_claim_is_not_undone_and_a_completion_is(begin: Begin) -> None:
    """A fence never decreases, so that no earlier claim is valid again."""
    agent = do(begin, lambda uow: uow.agents.add(Agent(name="otter")))
    task = do(begin, lambda uow: uow.tasks.add(Task(name="x")))
    claim = do(begin, claims.claim, agent.id, halts=NO_HALTS)
    with begin() as uow, pytest.raises(InvalidValue, match="task release"):
        undo.undo(uow)
    do(begin, claims.complete, task.id, claim.fence)
    do(begin, undo.undo)
    with begin(write=False) as uow:
        again = uow.tasks.get(task.id)
        assert (again.status, again.fence) == (TaskStatus.IN_PROGRESS, claim.fence)
        assert uow.openings.get(task.id).state is OpeningState.HELD
    do(begin, claims.heartbeat, task.id, claim.fence)
    do(begin, claims.complete, task.id, claim.fence)


def test_undo_of_an_accepted_proposal_reverts_its_change_set(begin: Begin) -> None:
    """The change set says so, and the proposal is pending again."""
    plan = add_plan(begin)
    key = propose(begin, plan, "task")
    change_set = do(begin, proposals.accept, key)
    do(begin, undo.undo)
    with begin(write=False) as uow:
        assert uow.change_sets.get(change_set.id).status is ChangeSetStatus.REVERTED
        assert uow.proposals.get(key).status == "pending"


def test_a_named_task_is_claimed_or_refused_with_the_reason(begin: Begin) -> None:
    """Whoever holds it gets the same claim with a longer lease."""
    with begin() as uow:
        otter, fox = uow.agents.add_all([Agent(name="otter"), Agent(name="fox")])
        initiative = uow.initiatives.add(Initiative(name="i"))
        phase = uow.phases.add(Phase(name="p", initiative_id=initiative.id))
        inside = uow.tasks.add(Task(name="inside", phase_id=phase.id))
        first, second = uow.tasks.add_all(
            [Task(name="first", priority="high"), Task(name="second")]
        )
        uow.tasks.add_dependencies([(first.id, second.id)])
        uow.commit()

    def refusal(agent: Agent, task: Task) -> str:
        with begin() as uow, pytest.raises(TaskNotClaimable) as refused:
            claims.claim(uow, agent.id, halts=NO_HALTS, task_id=task.id)
        return refused.value.reason

    assert "phase 'p' to be approved" in refusal(otter, inside)
    assert "'second'" in refusal(otter, first)
    claim = do(begin, claims.claim, otter.id, halts=NO_HALTS, task_id=second.id)
    longer = do(
        begin, claims.claim, otter.id, halts=NO_HALTS, task_id=second.id, ttl=timedelta(hours=5)
    )
    assert longer.fence == claim.fence
    assert longer.opening.lease_until > claim.opening.lease_until
    assert refusal(fox, second).startswith("otter holds it until")
    do(begin, claims.complete, second.id, claim.fence)
    assert refusal(fox, second) == "it is completed"
    do(begin, phases.approve, [phase.id, phase.id])
    assert do(begin, claims.claim, fox.id, halts=NO_HALTS, task_id=inside.id).task.id == inside.id
    do(begin, lambda uow: uow.phases.save(evolve(uow.phases.get(phase.id), status="blocked")))
    with begin() as uow, pytest.raises(InvalidValue, match="blocked"):
        phases.approve(uow, [phase.id])


def test_the_search_finds_every_word_in_any_field(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names first; the answer tells how many rows were read and whether that was all."""
    with begin() as uow:
        uow.tasks.add_all(
            [
                Task(name="Parse ÄPFEL", description="a\nlong text about trees"),
                Task(name="other", acceptance="äpfel grow on TREES", labels=["fruit"]),
                Task(name="nothing of it"),
            ]
        )
        uow.commit()
    with begin(write=False) as uow:
        found = search.search(uow, "äpfel trees")
        assert [each.name for each in found.matches] == ["Parse ÄPFEL", "other"]
        assert (found.total, found.searched, found.complete) == (2, 3, True)
        assert [each.field for each in search.search(uow, "fruit").matches] == ["labels"]
        assert len(search.search(uow, "t", limit=1).matches) == 1
        with pytest.raises(InvalidValue):
            search.search(uow, " \n")
        monkeypatch.setattr(search, "MOST_READ", 1)
        assert not search.search(uow, "fruit").complete


def test_a_task_keeps_its_labels_and_its_acceptance(begin: Begin) -> None:
    """Each label once, in order; what is no label is refused."""
    labels = ["db", "ä/b", "x:1"]
    task = do(begin, lambda uow: uow.tasks.add(Task(name="x", labels=[*labels, "db"])))
    with begin(write=False) as uow:
        (stored,) = uow.get(TASKS, [task.id])
        assert stored is not None
        assert stored.labels == labels
    for bad in (["two words"], ["a" * 51], ["x"] * 2 + [f"l{n}" for n in range(20)], "a b", [1], 7):
        with pytest.raises(InvalidValue):
            Task(name="x", labels=bad)
