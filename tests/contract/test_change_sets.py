"""Taking back what a change set stands for: all of it, or nothing where something changed since."""

from collections.abc import Callable
from typing import Any

import pytest

from herdbook.domain.conversation import (
    ChatMessage,
    ChatRole,
    ChatSession,
    ChatTarget,
    Conversation,
)
from herdbook.domain.entity import evolve
from herdbook.domain.errors import HerdbookError, InvalidValue, NotFound, StaleWrite
from herdbook.domain.plan.model import (
    ChangeSet,
    ChangeSetStatus,
    Page,
    Phase,
    PhaseStatus,
    ProposalStatus,
    ProposalTarget,
    Task,
    TaskStatus,
)
from herdbook.domain.record.model import Account
from herdbook.domain.secret import Secret
from herdbook.ports.engine.dictionary import ACCOUNTS
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents import worktrees
from herdbook.services.journal import journal_effects, undo
from herdbook.services.plan import claims, proposals
from tests.contract.claims import add_agents, add_tasks, claim_for, do
from tests.contract.proposed import Plan, add_plan, kept, propose
from tests.contract.turns import Begin

PAGE, PHASE, TASK = ProposalTarget


def _changed(begin: Begin, plan: Plan, change: Callable[[UnitOfWork], Any]) -> tuple[str, Any]:
    """Change anything in one transaction, with a change set that stands for it."""
    with begin() as uow:
        result = change(uow)
        row = ChangeSet(initiative_id=plan.initiative.id, summary="x", tx=uow.tx)
        change_set = uow.change_sets.add(row)
        uow.commit()
    return change_set.id, result


def _reverts(begin: Begin, change_set_id: str) -> None:
    reverted = do(begin, undo.revert, change_set_id)
    with begin(write=False) as uow:
        assert uow.change_sets.get(change_set_id) == reverted
        assert find_differences(uow) == []
    assert reverted.status is ChangeSetStatus.REVERTED


def _is_refused(begin: Begin, change_set_id: str, error: type[HerdbookError], text: str) -> Any:
    """Even where the unit of work goes on and is committed, nothing was written."""
    with begin() as uow:
        last = uow.journal.last()
        with pytest.raises(error, match=text) as caught:
            undo.revert(uow, change_set_id)
        uow.commit()
    with begin(write=False) as uow:
        assert uow.journal.last() == last
        assert uow.change_sets.get(change_set_id).status is ChangeSetStatus.APPLIED
    return caught.value


def test_accepted_proposals_are_taken_back_whole(begin: Begin, store: Store, space: str) -> None:
    """New rows go, changed ones are as they were, and the proposals are pending again."""
    plan = add_plan(begin, PhaseStatus.COMPLETED)
    said = {"phase_id": plan.phase.id, "depends_on": [plan.task.id]}
    keys = [
        propose(begin, plan, PAGE),
        propose(begin, plan, PHASE, metadata={"depends_on": [plan.phase.id]}),
        propose(begin, plan, TASK, metadata=said),
        propose(begin, plan, TASK, target_id=plan.task.id),
        propose(begin, plan, PHASE, target_id=plan.phase.id),
    ]
    before = kept(store, space)
    change_set = do(begin, proposals.accept_all, keys)
    assert kept(store, space) != before
    _reverts(begin, change_set.id)
    assert kept(store, space) == before
    with begin(write=False) as uow:
        pending = uow.proposals.of_agent(plan.agent.id, ProposalStatus.PENDING)
    assert sorted(each.id for each in pending) == sorted(keys)


def test_the_sight_of_a_worktree_is_no_part_of_a_change_set(begin: Begin) -> None:
    """It is written with whatever is done there, and stays and moves on when that is undone."""
    plan = add_plan(begin)

    def accept(uow: UnitOfWork) -> None:
        worktrees.record_worktree(uow, "wkt_a", "/app", branch="main", is_main=True)
        uow.tasks.add(Task(name="x", initiative_id=plan.initiative.id))

    change_set_id, _ = _changed(begin, plan, accept)
    do(begin, worktrees.record_worktree, "wkt_a", "/app", branch="other", is_main=True)
    _reverts(begin, change_set_id)
    with begin(write=False) as uow:
        assert uow.worktrees.get("wkt_a").branch == "other"
        assert uow.tasks.of_initiative(plan.initiative.id) == [plan.task]


