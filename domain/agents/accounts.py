"""Choosing the account an agent runs on, and when an exhausted account may be used again."""

from collections.abc import Iterable
from datetime import datetime

from herdbook.domain.entity import NEVER, evolve
from herdbook.domain.record.model import Account


def is_available(account: Account, now: datetime) -> bool:
    """Whether the account can be used now.

    An account that is exhausted without an end time waits for a person.
    """
    return not account.is_exhausted or (
        account.exhausted_until is not None and account.exhausted_until <= now
    )


def _rotation_key(account: Account) -> tuple[bool, datetime, int, datetime, str]:
    """Sort key of the rotation: never used first, then least recently used."""
    used = account.last_used_at
    return used is not None, used or NEVER, account.sort_order, account.created_at, account.id


def next_available(
    accounts: Iterable[Account], now: datetime, provider: str | None = None
) -> Account | None:
    """The available account (of this provider) that was used least recently, or None."""
    return min(
        (
            account
            for account in accounts
            if provider in (None, account.provider) and is_available(account, now)
        ),
        key=_rotation_key,
        default=None,
    )


def clear_expired(account: Account, now: datetime) -> Account:
    """The account without an exhaustion that is over; the same object if nothing changes."""
    if account.is_exhausted and is_available(account, now):
        return evolve(account, is_exhausted=False, exhausted_until=None)
    return account


def mark_used(account: Account, now: datetime) -> Account:
    """The account after it was used now: last in the rotation, expired exhaustion cleared."""
    return evolve(clear_expired(account, now), last_used_at=now)


def mark_exhausted(account: Account, until: datetime | None) -> Account:
    """The account marked as exhausted until that time, or until a person clears it."""
    return evolve(account, is_exhausted=True, exhausted_until=until)
