"""What can be done with rows of any kind, on every store."""

from collections.abc import Callable
from typing import Any

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.errors import ConfirmationNeeded, CycleRefused, InvalidValue, NotFound
from herdbook.domain.plan.model import Initiative, Phase, Task
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, PHASES, PROJECTS, TASKS
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import crud, removal
from herdbook.services.plan import claims, dependencies

Begin = Callable[..., Any]


@pytest.fixture
def plan(begin: Begin) -> dict[str, str]:
    """An initiative with a phase and three tasks, with ids that can be told apart."""
    with begin() as uow:
        uow.initiatives.add(Initiative(id="ini_aaaa1", name="login"))
        uow.phases.add(Phase(id="pha_aaaa1", name="schema", initiative_id="ini_aaaa1"))
        uow.tasks.add_all(
            [
                Task(id="tsk_aaaa1", name="one", initiative_id="ini_aaaa1"),
                Task(id="tsk_aaaa2", name="two", phase_id="pha_aaaa1", priority="high"),
                Task(id="tsk_bbbb1", name="three", initiative_id="ini_aaaa1", priority="high"),
            ]
        )
        uow.agents.add(Agent(id="agt_aaaa1", name="otter"))
        uow.commit()
    return {"one": "tsk_aaaa1", "two": "tsk_aaaa2", "three": "tsk_bbbb1"}


@pytest.mark.parametrize("text", ["tsk_bbbb1", "tsk_bbbb", "bbbb1", "bbbb"])
@pytest.mark.usefixtures("plan")
def test_a_row_is_named_by_its_id_or_a_unique_beginning_of_it(begin: Begin, text: str) -> None:
    """With or without the letters of its kind."""
    with begin(write=False) as uow:
        assert crud.find_row(uow, TASKS, text).name == "three"


@pytest.mark.usefixtures("plan")
def test_a_row_is_named_by_its_name_as_long_as_that_is_unique(begin: Begin) -> None:
    """Also by one that could be the beginning of an id; of two rows, none is guessed."""
    with begin() as uow:
        assert crud.find_row(uow, AGENTS, "otter").id == "agt_aaaa1"
        assert crud.find_row(uow, TASKS, "one").id == "tsk_aaaa1"
        with pytest.raises(NotFound):
            crud.find_row(uow, TASKS, "nobody")
        with pytest.raises(NotFound):
            crud.find_row(uow, TASKS, "x" * 600)
        uow.tasks.add_all([Task(id="tsk_cccc1", name="one"), Task(id="tsk_cccc2", name="bbbb")])
        with pytest.raises(InvalidValue, match="tsk_aaaa1, tsk_cccc1"):
            crud.find_row(uow, TASKS, "one")
        with pytest.raises(InvalidValue, match="tsk_cccc2, tsk_bbbb1"):
            crud.find_row(uow, TASKS, "bbbb")  # the name of one, the beginning of another
        assert crud.find_row(uow, TASKS, "cccc2").name == "bbbb"


@pytest.mark.usefixtures("plan")
def test_an_ambiguous_beginning_is_refused_with_what_it_could_be(begin: Begin) -> None:
    """Nothing is guessed."""
    with begin(write=False) as uow, pytest.raises(InvalidValue, match="tsk_aaaa1, tsk_aaaa2"):
        crud.find_row(uow, TASKS, "aaaa")


@pytest.mark.parametrize("text", ["", "tsk_", "bbb", "zzzz", "ini_aaaa1", "a\0b", "x" * 200, "%"])
@pytest.mark.usefixtures("plan")
def test_what_names_nothing_is_not_found(begin: Begin, text: str) -> None:
    """Too short, unknown, of another kind, or no id at all."""
    with begin(write=False) as uow, pytest.raises(NotFound):
        crud.find_row(uow, TASKS, text)


