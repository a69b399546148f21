"""An older Herdbook: a dictionary with fields, lookups, uniques and entities fewer than today's.

`OLD` is version 1 and `NEW` version 2, which is today's; `write` fills a store of the old one with
rows of every kind that has changed since, and `as_new` says what the new one must make of them.
"""

import inspect
from datetime import datetime
from typing import Any

from herdbook.domain.agents.model import AgentStatus
from herdbook.domain.entity import VersionedEntity, WorkEntity, entity
from herdbook.domain.plan.model import ExecutionMode, InitiativeStatus
from herdbook.domain.secret import Secret
from herdbook.domain.values import Count, Document, Id, Key, Name, Text
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    DICTIONARY,
    INITIATIVES,
    LOG_CHUNKS,
    PAGES,
    PROJECTS,
    REVIEW_COMMENTS,
    TASKS,
)
from herdbook.ports.engine.kinds import Dictionary, Kind, Unique
from herdbook.ports.engine.store import Store
from tests.contract.space import HERE, work_in

RECORD = "record/here"


@entity
class Initiative(WorkEntity):
    """Without `quality_review`."""

    name: Name
    status: InitiativeStatus = InitiativeStatus.ACTIVE
    branch: Name | None = None
    execution_mode: ExecutionMode = ExecutionMode.REVIEW_PER_PHASE


@entity
class Project(WorkEntity):
    """Without `default_branch` and `last_fetched_at`."""

    name: Name
    url: Name


@entity
class Agent(WorkEntity):
    """Without `provider`, `mode`, `pid`, `pending_questions` and much else."""

    name: Name
    task_id: Id | None = None
    initiative_id: Id | None = None
    session_id: Name | None = None
    status: AgentStatus = AgentStatus.IDLE
    process_started_at: datetime | None = None
    result: Document | None = None


@entity
class LogChunk:
    """Without `created_at`."""

    id: Key = ""
    agent_id: Id
    agent_name: Name
    session_number: Count
    content: Text


@entity
class Account(VersionedEntity):
    """Without `config`, `is_exhausted`, `exhausted_until` and `sort_order`."""

    email: Name
    provider: Name = "claude"
    credentials: Secret | None = None
    last_used_at: datetime | None = None


def changed(kind: Kind[Any], **fields: Any) -> Kind[Any]:
    """A kind as it was before something in it changed."""
    names = inspect.signature(Kind).parameters
    kept = {name: vars(kind)[name] for name in names}
    return Kind(**{**kept, "groups": (), "mechanical": (), **fields})


OLD_AGENTS = changed(AGENTS, entity=Agent, lookups=(("task_id",), ("initiative_id",), ("status",)))
OLD_LOG_CHUNKS = changed(LOG_CHUNKS, entity=LogChunk, lookups=(("agent_id", "session_number"),))
OLD_ACCOUNTS = changed(
    ACCOUNTS, entity=Account, lookups=(("provider",),), uniques=(Unique(("email",)),)
)
OLD_PROJECTS = changed(PROJECTS, entity=Project, uniques=(Unique(("name",)),))
OLD_INITIATIVES = changed(INITIATIVES, entity=Initiative)

CHANGED = (OLD_AGENTS, OLD_LOG_CHUNKS, OLD_ACCOUNTS, OLD_PROJECTS, OLD_INITIATIVES)
GONE = (PAGES, REVIEW_COMMENTS)

_kinds = {kind.name: kind for kind in DICTIONARY if kind not in GONE}
OLD = Dictionary(1, {**_kinds, **{kind.name: kind for kind in CHANGED}}.values())
NEW = Dictionary(2, DICTIONARY)


def write(store: Store) -> dict[str, list[Any]]:
    """Fill a store of the old dictionary; gives the rows by the name of their kind."""
    rows: dict[str, list[Any]] = {}

    def add(kind: Kind[Any], *new: Any) -> list[Any]:
        added = uow.add(kind, new)
        rows.setdefault(kind.name, []).extend(added)
        return added

    with work_in(store) as uow:
        (initiative,) = add(OLD_INITIATIVES, Initiative(name="one"))
        (task,) = add(TASKS, TASKS.entity(name="a task", initiative_id=initiative.id))
        add(OLD_PROJECTS, *(Project(name=f"{n}", url=f"https://{n}") for n in "abc"))
        add(
            OLD_AGENTS,
            Agent(name="brave-otter", session_id="s-1", status="running", result={"é": [1]}),
            Agent(name="calm-owl", session_id="s-2", task_id=task.id),
            Agent(name="dry-newt", session_id="s-1", status="running"),
        )
        add(
            OLD_LOG_CHUNKS,
            *(
                LogChunk(agent_id="agt_1", agent_name="x", session_number=n, content=f"line {n}")
                for n in (2, 1, 2)
            ),
        )
        uow.commit()
    with work_in(store, RECORD) as uow:
        add(
            OLD_ACCOUNTS,
            Account(email="b@x", credentials=Secret("s3cr3t-b")),
            Account(email="a@x", credentials=Secret("s3cr3t-a")),
        )
        uow.commit()
    return {name: sorted(each, key=lambda row: row.id) for name, each in rows.items()}


def as_new(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The same rows as today's dictionary has them: with defaults for what they did not know."""
    return {
        name: [NEW.kinds[name].entity(**vars(row)) for row in each] for name, each in rows.items()
    }


__all__ = ["CHANGED", "GONE", "HERE", "NEW", "OLD", "RECORD", "as_new", "write"]
