"""What a space held when it stood at a position, and what is read of it there afterwards."""

from typing import Any

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import TaskStatus
from herdbook.domain.plan.readiness import Opening
from herdbook.ports.engine.dictionary import DICTIONARY, JOURNAL, SCORE_EVENTS, STANDINGS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import select_all
from herdbook.ports.engine.query import find, matches, sort_and_page
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.past import past_unit_of_work
from herdbook.ports.unit_of_work.past_cache import PastCache
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.agents.person_queue import work_waiting
from herdbook.services.journal.moments import list_moments
from herdbook.services.plan.board import board
from herdbook.services.plan.board_model import Card
from herdbook.services.plan.diagram import build_diagram
from herdbook.services.plan.progress import measure_progress
from herdbook.services.plan.status import StatusRow, entry_names, status
from herdbook.services.plan.task_details import task_details

Snapshot = dict[str, dict[Any, Any]]
ANSWERS = "answers"
"""Where a snapshot has what pages and commands show of it."""
READ = [kind for kind in DICTIONARY if kind.area and (kind.journalled or kind.derived)]
"""The kinds that can be read at an earlier position."""


def snapshot(store: Store, space: str) -> tuple[int, Snapshot]:
    """The position of a space, and all that can be read of it later."""
    with unit_of_work(store, space, write=False) as uow:
        taken = _rows(uow)
        if uow.area is Area.WORK:
            taken[ANSWERS] = _answers(uow)
        return uow.journal.last(), taken


def _answers(uow: UnitOfWork) -> dict[str, Any]:
    """What pages and commands show, but for leases and reviewers, and for durations until now."""
    shown, now, progress = board(uow), status(uow), measure_progress(uow)
    cards = {
        (goal.initiative, stage.phase, state): (
            lane.total,
            [
                (card.task, _holder(card), card.for_review, card.waits_for, card.more)
                for card in lane.cards
            ],
        )
        for goal in shown.goals
        for stage in goal.stages
        for state, lane in stage.lanes.items()
    }
    details = [
        {**task_details(uow, task), "lease_until": None, "holder": None}
        for task in uow.tasks.page()
    ]
    return {
        "board": (shown.seq, shown.totals, shown.more_goals, shown.closed, shown.unseen),
        "paths": [(goal.initiative, goal.critical_path) for goal in shown.goals],
        "cards": repr(cards),
        "status": [
            *((row.agent, row.task, row.since) for row in now.rows if not _is_review(row)),
            (now.ready, now.held, now.waiting, now.worktrees, now.last_entry, now.noted),
            {row.waiting_for for row in now.rows},
            entry_names(uow, now),
        ],
        "graph": build_diagram(uow),
        "details": details,
        "waiting": work_waiting(uow),
        "progress": (progress.now.done, progress.now.total, progress.phases),
        "journal": uow.journal.since(uow.journal.pruned_to(), limit=1_000),
        "moments": list_moments(uow, limit=1_000),
    }


def _holder(card: Card) -> Agent | None:
    return None if card.for_review else card.holder


def _is_review(row: StatusRow) -> bool:
    """Whether a row is of an agent that reviews: who does is not known later."""
    return row.task is None or row.task.status is TaskStatus.QUALITY_REVIEW


def _rows(uow: UnitOfWork) -> Snapshot:
    return {
        kind.name: {kind.key_of(row): _knowable(kind, row) for row in uow.select(find(kind))}
        for kind in READ
        if kind.area is uow.area
    }


def _knowable(kind: Kind[Any], row: Any) -> Any:
    """A row without what no journal tells: the end of a lease, a reviewer, a secret."""
    if isinstance(row, Opening):
        return evolve(row, lease_until=None, reviewer_id=None)
    if kind.secrets:
        return evolve(row, **dict.fromkeys(kind.secrets))
    return row


def check_past(
    store: Store, space: str, seq: int, then: Snapshot, cache: PastCache | None = None
) -> None:
    """Whatever is asked of a space at a position is answered as it was answered there."""
    with past_unit_of_work(store, space, seq, cache=cache) as uow:
        assert uow.as_of is not None
        assert uow.as_of.seq == seq == uow.journal.last()
        _check_selects(uow, then)
        if ANSWERS in then:
            assert _answers(uow) == then[ANSWERS]
        lost: dict[str, set[str]] = vars(uow.session)["lost"]
    for name, keys in lost.items():
        assert DICTIONARY.kinds[name].append_only
        assert keys <= then[name].keys()
    with past_unit_of_work(store, space, seq, cache=cache) as uow:
        _check_gets(uow, then)


def _check_selects(uow: UnitOfWork, then: Snapshot) -> None:
    """All rows, pages of them, and those of every value that leads a lookup."""
    for kind in (each for each in READ if each.name in then):
        if kind is STANDINGS and SCORE_EVENTS.name in vars(uow.session)["lost"]:
            with pytest.raises(InvalidValue, match="entries of the ledger were removed"):
                uow.select(find(kind))
            continue
        found = {kind.key_of(row): _knowable(kind, row) for row in uow.select(find(kind))}
        lost = vars(uow.session)["lost"].get(kind.name, set())
        rows = {key: row for key, row in then[kind.name].items() if key not in lost}
        assert found == rows, kind
        paged = list(select_all(uow, find(kind, limit=2)))
        assert [kind.key_of(row) for row in paged] == sorted(rows)
        assert uow.count(find(kind)) == len(rows)
        for lookup in kind.all_lookups:
            for value in {getattr(row, lookup[0]) for row in rows.values()}:
                query = find(kind, {lookup[0]: value}, limit=3)
                there = [row for row in rows.values() if matches(query, row)]
                assert uow.count(query) == len(there), query
                if "lease_until" not in query.order and "reviewer_id" not in query.order:
                    answer = [_knowable(kind, row) for row in uow.select(query)]
                    assert answer == sort_and_page(query, there), query


def _check_gets(uow: UnitOfWork, then: Snapshot) -> None:
    """Each row by its key, before anything else was read."""
    for name, rows in then.items():
        is_lost = name == STANDINGS.name and SCORE_EVENTS.name in vars(uow.session)["lost"]
        if name == ANSWERS or is_lost:
            continue
        kind = DICTIONARY.kinds[name]
        for key, row in rows.items():
            (found,) = uow.get(kind, [key])
            if key not in vars(uow.session)["lost"].get(name, ()):
                assert found is not None, (name, key)
                assert _knowable(kind, found) == row


def entries_of(store: Store, space: str) -> list[JournalEntry]:
    """The journal of a space."""
    with unit_of_work(store, space, write=False) as uow:
        return list(uow.select(find(JOURNAL)))
