"""The reviews there are: what was handed in and waits for one, and the phases under way."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

from herdbook.domain.plan.model import (
    OPEN_INITIATIVES,
    ErrandStatus,
    InitiativeStatus,
    PhaseStatus,
    TaskStatus,
)
from herdbook.ports.engine.dictionary import ERRANDS, INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import reviews
from herdbook.services.plan.review_subjects import Reviewed, ReviewStep, describe_subject

LIMIT: Final = 200
"""How many rows of one kind are read; whoever has more to review begins with the oldest."""
_SHOWN: Final = (PhaseStatus.PENDING_REVIEW, PhaseStatus.IN_PROGRESS)


class ReviewEntry(NamedTuple):
    """A row that can be reviewed.

    `is_waiting` means that it was handed in. `threads` counts its comment threads, and
    `open_threads` those that are not resolved.
    """

    kind: str
    id: str
    name: str
    status: str
    since: datetime
    initiative: str | None
    agents: tuple[str, ...]
    threads: int
    open_threads: int
    is_waiting: bool
    steps: tuple[ReviewStep, ...]


def review_queue(uow: UnitOfWork) -> list[ReviewEntry]:
    """What waits for a review, oldest first, then the phases under way, the latest first."""
    entries = [_entry(uow, each) for each in _rows(uow)]
    waiting = sorted((each for each in entries if each.is_waiting), key=lambda each: each.since)
    under_way = [each for each in entries if not each.is_waiting]
    under_way.sort(key=lambda each: each.since, reverse=True)
    return [*waiting, *under_way]


def _rows(uow: UnitOfWork) -> Iterator[Reviewed]:
    open_ = uow.select(find(INITIATIVES, {"status": any_of(OPEN_INITIATIVES)}, limit=LIMIT))
    for initiative in open_:
        if initiative.status is InitiativeStatus.PENDING_REVIEW:
            yield initiative
        phases = uow.select(find(PHASES, {"initiative_id": initiative.id}, limit=LIMIT))
        yield from (each for each in phases if each.status in _SHOWN)
    waiting = any_of((ErrandStatus.PENDING_REVIEW, ErrandStatus.CONFLICT))
    yield from uow.select(find(ERRANDS, {"status": waiting}, limit=LIMIT))
    yield from uow.select(find(TASKS, {"status": TaskStatus.QUALITY_REVIEW}, limit=LIMIT))


def _entry(uow: UnitOfWork, row: Reviewed) -> ReviewEntry:
    subject = describe_subject(uow, row)
    threads = _count_threads(uow, subject.phase_ids)
    return ReviewEntry(
        subject.kind,
        subject.id,
        subject.name,
        subject.status,
        subject.since,
        subject.initiative,
        tuple(each.name for each in subject.agents),
        *threads,
        bool(subject.steps),
        subject.steps,
    )


def _count_threads(uow: UnitOfWork, phase_ids: Iterable[str]) -> tuple[int, int]:
    """How many comment threads these phases have, and how many of them are not resolved."""
    found = [thread for each in phase_ids for thread in reviews.threads(uow, each)]
    return len(found), sum(not each.first.resolved for each in found)
