"""The order, the waves and the critical path of a plan, against a slow reading of the rules."""

import itertools
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.entity import evolve
from herdbook.domain.errors import AlreadyExists, CycleRefused, NotFound
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    Phase,
    PhaseStatus,
    Priority,
    Task,
    TaskStatus,
)
from herdbook.ports.engine.dictionary import PHASE_DEPENDENCIES, PHASES, TASK_DEPENDENCIES, TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.plan import claims, schedule
from tests.cases import for_each
from tests.contract.claims import add_initiative, add_phase, add_tasks
from tests.contract.turns import Begin

SHARES = {"memory": 1, "lmdb": 2, "postgres": 10, "duckdb": 25}
"""How many plans are made on the fastest store for each that is made on this one."""

_numbers = itertools.count(1)

Asked = dict[str, str | None]
Question = Callable[..., list[Task]]


class Slow:
    """The rules as a person would apply them, to one pair of tasks after the other."""

    def __init__(self, uow: UnitOfWork, *, finished: bool = False) -> None:
        self.tasks = {task.id: task for task in uow.select(find(TASKS))}
        self.phases = {phase.id: phase for phase in uow.select(find(PHASES))}
        self.edges = {
            (edge.task_id, edge.depends_on_task_id) for edge in uow.select(find(TASK_DEPENDENCIES))
        }
        self.phase_edges = {
            (edge.phase_id, edge.depends_on_phase_id)
            for edge in uow.select(find(PHASE_DEPENDENCIES))
        }
        self.counting = {
            key: task for key, task in self.tasks.items() if finished or not task.is_finished
        }
        self.finished = finished

    def items(self, asked: Asked) -> list[Task]:
        """The tasks a question is about."""
        return [task for task in self.counting.values() if self._is_inside(task, asked)]

    def _is_inside(self, task: Task, asked: Asked) -> bool:
        phase = self.phases.get(task.phase_id or "")
        owner = phase.initiative_id if phase else task.initiative_id
        return asked.get("initiative_id") in (None, owner) and asked.get("phase_id") in (
            None,
            task.phase_id,
        )

    def _ahead(self, phase_id: str | None) -> set[str]:
        """The phases that a phase waits for, and what those wait for that have nothing to do."""
        found: set[str] = set()
        for one, other in self.phase_edges:
            if one != phase_id:
                continue
            if not self.finished and self.phases[other].status is PhaseStatus.COMPLETED:
                continue
            found.add(other)
            if all(task.phase_id != other for task in self.counting.values()):
                found |= self._ahead(other)
        return found

    def waits_for(self, task: Task) -> set[str]:
        """The tasks that a task itself waits for."""
        ahead = self._ahead(task.phase_id)
        return {
            other.id
            for other in self.counting.values()
            if (task.id, other.id) in self.edges
            or other.parent_task_id == task.id
            or (other.phase_id is not None and other.phase_id in ahead)
        }

    def all_before(self, task: Task) -> set[str]:
        """The tasks that must come before a task, however far away."""
        found: set[str] = set()
        left = [task.id]
        while left:
            fresh = self.waits_for(self.counting[left.pop()]) - found
            found |= fresh
            left += fresh
        return found


def _place(task: Task) -> tuple[object, ...]:
    return task.priority.rank, task.order, task.created_at, task.id


def _slow_order(tasks: Sequence[Task], before: dict[str, set[str]]) -> list[Task]:
    ordered: list[Task] = []
    left = sorted(tasks, key=_place)
    while left:
        waiting = {task.id for task in left}
        free = next(task for task in left if not before[task.id] & waiting)
        left.remove(free)
        ordered.append(free)
    return ordered


def _slow_waves(tasks: Sequence[Task], before: dict[str, set[str]]) -> list[list[Task]]:
    found: list[list[Task]] = []
    left = sorted(tasks, key=_place)
    while left:
        waiting = {task.id for task in left}
        found.append([task for task in left if not before[task.id] & waiting])
        left = [task for task in left if task not in found[-1]]
    return found


