"""The lanes of a board: the tasks of a phase, or without a phase, by state.

For any size of plan, a lane counts its tasks through lookups and loads only those it shows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice

from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import asks_person
from herdbook.domain.plan.lanes import waits_for_person
from herdbook.domain.plan.model import Phase, Task, TaskStatus
from herdbook.domain.plan.readiness import Opening, OpeningKind, OpeningState, holder_of
from herdbook.ports.engine.dictionary import (
    AGENTS,
    OPENINGS,
    TASK_DEPENDENCIES,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.paging import select_all
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.board_model import Blocker, BoardLane, BoardState, Card, Lanes, state_of

SAMPLE = 100
"""How many waiting tasks of a phase are read to find the most urgent."""
SCAN_LIMIT = 1_000
"""How many tasks without a phase are read, per state."""
RECENT_ENTRIES = 200
"""How many of the last journal entries are read to find the last finished tasks."""
FINISHED_SHOWN = 3
"""How many of the last finished tasks a lane shows."""
BLOCKERS_NAMED = 5
"""How many of the tasks that a task waits for are named on its card."""

UnphasedTasks = dict[str | None, dict[BoardState, list[Task]]]
"""The tasks without a phase, by initiative and state."""
UnphasedTotals = dict[str | None, dict[BoardState, int]]
"""How many there are, by initiative and state."""


class LaneBuilder:
    """Builds lanes of at most `limit` cards each."""

    def __init__(self, uow: UnitOfWork, limit: int) -> None:
        self.uow = uow
        self.limit = limit
        self.held: defaultdict[str | None, list[Opening]] = defaultdict(list)
        for opening in uow.select(find(OPENINGS, {"state": OpeningState.HELD})):
            self.held[opening.phase_id].append(opening)
        self.finished = _last_finished(uow)

    def of_phase(
        self,
        phase: Phase,
        totals: Mapping[BoardState, int],
        closed: tuple[Blocker, ...],
        first: Collection[str] = (),
    ) -> Lanes:
        """The lanes of a phase; among waiting tasks, those in `first` are shown before others."""
        finished = [each for each in self.finished if each.phase_id == phase.id]
        completed = self._completed_lane(totals[BoardState.COMPLETED], finished)
        if completed.total == sum(totals.values()):
            return {BoardState.COMPLETED: completed}
        held = self.held[phase.id]
        reviewed = self._tasks_in_review(phase_id=phase.id) if totals[BoardState.REVIEW] else []
        reviewed = [each for each in reviewed if each.id not in {one.task_id for one in held}]
        other = totals[BoardState.BLOCKED] + len(reviewed)
        cards = {
            BoardState.READY: self._ready_cards(phase.id, totals, len(reviewed)),
            BoardState.HELD: self.held_cards(self._tasks(held)),
            BoardState.WAITING: self._phase_waiting(phase.id, totals, other, closed, first),
            BoardState.BLOCKED: self._blocked_cards(phase.id, totals),
            BoardState.REVIEW: _cards(_by_urgency(reviewed)[: self.limit]),
        }
        lanes = {state: BoardLane(totals[state], each) for state, each in cards.items()}
        return {**lanes, BoardState.COMPLETED: completed}

    def totals(self, **within: str | None) -> dict[BoardState, int]:
        """How many tasks are in each state, in the whole space or in a phase, however many."""
        total, done = self._count(**within), self._count(**within, status=TaskStatus.COMPLETED)
        if total == done:
            return {**dict.fromkeys(BoardState, 0), BoardState.COMPLETED: done}
        held = self.held[within["phase_id"]] if within else [*chain(*self.held.values())]
        blocked = self._count(**within, status=TaskStatus.BLOCKED)
        # Blocked and reviewed tasks may also have a WAITING row; they are shown in their own lanes.
        other = self.uow.get(WAITING, _ids(self._tasks_in_review(**within)))
        waiting = self.uow.count(find(WAITING, within)) - blocked
        waiting -= sum(row is not None for row in other)
        review = self._count(**within, status=TaskStatus.QUALITY_REVIEW)
        review -= sum(opening.kind is OpeningKind.REVIEW for opening in held)
        ready = total - done - len(held) - review - blocked - waiting
        found = (ready, len(held), waiting, blocked, review, done)
        return dict(zip(BoardState, found, strict=True))

    def of_tasks(
        self,
        tasks: Mapping[BoardState, Sequence[Task]],
        closed: tuple[Blocker, ...],
        first: Collection[str] = (),
        totals: Mapping[BoardState, int] | None = None,
    ) -> Lanes:
        """The lanes of tasks that were loaded already, most urgent first.

        With `totals`, they are the first of so many.
        """
        lanes: Lanes = {}
        for state in BoardState:
            found = tasks.get(state, ())
            if state is BoardState.COMPLETED:
                known = set(_ids(found))
                finished = [each for each in self.finished if each.id in known]
                lanes[state] = self._completed_lane(len(found), finished)
            elif state is BoardState.HELD:
                lanes[state] = BoardLane(len(found), self.held_cards(found))
            elif state is BoardState.WAITING:
                lanes[state] = BoardLane(len(found), self._waiting_cards(found, closed, first))
            else:
                lanes[state] = BoardLane(len(found), _cards(_by_urgency(found)[: self.limit]))
        for state, total in (totals or {}).items():
            lanes[state] = lanes[state]._replace(total=total)
        return lanes

    def tasks_without_phase(self) -> tuple[UnphasedTasks, int]:
        """The tasks without a phase, and how many more were not read."""
        where = {"phase_id": None, "state": OpeningState.READY}
        ready = find(OPENINGS, where, by=("rank",), limit=SCAN_LIMIT)
        waiting = find(WAITING, {"phase_id": None}, limit=SCAN_LIMIT)
        done = find(TASKS, {"phase_id": None, "status": TaskStatus.COMPLETED}, limit=SCAN_LIMIT)
        openings = {each.task_id: each for each in (*self.held[None], *self.uow.select(ready))}
        keys = [*openings, *(row.task_id for row in self.uow.select(waiting))]
        tasks = [*self.uow.tasks.get_many(keys), *self.uow.select(done)]
        found: UnphasedTasks = {}
        for task in tasks:
            lanes = found.setdefault(task.initiative_id, {})
            lanes.setdefault(state_of(task, openings.get(task.id)), []).append(task)
        there = self.uow.count(find(TASKS, {"phase_id": None}))
        return found, there - len(tasks)

    def totals_without_phase(self) -> UnphasedTotals:
        """How many tasks without a phase each initiative has in each state, however many.

        Counted through lookups if no task names an initiative; else all of them are read in pages.
        """
        named = self.uow.count(find(TASKS)) - self.uow.count(find(TASKS, {"initiative_id": None}))
        if not named:
            return {None: self.totals(phase_id=None)}
        found: UnphasedTotals = {}
        tasks = select_all(self.uow, find(TASKS, {"phase_id": None}, limit=SCAN_LIMIT))
        while page := list(islice(tasks, SCAN_LIMIT)):
            openings = self.uow.get(OPENINGS, _ids(page))
            for task, opening in zip(page, openings, strict=True):
                own = found.setdefault(task.initiative_id, dict.fromkeys(BoardState, 0))
                own[state_of(task, opening)] += 1
        return found

    def held_cards(self, tasks: Sequence[Task]) -> tuple[Card, ...]:
        """Held tasks with their holders and the ends of their leases."""
        shown = _by_urgency(tasks)[: self.limit]
        openings = self.uow.get(OPENINGS, _ids(shown))
        holders = [holder_of(*each) for each in zip(shown, openings, strict=True)]
        keys = [each for each in holders if each is not None]
        found: list[Agent | None] = self.uow.get(AGENTS, keys)
        agents = dict(zip(keys, found, strict=True))
        cards = []
        for task, opening, holder in zip(shown, openings, holders, strict=True):
            review = opening is not None and opening.kind is OpeningKind.REVIEW
            until = None if opening is None else opening.lease_until
            agent = agents.get(holder or "")
            cards.append(Card(task, agent, review, until, self._waits_for_you(agent)))
        return tuple(cards)

    def _waits_for_you(self, agent: Agent | None) -> bool:
        return agent is not None and waits_for_person(vars(agent), asks=agent.id in self._asking)

    @cached_property
    def _asking(self) -> set[str | None]:
        """The agents that have asked a person and have no answer yet."""
        asked = self.uow.messages.requiring_response()
        return {each.sender_id for each in asked if asks_person(vars(each))}

    def _count(self, **where: str | None) -> int:
        return self.uow.count(find(TASKS, where))

    def _tasks_in_review(self, **within: str | None) -> list[Task]:
        where = {**within, "status": TaskStatus.QUALITY_REVIEW}
        return self.uow.select(find(TASKS, where, limit=SCAN_LIMIT))

    def _tasks(self, openings: Iterable[Opening]) -> list[Task]:
        return self.uow.tasks.get_many(opening.task_id for opening in openings)

    def _completed_lane(self, count: int, finished: Sequence[Task]) -> BoardLane:
        return BoardLane(count, _cards(finished[:FINISHED_SHOWN]))

    def _blocked_cards(self, phase_id: str, totals: Mapping[BoardState, int]) -> tuple[Card, ...]:
        if not totals[BoardState.BLOCKED]:
            return ()
        where = {"phase_id": phase_id, "status": TaskStatus.BLOCKED}
        found = self.uow.select(find(TASKS, where, limit=SCAN_LIMIT))
        return _cards(_by_urgency(found)[: self.limit])

    def _ready_cards(
        self, phase_id: str, totals: Mapping[BoardState, int], reviewed: int
    ) -> tuple[Card, ...]:
        if not totals[BoardState.READY]:
            return ()
        where = {"phase_id": phase_id, "state": OpeningState.READY}
        query = find(OPENINGS, where, by=("rank",), limit=self.limit + reviewed)
        work = [each for each in self.uow.select(query) if each.kind is OpeningKind.WORK]
        return _cards(self._tasks(work[: self.limit]))

    def _phase_waiting(
        self,
        phase_id: str,
        totals: Mapping[BoardState, int],
        other: int,
        closed: tuple[Blocker, ...],
        first: Collection[str],
    ) -> tuple[Card, ...]:
        if not totals[BoardState.WAITING]:
            return ()
        query = find(WAITING, {"phase_id": phase_id}, limit=SAMPLE + min(other, SCAN_LIMIT))
        keys = dict.fromkeys((*first, *(row.task_id for row in self.uow.select(query))))
        waits = self.uow.get(WAITING, list(keys))
        known = [row.task_id for row in waits if row is not None and row.phase_id == phase_id]
        tasks = self.uow.tasks.get_many(known)
        return self._waiting_cards(
            [task for task in tasks if state_of(task, None) is BoardState.WAITING], closed, first
        )

    def _waiting_cards(
        self, tasks: Sequence[Task], closed: tuple[Blocker, ...], first: Collection[str]
    ) -> tuple[Card, ...]:
        """Waiting tasks with what they wait for."""
        shown = sorted(tasks, key=lambda task: (task.id not in first, _urgency_key(task)))[
            : self.limit
        ]
        rows = self.uow.get(WAITING, _ids(shown))
        before = self._unfinished_before(_ids(shown))
        cards = []
        for task, row in zip(shown, rows, strict=True):
            named = before[task.id][:BLOCKERS_NAMED]
            more = (row.blockers if row else 0) - len(named) - bool(closed)
            cards.append(Card(task, waits_for=(*named, *closed), more=max(0, more)))
        return tuple(cards)

    def _unfinished_before(self, keys: Sequence[str]) -> dict[str, list[Blocker]]:
        """The unfinished tasks that each of these waits for; reads at most SCAN_LIMIT of them."""
        before: dict[str, dict[str, Task]] = {key: {} for key in keys}
        if keys:
            edges = self.uow.select(
                find(TASK_DEPENDENCIES, {"task_id": any_of(keys)}, limit=SCAN_LIMIT)
            )
            ends = self.uow.tasks.get_many(edge.depends_on_task_id for edge in edges)
            for edge, end in zip(edges, ends, strict=True):
                before[edge.task_id][end.id] = end
            query = find(TASKS, {"parent_task_id": any_of(keys)}, limit=SCAN_LIMIT)
            for child in self.uow.select(query):
                before[child.parent_task_id or ""][child.id] = child
        return {
            key: [
                Blocker("task", each.id, each.name, each.status)
                for each in _by_urgency(tasks.values())
                if not each.is_finished
            ]
            for key, tasks in before.items()
        }


def _last_finished(uow: UnitOfWork) -> list[Task]:
    """The tasks finished last, the latest first."""
    entries = uow.journal.recent(RECENT_ENTRIES)
    keys = [
        entry.key
        for entry in reversed(entries)
        if entry.entity == TASKS.name and (entry.after or {}).get("status") == TaskStatus.COMPLETED
    ]
    found = uow.get(TASKS, list(dict.fromkeys(keys)))
    return [task for task in found if task is not None and task.is_finished]


def _ids(tasks: Iterable[Task]) -> list[str]:
    return [task.id for task in tasks]


def _cards(tasks: Iterable[Task]) -> tuple[Card, ...]:
    return tuple(Card(task) for task in tasks)


def _urgency_key(task: Task) -> tuple[object, ...]:
    return task.priority.rank, task.order, task.created_at, task.id


def _by_urgency(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=_urgency_key)
