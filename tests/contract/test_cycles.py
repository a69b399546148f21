"""Nothing may wait for itself: edges that would close a cycle are refused, and the cycle named.

A session may offer to follow edges by itself; the whole file runs with that offer and without it.
"""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.entity import evolve
from herdbook.domain.errors import CycleRefused
from herdbook.domain.plan.graph import TaskNode, find_cycle, plan_edges
from herdbook.domain.plan.model import Initiative, Phase, PhaseDependency, Task
from herdbook.ports.engine.dictionary import PHASE_DEPENDENCIES, PHASES, TASK_DEPENDENCIES, TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store, SupportsWalk
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from tests.cases import for_each
from tests.contract.conftest import Begin
from tests.contract.rows import replace_pair
from tests.contract.wrapped import WithoutWalk, WrappedStore

WAYS = [
    ("memory", True),
    ("lmdb", True),
    ("duckdb", True),
    ("postgres", True),
    ("postgres", False),
]
pytestmark = pytest.mark.parametrize(
    ("engine", "walks"),
    WAYS,
    indirect=True,
    scope="session",
    ids=[engine if walks else f"{engine}-step-by-step" for engine, walks in WAYS],
)

SHARES = {"memory": 1, "lmdb": 4, "postgres": 20, "duckdb": 50}
"""How many programs run on the fastest store for each that runs on this one."""

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def walks(request: pytest.FixtureRequest) -> bool:
    """Whether what a session offers is taken."""
    return bool(request.param)


@pytest.fixture
def begin(store: Store, space: str, walks: bool) -> Begin:
    """Begins a unit of work that follows edges this way."""
    return Begin(store if walks else WrappedStore(store, WithoutWalk), space)


def _plan(begin: Begin, *tasks: Task) -> None:
    """Phases `p`, `q` and `r`, and these tasks."""
    with begin() as uow:
        uow.initiatives.add(Initiative(id="i", name="x"))
        uow.phases.add_all([Phase(id=name, initiative_id="i", name="x") for name in "pqr"])
        uow.tasks.add_all(tasks)
        uow.commit()


def _task(name: str, **place: str | None) -> Task:
    return Task(id=name, name="x", **place)


def _refused(begin: Begin, change: Callable[[UnitOfWork], object]) -> tuple[str, ...]:
    """The cycle a change was refused for; nothing of the change is there afterwards."""
    kinds = (TASKS, TASK_DEPENDENCIES, PHASES, PHASE_DEPENDENCIES)
    with begin() as uow:
        before = [uow.select(find(kind)) for kind in kinds]
        with pytest.raises(CycleRefused) as refusal:
            change(uow)
        uow.commit()
    with begin(write=False) as uow:
        assert [uow.select(find(kind)) for kind in kinds] == before
    return refusal.value.cycle


def _save(name: str, **place: str | None) -> Callable[[UnitOfWork], object]:
    return lambda uow: uow.tasks.save(evolve(uow.tasks.get(name), **place))


def _depend(*pairs: str) -> Callable[[UnitOfWork], object]:
    """Pairs as `ab`: task a waits for task b."""
    return lambda uow: uow.tasks.add_dependencies(tuple(pair) for pair in pairs)


def _depend_phases(*pairs: str) -> Callable[[UnitOfWork], object]:
    rows = [PhaseDependency(phase_id=one, depends_on_phase_id=other) for one, other in pairs]
    return lambda uow: uow.add(PHASE_DEPENDENCIES, rows)


def _do(begin: Begin, *changes: Callable[[UnitOfWork], object]) -> None:
    with begin() as uow:
        for change in changes:
            change(uow)
        uow.commit()


def test_an_engine_that_offers_to_walk_is_asked_only_where_it_may(
    begin: Begin, engine: str, walks: bool
) -> None:
    """The two ways of this file are two ways."""
    with begin(write=False) as uow:
        assert isinstance(uow.session, SupportsWalk) is (engine == "postgres" and walks)


def test_a_task_does_not_depend_on_itself(begin: Begin) -> None:
    """The shortest cycle is one task long."""
    _plan(begin, _task("a"))
    assert _refused(begin, _depend("aa")) == ("a", "a")


def test_tasks_do_not_depend_on_each_other(begin: Begin) -> None:
    """The edge that closes the circle is refused, however long the way round."""
    _plan(begin, *map(_task, "abcd"))
    _do(begin, _depend("ab", "bc", "cd"))
    assert _refused(begin, _depend("ba")) == ("a", "b", "a")
    assert _refused(begin, _depend("da")) == ("a", "b", "c", "d", "a")