def _agrees(uow: UnitOfWork, asked: Asked) -> None:
    slow = Slow(uow)
    items = slow.items(asked)
    inside = {task.id for task in items}
    before = {task.id: slow.all_before(task) & inside for task in items}
    assert schedule.order(uow, **asked) == _slow_order(items, before)
    waves = schedule.waves(uow, **asked)
    assert waves == _slow_waves(items, before)
    path = schedule.critical_path(uow, **asked)
    assert len(path) == len(waves)
    assert all(one.id in before[other.id] for one, other in itertools.pairwise(path))
    ready = {task.id for task in claims.ready(uow, 1_000, **asked)}
    assert ready <= {task.id for task in (waves[0] if waves else [])}
    whole = Slow(uow, finished=True)
    items = whole.items(asked)
    inside = {task.id for task in items}
    before = {task.id: whole.all_before(task) & inside for task in items}
    assert schedule.order(uow, **asked, finished=True) == _slow_order(items, before)


numbers = st.integers(0, 9)
tasks = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1, 2, 3]),  # phase
        st.sampled_from([None, 0, 1]),  # initiative
        st.sampled_from([None, None, 0, 1, 2]),  # parent
        st.sampled_from(Priority),
        st.integers(0, 1),
        st.sampled_from([TaskStatus.PENDING] * 3 + [TaskStatus.COMPLETED, TaskStatus.BLOCKED]),
    ),
    min_size=1,
    max_size=9,
)
pairs = st.lists(st.tuples(numbers, numbers), max_size=8)
statuses = st.lists(
    st.sampled_from([PhaseStatus.APPROVED, PhaseStatus.PENDING, PhaseStatus.COMPLETED]),
    min_size=4,
    max_size=4,
)


def _some(keys: Sequence[str], number: int | None) -> str | None:
    return None if number is None or not keys else keys[number % len(keys)]


def _unless_refused(change: Callable[[str, str], object], rows: Iterable[tuple[str, str]]) -> None:
    for one, other in rows:
        try:
            change(one, other)
        except (AlreadyExists, CycleRefused):
            continue


def _planned(
    uow: UnitOfWork,
    rows: list[tuple[int | None, int | None, int | None, Priority, int, TaskStatus]],
    edges: list[tuple[int, int]],
    phase_edges: list[tuple[int, int]],
    states: list[PhaseStatus],
) -> list[Asked]:
    """Make a plan, and all that can be asked about it."""
    mode = ExecutionMode.YOLO
    owners = [uow.initiatives.add(Initiative(name="x", execution_mode=mode)).id for _ in range(2)]
    phases = [
        uow.phases.add(Phase(initiative_id=owners[at % 2], name="x", status=status)).id
        for at, status in enumerate(states)
    ]
    made: list[str] = []
    for phase, owner, parent, priority, place, status in rows:
        task = Task(
            name="x",
            phase_id=_some(phases, phase),
            initiative_id=_some(owners, owner),
            parent_task_id=_some(made, parent),
            priority=priority,
            order=place,
            status=status,
        )
        try:
            made.append(uow.tasks.add(task).id)
        except CycleRefused:
            made.append(uow.tasks.add(evolve(task, parent_task_id=None)).id)
    ends = [(made[one % len(made)], made[other % len(made)]) for one, other in edges]
    _unless_refused(uow.tasks.add_dependency, ends)
    ends = [(phases[one % 4], phases[other % 4]) for one, other in phase_edges]
    _unless_refused(uow.phases.add_dependency, ends)
    return [
        {},
        *({"initiative_id": each} for each in owners),
        *({"phase_id": each} for each in phases),
        {"initiative_id": owners[0], "phase_id": phases[1]},
    ]


def test_plans_are_ordered_as_the_rules_say(store: Store, engine: str) -> None:
    """Of a space, an initiative or a phase: order, waves and critical path of whatever plan."""

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(rows=tasks, edges=pairs, phase_edges=pairs, states=statuses)
    def holds(
        rows: list[tuple[int | None, int | None, int | None, Priority, int, TaskStatus]],
        edges: list[tuple[int, int]],
        phase_edges: list[tuple[int, int]],
        states: list[PhaseStatus],
    ) -> None:
        with unit_of_work(store, f"work/ordering-{next(_numbers)}") as uow:
            for asked in _planned(uow, rows, edges, phase_edges, states):
                _agrees(uow, asked)

    holds()


def _names(rows: Iterable[Task]) -> str:
    return "".join(task.name for task in rows)


def _chain(begin: Begin, names: str, **given: object) -> list[Task]:
    """Tasks of which each waits for the one before it."""
    rows = add_tasks(begin, *(Task(name=name, **given) for name in names))
    with begin() as uow:
        uow.tasks.add_dependencies([(b.id, a.id) for a, b in itertools.pairwise(rows)])
        uow.commit()
    return rows


