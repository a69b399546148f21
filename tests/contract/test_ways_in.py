"""The questions and deeds of the plan and of talk that repositories offer, as use cases."""

import pytest

from herdbook.domain.conversation import MessageStatus
from herdbook.domain.errors import AlreadyExists, CycleRefused, InvalidValue, NotFound
from herdbook.domain.plan.model import ProposalStatus, ProposalTarget
from herdbook.ports.engine.dictionary import (
    INITIATIVE_PROJECTS,
    INITIATIVES,
    PHASES,
    PROJECTS,
    TASKS,
)
from herdbook.ports.engine.query import find
from herdbook.services import crud, messaging
from herdbook.services.agents import logs
from herdbook.services.plan import dependencies, errands, initiatives, pages, projects, proposals
from tests.contract.claims import add_agents, do
from tests.contract.proposed import add_plan, propose
from tests.contract.rows import make
from tests.contract.turns import Begin

TASK = ProposalTarget.TASK


def test_the_projects_of_an_initiative_are_set_by_difference(begin: Begin) -> None:
    """A link that stays is the same row; the journal has one link less and one more."""
    with begin() as uow:
        initiative = make(uow, INITIATIVES).id
        app, site, tool = (make(uow, PROJECTS).id for _ in range(3))
        uow.commit()
    do(begin, projects.set_projects, initiative, [app, site, app])
    with begin(write=False) as uow:
        before = {link.project_id: link for link in uow.select(find(INITIATIVE_PROJECTS))}
        seq = uow.journal.last()
    touched = do(begin, projects.set_projects, initiative, [site, tool])
    assert {each.id for each in touched} == {site, tool}
    with begin(write=False) as uow:
        after = {link.project_id: link for link in uow.select(find(INITIATIVE_PROJECTS))}
        ops = [entry.op for entry in uow.journal.since(seq)]
        assert projects.projects_of(uow, initiative) == touched
    assert after[site] == before[site]
    assert sorted(ops) == ["add", "remove"]
    assert do(begin, projects.set_projects, initiative, none=True) == []
    for given in ({}, {"project_ids": [app], "none": True}):
        with pytest.raises(InvalidValue, match="project_ids"):
            do(begin, projects.set_projects, initiative, **given)


def test_dependencies_are_told_both_ways(begin: Begin) -> None:
    """Of tasks and of phases."""
    with begin() as uow:
        first, second = make(uow, TASKS).id, make(uow, TASKS).id
        schema, screens = make(uow, PHASES).id, make(uow, PHASES).id
        dependencies.add_task_dependencies(uow, second, [first])
        dependencies.add_phase_dependencies(uow, screens, [schema])
        uow.commit()
    with begin(write=False) as uow:
        found = [
            dependencies.task_dependencies(uow, second),
            dependencies.task_dependents(uow, first),
            dependencies.phase_dependencies(uow, screens),
            dependencies.phase_dependents(uow, schema),
        ]
        assert [[row.id for row in rows] for rows in found] == [
            [first],
            [second],
            [schema],
            [screens],
        ]
        assert dependencies.task_dependents(uow, second) == []
        assert dependencies.phase_dependents(uow, screens) == []


def test_the_root_page_is_made_once(begin: Begin) -> None:
    """With the initiative's name unless a title is given; a second title changes nothing."""
    with begin() as uow:
        initiative, other = make(uow, INITIATIVES), make(uow, INITIATIVES)
        uow.commit()
    root = do(begin, pages.root_page, initiative.id)
    assert (root.title, root.parent_page_id) == (initiative.name, None)
    assert do(begin, pages.root_page, initiative.id, title="x") == root
    assert do(begin, pages.root_page, other.id, title="Notes").title == "Notes"
    below = {"title": "below", "initiative_id": initiative.id, "parent_page_id": root.id}
    with begin() as uow:
        page = crud.add(uow, uow.pages.kind, below)
        with pytest.raises(CycleRefused):
            crud.change(uow, uow.pages.kind, root.id, {"parent_page_id": page.id})