def test_the_same_tasks_may_meet_again_without_a_circle(begin: Begin) -> None:
    """A diamond and a short cut are no cycles."""
    _plan(begin, *map(_task, "abcd"))
    _do(begin, _depend("ab", "ac", "bd", "cd", "ad"))
    with begin(write=False) as uow:
        assert [task.id for task in uow.tasks.dependencies("a")] == ["b", "c", "d"]


def test_a_batch_may_not_close_a_cycle_within_itself(begin: Begin) -> None:
    """Alone or together with what is stored; all of the batch is refused."""
    _plan(begin, *map(_task, "abcd"))
    assert _refused(begin, _depend("cd", "ab", "ba")) == ("a", "b", "a")
    _do(begin, _depend("ab", "cd"))
    assert _refused(begin, _depend("bc", "da")) == ("a", "b", "c", "d", "a")


def test_a_cycle_is_seen_within_one_transaction(begin: Begin) -> None:
    """What was written a moment ago counts, and what was removed does not."""
    _plan(begin, *map(_task, "ab"))
    with begin() as uow:
        _depend("ab")(uow)
        with pytest.raises(CycleRefused):
            _depend("ba")(uow)
        uow.tasks.remove_dependency("a", "b")
        _depend("ba")(uow)
        uow.commit()
    with begin(write=False) as uow:
        assert [task.id for task in uow.tasks.dependencies("b")] == ["a"]


def test_a_task_is_not_its_own_ancestor(begin: Begin) -> None:
    """Neither its own parent, nor the child of its child."""
    _plan(begin, _task("a"), _task("b", parent_task_id="a"), _task("c", parent_task_id="b"))
    assert _refused(begin, _save("a", parent_task_id="a")) == ("a", "a")
    assert _refused(begin, _save("a", parent_task_id="c")) == ("a", "b", "c", "a")


def test_new_tasks_are_not_each_others_parents(begin: Begin) -> None:
    """A batch whose rows name one another in a circle is refused."""
    _plan(begin)
    batch = [_task("a", parent_task_id="b"), _task("b", parent_task_id="a")]
    assert _refused(begin, lambda uow: uow.tasks.add_all(batch)) == ("a", "b", "a")
    own = _task("a", parent_task_id="a")
    assert _refused(begin, lambda uow: uow.tasks.add(own)) == ("a", "a")


def test_a_child_does_not_depend_on_its_parent(begin: Begin) -> None:
    """A parent waits for its children, so they cannot wait for it; it may wait for them twice."""
    _plan(begin, _task("a"), _task("b", parent_task_id="a"))
    assert _refused(begin, _depend("ba")) == ("a", "b", "a")
    _do(begin, _depend("ab"))


def test_a_task_does_not_become_the_child_of_what_it_depends_on(begin: Begin) -> None:
    """Re-parenting is held to the same rule, and so is a task that is new."""
    _plan(begin, *map(_task, "ab"))
    _do(begin, _depend("ab"))
    assert _refused(begin, _save("a", parent_task_id="b")) == ("a", "b", "a")
    _do(begin, _save("b", parent_task_id="a"))


def test_phases_do_not_depend_on_each_other(begin: Begin) -> None:
    """Not on themselves either; an empty phase is a phase."""
    _plan(begin)
    assert _refused(begin, _depend_phases("pp")) == ("p", "p")
    _do(begin, _depend_phases("pq", "qr"))
    assert _refused(begin, _depend_phases("qp")) == ("p", "q", "p")
    assert _refused(begin, _depend_phases("rp")) == ("p", "q", "r", "p")


def test_phases_with_tasks_do_not_depend_on_each_other(begin: Begin) -> None:
    """The cycle is named by the phases, whatever is in them."""
    _plan(begin, _task("a", phase_id="p"), _task("z", phase_id="p"), _task("b", phase_id="q"))
    assert _refused(begin, _depend_phases("pp")) == ("p", "p")
    _do(begin, _depend_phases("pq"))
    assert _refused(begin, _depend_phases("qp")) == ("p", "q", "p")
    assert _refused(begin, _depend_phases("qr", "rp")) == ("p", "q", "r", "p")


def test_a_task_does_not_depend_on_one_in_a_phase_that_waits_for_its_own(begin: Begin) -> None:
    """All tasks of a phase wait for all tasks of the phases it depends on."""
    _plan(begin, _task("a", phase_id="p"), _task("b", phase_id="q"), _task("c", phase_id="p"))
    _do(begin, _depend_phases("pq"))
    assert _refused(begin, _depend("ba")) == ("q", "b", "a", "p", "q")
    _do(begin, _depend("ab", "ac"))


