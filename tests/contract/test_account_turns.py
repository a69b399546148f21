"""Accounts taken in turn, used up for a while and freed, on every store."""

from datetime import timedelta

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import NotFound
from herdbook.domain.record.model import Account
from herdbook.domain.secret import Secret
from herdbook.services.agents import accounts
from tests.contract.claims import do
from tests.contract.turns import Begin

HOUR = timedelta(hours=1)


@pytest.fixture
def space(space: str) -> str:
    """The record keeps accounts."""
    return f"record/{space.partition('/')[2]}"


def _added(begin: Begin, *rows: Account) -> list[Account]:
    with begin() as uow:
        added = uow.accounts.add_all(rows)
        uow.commit()
    return added


def _email(account: Account | None) -> str | None:
    return None if account is None else account.email


def test_accounts_are_taken_in_turn(begin: Begin) -> None:
    """First in their order, then whichever rested longest; only the provider's own."""
    rows = [Account(email=email, sort_order=n) for n, email in enumerate("cab")]
    _added(begin, *rows, Account(email="x", provider="codex"))
    taken = [_email(do(begin, accounts.take, "claude")) for _ in range(7)]
    assert taken == ["c", "a", "b", "c", "a", "b", "c"]
    assert _email(do(begin, accounts.take, "codex")) == "x"
    assert do(begin, accounts.take, "nobody's") is None


def test_taking_writes_down_when(begin: Begin) -> None:
    """In the very transaction that takes it."""
    (account,) = _added(begin, Account(email="a"))
    with begin() as uow:
        taken = accounts.take(uow)
        assert taken == evolve(account, last_used_at=uow.now, updated_at=uow.now, version=2)
        uow.commit()
    with begin(write=False) as uow:
        assert uow.accounts.get(account.id) == taken


def test_an_exhausted_account_is_out_of_the_turn_until_its_time(begin: Begin) -> None:
    """At its time it is taken again, and counts as exhausted no more."""
    one, other = _added(begin, Account(email="a"), Account(email="b", sort_order=1))
    with begin() as uow:
        until = uow.now + HOUR
        uow.commit()
    exhausted = do(begin, accounts.exhaust, one.id, until)
    assert (exhausted.is_exhausted, exhausted.exhausted_until) == (True, until)
    assert [_email(do(begin, accounts.take)) for _ in range(2)] == ["b", "b"]
    with begin() as uow:
        past = uow.now
        uow.commit()
    do(begin, accounts.exhaust, other.id, until)
    assert do(begin, accounts.take) is None
    do(begin, accounts.exhaust, one.id, past)
    taken = do(begin, accounts.take)
    assert (taken.email, taken.is_exhausted, taken.exhausted_until) == ("a", False, None)


def test_accounts_are_freed_when_their_time_has_passed(begin: Begin) -> None:
    """Those alone; what has no time waits for a person."""
    due, later, open_end, fine = _added(begin, *(Account(email=email) for email in "abcd"))
    with begin() as uow:
        accounts.exhaust(uow, due.id, uow.now)
        accounts.exhaust(uow, later.id, uow.now + HOUR)
        accounts.exhaust(uow, open_end.id)
        uow.commit()
    (freed,) = do(begin, accounts.free_expired)
    assert (freed.id, freed.is_exhausted, freed.exhausted_until) == (due.id, False, None)
    assert do(begin, accounts.free_expired) == []
    with begin(write=False) as uow:
        kept = uow.accounts.get_many([due.id, later.id, open_end.id, fine.id])
    assert [account.is_exhausted for account in kept] == [False, True, True, False]
    assert kept[3] == fine


def test_a_person_frees_an_account_at_any_time(begin: Begin) -> None:
    """Freeing what is free changes nothing."""
    (account,) = _added(begin, Account(email="a"))
    do(begin, accounts.exhaust, account.id)
    assert do(begin, accounts.take) is None
    freed = do(begin, accounts.free, account.id)
    assert (freed.is_exhausted, freed.exhausted_until) == (False, None)
    assert do(begin, accounts.free, account.id) == freed
    assert _email(do(begin, accounts.take)) == "a"


def test_an_account_that_is_not_there_is_named(begin: Begin) -> None:
    """Nothing is made up for it."""
    with begin() as uow:
        for use_case in (accounts.exhaust, accounts.free):
            with pytest.raises(NotFound, match="acc_missing"):
                use_case(uow, "acc_missing")


def test_secrets_come_along_and_are_never_shown(begin: Begin) -> None:
    """Whoever takes an account can use it; printing it, or the journal, gives nothing away."""
    secret = Secret("hunter2")
    _added(begin, Account(email="a", config=secret, credentials=secret))
    taken = do(begin, accounts.take)
    assert taken.credentials.reveal() == taken.config.reveal() == "hunter2"
    exhausted = do(begin, accounts.exhaust, taken.id)
    (freed,) = [do(begin, accounts.free, taken.id)]
    with begin(write=False) as uow:
        entries = uow.journal.since(0)
    assert len(entries) == 4
    for shown in (taken, exhausted, freed, entries):
        assert "hunter2" not in f"{shown!r} {shown}"
    assert "***" in repr(taken)