def test_what_was_taken_back_can_be_accepted_again(begin: Begin) -> None:
    """That is another change set, which can be taken back as well."""
    plan = add_plan(begin)
    key = propose(begin, plan, TASK)
    for _ in range(2):
        _reverts(begin, do(begin, proposals.accept, key).id)
    with begin(write=False) as uow:
        assert uow.tasks.of_initiative(plan.initiative.id) == [plan.task]
        assert len(uow.change_sets.of_initiative(plan.initiative.id)) == 2


def test_a_change_set_is_taken_back_once(begin: Begin) -> None:
    """The second time is refused, and says so."""
    plan = add_plan(begin)
    change_set = do(begin, proposals.accept, propose(begin, plan, TASK))
    _reverts(begin, change_set.id)
    with pytest.raises(InvalidValue, match=f"'{change_set.id}' is reverted already"):
        do(begin, undo.revert, change_set.id)
    with pytest.raises(NotFound):
        do(begin, undo.revert, "nothing")


def test_a_removed_row_comes_back_with_all_that_went_along(
    begin: Begin, store: Store, space: str
) -> None:
    """Cascades and emptied fields too, and rows keep their times and versions."""
    plan = add_plan(begin)
    (behind,) = add_tasks(begin, Task(name="y"))
    with begin() as uow:
        child = uow.tasks.add(Task(name="z", parent_task_id=plan.task.id, phase_id=plan.phase.id))
        uow.tasks.add_dependency(behind.id, plan.task.id)
        uow.agents.save(evolve(plan.agent, task_id=plan.task.id))
        asked = {"from_agent_id": plan.agent.id, "to_agent_id": plan.agent.id, "question": "?"}
        uow.conversations.add(Conversation(**asked, phase_id=plan.phase.id))
        uow.commit()
    before = kept(store, space)
    change_set_id, _ = _changed(begin, plan, lambda uow: uow.phases.remove(plan.phase.id))
    _reverts(begin, change_set_id)
    assert kept(store, space) == before
    with begin(write=False) as uow:
        assert uow.tasks.get_many([plan.task.id, child.id]) == [plan.task, child]


def test_a_row_changed_several_times_at_once_is_as_it_was_first(
    begin: Begin, store: Store, space: str
) -> None:
    """However often the transaction came back to it, to its end or from there."""
    plan = add_plan(begin)
    (other,) = add_tasks(begin, Task(name="y", summary="s"))

    def change(uow: UnitOfWork) -> None:
        once = uow.tasks.save(evolve(plan.task, name="one", summary="new"))
        uow.tasks.save(evolve(once, name="two", description="more"))
        passing = uow.tasks.add(Task(name="passing"))
        uow.tasks.remove(passing.id)
        uow.tasks.save(evolve(other, summary=None, name="gone"))
        uow.tasks.remove(other.id)
        staying = uow.tasks.add(Task(name="staying"))
        uow.tasks.save(evolve(staying, name="stayed"))

    before = kept(store, space)
    change_set_id, _ = _changed(begin, plan, change)
    _reverts(begin, change_set_id)
    assert kept(store, space) == before


def test_what_was_moved_under_a_new_row_is_moved_back_before_that_goes(
    begin: Begin, store: Store, space: str
) -> None:
    """Else the cascade would take it along."""
    plan = add_plan(begin)

    def change(uow: UnitOfWork) -> None:
        phase = uow.phases.add(Phase(initiative_id=plan.initiative.id, name="new"))
        uow.tasks.save(evolve(plan.task, phase_id=phase.id))

    before = kept(store, space)
    change_set_id, _ = _changed(begin, plan, change)
    _reverts(begin, change_set_id)
    assert kept(store, space) == before


def test_what_stands_in_the_way_of_a_removed_row_goes_first(
    begin: Begin, store: Store, space: str
) -> None:
    """A dependency that was removed and added anew, and one that was turned round."""
    plan = add_plan(begin)
    one, other = add_tasks(begin, Task(name="y"), Task(name="z"))
    with begin() as uow:
        uow.tasks.add_dependencies([(one.id, plan.task.id), (one.id, other.id)])
        uow.commit()

    def change(uow: UnitOfWork) -> None:
        for end in (plan.task, other):
            uow.tasks.remove_dependency(one.id, end.id)
        uow.tasks.add_dependencies([(one.id, plan.task.id), (other.id, one.id)])

    before = kept(store, space)
    change_set_id, _ = _changed(begin, plan, change)
    _reverts(begin, change_set_id)
    assert kept(store, space) == before