def test_a_phase_does_not_depend_on_one_whose_task_waits_for_its_own(begin: Begin) -> None:
    """The same the other way round: the phases' edge comes last."""
    _plan(begin, _task("a", phase_id="p"), _task("b", phase_id="q"))
    _do(begin, _depend("ba"))
    assert _refused(begin, _depend_phases("pq")) == ("q", "b", "a", "p", "q")
    _do(begin, _depend_phases("qp"))


def test_a_child_is_not_in_a_phase_that_waits_for_its_parents(begin: Begin) -> None:
    """The parent would wait for the child, and the child for the parent's phase."""
    _plan(begin, _task("a", phase_id="p"))
    _do(begin, _depend_phases("qp"))
    cycle = ("p", "a", "b", "q", "p")
    child = _task("b", phase_id="q", parent_task_id="a")
    assert _refused(begin, lambda uow: uow.tasks.add(child)) == cycle
    _do(begin, lambda uow: uow.tasks.add(evolve(child, phase_id="p")))
    assert _refused(begin, _save("b", phase_id="q")) == cycle
    _do(begin, _save("b", phase_id="q", parent_task_id=None))
    assert _refused(begin, _save("b", parent_task_id="a")) == cycle


def test_a_new_parent_and_its_new_child_are_held_to_the_phases_they_come_to(begin: Begin) -> None:
    """The same when both come in one batch, in either order."""
    _plan(begin)
    _do(begin, _depend_phases("qp"))
    batch = [_task("a", phase_id="p"), _task("b", phase_id="q", parent_task_id="a")]
    cycle = ("p", "a", "b", "q", "p")
    assert _refused(begin, lambda uow: uow.tasks.add_all(batch)) == cycle
    assert _refused(begin, lambda uow: uow.tasks.add_all(batch[::-1])) == cycle


def test_a_task_does_not_move_to_a_phase_that_waits_for_it(begin: Begin) -> None:
    """Moving to another phase is held to the same rule, and moving out frees."""
    _plan(begin, _task("a", phase_id="p"), _task("b"))
    _do(begin, _depend_phases("qp"), _depend("ab"))
    assert _refused(begin, _save("b", phase_id="q")) == ("p", "a", "b", "q", "p")
    _do(begin, _save("b", phase_id="p"))
    _do(begin, _save("a", phase_id=None), _save("b", phase_id="q"))


def test_a_phase_does_not_wait_for_one_in_which_a_child_waits_for_it(begin: Begin) -> None:
    """The edge between the phases comes last."""
    _plan(begin, _task("a", phase_id="p"), _task("b", phase_id="q", parent_task_id="a"))
    assert _refused(begin, _depend_phases("qp")) == ("p", "a", "b", "q", "p")
    _do(begin, _depend_phases("pq"))


def test_an_edge_that_is_turned_round_is_not_there_twice(begin: Begin) -> None:
    """What was replaced in the same transaction no longer counts, for tasks, parents and phases."""
    _plan(begin, _task("a"), _task("b", parent_task_id="a"))
    turned = [_save("b", parent_task_id=None), _save("a", parent_task_id="b")]
    _do(begin, *turned)
    with begin() as uow:
        uow.tasks.save(evolve(uow.tasks.get("a"), parent_task_id=None))
        edge = uow.tasks.add_dependency("a", "b")
        phase_edge = uow.phases.add_dependency("p", "q")
        uow.commit()
    with begin() as uow:
        replace_pair(uow, TASK_DEPENDENCIES, edge, task_id="b", depends_on_task_id="a")
        replace_pair(uow, PHASE_DEPENDENCIES, phase_edge, phase_id="q", depends_on_phase_id="p")
        uow.commit()
    with begin(write=False) as uow:
        assert [task.id for task in uow.tasks.dependencies("b")] == ["a"]
        assert [phase.id for phase in uow.phases.dependencies("q")] == ["p"]


def test_a_parent_and_its_child_change_places_in_one_save(begin: Begin) -> None:
    """Neither the old nor the new order is a cycle, and they are never both."""
    _plan(begin, _task("a"), _task("b", parent_task_id="a"))
    with begin() as uow:
        one, other = uow.tasks.get_many(["a", "b"])
        uow.tasks.save_all([evolve(one, parent_task_id="b"), evolve(other, parent_task_id=None)])
        uow.commit()
    with begin(write=False) as uow:
        assert [task.id for task in uow.tasks.children("b")] == ["a"]


