"""Accounts: the logins agents run on, used in rotation, and exhausted for a while."""

from collections.abc import Collection
from datetime import datetime

from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.record.model import Account
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.engine.query import find
from herdbook.ports.repositories.base import PAGE
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


def agents_on(uow: UnitOfWork, account_ids: Collection[str]) -> list[Agent]:
    """The agents that run on one of these accounts, which are of the record."""
    agents = uow.agents.select_all(find(AGENTS, limit=PAGE))
    return [agent for agent in agents if agent.account_id in account_ids]


def agents_on_others(uow: UnitOfWork, account_ids: Collection[str]) -> list[Agent]:
    """The agents that run on an account which is none of these."""
    agents = uow.agents.select_all(find(AGENTS, limit=PAGE))
    return [
        agent
        for agent in agents
        if agent.account_id is not None and agent.account_id not in account_ids
    ]


def clear_from_agents(uow: UnitOfWork, account_ids: Collection[str]) -> list[Agent]:
    """Let no agent run on these accounts any more: they were removed from the record."""
    left = agents_on(uow, account_ids)
    return uow.agents.save_all([evolve(agent, account_id=None) for agent in left])
