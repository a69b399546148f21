"""Whoever goes through the past step by step sees what whoever asks once sees, and reads less."""

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.entity import evolve
from herdbook.domain.errors import JournalPruned
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Project
from herdbook.ports.engine.dictionary import (
    CHAT_MESSAGES,
    CHAT_SESSIONS,
    JOURNAL,
    PROJECTS,
)
from herdbook.ports.engine.query import Query, find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work import past_cache
from herdbook.ports.unit_of_work.past import past_unit_of_work
from herdbook.ports.unit_of_work.past_cache import PastCache
from herdbook.ports.unit_of_work.run import read
from herdbook.services.journal.prune import prune
from tests.contract.conftest import Begin
from tests.contract.pasts import Snapshot, check_past, snapshot
from tests.contract.rows import make
from tests.contract.test_use_cases import SHARES, Spaces, Transaction, programs
from tests.contract.wrapped import WrappedSession, WrappedStore


def test_positions_in_any_order_are_as_they_were(store: Store, engine: str) -> None:
    """Forwards, backwards and in jumps, while the program goes on and after it."""

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=programs, randomness=st.randoms(use_true_random=False))
    def holds(program: list[Transaction], randomness: random.Random) -> None:
        spaces, cache = Spaces(store), PastCache()
        taken: dict[Area, dict[int, Snapshot]] = {Area.WORK: {}, Area.RECORD: {}}
        for transaction in [[], *program]:
            if transaction:
                spaces.attempt(transaction)
            for area, there in taken.items():
                there.setdefault(*snapshot(store, spaces.names[area]))
                seq = randomness.choice(list(there))
                check_past(store, spaces.names[area], seq, there[seq], cache)
        for area, there in taken.items():
            order = list(there)
            randomness.shuffle(order)
            for seq in (*there, *reversed(list(there)), *order):
                check_past(store, spaces.names[area], seq, there[seq], cache)

    holds()


class ReadEntries(WrappedSession):
    """Counts the entries of the journal that are read."""

    count = 0

    def select(self, query: Query[Any]) -> list[Any]:
        """Select and count."""
        found = self._session.select(query)
        if query.kind is JOURNAL:
            ReadEntries.count += len(found)
        return found


def _write(begin: Begin, count: int) -> None:
    """A project, and changes of its name in transactions of their own."""
    with begin() as uow:
        project = uow.projects.add(Project(name="0", url="there"))
        uow.commit()
    for number in range(1, count):
        with begin() as uow:
            project = uow.projects.save(evolve(project, name=str(number)))
            uow.commit()


def _name_at(store: Store, space: str, seq: int, cache: PastCache) -> str:
    with past_unit_of_work(store, space, seq, cache=cache) as uow:
        (project,) = uow.projects.page()
        return project.name


def test_a_step_reads_what_lies_between(store: Store, space: str, begin: Begin) -> None:
    """However far back it is, and whatever was written since."""
    _write(begin, 60)
    counting, cache = cast("Store", WrappedStore(store, ReadEntries)), PastCache()
    for seq, most in ((10, 50), (9, 1), (12, 3), (12, 0), (11, 1), (10, 0)):
        ReadEntries.count = 0
        assert _name_at(counting, space, seq, cache) == str(seq - 1)
        # Two entries find the end of the transaction.
        assert ReadEntries.count <= most + 2, seq
    with begin() as uow:
        (project,) = uow.projects.page()
        uow.projects.save(evolve(project, name="last"))
        uow.commit()
    ReadEntries.count = 0
    assert _name_at(counting, space, 11, cache) == "10"
    assert ReadEntries.count <= 3


def test_what_is_kept_is_bounded(
    store: Store, space: str, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The positions that were used last stay; those of many rows go sooner."""
    _write(begin, 30)
    cache = PastCache()
    for seq in range(1, 30):
        assert _name_at(store, space, seq, cache) == str(seq - 1)
    (spaces,) = cache._stores.values()
    assert len(spaces[space]._known) == past_cache.MOST_POSITIONS
    monkeypatch.setattr(past_cache, "MOST_ROWS", 0)
    assert _name_at(store, space, 5, cache) == "4"
    assert list(spaces[space]._known) == [5]


def test_what_was_folded_is_refused_though_it_was_kept(
    store: Store, space: str, begin: Begin
) -> None:
    """And what comes after the fold is read from what is left."""
    _write(begin, 20)
    cache = PastCache()
    assert _name_at(store, space, 3, cache) == "2"
    assert _name_at(store, space, 12, cache) == "11"
    prune(store, space, 8)
    with pytest.raises(JournalPruned):
        _name_at(store, space, 3, cache)
    for seq in (9, 12, 8, 19):
        assert _name_at(store, space, seq, cache) == str(seq - 1)


def test_many_ask_at_once(store: Store, space: str, begin: Begin) -> None:
    """Each gets its own position, while others write."""
    _write(begin, 40)
    cache = PastCache()

    def ask(seq: int) -> str:
        return _name_at(store, space, seq, cache)

    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(ask, [*range(1, 40), *range(39, 0, -1)])
        with begin() as uow:
            (project,) = uow.projects.page()
            uow.projects.save(evolve(project, name="last"))
            uow.commit()
        found = list(answers)
    assert found == [str(seq - 1) for seq in [*range(1, 40), *range(39, 0, -1)]]
    assert read(store, space, lambda uow: uow.projects.page()[0].name) == "last"


def test_rows_of_which_the_journal_has_the_key_only_are_known_as_far_as_otherwise(
    store: Store, space: str, begin: Begin
) -> None:
    """Stepping on over messages that were written once, of which one is gone and one is not."""
    with begin() as uow:
        make(uow, PROJECTS)
        uow.commit()
    chats = []
    for _ in range(2):
        with begin() as uow:
            chat = make(uow, CHAT_SESSIONS)
            chats.append(chat.id)
            uow.commit()
        for _ in range(2):
            with begin() as uow:
                make(uow, CHAT_MESSAGES, chat_session_id=chat.id)
                uow.commit()
    with begin() as uow:
        last = uow.journal.last()
        uow.remove(CHAT_SESSIONS, chats[:1])
        uow.commit()
    cache, lost_ever = PastCache(), set()
    for seq in (0, *range(last + 1), *range(last, 0, -1)):
        with past_unit_of_work(store, space, seq) as uow:
            there, lost = uow.select(find(CHAT_MESSAGES)), vars(uow.session)["lost"]
        with past_unit_of_work(store, space, seq, cache=cache) as uow:
            assert (uow.select(find(CHAT_MESSAGES)), vars(uow.session)["lost"]) == (there, lost)
        lost_ever |= {len(each) for each in lost.values()}
    assert lost_ever == {1, 2}
