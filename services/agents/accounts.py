"""Accounts: the logins agents run on, used in rotation, and exhausted for a while."""

from datetime import datetime

from herdbook.domain.entity import evolve
from herdbook.domain.record.model import Account
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def take(uow: UnitOfWork, provider: str = "claude") -> Account | None:
    """Take the next account of a provider in the rotation; it moves to the end of the rotation.

    Returns None if all are exhausted. Two concurrent callers get two different accounts.
    """
    return uow.accounts.next_available(provider)


def exhaust(uow: UnitOfWork, account_id: str, until: datetime | None = None) -> Account:
    """Take an account out of the rotation until a time, or until a person frees it."""
    return uow.accounts.mark_exhausted(account_id, until)


def free(uow: UnitOfWork, account_id: str) -> Account:
    """Put an account back into the rotation."""
    account = uow.accounts.get(account_id)
    if not account.is_exhausted:
        return account
    return uow.accounts.save(evolve(account, is_exhausted=False, exhausted_until=None))


def free_expired(uow: UnitOfWork) -> list[Account]:
    """Put all accounts whose `exhausted_until` has passed back into the rotation."""
    return uow.accounts.clear_expired()
