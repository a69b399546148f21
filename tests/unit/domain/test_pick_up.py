"""The order in which so many agents pick up tasks."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.graph import Item, waves
from herdbook.domain.plan.pick_up import MOST_AGENTS, PickUpOrder, pick_up_order

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def items(*names: str, finished: str = "") -> list[Item]:
    """Items that sort as they are listed."""
    return [
        Item(id=name, rank=0, order=at, created_at=NOW, finished=name in finished)
        for at, name in enumerate(names)
    ]


def test_agents_share_what_is_free_and_the_first_is_the_next_claim() -> None:
    found = pick_up_order(items(*"abcde"), {"e": ["a"]}, 2)
    assert (found.next, found.steps) == ("a", (("a", "b"), ("c", "d"), ("e",)))
    assert pick_up_order(items(*"abcde"), {"e": ["a"]}, 9).steps == (tuple("abcd"), ("e",))


def test_what_is_held_comes_first_even_if_more_hold_than_agents_are_asked_for() -> None:
    found = pick_up_order(items(*"abcd"), {}, 1, held=("c", "d"))
    assert (found.next, found.steps) == ("a", (("c", "d"), ("a",), ("b",)))
    assert pick_up_order(items("a"), {}, 1, held="a").next is None


def test_what_waits_for_a_person_is_stuck_with_all_behind_it() -> None:
    edges = {"b": ["a"], "c": ["b"], "d": []}
    found = pick_up_order(items(*"abcd"), edges, 2, closed=("b",))
    assert (found.steps, found.stuck) == ((("a", "d"),), ("b", "c"))


def test_finishing_a_task_frees_what_waits_for_it_alone() -> None:
    edges = {"b": ["a"], "c": ["a", "x"], "x": ["d"], "e": ["a", "d"]}
    found = pick_up_order(items(*"abcde"), edges, 1)
    assert found.frees == {"a": ("b",), "b": (), "c": (), "d": (), "e": ()}
    assert pick_up_order(items(*"abcde", finished="d"), edges, 1).frees["a"] == ("b", "c", "e")


@pytest.mark.parametrize("agents", [0, -1, MOST_AGENTS + 1])
def test_somebody_works_but_not_the_whole_world(agents: int) -> None:
    with pytest.raises(InvalidValue):
        pick_up_order([], {}, agents)


@given(st.data())
def test_every_task_is_picked_up_once_after_what_it_waits_for(data: st.DataObject) -> None:
    """With any number of agents; with enough of them, the steps are the waves."""
    count = data.draw(st.integers(1, 12))
    names = [f"t{number:02}" for number in range(count)]
    edges = {
        name: data.draw(st.lists(st.sampled_from(names[:at]), unique=True)) if at else []
        for at, name in enumerate(names)
    }
    agents = data.draw(st.integers(1, 5))
    held = data.draw(st.sets(st.sampled_from([name for name in names if not edges[name]])))
    found: PickUpOrder = pick_up_order(items(*names), edges, agents, held=held)
    picked = [name for step in found.steps for name in step]
    assert sorted(picked) == names
    assert found.stuck == ()
    step_of = {name: at for at, step in enumerate(found.steps) for name in step}
    assert all(step_of[other] < step_of[name] for name in names for other in edges[name])
    assert all(len(step) <= agents for step in found.steps[1:])
    assert len(found.steps[0]) <= max(agents, len(held))
    whole = pick_up_order(items(*names), edges, count)
    assert [set(step) for step in whole.steps] == [
        set(wave) for wave in waves(items(*names), edges)
    ]
