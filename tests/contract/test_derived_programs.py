"""Random programs of plan changes and claims, and what they leave in the queues."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.agents.model import Agent
from herdbook.domain.entity import evolve
from herdbook.domain.errors import AlreadyExists, CycleRefused, NotFound
from herdbook.domain.plan.claims import LEASE
from herdbook.domain.plan.model import (
    ExecutionMode,
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    Priority,
    Task,
    TaskStatus,
)
from herdbook.domain.plan.readiness import count_blockers, gate_is_open, is_ready
from herdbook.ports.engine.dictionary import (
    AGENTS,
    INITIATIVES,
    OPENINGS,
    PHASE_DEPENDENCIES,
    PHASES,
    TASK_DEPENDENCIES,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.projections import find_differences, rebuild
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.contract.rows import replace_pair

E = TypeVar("E")

BLINK = timedelta(microseconds=1)
SHARES = {"memory": 1, "lmdb": 4, "postgres": 20, "duckdb": 50}
"""How many programs run on the fastest store for each that runs on this one."""

_numbers = itertools.count(1)


class Step:
    """One change with its choices made: which rows it is about, and what becomes of them."""

    def __init__(self, uow: UnitOfWork, choices: Sequence[int]) -> None:
        self.uow = uow
        self._choices = iter(choices)

    def number(self) -> int:
        """The next choice."""
        return next(self._choices)

    def one_of(self, values: Sequence[E]) -> E:
        """One of some values, by the next choice."""
        return values[self.number() % len(values)]

    def row(self, kind: Kind[E]) -> E:
        """A row that is there; NotFound if there is none at all."""
        rows = self.uow.select(find(kind))
        if not rows:
            raise NotFound(kind.title, "any")
        return self.one_of(rows)

    def key_or_none(self, kind: Kind[E]) -> str | None:
        """The key of a row that is there, or nothing."""
        rows = self.uow.select(find(kind))
        return self.one_of([None, *(kind.key_of(row) for row in rows)])


def _add_initiative(step: Step) -> None:
    mode, review = step.one_of(list(ExecutionMode)), step.one_of([False, True])
    step.uow.initiatives.add(Initiative(name="x", execution_mode=mode, quality_review=review))


def _add_phase(step: Step) -> None:
    initiative, status = step.row(INITIATIVES), step.one_of(list(PhaseStatus))
    step.uow.phases.add(Phase(initiative_id=initiative.id, name="x", status=status))


def _add_task(step: Step) -> None:
    place = {
        "phase_id": step.key_or_none(PHASES),
        "initiative_id": step.key_or_none(INITIATIVES),
        "parent_task_id": step.key_or_none(TASKS),
    }
    step.uow.tasks.add(Task(name="x", order=step.number(), **place))


def _save_initiative(step: Step) -> None:
    row = step.row(INITIATIVES)
    status, mode = step.one_of(list(InitiativeStatus)), step.one_of(list(ExecutionMode))
    step.uow.initiatives.save(evolve(row, status=status, execution_mode=mode))


def _save_phase(step: Step) -> None:
    row, status = step.row(PHASES), step.one_of(list(PhaseStatus))
    step.uow.phases.save(evolve(row, status=status))


def _rename_phase(step: Step) -> None:
    step.uow.phases.save(evolve(step.row(PHASES), name=f"x{step.number()}"))


def _move_phase(step: Step) -> None:
    row, initiative = step.row(PHASES), step.row(INITIATIVES)
    step.uow.phases.save(evolve(row, initiative_id=initiative.id))


def _save_task(step: Step) -> None:
    row = step.row(TASKS)
    status, priority = step.one_of(list(TaskStatus)), step.one_of(list(Priority))
    step.uow.tasks.save(evolve(row, status=status, priority=priority))


def _move_task(step: Step) -> None:
    place = {
        "phase_id": step.key_or_none(PHASES),
        "initiative_id": step.key_or_none(INITIATIVES),
        "parent_task_id": step.key_or_none(TASKS),
    }
    step.uow.tasks.save(evolve(step.row(TASKS), **place))


def _depend(step: Step) -> None:
    step.uow.tasks.add_dependency(step.row(TASKS).id, step.row(TASKS).id)


def _depend_phases(step: Step) -> None:
    step.uow.phases.add_dependency(step.row(PHASES).id, step.row(PHASES).id)


def _move_dependency(step: Step) -> None:
    row, field = step.row(TASK_DEPENDENCIES), step.one_of(["task_id", "depends_on_task_id"])
    replace_pair(step.uow, TASK_DEPENDENCIES, row, **{field: step.row(TASKS).id})


def _move_phase_dependency(step: Step) -> None:
    row, field = step.row(PHASE_DEPENDENCIES), step.one_of(["phase_id", "depends_on_phase_id"])
    replace_pair(step.uow, PHASE_DEPENDENCIES, row, **{field: step.row(PHASES).id})


def _remove(kind: Kind[E]) -> Callable[[Step], None]:
    return lambda step: step.uow.remove(kind, [kind.key_of(step.row(kind))])


def _claim(step: Step) -> None:
    agents = step.uow.select(find(AGENTS)) or [step.uow.agents.add(Agent(name="otter"))]
    ttl = step.one_of([BLINK, LEASE])
    claims.claim(step.uow, step.one_of(agents).id, halts=NO_HALTS, ttl=ttl, max_retries=1)


def _end_claim(step: Step) -> None:
    claimed = TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW
    tasks = [task for task in step.uow.select(find(TASKS)) if task.status in claimed]
    if tasks:
        task = step.one_of(tasks)
        ways = [claims.complete, claims.fail, claims.release, claims.heartbeat]
        step.one_of(ways)(step.uow, task.id, task.fence)


STEPS = [
    _add_initiative,
    _add_phase,
    _add_task,
    _add_task,
    _add_task,
    _save_initiative,
    _save_phase,
    _move_phase,
    _save_task,
    _move_task,
    _depend,
    _depend,
    _depend_phases,
    _move_dependency,
    _move_phase_dependency,
    *map(_remove, [INITIATIVES, PHASES, TASKS, TASK_DEPENDENCIES, PHASE_DEPENDENCIES, AGENTS]),
    _claim,
    _claim,
    _end_claim,
    _end_claim,
]

choices = st.lists(st.integers(0, 30), min_size=5, max_size=5)
steps = st.tuples(st.sampled_from(STEPS), choices)
unset_steps = st.tuples(
    st.sampled_from([_rename_phase if each is _save_phase else each for each in STEPS]), choices
)
lasting = st.sampled_from([True, True, False])
programs = st.lists(
    st.tuples(st.lists(steps, min_size=1, max_size=6), lasting), min_size=2, max_size=8
)
Changes = list[tuple[Callable[[Step], None], list[int]]]


class ProgramSpace:
    """The space of a program, whose ids count up.

    Rows are chosen by their place among others, which their ids decide: with random ones the same
    program would do something else the next time.
    """

    def __init__(self, store: Store) -> None:
        self.number = 0
        self._store = store
        self._name = f"work/program-{next(_numbers)}"

    def begin(self, *, write: bool = True) -> AbstractContextManager[UnitOfWork]:
        """Begin a unit of work."""
        return unit_of_work(self._store, self._name, ids=self._next_id, write=write)

    def _next_id(self) -> str:
        self.number += 1
        return f"{self.number:020x}"


def _begun(store: Store) -> ProgramSpace:
    """A space of its own with a plan to begin with, of which some is open and some is not."""
    space = ProgramSpace(store)
    careful, bold = ExecutionMode.REVIEW_PER_PHASE, ExecutionMode.YOLO
    with space.begin() as uow:
        uow.agents.add_all([Agent(name=name) for name in ("otter", "heron")])
        modes = [{"execution_mode": careful}, {"execution_mode": bold, "quality_review": True}]
        initiatives = uow.initiatives.add_all([Initiative(name="x", **mode) for mode in modes])
        phases = uow.phases.add_all(
            [
                Phase(initiative_id=initiative.id, name="x", status=status)
                for initiative in initiatives
                for status in (PhaseStatus.PENDING, PhaseStatus.APPROVED)
            ]
        )
        tasks = uow.tasks.add_all([Task(name="x", phase_id=phase.id) for phase in phases])
        uow.tasks.add(Task(name="x", parent_task_id=tasks[1].id))
        uow.tasks.add_dependency(tasks[3].id, tasks[2].id)
        uow.phases.add_dependency(phases[1].id, phases[0].id)
        uow.commit()
    return space


def _apply(uow: UnitOfWork, changes: Changes) -> None:
    """Do what can be done; what is refused must leave the unit of work as good as before."""
    for change, chosen in changes:
        with suppress(AlreadyExists, CycleRefused, NotFound):
            change(Step(uow, chosen))


def _agrees(uow: UnitOfWork) -> None:
    """Check the queues against a recount, and against the rule as a person would apply it."""
    assert find_differences(uow) == []
    tasks = {task.id: task for task in uow.select(find(TASKS))}
    phases = {phase.id: phase for phase in uow.select(find(PHASES))}
    initiatives = {each.id: each for each in uow.select(find(INITIATIVES))}
    edges = uow.select(find(TASK_DEPENDENCIES))
    phase_edges = uow.select(find(PHASE_DEPENDENCIES))
    waiting, openings = uow.select(find(WAITING)), uow.select(find(OPENINGS))
    leases = {opening.task_id: opening.lease_until for opening in openings}
    counted, ready = {}, set()
    for task in tasks.values():
        phase = phases.get(task.phase_id)
        initiative = initiatives.get(phase.initiative_id if phase else task.initiative_id)
        ahead = [phases[e.depends_on_phase_id] for e in phase_edges if e.phase_id == task.phase_id]
        facts = {
            "gate_open": gate_is_open(initiative, phase, ahead),
            "depends_on": [tasks[e.depends_on_task_id] for e in edges if e.task_id == task.id],
            "children": [each for each in tasks.values() if each.parent_task_id == task.id],
        }
        if not task.is_finished:
            counted[task.id] = count_blockers(task, **facts)
        if is_ready(task, **facts, lease_until=leases.get(task.id), now=uow.now):
            ready.add(task.id)
    assert [row.task_id for row in waiting if row.task_id in leases] == []
    assert {row.task_id: row.blockers for row in (*waiting, *openings)} == counted
    assert {opening.task_id for opening in uow.openings.claimable(1_000)} == ready


def test_the_queues_follow_every_program(store: Store, engine: str) -> None:
    """Whatever is changed, claimed or undone, and however much of it at once."""

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=programs)
    def holds(program: list[tuple[Changes, bool]]) -> None:
        space = _begun(store)
        for changes, lasts in program:
            with space.begin() as uow:
                _apply(uow, changes)
                if lasts:
                    uow.commit()
            with space.begin(write=False) as uow:
                _agrees(uow)

    holds()


def test_the_queues_can_be_asked_in_the_middle_of_a_program(store: Store, engine: str) -> None:
    """They follow what a unit of work has done so far, not only what it commits."""

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(changes=st.lists(steps, max_size=20))
    def holds(changes: Changes) -> None:
        space = _begun(store)
        with space.begin() as uow:
            for change in changes:
                _apply(uow, [change])
                _agrees(uow)

    holds()


def test_who_asks_in_the_middle_of_a_program_changes_no_phase(store: Store, engine: str) -> None:
    """A phase follows what a unit of work has done, however often it was asked for on the way.

    Nobody sets a status here: to set the one that a phase has by then is no change.
    """

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(changes=st.lists(unset_steps, max_size=20))
    def holds(changes: Changes) -> None:
        space = _begun(store)
        number, found = space.number, []
        for asks in (False, True):
            space.number = number
            with space.begin() as uow:
                for change in changes:
                    _apply(uow, [change])
                    if asks:
                        uow.openings.claimable(1)
                uow.openings.claimable(1)
                found.append({each.id: each.status for each in uow.select(find(PHASES))})
        assert found[0] == found[1]

    holds()


def test_whatever_is_spoilt_is_rebuilt(store: Store, engine: str) -> None:
    """Rows lost, made up or changed behind the unit of work's back are all found and mended."""
    spoiling = st.lists(st.tuples(st.sampled_from(["lose", "change", "invent"]), choices))

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(changes=st.lists(steps, max_size=20), spoilt=spoiling)
    def holds(changes: Changes, spoilt: list[tuple[str, list[int]]]) -> None:
        space = _begun(store)
        with space.begin() as uow:
            _apply(uow, changes)
            uow.commit()
        with space.begin() as uow:
            for way, chosen in spoilt:
                with suppress(NotFound):
                    _spoil(Step(uow, chosen), way)
            uow.session.commit()
        with space.begin() as uow:
            found = find_differences(uow)
            assert rebuild(uow) == len(found)
            uow.commit()
        with space.begin(write=False) as uow:
            _agrees(uow)

    holds()


def _spoil(step: Step, way: str) -> None:
    session = step.uow.session
    if way == "invent":
        kind = step.one_of([WAITING, OPENINGS])
        others = session.select(find(WAITING if kind is OPENINGS else OPENINGS))
        taken = {row.task_id for row in session.select(find(kind))}
        free = [row.task_id for row in others if row.task_id not in taken] or ["nothing"]
        made_up = {"task_id": step.one_of(free), "blockers": 2}
        if kind is OPENINGS:
            made_up |= {"rank": 1, "order": 2, "created_at": step.uow.now}
        if made_up["task_id"] not in taken:
            session.insert(kind, [kind.entity(**made_up)])
        return
    kind = step.one_of([WAITING, OPENINGS])
    rows = session.select(find(kind))
    if rows and way == "lose":
        session.delete(kind, [step.one_of(rows).task_id])
    elif rows:
        session.replace(kind, [evolve(step.one_of(rows), blockers=step.number() + 50)])
