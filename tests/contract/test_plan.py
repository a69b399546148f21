"""Named questions about the plan."""

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import AlreadyExists, NotFound, UnknownReference
from herdbook.domain.journal import Op
from herdbook.domain.plan.model import (
    ChangeSet,
    Errand,
    ErrandStatus,
    Initiative,
    InitiativeStatus,
    Page,
    Phase,
    Proposal,
    ProposalStatus,
    ProposalTarget,
    ReviewComment,
    Task,
    TaskStatus,
)
from herdbook.ports.engine.dictionary import (
    AGENTS,
    CHANGE_SETS,
    ERRANDS,
    INITIATIVE_PROJECTS,
    INITIATIVES,
    PAGES,
    PHASES,
    PROJECTS,
    PROPOSALS,
    REVIEW_COMMENTS,
    TASKS,
)
from tests.cases import for_each
from tests.contract.rows import make
from tests.contract.turns import Begin, by_id, in_turn

PENDING, ACCEPTED, DISMISSED = ProposalStatus


def test_initiatives_by_status_are_those_in_it_oldest_first(begin: Begin) -> None:
    """An initiative is found under its status alone, whatever its id."""
    archived = InitiativeStatus.ARCHIVED
    first, _, third = in_turn(
        begin,
        INITIATIVES,
        [
            Initiative(name="first"),
            Initiative(name="other", status=archived),
            Initiative(name="third"),
        ],
    )
    with begin(write=False) as uow:
        assert uow.initiatives.by_status(InitiativeStatus.ACTIVE) == [first, third]
        assert uow.initiatives.by_status(InitiativeStatus.COMPLETED) == []


def test_initiatives_by_status_come_in_pages(begin: Begin) -> None:
    """A page begins behind the last row of the one before."""
    first, second, third = in_turn(begin, INITIATIVES, [Initiative(name=n) for n in "abc"])
    with begin(write=False) as uow:
        assert uow.initiatives.by_status("active", limit=2) == [first, second]
        assert uow.initiatives.by_status("active", limit=2, after=second) == [third]
        assert uow.initiatives.by_status("active", limit=2, after=third) == []


def test_phases_of_an_initiative_are_its_own_oldest_first(begin: Begin) -> None:
    """Other initiatives' phases are not among them."""
    with begin() as uow:
        here, there, empty = (make(uow, INITIATIVES) for _ in range(3))
        uow.commit()
    first, _, third = in_turn(
        begin,
        PHASES,
        [Phase(initiative_id=each.id, name="x") for each in (here, there, here)],
    )
    with begin(write=False) as uow:
        assert uow.phases.of_initiative(here.id) == [first, third]
        assert uow.phases.of_initiative(empty.id) == []


def test_a_phase_lists_what_it_waits_for_and_what_waits_for_it(begin: Begin) -> None:
    """A dependency is seen from both of its ends and from nowhere else."""
    with begin() as uow:
        build, test, ship, docs = (make(uow, PHASES) for _ in range(4))
        uow.phases.add_dependency(ship.id, build.id)
        uow.phases.add_dependency(ship.id, test.id)
        uow.phases.add_dependency(test.id, build.id)
        uow.commit()
    with begin(write=False) as uow:
        assert by_id(uow.phases.dependencies(ship.id)) == by_id([build, test])
        assert by_id(uow.phases.dependents(build.id)) == by_id([ship, test])
        assert uow.phases.dependencies(build.id) == []
        assert uow.phases.dependents(ship.id) == []
        assert (uow.phases.dependencies(docs.id), uow.phases.dependents(docs.id)) == ([], [])


def test_a_phase_dependency_is_removed_once(begin: Begin) -> None:
    """Removing says whether there was something to remove, and takes nothing else."""
    with begin() as uow:
        build, test, ship = (make(uow, PHASES) for _ in range(3))
        uow.phases.add_dependency(ship.id, build.id)
        uow.phases.add_dependency(ship.id, test.id)
        uow.commit()
    with begin() as uow:
        assert uow.phases.remove_dependency(ship.id, build.id) is True
        assert uow.phases.remove_dependency(ship.id, build.id) is False
        assert uow.phases.remove_dependency(test.id, ship.id) is False
        uow.commit()
    with begin(write=False) as uow:
        assert uow.phases.dependencies(ship.id) == [test]