def test_fields_that_changed_since_are_named(begin: Begin, store: Store, space: str) -> None:
    """StaleWrite names those of the fields to be put back that somebody changed, and no others."""
    plan = add_plan(begin)
    key = propose(begin, plan, TASK, target_id=plan.task.id)
    change_set = do(begin, proposals.accept, key)
    with begin() as uow:
        task = uow.tasks.get(plan.task.id)
        uow.tasks.save(evolve(task, name="Mine", summary="Done"))
        uow.commit()
    before = kept(store, space)
    error = _is_refused(
        begin, change_set.id, StaleWrite, r"has changed since.*: name was .* and is"
    )
    assert (error.entity, error.key, error.fields) == ("task", plan.task.id, ("name",))
    assert (error.version, error.current) == (2, 3)
    assert kept(store, space) == before


def test_other_fields_may_have_changed_since(begin: Begin) -> None:
    """They stay as they are now; only what the change set changed is put back."""
    plan = add_plan(begin)
    key = propose(begin, plan, TASK, target_id=plan.task.id)
    change_set = do(begin, proposals.accept, key)
    with begin() as uow:
        uow.tasks.save(evolve(uow.tasks.get(plan.task.id), summary="Done", order=9))
        uow.commit()
    _reverts(begin, change_set.id)
    with begin(write=False) as uow:
        task = uow.tasks.get(plan.task.id)
    assert (task.name, task.description) == (plan.task.name, plan.task.description)
    assert (task.summary, task.order) == ("Done", 9)


def test_a_new_task_that_somebody_works_on_stays(begin: Begin) -> None:
    """StaleWrite names what the claim changed."""
    plan = add_plan(begin)
    (agent,) = add_agents(begin)
    with begin() as uow:
        uow.tasks.save(evolve(plan.task, status=TaskStatus.COMPLETED))
        uow.commit()
    change_set = do(begin, proposals.accept, propose(begin, plan, TASK))
    claim = claim_for(begin, agent)
    error = _is_refused(begin, change_set.id, StaleWrite, "task")
    claimed = ("status", "assignee_id", "fence", "claim_stamp", "lease_until")
    assert (error.key, error.fields) == (claim.task.id, claimed)
    do(begin, claims.release, claim.task.id, claim.fence)
    error = _is_refused(begin, change_set.id, StaleWrite, "task")
    assert error.fields == ("fence",)


def test_what_was_hung_on_a_new_row_since_is_named(begin: Begin, store: Store, space: str) -> None:
    """Because it would go with it; InvalidValue, and nothing is written."""
    plan = add_plan(begin)
    change_set = do(begin, proposals.accept, propose(begin, plan, PHASE))
    with begin() as uow:
        (phase,) = [
            each for each in uow.phases.of_initiative(plan.initiative.id) if each != plan.phase
        ]
        rows = [Task(name="y", phase_id=phase.id) for _ in range(5)]
        tasks = uow.tasks.add_all(rows)
        uow.commit()
    before = kept(store, space)
    error = _is_refused(begin, change_set.id, InvalidValue, "and 2 more would go with what it")
    assert sum(repr(task.id) in str(error) for task in tasks) == 3
    assert kept(store, space) == before
    do(begin, lambda uow: uow.tasks.remove_all([task.id for task in tasks]))
    _reverts(begin, change_set.id)


def test_what_was_moved_under_a_new_row_since_is_named(begin: Begin) -> None:
    """Though it was there before."""
    plan = add_plan(begin)
    change_set = do(begin, proposals.accept, propose(begin, plan, PHASE))
    with begin() as uow:
        (phase,) = [
            each for each in uow.phases.of_initiative(plan.initiative.id) if each != plan.phase
        ]
        uow.tasks.save(evolve(plan.task, phase_id=phase.id))
        uow.commit()
    _is_refused(begin, change_set.id, InvalidValue, f"task '{plan.task.id}' would go")


def test_a_new_row_that_is_gone_already_is_no_hindrance(begin: Begin) -> None:
    """There is nothing left to take back of it."""
    plan = add_plan(begin)
    keys = [propose(begin, plan, TASK), propose(begin, plan, TASK, target_id=plan.task.id)]
    change_set = do(begin, proposals.accept_all, keys)
    with begin() as uow:
        tasks = uow.tasks.of_initiative(plan.initiative.id)
        uow.tasks.remove_all([task.id for task in tasks if task.id != plan.task.id])
        uow.commit()
    _reverts(begin, change_set.id)
    with begin(write=False) as uow:
        assert uow.tasks.get(plan.task.id).name == plan.task.name


