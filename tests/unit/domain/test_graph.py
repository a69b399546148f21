"""The laws of what waits for what."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from attrs import evolve, frozen
from hypothesis import example, given
from hypothesis import strategies as st

from herdbook.domain.errors import CycleRefused
from herdbook.domain.plan.graph import (
    Edges,
    Item,
    TaskNode,
    critical_path,
    find_cycle,
    plan_edges,
    topological_order,
    waves,
)

UTC_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
IDS = "abcdefgh"
LONG = 100_000
MOSTLY = st.sampled_from([True, True, True, False])


@frozen
class Plan:
    """Items and a graph over them and over nodes that are no items."""

    items: list[Item]
    waits_for: dict[str, list[str]]

    @property
    def by_id(self) -> dict[str, Item]:
        """The items by their ids."""
        return {item.id: item for item in self.items}


def an_item(node: str) -> st.SearchStrategy[Item]:
    """Items with few values, so that ties are common."""
    return st.builds(
        Item,
        id=st.just(node),
        rank=st.integers(0, 2),
        order=st.integers(0, 1),
        created_at=st.integers(0, 1).map(lambda n: UTC_EPOCH + timedelta(seconds=n)),
        finished=MOSTLY.map(lambda unfinished: not unfinished),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans without cycles: in a hidden order of the nodes, each waits only for earlier ones."""
    nodes = draw(st.permutations(IDS))
    waits_for = {
        node: draw(st.lists(st.sampled_from(nodes[:at]), max_size=3)) if at else []
        for at, node in enumerate(nodes)
    }
    items = [draw(an_item(node)) for node in nodes if draw(MOSTLY)]
    return Plan(items, waits_for)


GRAPHS = st.dictionaries(
    st.sampled_from(IDS), st.lists(st.sampled_from(IDS + "xyz"), max_size=2), max_size=len(IDS)
)


def direct(node: str, items: Iterable[str], waits_for: Edges) -> set[str]:
    """Collect the items that `node` waits for, also through nodes that are no items."""
    found: set[str] = set()
    for other in waits_for.get(node, ()):
        found |= {other} if other in items else direct(other, items, waits_for)
    return found


def unfinished_needs(plan: Plan) -> dict[str, set[str]]:
    """Per unfinished item, the unfinished items it waits for."""
    unfinished = {item.id for item in plan.items if not item.finished}
    return {
        node: direct(node, plan.by_id, plan.waits_for) & unfinished for node in sorted(unfinished)
    }


def chains_to(node: str, needs: Mapping[str, set[str]]) -> list[list[str]]:
    """Every chain that ends at `node`, by brute force."""
    return [[node]] + [[*chain, node] for other in needs[node] for chain in chains_to(other, needs)]


@given(plans())
def test_order_puts_each_item_once(plan: Plan) -> None:
    """The order is a permutation of the items, finished ones too."""
    assert sorted(topological_order(plan.items, plan.waits_for)) == sorted(plan.by_id)


@given(plans())
def test_what_is_waited_for_comes_first(plan: Plan) -> None:
    """Every item comes after all items it waits for, also through nodes that are no items."""
    place = {node: at for at, node in enumerate(topological_order(plan.items, plan.waits_for))}
    for node, at in place.items():
        assert all(place[other] < at for other in direct(node, place, plan.waits_for))


@given(plans())
def test_among_free_items_the_first_by_sort_key_is_next(plan: Plan) -> None:
    """At every step the item taken sorts first among those that wait for nothing left."""
    left = plan.by_id
    for node in topological_order(plan.items, plan.waits_for):
        free = [
            item
            for item in left.values()
            if not direct(item.id, plan.by_id, plan.waits_for) & {*left}
        ]
        assert node == min(free, key=lambda item: item.sort_key).id
        del left[node]


def test_high_priority_then_order_then_age_then_id_decides() -> None:
    """With no edge at all the order is that of the sort key."""
    last = Item(id="b", rank=2, order=2, created_at=UTC_EPOCH)
    older = evolve(last, created_at=UTC_EPOCH - timedelta(seconds=1), id="z")
    items = [last, evolve(last, id="a"), older, evolve(last, order=1, id="y"), evolve(last, rank=1)]
    named = [evolve(item, id=f"{item.id}{item.rank}") for item in items]
    assert topological_order(named, {}) == ["b1", "y2", "z2", "a2", "b2"]


@given(plans(), st.data())
def test_how_the_plan_is_listed_makes_no_difference(plan: Plan, data: st.DataObject) -> None:
    """Shuffled items, nodes and edges give the same order, waves and critical path."""
    items = data.draw(st.permutations(plan.items))
    nodes = data.draw(st.permutations(sorted(plan.waits_for)))
    waits_for = {node: data.draw(st.permutations(plan.waits_for[node])) for node in nodes}
    for question in (topological_order, waves, critical_path):
        assert question(items, waits_for) == question(plan.items, plan.waits_for)