@for_each("owner", ["initiative_id", "phase_id", "parent_task_id"])
def test_tasks_of_an_owner_come_in_their_order_then_by_age(begin: Begin, owner: str) -> None:
    """Order decides, then creation, and never the id; other owners' tasks are not among them."""
    kind = {"initiative_id": INITIATIVES, "phase_id": PHASES, "parent_task_id": TASKS}[owner]
    with begin() as uow:
        here, there, empty = (make(uow, kind) for _ in range(3))
        uow.commit()
    plan = [(here, 1), (here, 0), (there, 0), (here, 0), (here, -1)]
    rows = [Task(name="x", order=order, **{owner: each.id}) for each, order in plan]
    last, second, _, third, first = in_turn(begin, TASKS, rows)
    with begin(write=False) as uow:
        ask = {
            "initiative_id": uow.tasks.of_initiative,
            "phase_id": uow.tasks.of_phase,
            "parent_task_id": uow.tasks.children,
        }[owner]
        assert ask(here.id) == [first, second, third, last]
        assert ask(empty.id) == []


@pytest.mark.parametrize("owner", ["initiative_id", "phase_id"])
def test_tasks_of_an_owner_come_in_pages(begin: Begin, owner: str) -> None:
    """A page goes on behind a row even where others share its order."""
    with begin() as uow:
        here = make(uow, INITIATIVES if owner == "initiative_id" else PHASES)
        rows = [Task(name="x", order=order, **{owner: here.id}) for order in (0, 0, 0, 5)]
        uow.tasks.add_all(rows)
        uow.commit()
    with begin(write=False) as uow:
        ask = uow.tasks.of_initiative if owner == "initiative_id" else uow.tasks.of_phase
        whole = ask(here.id)
        assert len(whole) == 4
        assert ask(here.id, limit=2) == whole[:2]
        assert ask(here.id, limit=9, after=whole[1]) == whole[2:]


def test_tasks_by_status_are_those_in_it_oldest_first(begin: Begin) -> None:
    """Order and id do not count here, and pages go on where they stopped."""
    blocked = TaskStatus.BLOCKED
    first, _, third = in_turn(
        begin,
        TASKS,
        [
            Task(name="x", status=blocked, order=2),
            Task(name="x"),
            Task(name="x", status=blocked, order=1),
        ],
    )
    with begin(write=False) as uow:
        assert uow.tasks.by_status(blocked) == [first, third]
        assert uow.tasks.by_status(blocked, limit=1) == [first]
        assert uow.tasks.by_status(blocked, limit=1, after=first) == [third]
        assert uow.tasks.by_status(TaskStatus.COMPLETED) == []


def test_tasks_of_an_assignee_are_all_it_holds_or_has_done(begin: Begin) -> None:
    """Nobody else's task and no task in nobody's hands is among them."""
    with begin() as uow:
        here, there, idle = (make(uow, AGENTS) for _ in range(3))
        done, held, _, _ = uow.tasks.add_all(
            [
                Task(name="x", assignee_id=here.id, status=TaskStatus.COMPLETED),
                Task(name="x", assignee_id=here.id, status=TaskStatus.IN_PROGRESS),
                Task(name="x", assignee_id=there.id, status=TaskStatus.IN_PROGRESS),
                Task(name="x"),
            ]
        )
        uow.commit()
    with begin(write=False) as uow:
        assert by_id(uow.tasks.of_assignee(here.id)) == by_id([done, held])
        assert uow.tasks.of_assignee(idle.id) == []


@for_each("status", list(TaskStatus))
def test_only_completed_tasks_leave_nothing_to_do_in_a_phase(
    begin: Begin, status: TaskStatus
) -> None:
    """Whatever is not completed is left to do; an empty phase has nothing left."""
    with begin() as uow:
        phase, empty = make(uow, PHASES), make(uow, PHASES)
        done = TaskStatus.COMPLETED
        uow.tasks.add_all([Task(name="x", phase_id=phase.id, status=s) for s in (done, status)])
        uow.commit()
    with begin(write=False) as uow:
        assert uow.tasks.any_unfinished_in(phase.id) is (status is not done)
        assert uow.tasks.any_unfinished_in(empty.id) is False


