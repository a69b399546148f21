"""What becomes of proposals that are accepted or dismissed."""

from typing import Any

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import CycleRefused, InvalidValue, NotFound, UnknownReference
from herdbook.domain.journal import Actor
from herdbook.domain.plan.model import (
    ChangeSetStatus,
    Page,
    PhaseStatus,
    Priority,
    Proposal,
    ProposalStatus,
    ProposalTarget,
    Task,
    TaskCategory,
    TaskStatus,
)
from herdbook.ports.engine.store import Store
from herdbook.services.plan import proposals
from tests.cases import for_each
from tests.contract.claims import add_tasks, do
from tests.contract.proposed import add_plan, kept, propose
from tests.contract.turns import Begin

PAGE, PHASE, TASK = ProposalTarget
PENDING, ACCEPTED, DISMISSED = ProposalStatus


def _proposal(begin: Begin, key: str) -> Proposal:
    with begin(write=False) as uow:
        return uow.proposals.get(key)


def _one_more(before: set[str], rows: list[Any]) -> Any:
    (row,) = [row for row in rows if row.id not in before]
    return row


def test_a_proposed_page_comes_under_the_root_page(begin: Begin) -> None:
    """Which is made, with the initiative's name, where there is none, and is not made twice."""
    plan = add_plan(begin, name="Barn")
    for number in (1, 2):
        key = propose(begin, plan, PAGE, title=f"Page {number}", sort_order=number)
        do(begin, proposals.accept, key)
    with begin(write=False) as uow:
        root = uow.pages.root(plan.initiative.id)
        pages = uow.pages.children(root.id)
    assert root.title == "Barn"
    assert [(page.title, page.content) for page in pages] == [
        ("Page 1", "Content"),
        ("Page 2", "Content"),
    ]
    assert {page.initiative_id for page in pages} == {plan.initiative.id}


def test_a_proposed_page_comes_under_the_page_it_names(begin: Begin) -> None:
    """And then no root page is made."""
    plan = add_plan(begin)
    with begin() as uow:
        root = uow.pages.add(Page(initiative_id=plan.initiative.id, title="x"))
        under = Page(initiative_id=plan.initiative.id, title="x", parent_page_id=root.id)
        parent = uow.pages.add(under)
        uow.commit()
    key = propose(begin, plan, PAGE, metadata={"parent_page_id": parent.id})
    do(begin, proposals.accept, key)
    with begin(write=False) as uow:
        assert [page.title for page in uow.pages.children(parent.id)] == ["Title"]
        assert uow.pages.children(root.id) == [parent]


def test_a_proposed_phase_becomes_one_of_the_initiative(begin: Begin) -> None:
    """It is pending and waits for the phases its metadata names."""
    plan = add_plan(begin)
    key = propose(begin, plan, PHASE, metadata={"depends_on": [plan.phase.id, plan.phase.id]})
    do(begin, proposals.accept, key)
    with begin(write=False) as uow:
        phase = _one_more({plan.phase.id}, uow.phases.of_initiative(plan.initiative.id))
        assert uow.phases.dependencies(phase.id) == [plan.phase]
    assert (phase.name, phase.content, phase.status) == ("Title", "Content", PhaseStatus.PENDING)


def test_a_proposed_task_stands_where_its_metadata_says(begin: Begin) -> None:
    """In a phase, under a task, behind others, with a priority and a category."""
    plan = add_plan(begin)
    (other,) = add_tasks(begin, Task(name="x"))
    key = propose(
        begin,
        plan,
        TASK,
        sort_order=7,
        metadata={
            "phase_id": plan.phase.id,
            "parent_task_id": plan.task.id,
            "priority": "high",
            "category": "research",
            "depends_on": [other.id],
        },
    )
    do(begin, proposals.accept, key)
    with begin(write=False) as uow:
        (task,) = uow.tasks.children(plan.task.id)
        assert uow.tasks.dependencies(task.id) == [other]
    assert (task.name, task.description, task.order) == ("Title", "Content", 7)
    assert (task.phase_id, task.initiative_id) == (plan.phase.id, plan.initiative.id)
    assert (task.priority, task.category) == (Priority.HIGH, TaskCategory.RESEARCH)
    assert (task.status, task.version) == (TaskStatus.PENDING, 1)