def test_a_changed_row_that_is_gone_is_named(begin: Begin) -> None:
    """It cannot be as it was."""
    plan = add_plan(begin)
    key = propose(begin, plan, TASK, target_id=plan.task.id)
    change_set = do(begin, proposals.accept, key)
    do(begin, lambda uow: uow.tasks.remove(plan.task.id))
    _is_refused(begin, change_set.id, InvalidValue, f"task '{plan.task.id}' is gone since")


def test_a_proposal_that_went_with_its_agent_is_no_hindrance(begin: Begin) -> None:
    """What it led to can still be taken back."""
    plan = add_plan(begin)
    change_set = do(begin, proposals.accept, propose(begin, plan, TASK))
    do(begin, lambda uow: uow.agents.remove(plan.agent.id))
    _reverts(begin, change_set.id)
    with begin(write=False) as uow:
        assert uow.tasks.of_initiative(plan.initiative.id) == [plan.task]
        assert uow.proposals.page() == []


def test_a_phase_that_was_finished_before_its_last_task_stays_so(begin: Begin) -> None:
    """A person had set it; to take the end of the task back is no new work in it."""
    plan = add_plan(begin)
    task, phase = plan.task, plan.phase
    claimed = claim_for(begin, *add_agents(begin), phase_id=phase.id)
    with begin() as uow:
        finished = evolve(uow.phases.get(phase.id), status=PhaseStatus.COMPLETED)
        uow.phases.save(finished)
        uow.commit()
    change_set_id, _ = _changed(
        begin, plan, lambda uow: claims.complete(uow, task.id, claimed.fence)
    )
    _reverts(begin, change_set_id)
    with begin(write=False) as uow:
        assert uow.tasks.get(task.id).status is TaskStatus.IN_PROGRESS
        assert uow.phases.get(phase.id).status is PhaseStatus.COMPLETED


def test_a_phase_with_something_left_to_do_is_not_finished_again(begin: Begin) -> None:
    """Though it was before the change set, another task has come into it since.

    When that goes as well, nothing is left to do, and the phase waits for its review.
    """
    plan = add_plan(begin, PhaseStatus.COMPLETED)
    with begin() as uow:
        uow.tasks.save(evolve(plan.task, status=TaskStatus.COMPLETED))
        uow.commit()
    said = {"phase_id": plan.phase.id}
    first, second = [
        do(begin, proposals.accept, propose(begin, plan, TASK, metadata=said)) for _ in range(2)
    ]
    statuses = []
    for change_set in (first, second):
        _reverts(begin, change_set.id)
        with begin(write=False) as uow:
            statuses.append(uow.phases.get(plan.phase.id).status)
    assert statuses == [PhaseStatus.IN_PROGRESS, PhaseStatus.PENDING_REVIEW]


def test_the_initiative_of_a_change_set_is_not_taken_back_under_it(begin: Begin) -> None:
    """A transaction that made the initiative as well would take its own change set along."""
    plan = add_plan(begin)
    with begin() as uow:
        initiative = uow.initiatives.add(evolve(plan.initiative, id="", version=0))
        row = ChangeSet(initiative_id=initiative.id, summary="x", tx=uow.tx)
        change_set = uow.change_sets.add(row)
        uow.commit()
    _is_refused(begin, change_set.id, InvalidValue, f"change set '{change_set.id}' would go")


def test_what_was_said_stays_said(begin: Begin) -> None:
    """A chat message of the transaction, written once, is not taken back with it."""
    plan = add_plan(begin)
    with begin() as uow:
        target = {"target_type": ChatTarget.TASK, "target_id": plan.task.id}
        chat = uow.chat_sessions.add(ChatSession(**target, initiative_id=plan.initiative.id))
        uow.commit()

    def change(uow: UnitOfWork) -> ChatMessage:
        uow.tasks.save(evolve(plan.task, name="new"))
        said = ChatMessage(chat_session_id=chat.id, role=ChatRole.ASSISTANT, content="Renamed")
        return uow.chat_sessions.post(said)

    change_set_id, message = _changed(begin, plan, change)
    _reverts(begin, change_set_id)
    with begin(write=False) as uow:
        assert uow.chat_sessions.messages(chat.id) == [message]
        assert uow.tasks.get(plan.task.id).name == plan.task.name


