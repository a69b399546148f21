"""Named questions about accounts, the ledger and what came of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import NotFound
from herdbook.domain.record.model import (
    Account,
    Activity,
    Commit,
    EventKind,
    Retrospective,
    ScoreEvent,
    Standing,
)
from herdbook.domain.record.standing import first_standing, fold
from herdbook.ports.engine.dictionary import ACCOUNTS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.cases import for_each
from tests.contract.turns import Begin, in_turn

MINUTE = timedelta(minutes=1)
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def space(space: str) -> str:
    """The record is kept in spaces of its own."""
    return f"record/{space.partition('/')[2]}"


def _account(email: str, **given: object) -> Account:
    return Account(email=email, **given)


def test_accounts_of_a_provider_come_in_their_order(begin: Begin) -> None:
    """Other providers' accounts are not among them."""
    with begin() as uow:
        second, first, _ = uow.accounts.add_all(
            [
                _account("b", sort_order=2),
                _account("a", sort_order=1),
                _account("c", provider="other"),
            ]
        )
        uow.commit()
    with begin(write=False) as uow:
        assert uow.accounts.of_provider("claude") == [first, second]
        assert uow.accounts.of_provider("nobody") == []


def test_taking_an_account_marks_it_as_used_now(begin: Begin) -> None:
    """The account comes back as it is kept, with the time of the transaction."""
    with begin() as uow:
        account = uow.accounts.add(_account("a"))
        uow.commit()
    with begin() as uow:
        taken = uow.accounts.next_available("claude")
        now = uow.now
        uow.commit()
    assert taken == evolve(account, last_used_at=now, updated_at=now, version=2)
    with begin(write=False) as uow:
        assert uow.accounts.get(account.id) == taken


def test_an_account_that_was_not_committed_is_not_taken(begin: Begin) -> None:
    """A unit of work that is undone leaves the turn where it was."""
    with begin() as uow:
        account = uow.accounts.add(_account("a"))
        uow.commit()
    with begin() as uow:
        uow.accounts.next_available("claude")
    with begin(write=False) as uow:
        assert uow.accounts.get(account.id) == account


def test_accounts_are_taken_in_turn(begin: Begin) -> None:
    """Never used first, by sort order; then whichever rested longest, wherever it stands."""
    used = START
    rows = [
        _account("used later", last_used_at=used + MINUTE),
        _account("never, last", sort_order=9),
        _account("used first", last_used_at=used, sort_order=5),
        _account("never, first", sort_order=1),
        _account("elsewhere", provider="other"),
    ]
    with begin() as uow:
        uow.accounts.add_all(rows)
        uow.commit()
    turn = []
    for _ in range(5):
        with begin() as uow:
            turn.append(uow.accounts.next_available("claude").email)
            uow.commit()
    rounds = ["never, first", "never, last", "used first", "used later"]
    assert turn == [*rounds, rounds[0]]


def test_one_unit_of_work_gets_two_accounts_too(begin: Begin) -> None:
    """The second asked for is not the one just taken."""
    with begin() as uow:
        uow.accounts.add_all([_account("a", sort_order=1), _account("b", sort_order=2)])
        taken = [uow.accounts.next_available("claude").email for _ in range(2)]
    assert taken == ["a", "b"]


def test_an_exhausted_account_is_passed_over(begin: Begin) -> None:
    """Until its time has come, and for good where no time is known."""
    with begin() as uow:
        soon, never, _ = uow.accounts.add_all(
            [_account("soon"), _account("never"), _account("other", provider="other")]
        )
        uow.accounts.mark_exhausted(soon.id, uow.now + 9_999 * MINUTE)
        uow.accounts.mark_exhausted(never.id, None)
        uow.commit()
    with begin() as uow:
        assert uow.accounts.next_available("claude") is None
        assert uow.accounts.next_available("nobody") is None


def test_an_account_whose_exhaustion_has_passed_is_available_again(begin: Begin) -> None:
    """Taking it clears the mark; the very moment it was exhausted until counts as passed."""
    with begin() as uow:
        account = uow.accounts.add(_account("a"))
        exhausted = uow.accounts.mark_exhausted(account.id, uow.now)
        taken = uow.accounts.next_available("claude")
        now = uow.now
        uow.commit()
    assert (exhausted.is_exhausted, exhausted.exhausted_until) == (True, now)
    assert taken == evolve(
        account, is_exhausted=False, exhausted_until=None, last_used_at=now, version=3
    )


def test_marking_an_account_that_is_not_there_names_it(begin: Begin) -> None:
    """Nothing is made up for an unknown id."""
    with begin() as uow:
        with pytest.raises(NotFound) as refusal:
            uow.accounts.mark_exhausted("acc_missing", None)
        assert (refusal.value.entity, refusal.value.key) == ("account", "acc_missing")