def test_what_is_accepted_carries_the_worktree_and_time_of_its_acceptance(begin: Begin) -> None:
    """As if it had been added by hand."""
    plan = add_plan(begin)
    key = propose(begin, plan, TASK)
    with begin(actor=Actor(worktree="w0123456789a")) as uow:
        now = uow.now
        change_set = proposals.accept(uow, key)
        uow.commit()
    with begin(write=False) as uow:
        task = _one_more({plan.task.id}, uow.tasks.of_initiative(plan.initiative.id))
        stored = uow.change_sets.get(change_set.id)
    assert (task.created_at, task.updated_at, task.worktree_id) == (now, now, "w0123456789a")
    assert stored.worktree_id == "w0123456789a"


@for_each("metadata", [None, {}, {"phase_id": None}], ids=repr)
def test_a_proposed_task_without_a_phase_is_a_loose_one(
    begin: Begin, metadata: dict[str, Any] | None
) -> None:
    """Of the initiative, and of no phase."""
    plan = add_plan(begin)
    do(begin, proposals.accept, propose(begin, plan, TASK, metadata=metadata))
    with begin(write=False) as uow:
        task = _one_more({plan.task.id}, uow.tasks.of_initiative(plan.initiative.id))
    assert (task.initiative_id, task.phase_id) == (plan.initiative.id, None)


@pytest.mark.parametrize("status", [PhaseStatus.COMPLETED, PhaseStatus.PENDING_REVIEW])
def test_a_task_accepted_into_a_finished_phase_takes_it_up_again(
    begin: Begin, status: PhaseStatus
) -> None:
    """The phase is in progress."""
    plan = add_plan(begin, status)
    key = propose(begin, plan, TASK, metadata={"phase_id": plan.phase.id})
    do(begin, proposals.accept, key)
    with begin(write=False) as uow:
        assert uow.phases.get(plan.phase.id).status is PhaseStatus.IN_PROGRESS


def test_a_proposal_with_a_target_changes_its_name_and_text_alone(begin: Begin) -> None:
    """Of a page, a phase and a task; everything else of the row stays as it was."""
    plan = add_plan(begin)
    with begin() as uow:
        page = uow.pages.add(Page(initiative_id=plan.initiative.id, title="x", sort_order=3))
        uow.commit()
    for kind, row in ((PAGE, page), (PHASE, plan.phase), (TASK, plan.task)):
        do(begin, proposals.accept, propose(begin, plan, kind, target_id=row.id))
    with begin(write=False) as uow:
        changed = [
            uow.pages.get(page.id),
            uow.phases.get(plan.phase.id),
            uow.tasks.get(plan.task.id),
        ]
    texts = [
        {"title": "Title", "content": "Content"},
        {"name": "Title", "content": "Content"},
        {"name": "Title", "description": "Content"},
    ]
    rows = page, plan.phase, plan.task
    assert changed == [
        evolve(row, **said, version=2, updated_at=after.updated_at)
        for row, said, after in zip(rows, texts, changed, strict=True)
    ]


def test_a_proposal_may_change_the_priority_and_category_of_a_task(begin: Begin) -> None:
    """These are the two keys that count where there is a target."""
    plan = add_plan(begin)
    said = {"priority": "low", "category": "merge"}
    do(begin, proposals.accept, propose(begin, plan, TASK, target_id=plan.task.id, metadata=said))
    with begin(write=False) as uow:
        task = uow.tasks.get(plan.task.id)
    assert (task.priority, task.category) == (Priority.LOW, TaskCategory.MERGE)