def test_an_edge_that_stands_twice_is_there_until_both_are_gone(begin: Begin) -> None:
    """A dependency between parent and child that is turned round still meets the parenthood."""
    _plan(begin, _task("a"), _task("b", parent_task_id="a"))
    with begin() as uow:
        edge = uow.tasks.add_dependency("a", "b")
        uow.commit()
    turned = evolve(edge, task_id="b", depends_on_task_id="a")
    assert _refused(begin, lambda uow: uow.save(TASK_DEPENDENCIES, [turned])) == ("a", "b", "a")
    _do(begin, lambda uow: uow.tasks.add(_task("c", parent_task_id="b")))
    assert _refused(begin, _save("b", parent_task_id="c")) == ("b", "c", "b")
    both = [evolve(_task("b"), parent_task_id=None), evolve(_task("a"), parent_task_id="b")]

    def swap(uow: UnitOfWork) -> None:
        current = uow.tasks.get_many(["b", "a"])
        uow.tasks.save_all(
            [
                evolve(row, parent_task_id=wanted.parent_task_id)
                for row, wanted in zip(current, both, strict=True)
            ]
        )

    assert _refused(begin, swap) == ("a", "b", "a")


@for_each("names", [("a:b", "c"), ("gate:p", "p"), ("end:p", "task:p")])
def test_ids_of_any_form_are_named_as_they_are(begin: Begin, names: tuple[str, str]) -> None:
    """No id is taken for another, nor for a phase, whatever characters it has."""
    one, other = names
    _plan(begin, _task(one, phase_id="p"), _task(other, phase_id="q"))
    _do(begin, lambda uow: uow.tasks.add_dependency(one, other))
    assert _refused(begin, lambda uow: uow.tasks.add_dependency(other, one)) == (*names, one)


@pytest.fixture
def length(engine: str) -> int:
    """How long a chain the engine is given: DuckDB takes a millisecond for each question."""
    return 100 if engine == "duckdb" else 2_000


def test_a_long_chain_of_dependencies_is_followed_to_its_end(begin: Begin, length: int) -> None:
    """Far deeper than Python recurses."""
    names = [f"t{number:04}" for number in range(length)]
    with begin() as uow:
        uow.tasks.add_all(map(_task, names))
        uow.tasks.add_dependencies(itertools.pairwise(names))
        with pytest.raises(CycleRefused) as refusal:
            uow.tasks.add_dependency(names[-1], names[0])
        assert refusal.value.cycle == (*names, names[0])
        uow.tasks.add_dependency(names[0], names[-1])


