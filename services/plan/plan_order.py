"""The order of a plan: initiatives and phases by age, and in each phase the order of its tasks."""

from collections.abc import Callable, Iterator, Mapping
from itertools import dropwhile, islice
from typing import Any, TypeVar

from herdbook.domain.plan.model import Initiative, InitiativeStatus, Task
from herdbook.ports.engine.dictionary import INITIATIVES, PHASES, TASKS
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.paging import PAGE, rows_with, select_all
from herdbook.ports.engine.query import Query, any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

E = TypeVar("E")


def _initiatives(uow: UnitOfWork) -> Iterator[Initiative]:
    """All initiatives, oldest first."""
    return select_all(uow, find(INITIATIVES, {"status": any_of(InitiativeStatus)}, limit=PAGE))


def _phase_queries(uow: UnitOfWork) -> Iterator[Query[Any]]:
    for initiative in _initiatives(uow):
        yield find(PHASES, {"initiative_id": initiative.id})


def _task_queries(uow: UnitOfWork) -> Iterator[Query[Any]]:
    for query in _phase_queries(uow):
        for phase in select_all(uow, query._replace(limit=PAGE)):
            yield find(TASKS, {"phase_id": phase.id})
    yield find(TASKS, {"phase_id": None})


_QUERIES: Mapping[Kind[Any], Callable[[UnitOfWork], Iterator[Query[Any]]]] = {
    PHASES: _phase_queries,
    TASKS: _task_queries,
}


def rows_of_initiative(
    uow: UnitOfWork, kind: Kind[E], initiative_id: str, *, page: int, after: E | None = None
) -> Iterator[E]:
    """All tasks of an initiative, starting after a row, fetched as they are consumed.

    First those of its phases in the order of the plan, then those that name the initiative itself,
    then subtasks of all these that name neither a phase nor an initiative, level by level.
    """
    found: Iterator[Any] = _tasks_within(uow, initiative_id, page)
    if after is not None:
        last = kind.key_of(after)
        found = islice(dropwhile(lambda row: kind.key_of(row) != last, found), 1, None)
    return found


def _tasks_within(uow: UnitOfWork, initiative_id: str, page: int) -> Iterator[Task]:
    phases = select_all(uow, find(PHASES, {"initiative_id": initiative_id}, limit=page))
    conditions = [{"phase_id": phase.id} for phase in phases]
    inside = {each["phase_id"] for each in conditions}
    above: list[str] = []
    for where in (*conditions, {"initiative_id": initiative_id}):
        for task in select_all(uow, find(TASKS, where, limit=page)):
            if "phase_id" in where or task.phase_id not in inside:
                above.append(task.id)
                yield task
    while above:
        parents, above = above, []
        for task in rows_with(uow, TASKS, "parent_task_id", parents):
            if task.phase_id is None and task.initiative_id is None:
                above.append(task.id)
                yield task


def has_plan_order(kind: Kind[Any]) -> bool:
    """Whether rows of a kind have a place in the plan."""
    return kind in _QUERIES


def rows_in_order(
    uow: UnitOfWork, kind: Kind[E], *, page: int, after: E | None = None
) -> Iterator[E]:
    """All rows of a kind in the order of the plan, starting after a row, fetched as consumed."""
    started = after is None
    for query in _QUERIES[kind](uow):
        own = query._replace(limit=page)
        if not started and after is not None:
            ((field, value),) = query.equals
            if getattr(after, field) != value:
                continue
            own, started = own.next_page(after), True
        yield from select_all(uow, own)
