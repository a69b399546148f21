"""A space can be read as it was at any earlier position of its journal."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given, settings

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, JournalPruned
from herdbook.domain.journal import Position
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Project
from herdbook.domain.plan.readiness import WaitingTask
from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import (
    CHAT_MESSAGES,
    CHAT_SESSIONS,
    DICTIONARY,
    INITIATIVES,
    JOURNAL,
    LOG_CHUNKS,
    PROJECTS,
    WAITING,
)
from herdbook.ports.engine.query import Query, find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.past import past_unit_of_work
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from herdbook.services.journal.differences import Differences, differences
from herdbook.services.journal.journal_effects import STAMP_FIELDS
from herdbook.services.journal.moments import list_moments
from herdbook.services.journal.prune import prune
from herdbook.services.stores.copy_spaces import copy
from herdbook.services.stores.merge_spaces import merge
from tests.contract.conftest import Begin
from tests.contract.inhabited import inhabit, work_on
from tests.contract.pasts import ANSWERS, Snapshot, check_past, entries_of, snapshot
from tests.contract.rows import make
from tests.contract.space import HERE, everything_in, work_in
from tests.contract.test_journal import NOON, Clock, with_our_clock
from tests.contract.test_use_cases import SHARES, Spaces, Transaction, programs
from tests.contract.wrapped import WrappedSession, WrappedStore


def test_every_position_is_as_it_was(store: Store, engine: str) -> None:
    """After any program of use cases, each position has the rows of a store that stopped there."""

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=programs)
    def holds(program: list[Transaction]) -> None:
        spaces = Spaces(store)
        taken: dict[Area, dict[int, Snapshot]] = {Area.WORK: {}, Area.RECORD: {}}
        for transaction in [[], *program]:
            if transaction:
                spaces.attempt(transaction)
            for area, there in taken.items():
                there.setdefault(*snapshot(store, spaces.names[area]))
        for area, there in taken.items():
            for seq, then in there.items():
                check_past(store, spaces.names[area], seq, then)

    holds()


def test_what_changed_between_two_positions_is_what_differs(store: Store, engine: str) -> None:
    """Each row and field that differs between the two is told with both values, and no other."""

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=programs)
    def holds(program: list[Transaction]) -> None:
        spaces = Spaces(store)
        space = spaces.names[Area.WORK]
        taken = [snapshot(store, space)]
        for transaction in program:
            spaces.attempt(transaction)
            taken.append(snapshot(store, space))
        pairs = [(taken[0], taken[-1]), (taken[len(taken) // 2], taken[-1])]
        for (since, before), (until, after) in [*pairs, (taken[0], taken[len(taken) // 2])]:
            found = read(store, space, differences, since, 10_000, at=until)
            assert (found["since"]["seq"], found["until"]["seq"]) == (since, until)
            assert _told(found) == _differing(before, after)

    holds()


def _told(found: Differences) -> dict[tuple[str, str], Any]:
    return {
        (row["entity"], row["id"]): row["change"]
        if DICTIONARY.kinds[row["entity"]].append_only and row["change"] != "changed"
        else {each["field"]: (each["before"], each["after"]) for each in row["fields"]}
        for row in found["rows"]
    }


def _differing(before: Snapshot, after: Snapshot) -> dict[tuple[str, str], Any]:
    """What differs between two snapshots, field by field."""
    found: dict[tuple[str, str], Any] = {}
    for name in before.keys() - {ANSWERS, "openings", "waiting"}:
        kind = DICTIONARY.kinds[name]
        for key in before[name].keys() | after[name].keys():
            was, became = (
                encode_row(kind, rows[name][key]) if key in rows[name] else {}
                for rows in (before, after)
            )
            if kind.append_only and not (was and became):
                found[name, key] = "added" if became else "removed"
                continue
            fields = {
                field: (was.get(field), became.get(field))
                for field in {**was, **became}
                if field not in STAMP_FIELDS and was.get(field) != became.get(field)
            }
            if fields:
                found[name, key] = fields
    return found


def _write(begin: Begin, *names: str) -> list[Project]:
    """Add a project in a transaction of its own for each name."""
    added = []
    for name in names:
        with begin() as uow:
            added.append(uow.projects.add(Project(name=name, url=name)))
            uow.commit()
    return added


def _names(store: Store, space: str, at: Position) -> list[str]:
    return read(store, space, lambda uow: sorted(each.name for each in uow.projects.page()), at=at)


def test_a_number_within_a_transaction_means_the_one_before(
    store: Store, space: str, begin: Begin
) -> None:
    """Nobody ever saw half of a transaction."""
    _write(begin, "a")
    with begin() as uow:
        uow.projects.add_all([Project(name=each, url=each) for each in "bcd"])
        uow.commit()
    assert [_names(store, space, at) for at in range(5)] == [[], ["a"], ["a"], ["a"], [*"abcd"]]


def test_a_time_means_the_last_transaction_until_then(
    store: Store, space: str, begin: Begin
) -> None:
    """For the time of every entry, just before it, and before all of them."""
    _write(begin, *"abcdefgh")
    entries = entries_of(store, space)
    blink = timedelta(microseconds=1)
    for moment in [each.time + step for each in entries for step in (-blink, timedelta())]:
        with past_unit_of_work(store, space, moment) as uow:
            last = max((each.seq for each in entries if each.time <= moment), default=0)
            assert uow.as_of == (last, moment)
            assert uow.now == moment


def test_moments_are_the_ends_of_transactions(store: Store, space: str, begin: Begin) -> None:
    """The last ones until a number or a time, and the next ones after a number; however many."""
    _write(begin, "a")
    for count in (3, 1, 2):
        with begin() as uow:
            uow.projects.add_all(
                [Project(name=f"{count} {n}", url=f"{count}{n}") for n in range(count)]
            )
            uow.commit()
    entries = entries_of(store, space)
    ends = [1, 4, 5, 7]

    def numbers(**asked: Any) -> list[int]:
        found = read(store, space, list_moments, **asked)
        assert (found["first"]["seq"], found["last"]["seq"]) == (0, 7)
        assert found["last"]["time"] == entries[-1].time
        for each in found["moments"]:
            assert each["time"] == entries[each["seq"] - 1].time
        return [each["seq"] for each in found["moments"]]

    assert numbers() == ends
    for number in range(8):
        until = [each for each in ends if each <= number]
        assert numbers(until=number) == until
        assert numbers(until=number, limit=2) == until[-2:]
        later = [each for each in ends if each > number]
        if number in {0, *ends}:
            assert numbers(after=number) == later
            assert numbers(after=number, limit=1) == later[:1]
    assert numbers(until=entries[4].time)[-1] in {5, 7}
    sizes = [each["entries"] for each in read(store, space, list_moments)["moments"]]
    assert sizes == [1, 3, 1, 2]
    for wrong in ({"limit": 0}, {"until": 8}, {"until": 1, "after": 1}):
        with pytest.raises(InvalidValue):
            numbers(**wrong)
    prune(store, space, 4)
    found = read(store, space, list_moments, until=5)
    assert (found["first"]["seq"], [each["seq"] for each in found["moments"]]) == (4, [5])
    with pytest.raises(JournalPruned):
        numbers(after=1)


def test_a_copy_and_a_merge_have_the_past_of_their_journal(
    store: Store, space: str, fresh: Callable[..., Store]
) -> None:
    """The copy has that of its source; what a merge added was not there before it."""
    inhabit(store, space)
    taken = [snapshot(store, space)]
    work_on(store, space)
    taken.append(snapshot(store, space))
    target, other = fresh(), fresh()
    copy(store, target, [space])
    inhabit(other, space)
    assert merge(other, target, [space]).added
    taken.append(snapshot(target, space))
    with unit_of_work(target, space) as uow:
        uow.remove(INITIATIVES, [each.id for each in uow.initiatives.page()])
        uow.commit()
    for seq, then in taken:
        check_past(target, space, seq, then)


def test_what_was_folded_is_refused_with_the_beginning_of_the_journal(
    store: Store, space: str, begin: Begin
) -> None:
    """The state at the fold itself can be read, as can all after it."""
    _write(begin, *"abcd")
    times = [each.time for each in entries_of(store, space)]
    prune(store, space, 2)
    assert _names(store, space, 2) == ["a", "b"]
    assert _names(store, space, times[2]) == ["a", "b", "c"]
    for at in (0, 1, times[0]):
        with pytest.raises(JournalPruned, match="begins at #3") as refused:
            _names(store, space, at)
        assert refused.value.first == 3


def test_the_future_is_refused(store: Store, space: str, begin: Begin) -> None:
    """By number and by time; the last entry and the present are not the future."""
    _write(begin, "a")
    with begin(write=False) as uow:
        now = uow.now
    assert _names(store, space, 1) == _names(store, space, now) == ["a"]
    for at in (2, now + timedelta(days=1)):
        with pytest.raises(InvalidValue, match="at: is"):
            _names(store, space, at)


def test_a_space_that_is_not_there_has_no_past_but_its_beginning(store: Store, space: str) -> None:
    """Nothing was there, and no number of an entry is one of its own."""
    assert _names(store, space, 0) == []
    with pytest.raises(InvalidValue, match="the last entry is #0"):
        _names(store, space, 1)


def test_nothing_can_be_written_into_the_past(store: Store, space: str, begin: Begin) -> None:
    """By no method of the unit of work and none of its session."""
    (project,) = _write(begin, "a")
    before = everything_in(store, space)
    with past_unit_of_work(store, space, 1) as uow:
        session = uow.session
        for write in (
            lambda: uow.projects.add(Project(name="b", url="b")),
            lambda: uow.projects.save(project),
            lambda: uow.projects.remove(project.id),
            lambda: uow.put_derived(WAITING, [WaitingTask(task_id="tsk_x", blockers=1)]),
            uow.commit,
            lambda: session.insert(PROJECTS, [project]),
            lambda: session.replace(PROJECTS, [project]),
            lambda: session.delete(PROJECTS, [project.id]),
            session.commit,
        ):
            with pytest.raises(RuntimeError):
                write()
    assert everything_in(store, space) == before


def test_what_the_journal_does_not_know_is_refused(store: Store, space: str, begin: Begin) -> None:
    """Rows that are there today are not shown as those of then."""
    with begin() as uow:
        make(uow, PROJECTS)
        make(uow, LOG_CHUNKS)
        uow.commit()
    with past_unit_of_work(store, space, 1) as uow:
        for kind in DICTIONARY:
            if kind.journalled or kind.derived or kind is JOURNAL:
                continue
            with pytest.raises(InvalidValue, match="is not known"):
                uow.select(find(kind))
            with pytest.raises(InvalidValue, match="is not known"):
                uow.count(find(kind))
            with pytest.raises(InvalidValue, match="is not known"):
                uow.get(kind, ["x"])


def test_a_row_written_once_that_was_removed_is_told_as_lost(
    store: Store, space: str, begin: Begin
) -> None:
    """The journal has its key; that it was there is not hidden, and what it said not made up."""
    with begin() as uow:
        chat = make(uow, CHAT_SESSIONS)
        message = make(uow, CHAT_MESSAGES, chat_session_id=chat.id)
        uow.commit()
    with begin() as uow:
        last = uow.journal.last()
        uow.remove(CHAT_SESSIONS, [chat.id])
        uow.commit()
    with past_unit_of_work(store, space, last) as uow:
        assert uow.get(CHAT_SESSIONS, [chat.id]) == [chat]
        assert uow.select(find(CHAT_MESSAGES)) == []
        assert vars(uow.session)["lost"] == {CHAT_MESSAGES.name: {message.id}}


def test_one_row_is_read_without_the_rest_of_the_journal(
    store: Store, space: str, begin: Begin
) -> None:
    """However much was written since, only its own entries are read."""
    (project,) = _write(begin, "a")
    for number in range(3):
        with begin() as uow:
            uow.projects.save(evolve(uow.projects.get(project.id), name=f"a{number}"))
            uow.projects.add_all(
                [Project(name=f"{number} {n}", url=f"{number} {n}") for n in range(50)]
            )
            uow.commit()
    rows: list[Any] = []

    class ReadSession(WrappedSession):
        """Remembers the entries of the journal that are read."""

        def select(self, query: Query[Any]) -> list[Any]:
            found = self._session.select(query)
            rows.extend(found)
            return found

    counting = cast("Store", WrappedStore(store, ReadSession))
    with past_unit_of_work(counting, space, 1) as uow:
        rows.clear()
        assert uow.projects.get(project.id) == project
        assert [each.key for each in rows] == [project.id] * 3


@with_our_clock
def test_a_clock_that_was_ahead_does_not_hide_what_came_after_it(
    fresh: Callable[..., Store],
) -> None:
    """Entries count by the time that their machine had, though their stamps are years ahead."""
    clock = Clock()
    store = fresh(clock=clock)
    times = [NOON, NOON + timedelta(days=3650), *(NOON + timedelta(hours=n) for n in (1, 2, 3))]
    for clock.now in times:
        with work_in(store) as uow:
            make(uow, PROJECTS)
            uow.commit()
    clock.now = NOON + timedelta(hours=4)
    half = timedelta(minutes=30)
    for moment, last in ((NOON, 1), (times[2] - half, 1), (times[2], 3), (times[3] + half, 4)):
        with past_unit_of_work(store, HERE, moment) as uow:
            assert uow.as_of == (last, moment)
            assert len(uow.projects.page()) == last
    with past_unit_of_work(store, HERE, clock.now) as uow:
        assert len(uow.projects.page()) == len(times)