def test_a_task_lists_what_it_waits_for_and_what_waits_for_it(begin: Begin) -> None:
    """A dependency is seen from both of its ends, finished or not."""
    with begin() as uow:
        build, test, ship = (make(uow, TASKS) for _ in range(3))
        done = make(uow, TASKS, status=TaskStatus.COMPLETED)
        edge = uow.tasks.add_dependency(ship.id, build.id)
        assert (edge.task_id, edge.depends_on_task_id) == (ship.id, build.id)
        pairs = [(ship.id, done.id), (test.id, build.id)]
        edges = uow.tasks.add_dependencies(pairs)
        assert [(each.task_id, each.depends_on_task_id) for each in edges] == pairs
        assert uow.tasks.add_dependencies([]) == []
        uow.commit()
    with begin(write=False) as uow:
        assert by_id(uow.tasks.dependencies(ship.id)) == by_id([build, done])
        assert by_id(uow.tasks.dependents(build.id)) == by_id([ship, test])
        assert uow.tasks.dependencies(build.id) == []
        assert uow.tasks.dependents(ship.id) == []


def test_a_task_dependency_is_removed_once(begin: Begin) -> None:
    """Removing says whether there was something to remove, and takes nothing else."""
    with begin() as uow:
        build, test, ship = (make(uow, TASKS) for _ in range(3))
        uow.tasks.add_dependencies([(ship.id, build.id), (ship.id, test.id)])
        uow.commit()
    with begin() as uow:
        assert uow.tasks.remove_dependency(ship.id, build.id) is True
        assert uow.tasks.remove_dependency(ship.id, build.id) is False
        assert uow.tasks.remove_dependency(test.id, ship.id) is False
        uow.commit()
    with begin(write=False) as uow:
        assert uow.tasks.dependencies(ship.id) == [test]


def test_a_project_is_found_by_its_name(begin: Begin) -> None:
    """The whole name counts, and nothing like it."""
    with begin() as uow:
        project = make(uow, PROJECTS, name="herdbook")
        uow.commit()
    with begin(write=False) as uow:
        assert uow.projects.by_name("herdbook") == project
        assert uow.projects.by_name("Herdbook") is None
        assert uow.projects.by_name("herd") is None


def test_an_initiative_touches_the_projects_that_were_set(begin: Begin) -> None:
    """Setting replaces all of them, doubles count once, and other initiatives keep theirs."""
    with begin() as uow:
        here, there = make(uow, INITIATIVES), make(uow, INITIATIVES)
        one, two, three = (make(uow, PROJECTS) for _ in range(3))
        uow.projects.set_for_initiative(here.id, [one.id, two.id, one.id])
        uow.projects.set_for_initiative(there.id, [one.id])
        uow.commit()
    with begin() as uow:
        assert by_id(uow.projects.of_initiative(here.id)) == by_id([one, two])
        uow.projects.set_for_initiative(here.id, [three.id, two.id])
        uow.commit()
    with begin() as uow:
        assert by_id(uow.projects.of_initiative(here.id)) == by_id([two, three])
        uow.projects.set_for_initiative(here.id, [])
        uow.commit()
    with begin(write=False) as uow:
        assert uow.projects.of_initiative(here.id) == []
        assert uow.projects.of_initiative(there.id) == [one]


def test_setting_projects_writes_only_the_difference(begin: Begin) -> None:
    """The journal tells of what came and what went, and of nothing that stayed."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        one, two, three = (make(uow, PROJECTS) for _ in range(3))
        uow.projects.set_for_initiative(initiative.id, [one.id, two.id])
        uow.commit()
    with begin() as uow:
        uow.projects.set_for_initiative(initiative.id, [two.id, three.id])
        change = uow.tx
        uow.commit()
    with begin() as uow:
        uow.projects.set_for_initiative(initiative.id, [three.id, two.id])
        nothing = uow.tx
        uow.commit()
    with begin(write=False) as uow:
        gone, new = uow.journal.of_tx(change)
        assert uow.journal.of_tx(nothing) == []
    assert {gone.entity, new.entity} == {INITIATIVE_PROJECTS.name}
    assert (gone.op, gone.before["project_id"]) == (Op.REMOVE, one.id)
    assert (new.op, new.after["project_id"]) == (Op.ADD, three.id)


def test_an_unknown_project_cannot_be_set(begin: Begin) -> None:
    """A set with a project that is not there is refused by name."""
    with begin() as uow:
        initiative, project = make(uow, INITIATIVES), make(uow, PROJECTS)
        with pytest.raises(UnknownReference) as refusal:
            uow.projects.set_for_initiative(initiative.id, [project.id, "prj_missing"])
        assert (refusal.value.field, refusal.value.target_key) == ("project_id", "prj_missing")
        assert uow.projects.of_initiative(initiative.id) == []


def test_the_root_page_is_the_one_without_a_parent(begin: Begin) -> None:
    """Each initiative has its own root, and may have none."""
    with begin() as uow:
        here, there, empty = (make(uow, INITIATIVES) for _ in range(3))
        roots = [uow.pages.add(Page(initiative_id=i.id, title="root")) for i in (here, there)]
        uow.pages.add(Page(initiative_id=here.id, parent_page_id=roots[0].id, title="child"))
        uow.commit()
    with begin(write=False) as uow:
        assert [uow.pages.root(each.id) for each in (here, there, empty)] == [*roots, None]


def test_a_root_page_is_made_once(begin: Begin) -> None:
    """Asking again gives the page that is there, under the title it has."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        made = uow.pages.get_or_create_root(initiative.id, "Notes")
        uow.commit()
    assert (made.title, made.initiative_id, made.parent_page_id) == ("Notes", initiative.id, None)
    with begin() as uow:
        assert uow.pages.get_or_create_root(initiative.id, "Other") == made
        with pytest.raises(AlreadyExists):
            uow.pages.add(Page(initiative_id=initiative.id, title="second"))
        uow.commit()
    with begin(write=False) as uow:
        assert uow.pages.page() == [made]