def test_an_agents_proposals_are_decided_and_counted_together(begin: Begin) -> None:
    """Those that are named, or all that are pending; never both, never none."""
    plan = add_plan(begin)
    keys = [propose(begin, plan, TASK, title=f"t{n}", sort_order=n) for n in range(5)]
    agent = plan.agent.id
    dismissed = do(begin, proposals.dismiss_all, keys[:2])
    assert [each.status for each in dismissed] == [ProposalStatus.DISMISSED] * 2
    with pytest.raises(InvalidValue, match="dismissed already"):
        do(begin, proposals.dismiss_all, [keys[2], keys[0]])
    with begin(write=False) as uow:
        assert proposals.count_of_agent(uow, agent) == {
            "pending": 3,
            "accepted": 0,
            "dismissed": 2,
        }
    change_set = do(begin, proposals.accept_all, agent_id=agent)
    assert (change_set.agent_id, change_set.summary) == (agent, "t2; t3; t4")
    with begin(write=False) as uow:
        assert proposals.count_of_agent(uow, agent) == {
            "pending": 0,
            "accepted": 3,
            "dismissed": 2,
        }
    with pytest.raises(InvalidValue, match="no pending proposal"):
        do(begin, proposals.accept_all, agent_id=agent)
    for decide in (proposals.accept_all, proposals.dismiss_all):
        for given in ({}, {"proposal_ids": keys, "agent_id": agent}):
            with pytest.raises(InvalidValue, match="proposal_ids"):
                do(begin, decide, **given)


def test_a_chat_tells_which_change_set_came_of_it(begin: Begin) -> None:
    """The open chat of the proposing agent in that initiative, and no other chat."""
    plan, other = add_plan(begin), add_plan(begin, name="y")
    with begin() as uow:
        phases = [make(uow, PHASES, initiative_id=each.initiative.id).id for each in (plan, other)]
        uow.commit()
    chats = [
        do(begin, messaging.open_chat, "phase", phase, agent_id=plan.agent.id) for phase in phases
    ]
    change_set = do(begin, proposals.accept, propose(begin, plan, TASK))
    with begin(write=False) as uow:
        (message,) = messaging.chat_history(uow, chats[0].id)
        assert messaging.chat_history(uow, chats[1].id) == []
    assert (message.role, message.change_set_id) == ("system", change_set.id)
    do(begin, messaging.close_chat, chats[0].id)
    do(begin, proposals.accept, propose(begin, plan, TASK))
    with begin(write=False) as uow:
        assert messaging.chat_history(uow, chats[0].id) == [message]


def test_a_chat_is_opened_by_the_beginning_of_an_id(begin: Begin) -> None:
    """About a phase as about a task, with the type as text."""
    with begin() as uow:
        phase = make(uow, PHASES, id="pha_abcdef")
        task = make(uow, TASKS, id="tsk_abcdef", phase_id=phase.id)
        uow.commit()
    for target_type, target in (("phase", phase), ("task", task)):
        chat = do(begin, messaging.open_chat, target_type, "abcd")
        assert (chat.target_type, chat.target_id) == (target_type, target.id)
        assert chat.initiative_id == phase.initiative_id
        assert do(begin, messaging.open_chat, target_type, target.id) == chat
    with pytest.raises(NotFound):
        do(begin, messaging.open_chat, "task", phase.id)


def test_a_question_about_a_task_is_about_its_phase_and_initiative(begin: Begin) -> None:
    """Unless something else is said; a task without a phase tells its initiative itself."""
    one, other = add_agents(begin, 2)
    with begin() as uow:
        phase = make(uow, PHASES)
        within = make(uow, TASKS, phase_id=phase.id)
        alone = make(uow, TASKS, initiative_id=phase.initiative_id)
        loose = make(uow, TASKS)
        uow.commit()

    def context(**about: str) -> tuple[str | None, ...]:
        asked = do(begin, messaging.ask, one, other, "?", **about)
        return asked.initiative_id, asked.phase_id, asked.task_id

    initiative = phase.initiative_id
    assert context(task_id=within.id) == (initiative, phase.id, within.id)
    assert context(task_id=alone.id) == (initiative, None, alone.id)
    assert context(phase_id=phase.id) == (initiative, phase.id, None)
    assert context(task_id=loose.id) == (None, None, loose.id)
    assert context(task_id=loose.id, phase_id=phase.id) == (initiative, phase.id, loose.id)
    with begin(write=False) as uow:
        kind = uow.conversations.kind
        assert len(crud.list_rows(uow, kind, {"initiative_id": initiative}, limit=9)) == 4
        assert len(crud.list_rows(uow, kind, {"phase_id": phase.id}, limit=9)) == 3
        names = [uow.agents.get(each).name for each in (one, other)]
        assert messaging.count_questions(uow, [other, one]) == {names[1]: 0, names[0]: 5}