@pytest.mark.usefixtures("plan")
def test_what_is_added_names_others_by_their_beginnings(begin: Begin) -> None:
    """Whole ids are what is kept."""
    with begin() as uow:
        task = crud.add(uow, TASKS, {"name": "four", "phase_id": "aaaa", "priority": "low"})
        uow.commit()
    assert (task.phase_id, task.priority.value, task.version) == ("pha_aaaa1", "low", 1)
    with begin() as uow, pytest.raises(NotFound):
        crud.add(uow, TASKS, {"name": "four", "phase_id": "zzzz"})


@pytest.mark.usefixtures("plan")
def test_a_change_is_written_once(begin: Begin) -> None:
    """What is so already is not saved again."""
    with begin() as uow:
        changed = crud.change(uow, TASKS, "bbbb", {"name": "new", "initiative_id": None})
        assert (changed.name, changed.initiative_id, changed.version) == ("new", None, 2)
        assert crud.change(uow, TASKS, "bbbb", {"name": "new"}).version == 2
        with pytest.raises(InvalidValue, match="^priority: "):
            crud.change(uow, TASKS, "bbbb", {"priority": "urgent"})


@pytest.mark.usefixtures("plan")
def test_rows_are_removed_all_or_none(begin: Begin) -> None:
    """With what goes with them."""
    with begin() as uow:
        with pytest.raises(NotFound):
            removal.remove(uow, TASKS, ["bbbb", "zzzz"], yes=True)
        assert len(uow.tasks.page()) == 3
        (gone,), _ = removal.remove(uow, INITIATIVES, ["ini_aaaa", "ini_aaaa1"], yes=True)
        assert gone.name == "login"
        assert uow.tasks.page() == []
        assert uow.phases.page() == []


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ({}, ["two", "one", "three"]),  # the order of the plan: phases before what has none
        ({"initiative_id": "aaaa"}, ["two", "one", "three"]),
        ({"initiative_id": "aaaa", "priority": "high"}, ["two", "three"]),
        ({"priority": "high"}, ["two", "three"]),
        ({"phase_id": "aaaa", "status": "pending", "priority": "high"}, ["two"]),
        ({"status": "completed"}, []),
        ({"labels": "db"}, []),
    ],
)
@pytest.mark.usefixtures("plan")
def test_rows_are_listed_by_any_of_their_fields(
    begin: Begin, where: dict[str, str], names: list[str]
) -> None:
    """Whether a lookup answers or every row is looked at."""
    with begin(write=False) as uow:
        assert [row.name for row in crud.list_rows(uow, TASKS, where, limit=10)] == names


def test_a_list_comes_in_pages(begin: Begin) -> None:
    """Each begins behind the last row of the one before, whatever is filtered out."""
    with begin() as uow:
        uow.tasks.add_all(
            [Task(name=str(n), priority="high" if n % 3 else "low") for n in range(50)]
        )
        uow.commit()
    with begin(write=False) as uow:
        seen: list[str] = []
        after = None
        while page := crud.list_rows(uow, TASKS, {"priority": "high"}, limit=4, after=after):
            assert len(page) <= 4
            seen += [row.name for row in page]
            after = page[-1].id
    assert sorted(seen, key=int) == [str(n) for n in range(50) if n % 3]
    with begin(write=False) as uow, pytest.raises(InvalidValue):
        crud.list_rows(uow, PROJECTS, {}, limit=0)


def test_a_task_waits_for_others(begin: Begin, plan: dict[str, str]) -> None:
    """Saying it twice changes nothing, a cycle is refused, and it can be taken back."""
    one, two, three = plan.values()
    with begin() as uow:
        dependencies.add_task_dependencies(uow, three, [one, two, one])
        dependencies.add_task_dependencies(uow, three, [one])
        waits_for = dependencies.task_dependencies(uow, three)
        assert {task.id for task in waits_for} == {one, two}
        with pytest.raises(CycleRefused):
            dependencies.add_task_dependencies(uow, one, [three])
        dependencies.remove_task_dependencies(uow, three, [one])
        assert [task.id for task in dependencies.task_dependencies(uow, three)] == [two]
        with pytest.raises(NotFound):
            dependencies.remove_task_dependencies(uow, three, [one])