def test_an_accepted_proposal_leaves_a_change_set(begin: Begin) -> None:
    """It names the initiative, the agent and the transaction that the journal tells of."""
    plan = add_plan(begin)
    key = propose(begin, plan, TASK)
    change_set = do(begin, proposals.accept, key)
    with begin(write=False) as uow:
        assert uow.change_sets.of_initiative(plan.initiative.id) == [change_set]
        told = [entry.entity for entry in uow.journal.of_tx(change_set.tx)]
    assert (change_set.agent_id, change_set.summary) == (plan.agent.id, "Summary")
    assert change_set.status is ChangeSetStatus.APPLIED
    assert told == ["tasks", "proposals", "change_sets"]
    assert _proposal(begin, key).status is ACCEPTED


def test_proposals_accepted_at_once_are_one_change_set(begin: Begin) -> None:
    """Summed up by their titles, or as the caller says; of several agents it names none."""
    plan, other = add_plan(begin), add_plan(begin, name="y")
    own = propose(begin, plan, TASK, title="A")
    theirs = propose(begin, plan._replace(agent=other.agent), PAGE, title="B")
    change_set = do(begin, proposals.accept_all, [own, theirs, own])
    assert (change_set.summary, change_set.agent_id) == ("A; B", None)
    more = [propose(begin, plan, TASK), propose(begin, plan, PHASE)]
    change_set = do(begin, proposals.accept_all, more, summary="So be it")
    assert (change_set.summary, change_set.agent_id) == ("So be it", plan.agent.id)


def test_proposals_accepted_at_once_may_build_on_one_another(begin: Begin) -> None:
    """Where metadata takes an id, it may be that of a proposal that comes along, in any order."""
    plan = add_plan(begin)
    phase = propose(begin, plan, PHASE, title="phase")
    parent = propose(begin, plan, TASK, title="parent", metadata={"phase_id": phase})
    said = {"phase_id": phase, "parent_task_id": parent}
    child = propose(begin, plan, TASK, title="child", metadata=said)
    after = propose(begin, plan, TASK, title="after", metadata={"depends_on": [parent]})
    page = propose(begin, plan, PAGE, title="page")
    below = propose(begin, plan, PAGE, title="below", metadata={"parent_page_id": page})
    do(begin, proposals.accept_all, [below, after, child, parent, phase, page])
    with begin(write=False) as uow:
        made = _one_more({plan.phase.id}, uow.phases.of_initiative(plan.initiative.id))
        tasks = {task.name: task for task in uow.tasks.of_initiative(plan.initiative.id)}
        assert {task.name for task in uow.tasks.of_phase(made.id)} == {"parent", "child"}
        assert tasks["child"].parent_task_id == tasks["parent"].id
        assert uow.tasks.dependencies(tasks["after"].id) == [tasks["parent"]]
        (top,) = uow.pages.children(uow.pages.root(plan.initiative.id).id)
        assert [each.title for each in uow.pages.children(top.id)] == ["below"]


@for_each("status", [ACCEPTED, DISMISSED])
@for_each("decide", [proposals.accept, proposals.dismiss], ids=["accept", "dismiss"])
def test_what_is_decided_is_not_decided_again(
    begin: Begin, store: Store, space: str, status: ProposalStatus, decide: Any
) -> None:
    """InvalidValue says what it is already, and nothing is written."""
    plan = add_plan(begin)
    key = propose(begin, plan, TASK, status=status)
    before = kept(store, space)
    with pytest.raises(InvalidValue, match=f"status: proposal '{key}' is {status} already"):
        do(begin, decide, key)
    assert kept(store, space) == before


