"""The laws of agents' names."""

import re
from collections.abc import Container
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.agents.names import ADJECTIVES, ANIMALS, propose_name

PLAIN = {
    f"{adjective}-{animal}" for adjective, animal in product(ADJECTIVES.split(), ANIMALS.split())
}
CHANCE = st.randoms(use_true_random=False)


class Numbered(Container[str]):
    """Takes every plain name and every number up to one."""

    def __init__(self, largest: int) -> None:
        self.largest = largest

    def __contains__(self, name: object) -> bool:
        number = re.search(r"\d+", str(name))
        return number is None or int(number[0]) <= self.largest


@given(CHANCE)
def test_a_name_is_an_adjective_and_an_animal(random: Random) -> None:
    """While names are free, one is made of a word from each list and nothing more."""
    assert propose_name(random, ()) in PLAIN


@given(CHANCE, st.integers(1, 200))
def test_a_herd_shares_no_name(random: Random, size: int) -> None:
    """Agents named one after the other all get names of their own."""
    taken: set[str] = set()
    for _ in range(size):
        taken.add(propose_name(random, taken))
    assert len(taken) == size


@given(CHANCE)
def test_a_taken_name_is_never_proposed(random: Random) -> None:
    """A name that is taken is never proposed, however few are left."""
    free = set(random.sample(sorted(PLAIN), 3))
    name = propose_name(random, PLAIN - free)
    assert name in free or name not in PLAIN


@given(CHANCE)
def test_a_number_is_added_when_all_plain_names_are_taken(random: Random) -> None:
    """With every pair of words taken the name is a pair with a number, from 2 on."""
    name = propose_name(random, PLAIN)
    plain, _, number = name.rpartition("-")
    assert plain in PLAIN
    assert number == "2"


@given(CHANCE, st.integers(0, 1000))
def test_a_name_is_found_past_any_number_taken(random: Random, largest: int) -> None:
    """Proposing ends, with a free name, whatever finite number of names is taken."""
    assert propose_name(random, Numbered(largest)) not in Numbered(largest)


@given(CHANCE)
def test_the_same_chance_gives_the_same_name(random: Random) -> None:
    """A name depends on nothing but the given random source and what is taken."""
    before = random.getstate()
    name = propose_name(random, ())
    random.setstate(before)
    assert propose_name(random, ()) == name


def test_names_differ_with_chance() -> None:
    """A thousand names drawn are mostly different, so that agents seldom meet their namesake."""
    random = Random(0)  # names are no secrets
    assert len({propose_name(random, ()) for _ in range(1000)}) > 900


@pytest.mark.parametrize(
    "words", [ADJECTIVES.split(), ANIMALS.split()], ids=["adjectives", "animals"]
)
def test_words_are_many_short_and_listed_once(words: list[str]) -> None:
    """Each list has at least 120 different words of small letters, fit for any name."""
    assert len(set(words)) == len(words) >= 120
    assert all(re.fullmatch("[a-z]{2,16}", word) for word in words)