@given(plans(), st.sampled_from("xyz"))
def test_ids_nobody_knows_are_ignored(plan: Plan, stranger: str) -> None:
    """Waiting for an id that is neither an item nor a node of the graph changes nothing."""
    waits_for = {node: [*others, stranger] for node, others in plan.waits_for.items()}
    for question in (topological_order, waves, critical_path):
        assert question(plan.items, waits_for) == question(plan.items, plan.waits_for)


@given(plans())
def test_waves_cover_the_unfinished_once(plan: Plan) -> None:
    """Each unfinished item is in exactly one wave, and no wave is empty."""
    found = waves(plan.items, plan.waits_for)
    assert sorted(node for wave in found for node in wave) == sorted(unfinished_needs(plan))
    assert all(found)


@given(plans())
def test_nothing_in_a_wave_waits_for_its_own_or_a_later_wave(plan: Plan) -> None:
    """All unfinished items that an item waits for are in earlier waves."""
    needs = unfinished_needs(plan)
    done: set[str] = set()
    for wave in waves(plan.items, plan.waits_for):
        assert all(needs[node] <= done for node in wave)
        done.update(wave)


@given(plans())
def test_no_item_waits_longer_than_it_must(plan: Plan) -> None:
    """Each item of a later wave waits for something in the wave just before."""
    needs = unfinished_needs(plan)
    for earlier, later in pairwise(waves(plan.items, plan.waits_for)):
        assert all(needs[node] & {*earlier} for node in later)


@given(plans())
def test_each_wave_is_sorted(plan: Plan) -> None:
    """Within a wave the sort key decides."""
    for wave in waves(plan.items, plan.waits_for):
        assert wave == sorted(wave, key=lambda node: plan.by_id[node].sort_key)


@given(plans())
def test_the_critical_path_is_the_longest_chain(plan: Plan) -> None:
    """Among all chains of unfinished items it is the longest, ties decided from its end."""
    needs = unfinished_needs(plan)
    chains = [chain for node in needs for chain in chains_to(node, needs)]
    best = min(
        chains,
        key=lambda chain: (-len(chain), [plan.by_id[node].sort_key for node in reversed(chain)]),
        default=[],
    )
    assert critical_path(plan.items, plan.waits_for) == best


def test_the_sort_key_decides_between_chains_of_one_length() -> None:
    """Of two items that could come before another, the critical path takes the more urgent."""
    items = [
        Item(id=i, rank=r, order=0, created_at=UTC_EPOCH) for i, r in [("a", 2), ("b", 0), ("c", 1)]
    ]
    assert critical_path(items, {"c": ["a", "b"]}) == ["b", "c"]


@given(plans())
def test_there_are_as_many_waves_as_steps_on_the_critical_path(plan: Plan) -> None:
    """The longest chain says how many rounds are needed at least."""
    items, waits_for = plan.items, plan.waits_for
    assert len(critical_path(items, waits_for)) == len(waves(items, waits_for))


@given(GRAPHS)
@example({"a": ["a"]})
def test_a_cycle_found_is_a_cycle(waits_for: dict[str, list[str]]) -> None:
    """Each node named waits for the next, the last is the first, and none comes twice."""
    cycle = find_cycle(waits_for)
    if cycle is not None:
        assert all(other in waits_for[node] for node, other in pairwise(cycle))
        assert cycle[0] == cycle[-1]
        assert len(set(cycle)) == len(cycle) - 1 >= 1


@given(GRAPHS)
@example({"a": ["b"], "b": ["c"], "c": ["b"]})
def test_a_cycle_is_found_when_something_waits_for_itself(waits_for: dict[str, list[str]]) -> None:
    """There is a cycle exactly when some node is among all that it waits for."""
    circular = any(node in closure(waits_for)[node] for node in waits_for)
    assert (find_cycle(waits_for) is not None) == circular


@given(GRAPHS, st.data())
def test_the_same_cycle_is_found_however_the_graph_is_listed(
    waits_for: dict[str, list[str]], data: st.DataObject
) -> None:
    """Shuffled nodes and edges give the same answer."""
    nodes = data.draw(st.permutations(sorted(waits_for)))
    shuffled = {node: data.draw(st.permutations(waits_for[node])) for node in nodes}
    assert find_cycle(shuffled) == find_cycle(waits_for)


@given(GRAPHS, st.lists(st.sampled_from(IDS), unique=True), st.data())
def test_a_plan_is_refused_exactly_when_it_has_a_cycle(
    waits_for: dict[str, list[str]], ids: list[str], data: st.DataObject
) -> None:
    """Order, waves and critical path refuse, naming the cycle, what find_cycle finds."""
    items = [data.draw(an_item(node)) for node in ids]
    cycle = find_cycle(waits_for)
    for question in (topological_order, waves, critical_path):
        if cycle is None:
            question(items, waits_for)
        else:
            with pytest.raises(CycleRefused) as refused:
                question(items, waits_for)
            assert refused.value.cycle == cycle


