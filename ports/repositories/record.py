"""Named queries for accounts, the ledger and what follows from it."""

from collections.abc import Iterator
from datetime import datetime
from typing import TypeVar

from herdbook.domain.agents import accounts as rules
from herdbook.domain.record.model import (
    Account,
    Activity,
    Commit,
    Retrospective,
    ScoreEvent,
    SetupNote,
    Standing,
)
from herdbook.domain.record.standing import first_standing, standing_id
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, between, find, up_to
from herdbook.ports.repositories.base import PAGE, Repository

E = TypeVar("E")


def _latest(kind: Kind[E], project: str) -> Query[E]:
    return find(kind, {"project": project}, by=("at",), limit=PAGE, descending=True)


class Accounts(Repository[Account]):
    """Logins that agents run on, used in rotation."""

    def of_provider(self, provider: str) -> list[Account]:
        """A provider's accounts, in their order."""
        return self.select(find(self.kind, {"provider": provider}))

    def next_available(self, provider: str) -> Account | None:
        """The next account of the rotation, marked as used now; None if all are exhausted.

        Two units of work never get the same one: the second sees that it was just used.
        """
        account = rules.next_available(self.of_provider(provider), self.uow.now, provider)
        return None if account is None else self.save(rules.mark_used(account, self.uow.now))

    def mark_exhausted(self, account_id: str, until: datetime | None) -> Account:
        """Take an account out of the rotation, until a time if that is known."""
        return self.save(rules.mark_exhausted(self.get(account_id), until))

    def clear_expired(self) -> list[Account]:
        """Put accounts whose exhaustion is over back into the rotation."""
        where = {"is_exhausted": True, "exhausted_until": up_to(self.uow.now)}
        due = self.select(find(self.kind, where))
        return self.save_all([rules.clear_expired(account, self.uow.now) for account in due])


class DatedRepository(Repository[E]):
    """Rows of the record that belong to an agent and a time."""

    def of_agent(
        self,
        agent: str,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        descending: bool = False,
        after: E | None = None,
    ) -> list[E]:
        """An agent's rows in a period, oldest first unless `descending`."""
        query: Query[E] = find(
            self.kind,
            {"agent": agent, "at": between(since, until)},
            limit=limit,
            descending=descending,
            after=after,
        )
        return self.select(query)

    def by_time(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        descending: bool = False,
        after: E | None = None,
    ) -> list[E]:
        """Every agent's rows in a period."""
        query: Query[E] = find(
            self.kind,
            {"at": between(since, until)},
            limit=limit,
            descending=descending,
            after=after,
        )
        return self.select(query)


class Ledger(DatedRepository[ScoreEvent]):
    """The entries that standings are computed from."""

    def has_entry(self, agent: str, project: str) -> bool:
        """Whether an agent has an entry in a project; the latest are looked at first."""
        latest = find(self.kind, {"agent": agent}, by=("at",), limit=PAGE, descending=True)
        return any(each.project == project for each in self.select_all(latest))


class Commits(DatedRepository[Commit]):
    """The commits agents made."""

    def of_hash(self, agent: str, project: str, commit_hash: str) -> Commit | None:
        """One agent's commit, if the record has it."""
        where = {"agent": agent, "project": project, "commit_hash": commit_hash}
        return self.first(find(self.kind, where, limit=1))

    def of_project(self, project: str) -> Iterator[Commit]:
        """The commits of a project, latest first, fetched as they are consumed."""
        return self.select_all(_latest(self.kind, project))

    def with_hash(self, project: str, commit_hash: str) -> list[Commit]:
        """The rows of one commit of a project, whichever agents made it."""
        return self.select(find(self.kind, {"project": project, "commit_hash": commit_hash}))


class Retrospectives(DatedRepository[Retrospective]):
    """What both parties thought of commits."""

    def of_project(self, project: str) -> Iterator[Retrospective]:
        """The judgements in a project, latest first, fetched as they are consumed."""
        return self.select_all(_latest(self.kind, project))

    def by_agent(self, agent: str | None) -> Iterator[Retrospective]:
        """The judgements of an agent's commits, or of all agents', fetched as they are consumed."""
        where = {} if agent is None else {"agent": agent}
        return self.select_all(find(self.kind, where, limit=PAGE))

    def of_commit(self, agent: str, project: str, commit_hash: str) -> Retrospective | None:
        """The judgement of one agent's commit."""
        where = {"agent": agent, "project": project, "commit_hash": commit_hash}
        return self.first(find(self.kind, where))


class Activities(DatedRepository[Activity]):
    """What agents did."""


class SetupNotes(DatedRepository[SetupNote]):
    """What sessions have told of their setups, and what agents were registered with."""

    def of_session(self, session_id: str) -> list[SetupNote]:
        """The notes of one session, oldest first."""
        return self.select(find(self.kind, {"session_id": session_id}))

    def of_registration(self, agent: str) -> list[SetupNote]:
        """What an agent was registered with, oldest first."""
        return self.select(find(self.kind, {"agent": agent, "session_id": None}))


class Standings(Repository[Standing]):
    """The standings of agents."""

    def of_agent(self, agent: str) -> Standing:
        """An agent's standing; without ledger entries, the initial one."""
        return self.find(standing_id(agent)) or first_standing(agent)

    def names(self) -> list[str]:
        """The names of all agents that have ledger entries."""
        return [each.agent for each in self.select_all(find(self.kind, limit=PAGE))]