REFUSED = {
    "an unknown key": (TASK, {"colour": "red"}, InvalidValue, "colour .* is not known"),
    "a key of another type": (PAGE, {"phase_id": "x"}, InvalidValue, "a new page takes"),
    "no such priority": (TASK, {"priority": "huge"}, InvalidValue, "priority: 'huge'"),
    "no id": (TASK, {"phase_id": 7}, InvalidValue, "metadata.phase_id: must be an id, not int"),
    "no list": (TASK, {"depends_on": "x"}, InvalidValue, "must be a list of ids"),
    "no list of ids": (PHASE, {"depends_on": [None]}, InvalidValue, "must be an id, not NoneType"),
    "an unknown phase": (TASK, {"phase_id": "x"}, UnknownReference, "phase 'x', which does not"),
    "an unknown task": (TASK, {"depends_on": ["x"]}, UnknownReference, "task 'x', which does not"),
    "an unknown page": (PAGE, {"parent_page_id": "x"}, UnknownReference, "page 'x', which does"),
}


@for_each("case", REFUSED)
def test_metadata_that_nobody_understands_is_refused(
    begin: Begin, store: Store, space: str, case: str
) -> None:
    """With a sentence about it, and then nothing of what comes along is written either.

    That holds even where the unit of work goes on and is committed.
    """
    target_type, metadata, error, sentence = REFUSED[case]
    plan = add_plan(begin)
    good = propose(begin, plan, PAGE)
    bad = propose(begin, plan, target_type, metadata=metadata)
    before = kept(store, space)
    with begin() as uow:
        with pytest.raises(error, match=sentence):
            proposals.accept_all(uow, [good, bad])
        uow.commit()
    assert kept(store, space) == before


def test_metadata_about_the_place_of_a_target_is_refused(begin: Begin) -> None:
    """A proposal changes a row where it stands."""
    plan = add_plan(begin)
    said = {"phase_id": plan.phase.id}
    key = propose(begin, plan, TASK, target_id=plan.task.id, metadata=said)
    with pytest.raises(InvalidValue, match="phase_id .* a task takes priority, category"):
        do(begin, proposals.accept, key)


def test_a_cycle_among_what_is_proposed_is_refused_whole(
    begin: Begin, store: Store, space: str
) -> None:
    """Of tasks, of phases and of pages, and nothing is written even if somebody commits."""
    plan = add_plan(begin)
    loops = [
        [propose(begin, plan, TASK, metadata={"depends_on": [plan.task.id]})],
        [propose(begin, plan, PHASE), propose(begin, plan, PHASE)],
        [propose(begin, plan, PAGE), propose(begin, plan, PAGE)],
    ]
    said = [
        [{"depends_on": [plan.task.id], "parent_task_id": plan.task.id}],
        [{"depends_on": [loops[1][1]]}, {"depends_on": [loops[1][0]]}],
        [{"parent_page_id": loops[2][1]}, {"parent_page_id": loops[2][0]}],
    ]
    with begin() as uow:
        for keys, metadata in zip(loops, said, strict=True):
            for key, each in zip(keys, metadata, strict=True):
                uow.proposals.save(evolve(uow.proposals.get(key), metadata=each))
        uow.commit()
    before = kept(store, space)
    for keys in loops:
        with begin() as uow:
            with pytest.raises(CycleRefused):
                proposals.accept_all(uow, keys)
            uow.commit()
    assert kept(store, space) == before


@for_each("target_type", ProposalTarget)
def test_a_target_that_is_gone_is_named(begin: Begin, target_type: ProposalTarget) -> None:
    """UnknownReference: there is nothing left to change."""
    plan = add_plan(begin)
    key = propose(begin, plan, target_type, target_id="gone")
    sentence = f"target_id of proposal '{key}' names {target_type} 'gone'"
    with pytest.raises(UnknownReference, match=sentence):
        do(begin, proposals.accept, key)