def test_a_long_chain_meets_no_limit() -> None:
    """A hundred thousand nodes in a row are ordered, and closed to a ring are found out."""
    nodes = [f"{n:06}" for n in range(LONG)]
    chain: dict[str, list[str]] = {node: [other] for other, node in pairwise(nodes)}
    items = [Item(id=node, rank=0, order=0, created_at=UTC_EPOCH) for node in reversed(nodes)]
    assert topological_order(items, chain) == nodes
    assert critical_path(items, chain) == nodes
    assert len(waves(items, chain)) == LONG
    assert find_cycle(chain) is None
    assert find_cycle({**chain, nodes[0]: [nodes[-1]]}) == (nodes[0], *reversed(nodes))


TASKS = [f"t{n}" for n in range(6)]
PHASES = ["p0", "p1", "p2", "p3"]
PAIRS_OF_TASKS = st.tuples(st.sampled_from(TASKS), st.sampled_from(TASKS))
PAIRS_OF_PHASES = st.tuples(st.sampled_from(PHASES), st.sampled_from(PHASES))


@frozen
class Parts:
    """The parts of a plan that its graph is made of."""

    tasks: list[TaskNode]
    task_dependencies: list[tuple[str, str]]
    phase_dependencies: list[tuple[str, str]]

    def edges(self) -> dict[str, list[str]]:
        """Make the graph under test."""
        return plan_edges(self.tasks, self.task_dependencies, self.phase_dependencies)

    def spelt_out(self) -> dict[str, set[str]]:
        """Make the same with every task beside every task, and phases without tasks as tasks."""
        members = {phase: {t.id for t in self.tasks if t.phase_id == phase} for phase in PHASES}
        edges: dict[str, set[str]] = {task.id: set() for task in self.tasks}
        for phase in PHASES:
            members[phase] = members[phase] or {f"empty {phase}"}
            for stand_in in members[phase]:
                edges.setdefault(stand_in, set())
        for task, other in self.task_dependencies:
            edges[task].add(other)
        for node in self.tasks:
            if node.parent_task_id is not None:
                edges[node.parent_task_id].add(node.id)
        for phase, other in self.phase_dependencies:
            for task in members[phase]:
                edges[task] |= members[other]
        return edges


@st.composite
def parts(draw: st.DrawFn) -> Parts:
    """Any tasks, phases and dependencies, cycles too."""
    tasks = [
        TaskNode(
            id=task,
            phase_id=draw(st.none() | st.sampled_from(PHASES)),
            parent_task_id=draw(st.none() | st.sampled_from(TASKS)),
        )
        for task in TASKS
    ]
    pairs = st.lists(PAIRS_OF_TASKS, max_size=3)
    return Parts(tasks, draw(pairs), draw(st.lists(PAIRS_OF_PHASES, max_size=4, unique=True)))


def closure(waits_for: Edges) -> dict[str, set[str]]:
    """All that each node waits for, directly or not."""
    reached: dict[str, set[str]] = {}
    for start in waits_for:
        found: set[str] = set()
        todo = [*waits_for[start]]
        while todo:
            node = todo.pop()
            if node not in found:
                found.add(node)
                todo.extend(waits_for.get(node, ()))
        reached[start] = found
    return reached


@given(parts())
def test_the_graph_of_a_plan_says_what_its_parts_say(plan: Parts) -> None:
    """A task waits, through whatever nodes, for exactly the tasks that spelling it out gives."""
    reached, expected = closure(plan.edges()), closure(plan.spelt_out())
    for task in TASKS:
        assert reached.get(task, set()) & {*TASKS} == expected[task] & {*TASKS}


@given(parts())
def test_a_plan_is_circular_when_its_parts_are(plan: Parts) -> None:
    """Cycles are found through tasks, parents and phases, also phases without tasks."""
    expected = find_cycle(plan.spelt_out())
    assert (find_cycle(plan.edges()) is None) == (expected is None)


@given(parts())
def test_the_graph_grows_with_the_plan_not_with_its_square(plan: Parts) -> None:
    """There are at most three edges per task and two per dependency."""
    edges = sum(len(others) for others in plan.edges().values())
    dependencies = len(plan.task_dependencies) + len(plan.phase_dependencies)
    assert edges <= 3 * len(plan.tasks) + 2 * dependencies


@given(parts())
def test_phases_stand_in_the_graph_only_where_they_depend(plan: Parts) -> None:
    """Without phase dependencies every node is a task."""
    bare = evolve(plan, phase_dependencies=[])
    assert {*bare.edges()} <= {*TASKS}


def test_finished_tasks_of_a_phase_hold_nobody_back() -> None:
    """A phase whose tasks are finished is passed even when one it depends on is not."""
    tasks = [TaskNode(id=f"t{n}", phase_id=f"p{n}") for n in range(3)]
    edges = plan_edges(tasks, [], [("p2", "p1"), ("p1", "p0")])
    items = [Item(id=f"t{n}", rank=1, order=n, created_at=UTC_EPOCH) for n in range(3)]
    items[1] = evolve(items[1], finished=True)
    assert waves(items, edges) == [["t0", "t2"]]
