"""The logins agents run on: taken in turn, used up for a while, and back."""

from datetime import datetime

from herdbook.domain.entity import evolve
from herdbook.domain.record.model import Account
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork


def take(uow: UnitOfWork, provider: str = "claude") -> Account | None:
    """The account of a provider whose turn it is, which goes to the end of the line with this.

    None if all are used up. Two that take at the same time get two accounts.
    """
    return uow.accounts.next_available(provider)


def exhaust(uow: UnitOfWork, account_id: str, until: datetime | None = None) -> Account:
    """Take an account out of the turn: until a time, else until a person frees it."""
    return uow.accounts.mark_exhausted(account_id, until)


def free(uow: UnitOfWork, account_id: str) -> Account:
    """Put an account back into the turn, whatever was said of it before."""
    account = uow.accounts.get(account_id)
    if not account.is_exhausted:
        return account
    return uow.accounts.save(evolve(account, is_exhausted=False, exhausted_until=None))


def free_expired(uow: UnitOfWork) -> list[Account]:
    """Put back into the turn all accounts whose time has come."""
    return uow.accounts.clear_expired()