def test_what_was_said_cannot_be_brought_back(begin: Begin) -> None:
    """The journal knows no more than the keys of rows that are written once."""
    plan = add_plan(begin)
    with begin() as uow:
        target = {"target_type": ChatTarget.TASK, "target_id": plan.task.id}
        chat = uow.chat_sessions.add(ChatSession(**target, initiative_id=plan.initiative.id))
        said = ChatMessage(chat_session_id=chat.id, role=ChatRole.USER, content="Hello")
        uow.chat_sessions.post(said)
        uow.commit()
    change_set_id, _ = _changed(begin, plan, lambda uow: uow.chat_sessions.remove(chat.id))
    _is_refused(begin, change_set_id, InvalidValue, "no more than the key")


def test_a_secret_cannot_be_brought_back(begin: Begin, space: str) -> None:
    """The journal tells that one changed or went, and not what it was."""
    record = f"record/{space.partition('/')[2]}"
    with begin(space=record) as uow:
        one, other = (
            uow.accounts.add(Account(email="x", credentials=secret))
            for secret in (Secret("s3cr3t"), None)
        )
        uow.commit()
    with begin(space=record) as uow:
        changed = [evolve(each, credentials=Secret("new"), email="y") for each in (one, other)]
        saved = uow.accounts.save_all(changed)
        uow.commit()
    with begin(space=record) as uow:
        uow.accounts.remove(one.id)
        told = uow.tx
        uow.commit()
    with begin(space=record, write=False) as uow:
        lost, found = journal_effects.effects(
            uow.dictionary,
            [
                entry
                for each in (one, other)
                for entry in uow.journal.of_row(ACCOUNTS, each.id)
                if entry.op == "save"
            ],
        )
        (gone,) = journal_effects.effects(uow.dictionary, uow.journal.of_tx(told))
    for effect in (lost, gone):
        with pytest.raises(InvalidValue, match="credentials of account .* keeps no secrets"):
            journal_effects.refuse_unrecoverable(effect)
    journal_effects.refuse_unrecoverable(found)
    back = journal_effects.restore_changed(found, saved[1])
    assert back == evolve(saved[1], email="x", credentials=None)


def test_a_transaction_that_the_journal_does_not_know_is_not_taken_back(begin: Begin) -> None:
    """As of a change set that came from another store."""
    plan = add_plan(begin)
    row = ChangeSet(initiative_id=plan.initiative.id, summary="x", tx="tx_elsewhere")
    change_set = do(begin, lambda uow: uow.change_sets.add(row))
    _is_refused(begin, change_set.id, InvalidValue, "does not tell of 'tx_elsewhere'")


def test_change_sets_that_build_on_one_another_are_taken_back_last_first(
    begin: Begin, store: Store, space: str
) -> None:
    """In the other order the first is refused, because the second hangs on it."""
    plan = add_plan(begin)
    keys = [propose(begin, plan, PAGE) for _ in range(2)]
    before = kept(store, space)
    first, second = (do(begin, proposals.accept, key) for key in keys)
    _is_refused(begin, first.id, InvalidValue, "page '.*' would go with what it added")
    for change_set in (second, first):
        _reverts(begin, change_set.id)
    assert kept(store, space) == before


def test_a_root_page_comes_back_though_another_took_its_place(
    begin: Begin, store: Store, space: str
) -> None:
    """The one that stands in its way came with the same change set and goes first."""
    plan = add_plan(begin)
    page = Page(initiative_id=plan.initiative.id, title="old")
    root = do(begin, lambda uow: uow.pages.add(page))

    def change(uow: UnitOfWork) -> None:
        uow.pages.remove(root.id)
        uow.pages.add(Page(initiative_id=plan.initiative.id, title="new"))

    before = kept(store, space)
    change_set_id, _ = _changed(begin, plan, change)
    with begin() as uow:
        (new,) = uow.pages.page()
        uow.pages.save(evolve(new, title="newer"))
        uow.commit()
    _is_refused(begin, change_set_id, StaleWrite, "title")
    with begin() as uow:
        uow.pages.save(evolve(uow.pages.get(new.id), title="new"))
        uow.commit()
    _reverts(begin, change_set_id)
    assert kept(store, space) == before
