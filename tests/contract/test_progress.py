"""How far a plan is, from its rows and its journal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.entity import evolve
from herdbook.domain.errors import NotFound
from herdbook.domain.plan.model import PhaseStatus, Task, TaskStatus
from herdbook.domain.plan.progress import LEAST
from herdbook.domain.plan_text.markdown import read_markdown
from herdbook.ports.engine.store import Store
from herdbook.services.journal import undo
from herdbook.services.journal.prune import prune
from herdbook.services.plan import progress
from herdbook.services.plan.progress import PlanProgress, measure_progress
from herdbook.services.plan_text.import_export import import_plan
from tests.contract.claims import add_initiative, add_phase, add_tasks, do
from tests.contract.turns import Begin


def measured(begin: Begin, **options: str) -> PlanProgress:
    """The progress as a reader sees it."""
    with begin(write=False) as uow:
        return measure_progress(uow, **options)


def set_status(begin: Begin, status: TaskStatus, *tasks: Task) -> None:
    """Give tasks a status, each in a transaction of its own."""
    for task in tasks:
        with begin() as uow:
            uow.tasks.save(evolve(uow.tasks.get(task.id), status=status))
            uow.commit()


def counts(found: PlanProgress) -> list[tuple[str | None, int, int]]:
    """The phases by name, with their numbers."""
    return [(each.name, each.done, each.total) for each in found.phases]


def test_an_empty_plan_has_nothing_to_tell(begin: Begin) -> None:
    found = measured(begin)
    assert (found.now.done, found.now.total, found.phases, found.forecast) == (0, 0, (), None)
    assert found.completed == {"hour": 0, "day": 0, "week": 0}
    assert found.history == (found.now,)


def test_phases_and_history_add_up(begin: Begin) -> None:
    """Also with tasks that were removed, opened again, or completed when they were added."""
    initiative, other = add_initiative(begin), add_initiative(begin)
    first, second = (add_phase(begin, initiative, PhaseStatus.APPROVED) for _ in range(2))
    elsewhere = add_phase(begin, other, PhaseStatus.APPROVED)
    tasks = add_tasks(begin, *(Task(name=f"a{n}", phase_id=first.id) for n in range(5)))
    add_tasks(
        begin,
        Task(name="b", phase_id=second.id),
        Task(name="c", phase_id=elsewhere.id, status=TaskStatus.COMPLETED),
        Task(name="d", initiative_id=initiative.id),
        Task(name="e"),
    )
    set_status(begin, TaskStatus.COMPLETED, *tasks[:4])
    set_status(begin, TaskStatus.PENDING, tasks[0])
    with begin() as uow:
        uow.tasks.remove(tasks[1].id)
        uow.commit()

    whole, part = measured(begin), measured(begin, initiative_id=initiative.id)
    assert sorted(counts(whole), key=str) == sorted(
        [(first.name, 2, 4), (second.name, 0, 1), (elsewhere.name, 1, 1), (None, 0, 2)], key=str
    )
    assert (whole.now.done, whole.now.total) == (3, 8)
    assert sorted(counts(part), key=str) == sorted(
        [(first.name, 2, 4), (second.name, 0, 1), (None, 0, 1)], key=str
    )
    assert (part.now.done, part.now.total) == (2, 6)
    assert whole.completed["hour"] == 3, "the removed one was completed, the opened one is not"
    assert part.completed["hour"] == 2, "those of a removed task do not count"
    for found in (whole, part):
        assert found.history[-1] == found.now
        assert len(found.history) == progress.POINTS
        assert all(0 <= point.done <= point.total for point in found.history)
    assert (whole.history[0].done, whole.history[0].total) == (0, 5), "the first transaction"


def test_phases_stand_in_the_order_of_the_plan(begin: Begin) -> None:
    """Those of one initiative together, the oldest first, and tasks without a phase last."""
    goals = [add_initiative(begin) for _ in range(3)]
    added = [(goal, add_phase(begin, goal, PhaseStatus.APPROVED)) for goal in goals * 2]
    add_tasks(begin, *(Task(name="a", phase_id=phase.id) for _, phase in added), Task(name="b"))
    found = [each.id for each in measured(begin).phases]
    wanted = [phase.id for goal in goals for owner, phase in added if owner is goal]
    assert found == [*wanted, None]


def test_a_forecast_needs_some_completed_tasks(begin: Begin) -> None:
    tasks = add_tasks(begin, *(Task(name=str(n)) for n in range(LEAST + 3)))
    set_status(begin, TaskStatus.COMPLETED, *tasks[: LEAST - 1])
    assert measured(begin).forecast is None
    set_status(begin, TaskStatus.COMPLETED, tasks[LEAST - 1])
    found = measured(begin)
    assert found.forecast is not None
    assert found.now.at < found.forecast.likely <= found.forecast.late


def test_tasks_that_come_completed_say_nothing_of_the_pace(begin: Begin) -> None:
    """Those of an imported plan count as done, and tell nobody when the rest will be."""
    done = "\n".join(f"- [x] old {number}" for number in range(20))
    left = "\n".join(f"- [ ] new {number}" for number in range(40))
    do(begin, import_plan, read_markdown(f"# Ship it\n\n## Build it\n{done}\n{left}\n"))
    found = measured(begin)
    assert (found.now.done, found.now.total) == (20, 60)
    assert found.completed == {"hour": 0, "day": 0, "week": 0}
    assert found.forecast is None
    assert found.history[-1] == found.now


def test_a_task_counts_once_however_often_it_is_completed(begin: Begin) -> None:
    tasks = add_tasks(begin, *(Task(name=str(number)) for number in range(LEAST)))
    for _ in range(LEAST):
        set_status(begin, TaskStatus.COMPLETED, tasks[0])
        set_status(begin, TaskStatus.PENDING, tasks[0])
    assert measured(begin).completed["hour"] == 0
    set_status(begin, TaskStatus.COMPLETED, tasks[0])
    found = measured(begin)
    assert found.completed == {"hour": 1, "day": 1, "week": 1}
    assert found.forecast is None


def test_taking_back_completes_nothing_anew(begin: Begin) -> None:
    """What is undone is not there; what is brought back counts when it was done."""
    (task,) = add_tasks(begin, Task(name="a"))
    set_status(begin, TaskStatus.COMPLETED, task)
    with begin() as uow:
        uow.tasks.remove(task.id)
        uow.commit()
    do(begin, undo.undo)
    assert measured(begin).completed["hour"] == 1
    set_status(begin, TaskStatus.PENDING, task)
    assert measured(begin).completed["hour"] == 0
    do(begin, undo.undo)
    found = measured(begin)
    assert (found.now.done, found.completed["hour"]) == (1, 1)


def test_no_more_was_completed_than_there_is(begin: Begin) -> None:
    """Whatever is completed and opened again, each task that is completed counts once."""
    changes = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=12)

    @settings(max_examples=8)
    @given(changes=changes)
    def holds(changes: list[tuple[int, bool]]) -> None:
        before = measured(begin)
        tasks = add_tasks(begin, *(Task(name=str(number)) for number in range(4)))
        for number, is_done in changes:
            status = TaskStatus.COMPLETED if is_done else TaskStatus.PENDING
            set_status(begin, status, tasks[number])
        found = measured(begin)
        assert before.completed["hour"] == before.now.done
        assert found.completed["hour"] == found.now.done

    holds()


def test_what_was_folded_is_not_taken_for_nothing(begin: Begin, store: Store, space: str) -> None:
    """Where the journal does not reach back an hour, nobody says how much was done in one."""
    tasks = add_tasks(begin, *(Task(name=str(n)) for n in range(3)))
    set_status(begin, TaskStatus.COMPLETED, tasks[0])
    with begin(write=False) as uow:
        end = uow.journal.last()
    prune(store, space, end)
    set_status(begin, TaskStatus.COMPLETED, tasks[1])
    assert measured(begin).completed == {"hour": None, "day": None, "week": None}
    assert (measured(begin).now.done, measured(begin).now.total) == (2, 3)


def test_a_long_journal_is_not_read_to_its_begin(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "MAX_ENTRIES", 4)
    tasks = add_tasks(begin, *(Task(name=str(n)) for n in range(6)))
    set_status(begin, TaskStatus.COMPLETED, *tasks[:5])
    found = measured(begin)
    assert found.completed["hour"] is None
    assert (found.now.done, found.now.total) == (5, 6)
    assert found.history[0].done >= 1, "four of them were taken back at most"


def test_an_unknown_initiative_is_refused(begin: Begin) -> None:
    with pytest.raises(NotFound):
        measured(begin, initiative_id="ini_00000000000000000000")
