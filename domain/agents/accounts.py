"""Which account an agent runs on next, and when one may be used again."""

from collections.abc import Iterable
from datetime import datetime

from herdbook.domain.entity import NEVER, evolve
from herdbook.domain.record.model import Account


def is_available(account: Account, now: datetime) -> bool:
    """Whether the account has something left; exhausted without an end it waits for a person."""
    return not account.is_exhausted or (
        account.exhausted_until is not None and account.exhausted_until <= now
    )


def _turn(account: Account) -> tuple[bool, datetime, int, datetime, str]:
    used = account.last_used_at
    return used is not None, used or NEVER, account.sort_order, account.created_at, account.id


def next_available(
    accounts: Iterable[Account], now: datetime, provider: str | None = None
) -> Account | None:
    """The available account (of this provider) whose turn it is: the one that rested longest."""
    return min(
        (
            account
            for account in accounts
            if provider in (None, account.provider) and is_available(account, now)
        ),
        key=_turn,
        default=None,
    )


def clear_expired(account: Account, now: datetime) -> Account:
    """The account without an exhaustion that has passed; the very same one if there is none."""
    if account.is_exhausted and is_available(account, now):
        return evolve(account, is_exhausted=False, exhausted_until=None)
    return account


def take(account: Account, now: datetime) -> Account:
    """The account once it is in use: last in turn, and an exhaustion that has passed is gone."""
    return evolve(clear_expired(account, now), last_used_at=now)


def exhaust(account: Account, until: datetime | None) -> Account:
    """The account once it has nothing left until then, or until a person says otherwise."""
    return evolve(account, is_exhausted=True, exhausted_until=until)