@pytest.mark.usefixtures("plan")
def test_a_phase_waits_for_others(begin: Begin) -> None:
    """As tasks do."""
    with begin() as uow:
        other = crud.add(uow, PHASES, {"name": "ui", "initiative_id": "aaaa"})
        dependencies.add_phase_dependencies(uow, other.id, ["pha_aaaa1", "pha_aaaa1"])
        dependencies.add_phase_dependencies(uow, other.id, ["pha_aaaa1"])
        assert [phase.name for phase in uow.phases.dependencies(other.id)] == ["schema"]
        with pytest.raises(CycleRefused):
            dependencies.add_phase_dependencies(uow, "pha_aaaa1", [other.id])
        dependencies.remove_phase_dependencies(uow, other.id, ["pha_aaaa1"])
        with pytest.raises(NotFound):
            dependencies.remove_phase_dependencies(uow, other.id, ["pha_aaaa1"])


def test_a_phase_follows_what_is_done_to_its_tasks_by_hand(begin: Begin) -> None:
    """It is taken up again by a new task, and ends with its last one."""
    with begin() as uow:
        initiative = uow.initiatives.add(Initiative(name="login", execution_mode="yolo"))
        phase = uow.phases.add(
            Phase(name="schema", initiative_id=initiative.id, status="completed")
        )
        other = crud.add(uow, TASKS, {"name": "other"})
        uow.commit()

    def status_after(use_case: Callable[..., Any], *args: Any) -> tuple[Any, str]:
        with begin() as uow:
            row = use_case(uow, TASKS, *args)
            uow.commit()
        with begin(write=False) as uow:
            return row, uow.phases.get(phase.id).status

    task, status = status_after(crud.add, {"name": "late", "phase_id": phase.id})
    assert status == "in_progress"
    for values, expected in (("completed", "completed"), ("pending", "in_progress")):
        assert status_after(crud.change, task.id, {"status": values})[1] == expected
    assert status_after(crud.change, task.id, {"status": "completed"})[1] == "completed"
    assert status_after(crud.change, other.id, {"phase_id": phase.id})[1] == "in_progress"
    with begin() as uow:
        assert find_differences(uow) == []