def test_a_long_line_of_descent_is_followed_to_its_end(begin: Begin, length: int) -> None:
    """A whole line comes in one batch, and its first does not go under its last."""
    names = [f"t{number:04}" for number in range(length * 3 // 5)]
    with begin() as uow:
        parents = [None, *names]
        uow.tasks.add_all(
            [
                _task(name, parent_task_id=parent)
                for name, parent in zip(names, parents, strict=False)
            ]
        )
        with pytest.raises(CycleRefused) as refusal:
            _save(names[0], parent_task_id=names[-1])(uow)
        assert refusal.value.cycle == (*names, names[0])
        _save(names[-1], parent_task_id=names[0])(uow)


def test_a_long_chain_of_phases_is_followed_to_its_end(begin: Begin, length: int) -> None:
    """Through all their tasks and through none."""
    names = [f"p{number:04}" for number in range(length // 4)]
    with begin() as uow:
        uow.initiatives.add(Initiative(id="i", name="x"))
        uow.phases.add_all([Phase(id=name, initiative_id="i", name="x") for name in names])
        uow.tasks.add_all([_task(f"in-{name}", phase_id=name) for name in names[::2]])
        _depend_phases(*itertools.pairwise(names))(uow)
        with pytest.raises(CycleRefused) as refusal:
            uow.phases.add_dependency(names[-1], names[0])
        assert refusal.value.cycle == (*names, names[0])


class Model:
    """A plan in plain sets, which knows by the domain's own rule whether it has a cycle."""

    def __init__(self) -> None:
        self.parent: dict[str, str | None] = {"a": None, "b": "a", "c": None, "d": None}
        self.phase: dict[str, str | None] = {"a": "p", "b": "p", "c": "q", "d": None}
        self.waits: set[tuple[str, str]] = {("a", "b")}
        self.phase_waits: set[tuple[str, str]] = {("q", "p")}

    def write(self, uow: UnitOfWork) -> None:
        """Add the plan to a space."""
        uow.initiatives.add(Initiative(id="i", name="x"))
        uow.phases.add_all([Phase(id=name, initiative_id="i", name="x") for name in "pq"])
        places = zip(self.parent.items(), self.phase.values(), strict=True)
        tasks = [
            _task(name, parent_task_id=parent, phase_id=phase) for (name, parent), phase in places
        ]
        uow.tasks.add_all(tasks)
        uow.tasks.add_dependencies(self.waits)
        _depend_phases(*self.phase_waits)(uow)

    def changed(self, **changes: object) -> "Model":
        """The same plan with some of it replaced."""
        other = Model()
        vars(other).update(vars(self), **changes)
        return other

    def has_cycle(self) -> bool:
        """Whether anything waits for itself."""
        nodes = [
            TaskNode(id=name, phase_id=self.phase[name], parent_task_id=parent)
            for name, parent in self.parent.items()
        ]
        return find_cycle(plan_edges(nodes, self.waits, self.phase_waits)) is not None

    def is_cycle(self, named: tuple[str, ...]) -> bool:
        """Whether these wait for one another as they are named, a phase being one thing."""
        waits = {
            *self.waits,
            *self.phase_waits,
            *((parent, name) for name, parent in self.parent.items()),
            *self.phase.items(),
            *((phase, name) for name, phase in self.phase.items()),
        }
        return named[0] == named[-1] and set(itertools.pairwise(named)) <= waits


task_names, phase_names = st.sampled_from("abcd"), st.sampled_from("pq")
pairs = st.sets(st.tuples(task_names, task_names), min_size=1, max_size=2)
phase_pairs = st.sets(st.tuples(phase_names, phase_names), min_size=1, max_size=1)
moves = st.fixed_dictionaries(
    {}, optional={"parent_task_id": task_names | st.none(), "phase_id": phase_names | st.none()}
)
programs = st.lists(
    st.tuples(st.just("depend"), pairs)
    | st.tuples(st.just("release"), pairs)
    | st.tuples(st.just("turn"), st.integers(0, 5))
    | st.tuples(st.just("move"), st.dictionaries(task_names, moves, min_size=1, max_size=2))
    | st.tuples(st.just("depend phases"), phase_pairs),
    min_size=10,
    max_size=30,
)


def _try(
    uow: UnitOfWork, model: Model, way: str, choice: object
) -> tuple[Model, Callable[[], object]]:
    """What the plan would be after a step, and the step itself, which takes no argument."""
    match way:
        case "depend":
            fresh = choice - model.waits
            return (
                model.changed(waits=model.waits | fresh),
                lambda: uow.tasks.add_dependencies(fresh),
            )
        case "release":
            return (
                model.changed(waits=model.waits - choice),
                lambda: [uow.tasks.remove_dependency(*pair) for pair in choice],
            )
        case "turn":
            edges = uow.select(find(TASK_DEPENDENCIES))
            if not edges:
                return model, lambda: None
            edge = edges[choice % len(edges)]
            one, other = edge.task_id, edge.depends_on_task_id
            turned = {"task_id": other, "depends_on_task_id": one}
            return (
                model.changed(waits=model.waits - {(one, other)} | {(other, one)}),
                lambda: replace_pair(uow, TASK_DEPENDENCIES, edge, **turned),
            )
        case "depend phases":
            fresh = choice - model.phase_waits
            return (
                model.changed(phase_waits=model.phase_waits | fresh),
                lambda: _depend_phases(*fresh)(uow),
            )
        case _:
            parents = {
                name: move["parent_task_id"]
                for name, move in choice.items()
                if "parent_task_id" in move
            }
            phases = {name: move["phase_id"] for name, move in choice.items() if "phase_id" in move}
            rows = [evolve(uow.tasks.get(name), **move) for name, move in choice.items()]
            return (
                model.changed(parent=model.parent | parents, phase=model.phase | phases),
                lambda: uow.tasks.save_all(rows),
            )


def test_exactly_what_would_close_a_cycle_is_refused(
    store: Store, engine: str, walks: bool
) -> None:
    """The store and the domain's own rule agree on every step of every program."""
    seen = store if walks else WrappedStore(store, WithoutWalk)

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=programs)
    def holds(program: list[tuple[str, object]]) -> None:
        model = Model()
        with unit_of_work(seen, f"work/cycles-{next(_numbers)}") as uow:
            model.write(uow)
            for way, choice in program:
                after, step = _try(uow, model, way, choice)
                if after.has_cycle():
                    with pytest.raises(CycleRefused) as refusal:
                        step()
                    assert after.is_cycle(refusal.value.cycle)
                else:
                    step()
                    model = after

    holds()