def test_child_pages_come_in_their_order_then_by_age(begin: Begin) -> None:
    """Only direct children are among them."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES)
        root = uow.pages.get_or_create_root(initiative.id, "root")
        uow.commit()

    def page(parent: str, sort_order: int) -> Page:
        place = {"initiative_id": initiative.id, "parent_page_id": parent}
        return Page(**place, sort_order=sort_order, title="x")

    plan = [(root.id, 2), (root.id, 1), ("pag_98", 0), (root.id, 1)]
    last, first, grandchild, second = in_turn(begin, PAGES, [page(*each) for each in plan])
    with begin(write=False) as uow:
        assert uow.pages.children(root.id) == [first, second, last]
        assert uow.pages.children(first.id) == [grandchild]
        assert uow.pages.children(last.id) == []


def _proposals(begin: Begin) -> tuple[str, str, list[Proposal]]:
    """Two agents, the second without a proposal, and the first one's, oldest first."""
    with begin() as uow:
        agent, other = make(uow, AGENTS), make(uow, AGENTS)
        initiative = make(uow, INITIATIVES)
        uow.commit()
    common = {
        "agent_id": agent.id,
        "initiative_id": initiative.id,
        "target_type": ProposalTarget.TASK,
        "title": "x",
        "summary": "x",
        "content": "x",
    }
    plan = [(PENDING, 1), (PENDING, 0), (ACCEPTED, 0), (PENDING, 0)]
    rows = [Proposal(**common, status=status, sort_order=order) for status, order in plan]
    return agent.id, other.id, in_turn(begin, PROPOSALS, rows)


def test_proposals_of_an_agent_in_a_status_come_in_their_order(begin: Begin) -> None:
    """Order decides, then creation; the count is of the same ones."""
    agent, other, (last, first, accepted, second) = _proposals(begin)
    with begin(write=False) as uow:
        assert uow.proposals.of_agent(agent, PENDING) == [first, second, last]
        assert uow.proposals.of_agent(agent, ACCEPTED) == [accepted]
        assert uow.proposals.of_agent(agent, DISMISSED) == []
        assert uow.proposals.of_agent(other, PENDING) == []
        counts = [uow.proposals.count_of_agent(agent, status) for status in ProposalStatus]
        assert counts == [3, 1, 0]
        assert uow.proposals.count_of_agent(other, PENDING) == 0


def test_all_proposals_of_an_agent_in_a_status_are_moved_at_once(begin: Begin) -> None:
    """Those in another status and other agents' are left alone."""
    agent, other, (last, first, accepted, second) = _proposals(begin)
    with begin() as uow:
        assert uow.proposals.set_status_of_agent(other, DISMISSED) == []
        moved = uow.proposals.set_status_of_agent(agent, DISMISSED)
        back = uow.proposals.set_status_of_agent(agent, PENDING, of=ACCEPTED)
        uow.commit()
    assert [(each.id, each.status, each.version) for each in moved] == [
        (each.id, DISMISSED, 2) for each in (first, second, last)
    ]
    with begin(write=False) as uow:
        assert uow.proposals.of_agent(agent, DISMISSED) == moved
        assert uow.proposals.of_agent(agent, PENDING) == back
        assert [each.id for each in back] == [accepted.id]