def test_a_list_knows_how_many_rows_there_are(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a lookup counts them, and where rows are compared up to a bound; else that more are."""
    with begin() as uow:
        uow.tasks.add_all([Task(name=str(n), labels=["a"] if n % 2 else None) for n in range(9)])
        uow.commit()
    with begin(write=False) as uow:
        page = crud.list_rows(uow, TASKS, {}, limit=4)
        assert (len(page), page.total, page.more) == (4, 9, True)
        assert page.footer.startswith("4 of 9;")
        eighth = crud.list_rows(uow, TASKS, {}, limit=8)[-1].id
        assert len(crud.list_rows(uow, TASKS, {}, limit=4, after=eighth)) == 1
        whole = crud.list_rows(uow, TASKS, {}, limit=9)
        assert (whole.total, whole.more, whole.footer) == (9, False, "")
        labelled = crud.list_rows(uow, TASKS, {"labels": "a"}, limit=3)
        assert (len(labelled), labelled.total, labelled.more) == (3, 4, True)
        monkeypatch.setattr(crud, "MOST_COUNTED", 2)
        first = crud.list_rows(uow, TASKS, {"labels": "a"}, limit=1)
        assert (first.total, first.more) == (None, True)
        assert first.footer.startswith("1 of more than 1;")
        assert not crud.list_rows(uow, TASKS, {"labels": "a"}, limit=4).more
        assert len(crud.list_rows(uow, TASKS, {"labels": ["a"]}, limit=9)) == 4


def test_a_removal_that_takes_more_along_is_confirmed_first(begin: Begin) -> None:
    """Neither children nor what an agent holds goes without a word."""
    with begin() as uow:
        agent = uow.agents.add(Agent(name="lynx"))
        parent = uow.tasks.add(Task(name="parent"))
        child = uow.tasks.add(Task(name="child", parent_task_id=parent.id))
        alone = uow.tasks.add(Task(name="alone"))
        claims.claim(uow, agent.id, halts=NO_HALTS, task_id=alone.id)
        uow.commit()
    with begin() as uow:
        with pytest.raises(ConfirmationNeeded, match="1 task"):
            removal.remove(uow, TASKS, [parent.id], yes=False)
        with pytest.raises(ConfirmationNeeded, match="1 task held by lynx"):
            removal.remove(uow, TASKS, [alone.id], yes=False)
        with pytest.raises(ConfirmationNeeded, match="held by lynx"):
            removal.remove(uow, AGENTS, ["lynx"], yes=False)
        removal.remove(uow, TASKS, [parent.id, child.id], yes=False)  # both are named
        removed, along = removal.remove(uow, TASKS, [alone.id], yes=True)
        assert [row.id for row in removed] == [alone.id]
        assert (along.held, along.holders) == (1, ("lynx",))
        assert uow.tasks.page() == []


@pytest.mark.usefixtures("plan")
def test_the_tasks_of_an_initiative_are_those_of_its_phases_and_subtasks_too(begin: Begin) -> None:
    """Each once, page after page, with other conditions and with the number of all."""
    with begin() as uow:
        uow.initiatives.add(Initiative(id="ini_bbbb1", name="ledger"))
        uow.tasks.add_all(
            [
                Task(id="tsk_cccc1", name="both", initiative_id="ini_aaaa1", phase_id="pha_aaaa1"),
                Task(id="tsk_cccc2", name="below", parent_task_id="tsk_aaaa2"),
                Task(id="tsk_cccc3", name="deeper", parent_task_id="tsk_cccc2"),
                Task(id="tsk_dddd1", name="other", initiative_id="ini_bbbb1"),
                Task(id="tsk_dddd2", name="moved", initiative_id="ini_bbbb1"),
                Task(id="tsk_dddd3", name="below the moved one", parent_task_id="tsk_dddd2"),
                Task(id="tsk_dddd4", name="of nobody"),
            ]
        )
        of_login = {"initiative_id": "login"}
        found = crud.list_rows(uow, TASKS, of_login, limit=100)
        everything = ["two", "both", "one", "three", "below", "deeper"]
        assert ([each.name for each in found], found.total) == (everything, 6)
        seen: list[str] = []
        after: str | None = None
        while page := crud.list_rows(uow, TASKS, of_login, limit=2, after=after):
            assert page.total == (6 if after is None else None)
            seen += [each.name for each in page]
            after = page[-1].id
        assert seen == everything
        urgent = crud.list_rows(uow, TASKS, {**of_login, "priority": "high"}, limit=1)
        assert ([each.name for each in urgent], urgent.total) == (["two"], 2)
        within = crud.list_rows(uow, TASKS, {**of_login, "phase_id": "schema"}, limit=9)
        assert [each.name for each in within] == ["two", "both"]


@pytest.mark.usefixtures("plan")
def test_a_subtask_belongs_where_its_parent_does(begin: Begin) -> None:
    """Unless it says otherwise; so it waits for the same phase to be approved."""
    with begin() as uow:
        below = crud.add(uow, TASKS, {"name": "below", "parent_task_id": "two"})
        deeper = crud.add(uow, TASKS, {"name": "deeper", "parent_task_id": "below"})
        assert {below.phase_id, deeper.phase_id} == {"pha_aaaa1"}
        beside = crud.add(uow, TASKS, {"name": "beside", "parent_task_id": "three"})
        assert (beside.phase_id, beside.initiative_id) == (None, "ini_aaaa1")
        own = {"name": "own", "parent_task_id": "two", "initiative_id": "login"}
        assert crud.add(uow, TASKS, own).phase_id is None
        assert [each.name for each in uow.tasks.ready(9) if each.phase_id] == []