def test_what_still_needs_a_response_is_one_question(begin: Begin) -> None:
    """Read or not, by whom it is asked of, in pages; what was answered is not among it."""
    one, other = add_agents(begin, 2)
    asked = [
        do(begin, messaging.send, str(n), recipient_id=to, requires_response=True)
        for n, to in enumerate((one, other, None, one))
    ]
    do(begin, messaging.send, "just so", recipient_id=one)
    do(begin, messaging.read, asked[0].id)
    with begin(write=False) as uow:
        statuses = [each.status for each in messaging.unanswered_messages(uow)]
        assert statuses == [MessageStatus.READ, *[MessageStatus.PENDING] * 3]
        assert [each.content for each in messaging.unanswered_messages(uow, one)] == ["0", "3"]
        assert [each.content for each in messaging.unanswered_messages(uow, one, limit=1)] == ["0"]
        page = messaging.unanswered_messages(uow, limit=2, after=asked[1].id)
        assert [each.content for each in page] == ["2", "3"]
    do(begin, messaging.reply, asked[0].id, "yes", sender_id=one)
    with begin(write=False) as uow:
        assert [each.content for each in messaging.unanswered_messages(uow, one)] == ["3"]


def test_the_log_of_a_removed_agent_is_found_and_removed(begin: Begin) -> None:
    """By the name it had, by its id and by the beginning of that."""
    (living,) = add_agents(begin)
    with begin() as uow:
        gone = make(uow, uow.agents.kind, id="agt_feed01", name="emu").id
        twin = make(uow, uow.agents.kind, id="agt_beef02", name="auk").id
        uow.commit()
    for agent in (gone, gone, twin, living):
        do(begin, logs.append, agent, "x")
    do(begin, logs.append, gone, "y", 2)
    with begin() as uow:
        uow.agents.remove_all([gone, twin])
        uow.commit()
    with begin(write=False) as uow:
        for text in ("emu", "agt_feed01", "agt_feed", "feed0"):
            assert logs.find_log(uow, text) == gone
        found = {each.agent_id: each for each in logs.summarize_logs(uow)}
        assert found[gone] == ("agt_feed01", "emu", 2, True)
        assert (found[living].sessions, found[living].removed) == (1, False)
        assert [each.agent_id for each in logs.summarize_logs(uow, ["auk", "emu"])] == [twin, gone]
        for text in ("fee", "nobody", "a\0b", ""):
            with pytest.raises(NotFound):
                logs.find_log(uow, text)
    assert do(begin, logs.remove, "emu") == {"removed": 3}
    assert do(begin, logs.remove, twin) == {"removed": 1}
    with begin(write=False) as uow:
        assert [each.agent_id for each in logs.summarize_logs(uow)] == [living]


def test_an_agents_name_means_the_living_one_and_else_must_be_clear(begin: Begin) -> None:
    """Two removed agents of one name are told apart by their ids."""
    ids = ["agt_0001", "agt_0002", "agt_0003"]
    for agent in ids:
        with begin() as uow:
            make(uow, uow.agents.kind, id=agent, name="emu")
            logs.append(uow, agent, agent)
            if agent != ids[-1]:
                uow.agents.remove(agent)
            uow.commit()
    with begin() as uow:
        assert logs.find_log(uow, "emu") == ids[-1]
        uow.agents.remove(ids[-1])
        with pytest.raises(InvalidValue, match="agt_0001, agt_0002, agt_0003"):
            logs.find_log(uow, "emu")


def test_an_errands_id_is_used_once(begin: Begin) -> None:
    """A second errand with it is refused."""
    with begin() as uow:
        project = make(uow, PROJECTS, default_branch="trunk").id
        errand = errands.start(uow, project, "fix", "typo", errand_id="my-1")
        assert (errand.id, errand.base_branch) == ("my-1", "trunk")
        with pytest.raises(AlreadyExists):
            errands.start(uow, project, "fix", "typo", errand_id="my-1")


def test_an_initiative_has_a_branch_of_its_own(begin: Begin) -> None:
    """Named after it, unless one is given; two of one name have two."""
    first, second = (do(begin, initiatives.begin_initiative, "User auth") for _ in range(2))
    given = do(begin, initiatives.begin_initiative, "User auth", branch="main")
    branches = [each.branch for each in (first, second, given)]
    assert branches == ["herd/user-auth", "herd/user-auth-2", "main"]