def test_clearing_puts_back_only_what_is_due(begin: Begin) -> None:
    """An exhaustion that lasts, or that has no end, stays; a second time there is nothing to do."""
    with begin() as uow:
        now = uow.now
        due, later, endless, fine = uow.accounts.add_all(
            [
                _account("due", is_exhausted=True, exhausted_until=now),
                _account("later", is_exhausted=True, exhausted_until=now + 9_999 * MINUTE),
                _account("endless", is_exhausted=True),
                _account("fine"),
            ]
        )
        uow.commit()
    with begin() as uow:
        (cleared,) = uow.accounts.clear_expired()
        assert uow.accounts.clear_expired() == []
        uow.commit()
    stamped = {"updated_at": cleared.updated_at, "version": 2}
    assert cleared == evolve(due, is_exhausted=False, exhausted_until=None, **stamped)
    with begin(write=False) as uow:
        kept = uow.accounts.get_many([due.id, later.id, endless.id, fine.id])
    assert kept == [cleared, later, endless, fine]


def test_the_older_account_comes_first_when_all_else_is_equal(begin: Begin) -> None:
    """Neither id nor email decides between two accounts that were never used."""
    older, _ = in_turn(begin, ACCOUNTS, [_account("older"), _account("younger")])
    with begin() as uow:
        assert uow.accounts.next_available("claude").id == older.id


def _event(agent: str, at: datetime) -> ScoreEvent:
    return ScoreEvent(agent=agent, kind=EventKind.TOOL, points=1, at=at)


def _commit(agent: str, at: datetime) -> Commit:
    return Commit(
        agent=agent,
        project="p",
        commit_hash=f"{agent}-{at.isoformat()}",
        task="x",
        experience_gained=5,
        at=at,
    )


def _retrospective(agent: str, at: datetime) -> Retrospective:
    return Retrospective(
        agent=agent,
        project="p",
        commit_hash=f"{agent}-{at.isoformat()}",
        task="x",
        agent_grade=2,
        user_grade=1,
        score_before=60,
        score_after=63,
        at=at,
    )


def _activity(agent: str, at: datetime) -> Activity:
    return Activity(agent=agent, task="x", actions="x", outcome="x", decisions="x", at=at)


dated = for_each(
    ("repository", "make"),
    [
        ("ledger", _event),
        ("commits", _commit),
        ("retrospectives", _retrospective),
        ("activities", _activity),
    ],
    ids=lambda it: it if isinstance(it, str) else "",
)


def _five(uow: UnitOfWork, repository: str, make: Any) -> tuple[Any, list[Any]]:
    """Rows of two agents, a minute apart from each other, added in a scrambled order."""
    rows = getattr(uow, repository)
    plan = [("b", 3), ("a", 4), ("a", 0), ("b", 1), ("a", 2)]
    added = rows.add_all([make(agent, START + minute * MINUTE) for agent, minute in plan])
    return rows, sorted(added, key=lambda row: row.at)


@dated
def test_rows_of_an_agent_come_by_time(
    begin: Begin,
    repository: str,
    make: Any,
) -> None:
    """Oldest first or last, in a stretch of time that has its beginning and not its end."""
    with begin() as uow:
        rows, (one, _, three, _, five) = _five(uow, repository, make)
        assert rows.of_agent("a") == [one, three, five]
        assert rows.of_agent("a", descending=True) == [five, three, one]
        assert rows.of_agent("a", since=three.at) == [three, five]
        assert rows.of_agent("a", until=three.at) == [one]
        assert rows.of_agent("a", since=one.at, until=five.at) == [one, three]
        assert rows.of_agent("a", limit=2) == [one, three]
        assert rows.of_agent("a", limit=2, after=three) == [five]
        assert rows.of_agent("a", descending=True, limit=1, after=three) == [one]
        assert rows.of_agent("c") == []


@dated
def test_rows_of_everybody_come_by_time(
    begin: Begin,
    repository: str,
    make: Any,
) -> None:
    """All agents' rows in one line, in a stretch of time that has its beginning and not its end."""
    with begin() as uow:
        rows, (one, two, three, four, five) = _five(uow, repository, make)
        assert rows.by_time() == [one, two, three, four, five]
        assert rows.by_time(descending=True, limit=2) == [five, four]
        assert rows.by_time(since=two.at, until=four.at) == [two, three]
        assert rows.by_time(limit=2, after=two) == [three, four]
        assert rows.by_time(since=START + 9 * MINUTE) == []


def test_a_retrospective_is_found_by_its_commit(begin: Begin) -> None:
    """Agent, project and hash together name one judgement."""
    with begin() as uow:
        kept = uow.retrospectives.add(_retrospective("a", START))
        uow.retrospectives.add(_retrospective("b", START))
        uow.commit()
    with begin(write=False) as uow:
        assert uow.retrospectives.of_commit("a", "p", kept.commit_hash) == kept
        assert uow.retrospectives.of_commit("b", "p", kept.commit_hash) is None
        assert uow.retrospectives.of_commit("a", "q", kept.commit_hash) is None


def test_the_standing_of_an_agent_is_the_fold_of_its_ledger(begin: Begin) -> None:
    """Only its own entries count; an agent without any stands at the beginning."""
    with begin() as uow:
        events = uow.ledger.add_all([_event(agent, START) for agent in ("a", "b", "a")])
        uow.commit()
    with begin(write=False) as uow:
        assert uow.standings.of_agent("a") == fold("a", [events[0], events[2]])
        assert uow.standings.of_agent("c") == first_standing("c")
        assert uow.standings.of_agent("c") == Standing(id=first_standing("c").id, agent="c")
