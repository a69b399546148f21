"""What can be done with rows of any kind, on every store."""

from collections.abc import Callable
from typing import Any

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.errors import CycleRefused, InvalidValue, NotFound
from herdbook.domain.plan.model import Initiative, Phase, Task
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, PHASES, PROJECTS, TASKS
from herdbook.ports.unit_of_work.projections import differences
from herdbook.services import crud
from herdbook.services.plan import dependencies

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
        assert crud.named(uow, TASKS, text).name == "three"


@pytest.mark.usefixtures("plan")
def test_what_has_a_unique_name_is_named_by_it(begin: Begin) -> None:
    """An agent, say; but not a task, whose name may be anybody's."""
    with begin(write=False) as uow:
        assert crud.named(uow, AGENTS, "otter").id == "agt_aaaa1"
        with pytest.raises(NotFound):
            crud.named(uow, TASKS, "one")


@pytest.mark.usefixtures("plan")
def test_an_ambiguous_beginning_is_refused_with_what_it_could_be(begin: Begin) -> None:
    """Nothing is guessed."""
    with begin(write=False) as uow, pytest.raises(InvalidValue, match="tsk_aaaa1, tsk_aaaa2"):
        crud.named(uow, TASKS, "aaaa")


@pytest.mark.parametrize("text", ["", "tsk_", "bbb", "zzzz", "ini_aaaa1", "a\0b", "x" * 200, "%"])
@pytest.mark.usefixtures("plan")
def test_what_names_nothing_is_not_found(begin: Begin, text: str) -> None:
    """Too short, unknown, of another kind, or no id at all."""
    with begin(write=False) as uow, pytest.raises(NotFound):
        crud.named(uow, TASKS, text)


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
            crud.remove(uow, TASKS, ["bbbb", "zzzz"])
        assert len(uow.tasks.page()) == 3
        (gone,) = crud.remove(uow, INITIATIVES, ["ini_aaaa", "ini_aaaa1"])
        assert gone.name == "login"
        assert uow.tasks.page() == []
        assert uow.phases.page() == []


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ({}, ["one", "two", "three"]),
        ({"initiative_id": "aaaa"}, ["one", "three"]),
        ({"initiative_id": "aaaa", "priority": "high"}, ["three"]),
        ({"priority": "high"}, ["two", "three"]),
        ({"phase_id": "aaaa", "status": "pending", "priority": "high"}, ["two"]),
        ({"status": "completed"}, []),
    ],
)
@pytest.mark.usefixtures("plan")
def test_rows_are_listed_by_any_of_their_fields(
    begin: Begin, where: dict[str, str], names: list[str]
) -> None:
    """Whether a lookup answers or every row is looked at."""
    with begin(write=False) as uow:
        assert [row.name for row in crud.listed(uow, TASKS, where, limit=10)] == names


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
        while page := crud.listed(uow, TASKS, {"priority": "high"}, limit=4, after=after):
            assert len(page) <= 4
            seen += [row.name for row in page]
            after = page[-1].id
    assert sorted(seen, key=int) == [str(n) for n in range(50) if n % 3]
    with begin(write=False) as uow, pytest.raises(InvalidValue):
        crud.listed(uow, PROJECTS, {}, limit=0)


def test_a_task_waits_for_others(begin: Begin, plan: dict[str, str]) -> None:
    """Saying it twice changes nothing, a cycle is refused, and it can be taken back."""
    one, two, three = plan.values()
    with begin() as uow:
        dependencies.task_after(uow, three, [one, two, one])
        dependencies.task_after(uow, three, [one])
        waits_for = dependencies.task_waits_for(uow, three)
        assert {task.id for task in waits_for} == {one, two}
        with pytest.raises(CycleRefused):
            dependencies.task_after(uow, one, [three])
        dependencies.task_not_after(uow, three, [one])
        assert [task.id for task in dependencies.task_waits_for(uow, three)] == [two]
        with pytest.raises(NotFound):
            dependencies.task_not_after(uow, three, [one])


@pytest.mark.usefixtures("plan")
def test_a_phase_waits_for_others(begin: Begin) -> None:
    """As tasks do."""
    with begin() as uow:
        other = crud.add(uow, PHASES, {"name": "ui", "initiative_id": "aaaa"})
        dependencies.phase_after(uow, other.id, ["pha_aaaa1", "pha_aaaa1"])
        dependencies.phase_after(uow, other.id, ["pha_aaaa1"])
        assert [phase.name for phase in uow.phases.dependencies(other.id)] == ["schema"]
        with pytest.raises(CycleRefused):
            dependencies.phase_after(uow, "pha_aaaa1", [other.id])
        dependencies.phase_not_after(uow, other.id, ["pha_aaaa1"])
        with pytest.raises(NotFound):
            dependencies.phase_not_after(uow, other.id, ["pha_aaaa1"])


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
        assert differences(uow) == []