def test_change_sets_of_an_initiative_are_its_own_oldest_first(begin: Begin) -> None:
    """Other initiatives' change sets are not among them."""
    with begin() as uow:
        here, there, empty = (make(uow, INITIATIVES) for _ in range(3))
        uow.commit()
    rows = [ChangeSet(initiative_id=i.id, summary="x", tx="tx_1") for i in (here, there, here)]
    first, _, third = in_turn(begin, CHANGE_SETS, rows)
    with begin(write=False) as uow:
        assert uow.change_sets.of_initiative(here.id) == [first, third]
        assert uow.change_sets.of_initiative(empty.id) == []


def _remark(phase_id: str) -> ReviewComment:
    return ReviewComment(
        phase_id=phase_id, file_path="a.py", line_number=1, line_type="added", body="x"
    )


def test_review_comments_of_a_phase_are_its_own_oldest_first(begin: Begin) -> None:
    """Other phases' remarks are not among them."""
    with begin() as uow:
        here, there, empty = (make(uow, PHASES) for _ in range(3))
        uow.commit()
    rows = [_remark(phase.id) for phase in (here, there, here)]
    first, _, third = in_turn(begin, REVIEW_COMMENTS, rows)
    with begin(write=False) as uow:
        assert uow.review_comments.of_phase(here.id) == [first, third]
        assert uow.review_comments.of_phase(empty.id) == []


def test_a_review_comment_is_resolved_and_unresolved(begin: Begin) -> None:
    """Only the flag moves, and a remark that is not there is named."""
    with begin() as uow:
        comment = make(uow, REVIEW_COMMENTS)
        uow.commit()
    with begin() as uow:
        resolved = uow.review_comments.resolve(comment.id)
        uow.commit()
    stamped = {"updated_at": resolved.updated_at, "version": 2}
    assert resolved == evolve(comment, resolved=True, **stamped)
    with begin() as uow:
        unresolved = uow.review_comments.unresolve(comment.id)
        with pytest.raises(NotFound):
            uow.review_comments.resolve("rev_missing")
        uow.commit()
    with begin(write=False) as uow:
        assert uow.review_comments.get(comment.id) == unresolved
    stamped = {"updated_at": unresolved.updated_at, "version": 3}
    assert unresolved == evolve(comment, **stamped)


def test_errands_of_a_project_in_some_statuses_come_oldest_first(begin: Begin) -> None:
    """Age decides across the statuses; without any named, all of them count."""
    with begin() as uow:
        here, there, empty = (make(uow, PROJECTS) for _ in range(3))
        uow.commit()
    active, _, conflict, merged, _ = ErrandStatus
    plan = [(here, merged), (here, active), (there, active), (here, conflict), (here, active)]
    rows = [
        Errand(description="x", branch="b", project_id=project.id, status=status)
        for project, status in plan
    ]
    one, two, three, four, five = in_turn(begin, ERRANDS, rows)
    with begin(write=False) as uow:
        assert uow.errands.of_project(here.id) == [one, two, four, five]
        assert uow.errands.of_project(here.id, [conflict, active]) == [two, four, five]
        assert uow.errands.of_project(here.id, []) == []
        assert uow.errands.of_project(empty.id) == []
        assert uow.errands.by_status(active) == [two, three, five]
        assert uow.errands.by_status(ErrandStatus.ABANDONED) == []


def test_an_errand_keeps_the_id_its_caller_chose(begin: Begin) -> None:
    """The id may be the caller's; one that is not given is made."""
    with begin() as uow:
        project = make(uow, PROJECTS)
        errand = Errand(description="x", branch="b", project_id=project.id)
        mine, made = uow.errands.add_all([evolve(errand, id="fix-typo"), errand])
        uow.commit()
    assert made.id.startswith("err_")
    with begin(write=False) as uow:
        assert uow.errands.get("fix-typo") == mine


def test_many_rows_come_in_the_order_they_were_asked_for(begin: Begin) -> None:
    """Also twice where asked twice; the first that is missing is named."""
    with begin() as uow:
        one, two = (make(uow, TASKS) for _ in range(2))
        uow.commit()
    with begin(write=False) as uow:
        assert uow.tasks.get_many([two.id, one.id, two.id]) == [two, one, two]
        assert uow.tasks.get_many([]) == []
        assert uow.tasks.find("tsk_a") is None
        with pytest.raises(NotFound) as refusal:
            uow.tasks.get_many([one.id, "tsk_b", "tsk_a"])
    assert (refusal.value.entity, refusal.value.key) == ("task", "tsk_b")
