"""The values a board is made of: cards, lanes and states."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from herdbook.domain.agents.model import Agent
from herdbook.domain.plan.model import (
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Task,
    TaskStatus,
)
from herdbook.domain.plan.readiness import Opening, OpeningState, phase_is_open


class BoardState(StrEnum):
    """The lane of a task: what can be done about it now."""

    READY = "ready"
    HELD = "held"
    WAITING = "waiting"
    BLOCKED = "blocked"
    REVIEW = "review"
    COMPLETED = "completed"


class Blocker(NamedTuple):
    """Something a task waits for: a `task`, a `phase` or an `initiative`."""

    kind: str
    id: str
    name: str
    status: str


class Card(NamedTuple):
    """A task as a board shows it; `more` counts blockers that are not in `waits_for`.

    The holder `for_review` is the reviewer, not the agent that did the work. `waits_for_you` tells
    whether the holder waits for a person.
    """

    task: Task
    holder: Agent | None = None
    for_review: bool = False
    lease_until: datetime | None = None
    waits_for_you: bool = False
    waits_for: tuple[Blocker, ...] = ()
    more: int = 0


class BoardLane(NamedTuple):
    """The number of tasks in a state, and the cards of the first of them."""

    total: int
    cards: tuple[Card, ...] = ()


Lanes = dict[BoardState, BoardLane]


def state_of(task: Task, opening: Opening | None) -> BoardState:
    """The state of a task on the board."""
    if task.is_finished:
        return BoardState.COMPLETED
    if opening is not None and opening.state is OpeningState.HELD:
        return BoardState.HELD
    if task.status is TaskStatus.BLOCKED:
        return BoardState.BLOCKED
    if task.status is TaskStatus.QUALITY_REVIEW:
        return BoardState.REVIEW
    return BoardState.WAITING if opening is None else BoardState.READY


def gate_blockers(
    initiative: Initiative | None, phase: Phase | None, ahead: Iterable[Phase]
) -> tuple[Blocker, ...]:
    """The initiative and phases that keep the tasks of a phase from starting."""
    closed: list[tuple[str, Initiative | Phase]] = []
    if initiative is not None and initiative.status is not InitiativeStatus.ACTIVE:
        closed.append(("initiative", initiative))
    if phase is not None and not phase_is_open(phase, initiative):
        closed.append(("phase", phase))
    closed += [("phase", each) for each in ahead if each.status is not PhaseStatus.COMPLETED]
    return tuple(Blocker(kind, each.id, each.name, each.status) for kind, each in closed)
