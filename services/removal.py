"""Remove rows, and ask first where more goes than what was named or somebody holds it."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from herdbook.domain.errors import ConfirmationNeeded
from herdbook.domain.plan.readiness import OpeningState, holder_of
from herdbook.ports.engine.dictionary import AGENTS, OPENINGS, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.unit_of_work.integrity import plan_removal
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.crud import find_row

E = TypeVar("E")


class Removal(NamedTuple):
    """What goes with some rows: how many rows of each kind, and who holds tasks among them."""

    along: dict[str, int]
    held: int
    holders: tuple[str, ...]

    def describe(self) -> str:
        """What goes along, in words; empty if nothing does."""
        parts = [_count(number, title) for title, number in self.along.items()]
        if self.held:
            names = ", ".join(self.holders) or "an agent that is gone"
            parts.append(f"{_count(self.held, 'task')} held by {names}")
        return ", ".join(parts)


def _count(number: int, title: str) -> str:
    plural = f"{title[:-1]}ies" if title.endswith("y") else f"{title}s"
    return f"{number} {title if number == 1 else plural}"


def plan(uow: UnitOfWork, kind: Kind[Any], rows: Sequence[Any]) -> Removal:
    """What a removal of these rows takes along."""
    removed, emptied, _ = plan_removal(uow, uow.dictionary, kind, rows)
    named = {kind.key_of(row) for row in rows}
    along = {
        each.title: len(gone) - (len(named) if each is kind else 0)
        for each, gone in reversed(removed.items())
    }
    held, holders = _holders(uow, {**removed.get(TASKS, {}), **emptied.get(TASKS, {})})
    return Removal({title: count for title, count in along.items() if count}, held, holders)


def _holders(uow: UnitOfWork, tasks: dict[str, Any]) -> tuple[int, tuple[str, ...]]:
    """How many of these tasks are held, and the names of the agents that hold them."""
    openings = [
        each
        for each in uow.get(OPENINGS, list(tasks))
        if each is not None and each.state is OpeningState.HELD
    ]
    held = uow.tasks.get_many(each.task_id for each in openings)  # as they are, not emptied
    ids = [holder_of(*each) for each in zip(held, openings, strict=True)]
    agents = uow.get(AGENTS, list(dict.fromkeys(each for each in ids if each is not None)))
    return len(held), tuple(agent.name for agent in agents if agent is not None)


def remove(
    uow: UnitOfWork, kind: Kind[E], texts: Sequence[str], *, yes: bool
) -> tuple[list[E], Removal]:
    """Remove rows and all that cascades from them, all or none.

    Raises ConfirmationNeeded, with what would go, if that is more than the named rows or if an
    agent holds any of it, unless `yes` confirms it.
    """
    rows = {kind.key_of(row): row for row in (find_row(uow, kind, text) for text in texts)}
    planned = plan(uow, kind, list(rows.values()))
    if (planned.along or planned.held) and not yes:
        keys = tuple(map(str, rows))
        raise ConfirmationNeeded(kind.title, keys, planned.describe())
    uow.remove(kind, list(rows))
    return list(rows.values()), planned