def test_a_task_of_elsewhere_is_passed_through(begin: Begin) -> None:
    """What waits for it waits for what it waits for, and it is in no answer itself."""
    initiative = add_initiative(begin)
    phase, other = (add_phase(begin, initiative, PhaseStatus.APPROVED) for _ in range(2))
    rows = _chain(begin, "abc", phase_id=phase.id)
    with begin() as uow:
        uow.tasks.save(evolve(uow.tasks.get(rows[1].id), phase_id=other.id))
        uow.commit()
    with begin(write=False) as uow:
        waves = schedule.waves(uow, phase_id=phase.id)
        path = schedule.critical_path(uow, phase_id=phase.id)
    assert [_names(wave) for wave in waves] == ["a", "c"]
    assert _names(path) == "ac"


def test_a_finished_task_holds_up_nobody(begin: Begin) -> None:
    """What waited for it alone is in the first wave, though it once waited for others."""
    rows = _chain(begin, "abc")
    with begin() as uow:
        uow.tasks.save(evolve(rows[1], status=TaskStatus.COMPLETED))
        uow.commit()
    with begin(write=False) as uow:
        waves = schedule.waves(uow)
        assert [sorted(_names(wave)) for wave in waves] == [["a", "c"]]
        assert _names(schedule.order(uow, finished=True)) == "abc"


def test_a_finished_task_with_an_open_child_holds_up_nobody(begin: Begin) -> None:
    """What depends on it does not wait for the child either."""
    first, done = add_tasks(begin, Task(name="a"), Task(name="b", status=TaskStatus.COMPLETED))
    add_tasks(begin, Task(name="c", parent_task_id=done.id, priority=Priority.LOW))
    with begin() as uow:
        uow.tasks.add_dependency(first.id, done.id)
        uow.commit()
    with begin(write=False) as uow:
        assert [_names(wave) for wave in schedule.waves(uow)] == ["ac"]
        assert _names(schedule.order(uow)) == "ac"


def test_a_completed_phase_holds_up_nobody(begin: Begin) -> None:
    """Whatever is left in it, as for what is ready."""
    initiative = add_initiative(begin)
    first = add_phase(begin, initiative, PhaseStatus.APPROVED)
    second = add_phase(begin, initiative, PhaseStatus.APPROVED)
    add_tasks(begin, Task(name="a", phase_id=first.id), Task(name="b", phase_id=second.id))
    with begin() as uow:
        uow.phases.save(evolve(first, status=PhaseStatus.COMPLETED))
        uow.phases.add_dependency(second.id, first.id)
        uow.commit()
    with begin(write=False) as uow:
        assert [len(wave) for wave in schedule.waves(uow)] == [2]
    with begin() as uow:
        uow.phases.save(evolve(uow.phases.get(first.id), status=PhaseStatus.APPROVED))
        uow.commit()
    with begin(write=False) as uow:
        assert [_names(wave) for wave in schedule.waves(uow)] == ["a", "b"]


def test_answers_longer_than_a_page_are_whole(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks, their children and what they wait for are all read to the end."""
    monkeypatch.setattr(schedule, "PAGE", 2)
    rows = _chain(begin, "abcdefg")
    add_tasks(begin, *(Task(name="x", parent_task_id=rows[0].id, order=n) for n in range(5)))
    with begin(write=False) as uow:
        assert _names(schedule.order(uow)) == "xxxxxabcdefg"
        assert len(schedule.critical_path(uow)) == 8


@for_each(
    "question", [schedule.order, schedule.waves, schedule.critical_path], ids=lambda q: q.__name__
)
@for_each("field", ["initiative_id", "phase_id"])
def test_what_is_not_there_has_no_order(begin: Begin, question: Question, field: str) -> None:
    """NotFound, and no empty answer that looks like a plan with nothing to do."""
    with begin(write=False) as uow, pytest.raises(NotFound):
        question(uow, **{field: "nothing"})


def test_an_empty_plan_has_no_waves(begin: Begin) -> None:
    """All three answers are empty."""
    with begin(write=False) as uow:
        assert (schedule.order(uow), schedule.waves(uow), schedule.critical_path(uow)) == (
            [],
            [],
            [],
        )
