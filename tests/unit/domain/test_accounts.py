"""The laws of taking accounts in turn."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from herdbook.domain.agents.accounts import (
    clear_expired,
    is_available,
    mark_exhausted,
    mark_used,
    next_available,
)
from herdbook.domain.record.model import Account

START = datetime(2026, 1, 1, tzinfo=UTC)
moments = st.integers(0, 6).map(lambda hours: START + timedelta(hours=hours))
one_account = st.builds(
    Account,
    id=st.text("abc", min_size=1, max_size=3),
    email=st.just("a@b.c"),
    provider=st.sampled_from(["claude", "codex"]),
    is_exhausted=st.booleans(),
    exhausted_until=st.none() | moments,
    last_used_at=st.none() | moments,
    sort_order=st.integers(-1, 1),
    created_at=moments,
)
many_accounts = st.lists(one_account, unique_by=lambda account: account.id, max_size=6)
providers = st.sampled_from([None, "claude", "codex"])


@given(many_accounts, moments, providers)
def test_the_next_account_is_available_and_of_the_provider(
    accounts: list[Account], now: datetime, provider: str | None
) -> None:
    """There is a next account exactly when one of the provider is available, and it is such."""
    fitting = [
        each for each in accounts if is_available(each, now) and provider in (None, each.provider)
    ]
    found = next_available(accounts, now, provider)
    assert found in fitting if fitting else found is None


@given(many_accounts, moments)
def test_no_account_is_passed_over(accounts: list[Account], now: datetime) -> None:
    """Never used comes first, then least recently used, then sort order, then age, then id."""
    found = next_available(accounts, now)
    for other in accounts:
        if found is None or other == found or not is_available(other, now):
            continue
        if found.last_used_at != other.last_used_at:
            assert found.last_used_at is None or (
                other.last_used_at is not None and found.last_used_at < other.last_used_at
            )
        else:
            assert (found.sort_order, found.created_at, found.id) < (
                other.sort_order,
                other.created_at,
                other.id,
            )


@given(many_accounts.flatmap(lambda each: st.tuples(st.just(each), st.permutations(each))), moments)
def test_the_turn_does_not_depend_on_the_order_of_reading(
    orders: tuple[list[Account], list[Account]], now: datetime
) -> None:
    """The same accounts give the same next one in whichever order they come."""
    one, other = orders
    assert next_available(one, now) == next_available(other, now)


@given(many_accounts)
def test_accounts_are_taken_in_turn(accounts: list[Account]) -> None:
    """As many takings as there are available accounts take every one of them once."""
    now = START + timedelta(days=1)
    kept = {each.id: each for each in accounts}
    available = {each.id for each in accounts if is_available(each, now)}
    taken = []
    for second in range(len(available)):
        found = next_available(kept.values(), now)
        assert found is not None
        kept[found.id] = mark_used(found, now + timedelta(seconds=second))
        taken.append(found.id)
    assert sorted(taken) == sorted(available)


@given(one_account, moments)
def test_taking_marks_the_use_and_keeps_the_rest(account: Account, now: datetime) -> None:
    """A taken account was last used now, and is as available as it was."""
    taken = mark_used(account, now)
    assert taken.last_used_at == now
    assert is_available(taken, now) is is_available(account, now)
    assert (taken.id, taken.email, taken.sort_order) == (
        account.id,
        account.email,
        account.sort_order,
    )


@given(one_account, moments, moments)
def test_an_exhausted_account_rests_until_its_time(
    account: Account, until: datetime, now: datetime
) -> None:
    """An account exhausted until a moment is available from that moment on and not before."""
    assert is_available(mark_exhausted(account, until), now) is (until <= now)


@given(one_account, moments)
def test_exhausted_without_an_end_is_exhausted(account: Account, now: datetime) -> None:
    """An account that nobody said an end for stays out of turn."""
    account = mark_exhausted(account, None)
    assert not is_available(account, now)
    assert clear_expired(account, now) is account


@given(one_account, moments)
def test_only_an_exhaustion_that_has_passed_is_cleared(account: Account, now: datetime) -> None:
    """Clearing changes an account exactly when its exhaustion has passed, and only in that."""
    cleared = clear_expired(account, now)
    assert is_available(cleared, now) is is_available(account, now)
    if account.is_exhausted and is_available(account, now):
        assert (cleared.is_exhausted, cleared.exhausted_until) == (False, None)
    else:
        assert cleared is account


@given(one_account, moments)
def test_clearing_twice_is_clearing_once(account: Account, now: datetime) -> None:
    """What is cleared has nothing more to clear."""
    cleared = clear_expired(account, now)
    assert clear_expired(cleared, now) is cleared