@for_each("target_type", ProposalTarget)
def test_a_proposal_touches_its_own_initiative_only(
    begin: Begin, target_type: ProposalTarget
) -> None:
    """A target, a phase or a parent of another one is refused, and its name is said."""
    plan, other = add_plan(begin), add_plan(begin, name="y")
    with begin() as uow:
        page = uow.pages.add(Page(initiative_id=other.initiative.id, title="x"))
        uow.commit()
    row = {PAGE: page, PHASE: other.phase, TASK: other.task}[target_type]
    field = {PAGE: "parent_page_id", PHASE: "phase_id", TASK: "parent_task_id"}[target_type]
    keys = [
        propose(begin, plan, target_type, target_id=row.id),
        propose(begin, plan, PAGE if target_type is PAGE else TASK, metadata={field: row.id}),
    ]
    for key in keys:
        with pytest.raises(InvalidValue, match=f"is of initiative '{other.initiative.id}'"):
            do(begin, proposals.accept, key)


def test_proposals_of_two_initiatives_are_not_accepted_at_once(begin: Begin) -> None:
    """Because a change set is of one."""
    plan, other = add_plan(begin), add_plan(begin, name="y")
    keys = [propose(begin, plan, TASK), propose(begin, other, TASK)]
    with pytest.raises(InvalidValue, match="several initiatives"):
        do(begin, proposals.accept_all, keys)


def test_two_proposals_for_one_target_are_not_accepted_at_once(begin: Begin) -> None:
    """The second would silently undo the first."""
    plan = add_plan(begin)
    keys = [propose(begin, plan, TASK, target_id=plan.task.id) for _ in range(2)]
    with pytest.raises(InvalidValue, match="change the same task"):
        do(begin, proposals.accept_all, keys)


def test_a_transaction_is_one_change_set(begin: Begin) -> None:
    """Accepting once more in it is refused: reverting one would take back the other."""
    plan = add_plan(begin)
    first, second = propose(begin, plan, TASK), propose(begin, plan, TASK)
    with begin() as uow:
        change_set = proposals.accept(uow, first)
        with pytest.raises(InvalidValue, match=f"is change set '{change_set.id}' already"):
            proposals.accept(uow, second)
        uow.commit()
    assert [_proposal(begin, key).status for key in (first, second)] == [ACCEPTED, PENDING]


def test_nothing_is_accepted_where_nothing_is_named(begin: Begin) -> None:
    """InvalidValue for no proposal at all, NotFound for one that is not there."""
    with pytest.raises(InvalidValue, match="at least one"):
        do(begin, proposals.accept_all, [])
    with pytest.raises(NotFound):
        do(begin, proposals.accept, "nothing")


def test_a_dismissed_proposal_changes_nothing_else(begin: Begin, store: Store, space: str) -> None:
    """It is dismissed, and the plan is as it was."""
    plan = add_plan(begin)
    key = propose(begin, plan, TASK)
    before = kept(store, space)
    assert do(begin, proposals.dismiss, key).status is DISMISSED
    after = kept(store, space)
    assert after.pop("proposals")[key]["status"] is DISMISSED
    before.pop("proposals")
    assert after == before


def test_all_that_an_agent_left_open_is_dismissed_at_once(begin: Begin) -> None:
    """What was decided stays so, and so does what others proposed."""
    plan, other = add_plan(begin), add_plan(begin, name="y")
    pending = [propose(begin, plan, TASK, sort_order=n) for n in range(2)]
    accepted = propose(begin, plan, TASK, status=ACCEPTED)
    theirs = propose(begin, other, TASK)
    dismissed = do(begin, proposals.dismiss_all, agent_id=plan.agent.id)
    assert [each.id for each in dismissed] == pending
    keys = [*pending, accepted, theirs]
    statuses = [_proposal(begin, key).status for key in keys]
    assert statuses == [DISMISSED, DISMISSED, ACCEPTED, PENDING]
    assert do(begin, proposals.dismiss_all, agent_id=plan.agent.id) == []
    with pytest.raises(NotFound):
        do(begin, proposals.dismiss_all, agent_id="nobody")
