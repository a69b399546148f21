"""The queues of the plan: what waits, what is open, and why."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
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
from herdbook.domain.plan.readiness import Opening, WaitingTask
from herdbook.domain.record.standing import first_standing
from herdbook.ports.engine.dictionary import (
    AGENTS,
    OPENINGS,
    PHASE_DEPENDENCIES,
    PHASES,
    STANDINGS,
    TASK_DEPENDENCIES,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.cases import for_each
from tests.contract.rows import make, replace_pair
from tests.contract.turns import Begin

PENDING, _, _, COMPLETED, BLOCKED = TaskStatus
READY, HELD = "ready", "held"
START = datetime(2026, 3, 1, 12, tzinfo=UTC)
Change = Callable[[UnitOfWork], object]


def _after(begin: Begin, *changes: Change) -> dict[str, str | int]:
    """Apply changes in one transaction; tell of each unfinished task what stands in its way.

    That is a number of blockers, or the state of its opening. Everything derived is compared with
    a recount from scratch on the way.
    """
    with begin() as uow:
        for change in changes:
            change(uow)
        uow.commit()
    with begin(write=False) as uow:
        assert find_differences(uow) == []
        waiting, openings = uow.select(find(WAITING)), uow.select(find(OPENINGS))
    assert not {each.task_id for each in waiting} & {each.task_id for each in openings}
    found: dict[str, str | int] = {each.task_id: each.blockers for each in waiting}
    return found | {each.task_id: each.state.value for each in openings}


def _add(*names: str, **given: object) -> Change:
    return lambda uow: uow.tasks.add_all([Task(id=name, name=name, **given) for name in names])


def _save(name: str, **changes: object) -> Change:
    return lambda uow: uow.tasks.save(evolve(uow.tasks.get(name), **changes))


def _save_phase(name: str, **changes: object) -> Change:
    return lambda uow: uow.phases.save(evolve(uow.phases.get(name), **changes))


def _save_initiative(name: str, **changes: object) -> Change:
    return lambda uow: uow.initiatives.save(evolve(uow.initiatives.get(name), **changes))


def _needs(task: str, *others: str) -> Change:
    return lambda uow: uow.tasks.add_dependencies([(task, other) for other in others])


def _remove(*names: str) -> Change:
    return lambda uow: uow.tasks.remove_all(names)


def _plan(**given: object) -> Change:
    """An initiative `i` with an open phase `p` and an open phase `q`."""

    def add(uow: UnitOfWork) -> None:
        uow.initiatives.add(Initiative(id="i", name="x", **given))
        phases = [
            Phase(id=name, initiative_id="i", name="x", status=PhaseStatus.APPROVED)
            for name in "pq"
        ]
        uow.phases.add_all(phases)

    return add


@pytest.mark.parametrize("mode", list(ExecutionMode))
def test_a_phase_opens_and_closes_the_gate_of_its_tasks(begin: Begin, mode: ExecutionMode) -> None:
    """It is open when approved or in progress, and when pending in an initiative that runs yolo."""
    _after(begin, _plan(execution_mode=mode), _add("t", phase_id="p"))
    found = {status: _after(begin, _save_phase("p", status=status))["t"] for status in PhaseStatus}
    is_open = {PhaseStatus.APPROVED, PhaseStatus.IN_PROGRESS}
    if mode is ExecutionMode.YOLO:
        is_open.add(PhaseStatus.PENDING)
    assert found == {status: READY if status in is_open else 1 for status in PhaseStatus}


def test_a_phase_waits_until_those_it_depends_on_are_completed(begin: Begin) -> None:
    """No other status of theirs will do, and completing is undone by leaving it again."""
    _after(begin, _plan(), _add("t", phase_id="p"))
    assert _after(begin, lambda uow: uow.phases.add_dependency("p", "q")) == {"t": 1}
    found = {
        status: _after(begin, _save_phase("q", status=status))["t"]
        for status in (*PhaseStatus, PhaseStatus.PENDING)
    }
    assert found == {s: READY if s is PhaseStatus.COMPLETED else 1 for s in PhaseStatus}


@pytest.mark.parametrize(
    "change",
    [
        lambda uow: uow.phases.remove_dependency("p", "q"),
        lambda uow: uow.phases.remove("q"),
    ],
    ids=["the dependency", "the other phase"],
)
def test_a_phase_is_released_by_removing(begin: Begin, change: Change) -> None:
    """What nothing depends on any more is not waited for."""
    depends = lambda uow: uow.phases.add_dependency("p", "q")  # noqa: E731
    _after(begin, _plan(), depends, _add("t", phase_id="p"))
    assert _after(begin, change) == {"t": READY}


def test_a_phase_dependency_that_is_replaced_frees_one_and_holds_another(begin: Begin) -> None:
    """Both the phase it left and the phase it went to are counted again."""
    _after(begin, _plan(), _add("t", phase_id="p"), _add("u", phase_id="q"))
    with begin() as uow:
        make(uow, PHASES, id="r", initiative_id="i")
        edge = uow.phases.add_dependency("p", "r")
        uow.commit()
    assert _after(begin) == {"t": 1, "u": READY}
    moved = _after(begin, lambda uow: replace_pair(uow, PHASE_DEPENDENCIES, edge, phase_id="q"))
    assert moved == {"t": READY, "u": 1}


@for_each("status", list(InitiativeStatus))
def test_an_initiative_that_is_not_active_closes_every_gate(
    begin: Begin, status: InitiativeStatus
) -> None:
    """Of its loose tasks and of those in its phases, and of nobody else's."""
    _after(begin, _plan(), _add("loose", initiative_id="i"), _add("t", phase_id="p"), _add("o"))
    expected = READY if status is InitiativeStatus.ACTIVE else 1
    found = _after(begin, _save_initiative("i", status=status))
    assert found == {"loose": expected, "t": expected, "o": READY}
    back = _after(begin, _save_initiative("i", status=InitiativeStatus.ACTIVE))
    assert back == {"loose": READY, "t": READY, "o": READY}


def test_an_initiative_that_begins_to_run_yolo_opens_its_pending_phases(begin: Begin) -> None:
    """And closes them again when it stops."""
    pending = _save_phase("p", status=PhaseStatus.PENDING)
    assert _after(begin, _plan(), pending, _add("t", phase_id="p")) == {"t": 1}
    yolo, careful = ExecutionMode
    assert _after(begin, _save_initiative("i", execution_mode=yolo)) == {"t": READY}
    assert _after(begin, _save_initiative("i", execution_mode=careful)) == {"t": 1}


def test_a_phase_that_moves_to_another_initiative_takes_its_tasks_along(begin: Begin) -> None:
    """Their gate and their opening follow the initiative the phase is in."""
    away = Initiative(id="away", name="x")
    _after(begin, _plan(), lambda uow: uow.initiatives.add(away), _add("t", phase_id="p"))
    assert _after(begin, _save_phase("p", initiative_id="away")) == {"t": READY}
    with begin(write=False) as uow:
        assert uow.openings.get("t").initiative_id == "away"
    archived = InitiativeStatus.ARCHIVED
    assert _after(begin, _save_initiative("away", status=archived)) == {"t": 1}
    assert _after(begin, _save_phase("p", initiative_id="i")) == {"t": READY}


def test_a_parent_waits_for_all_of_its_children(begin: Begin) -> None:
    """Each unfinished child counts once, whether it is completed or removed."""
    assert _after(begin, _add("p")) == {"p": READY}
    assert _after(begin, _add("a", "b", parent_task_id="p")) == {"p": 2, "a": READY, "b": READY}
    assert _after(begin, _save("a", status=COMPLETED)) == {"p": 1, "b": READY}
    assert _after(begin, _remove("b")) == {"p": READY}
    assert _after(begin, _save("a", status=PENDING)) == {"p": 1, "a": READY}


def test_a_task_waits_for_what_it_depends_on(begin: Begin) -> None:
    """Until that is completed, no longer depended on, or removed; reopening counts again."""
    assert _after(begin, _add(*"tabc"), _needs("t", *"abc"))["t"] == 3
    assert _after(begin, _save("a", status=COMPLETED))["t"] == 2
    assert _after(begin, lambda uow: uow.tasks.remove_dependency("t", "b"))["t"] == 1
    assert _after(begin, _remove("c"))["t"] == READY
    assert _after(begin, _save("a", status=PENDING))["t"] == 1


def test_a_dependency_on_a_finished_task_holds_nobody(begin: Begin) -> None:
    """Neither when the edge is new nor when both its ends are."""
    assert _after(begin, _add("a", status=COMPLETED), _add("t"), _needs("t", "a")) == {"t": READY}
    assert _after(begin, _add("u"), _needs("u", "a")) == {"t": READY, "u": READY}


def test_a_task_dependency_that_is_replaced_frees_one_and_holds_another(begin: Begin) -> None:
    """Whichever of its ends moves."""
    _after(begin, _add("t", "u", "a"), _add("done", status=COMPLETED))
    with begin() as uow:
        uow.tasks.add_dependency("t", "a")
        uow.commit()
    assert _after(begin) == {"t": 1, "u": READY, "a": READY}

    def move(**changes: object) -> Change:
        def change(uow: UnitOfWork) -> None:
            (current,) = uow.select(find(TASK_DEPENDENCIES))
            replace_pair(uow, TASK_DEPENDENCIES, current, **changes)

        return change

    assert _after(begin, move(task_id="u")) == {"t": READY, "u": 1, "a": READY}
    assert _after(begin, move(depends_on_task_id="done")) == {"t": READY, "u": READY, "a": READY}


def test_a_task_blocked_by_hand_waits_for_a_person(begin: Begin) -> None:
    """That is one thing in its way, and nobody else's."""
    _after(begin, _add("a", "t"), _needs("t", "a"))
    assert _after(begin, _save("a", status=BLOCKED)) == {"a": 1, "t": 1}
    assert _after(begin, _save("a", status=PENDING)) == {"a": READY, "t": 1}


def test_everything_in_the_way_of_a_task_counts(begin: Begin) -> None:
    """Dependencies, children, the gate and a person's word are added up, and the phase is known."""
    closed = _save_phase("p", status=PhaseStatus.BLOCKED)
    _after(begin, _plan(), closed, _add("t", phase_id="p", status=BLOCKED), _add("a", "b"))
    found = _after(begin, _needs("t", "a", "b"), _add("c", parent_task_id="t"))
    assert found == {"t": 5, "a": READY, "b": READY, "c": READY}
    with begin(write=False) as uow:
        assert uow.select(find(WAITING)) == [WaitingTask(task_id="t", phase_id="p", blockers=5)]


def test_an_opening_says_what_its_task_does(begin: Begin) -> None:
    """Its place in the line follows the task; its initiative is the phase's before its own."""
    _after(begin, _plan(), lambda uow: uow.initiatives.add(Initiative(id="j", name="x")))
    _after(begin, _add("t", phase_id="p", initiative_id="j", priority=Priority.LOW))
    _after(begin, _save("t", priority=Priority.HIGH, order=4))
    with begin(write=False) as uow:
        task = uow.tasks.get("t")
        assert uow.select(find(OPENINGS)) == [
            Opening(
                task_id="t",
                initiative_id="i",
                phase_id="p",
                rank=0,
                order=4,
                created_at=task.created_at,
            )
        ]


def test_a_task_that_gets_another_parent_frees_the_one_and_holds_the_other(begin: Begin) -> None:
    """And frees it too when it gets none."""
    _after(begin, _add("p", "q"), _add("t", parent_task_id="p"))
    assert _after(begin, _save("t", parent_task_id="q")) == {"p": READY, "q": 1, "t": READY}
    assert _after(begin, _save("t", parent_task_id=None)) == {"p": READY, "q": READY, "t": READY}


def test_a_task_that_moves_between_phases_goes_by_the_gate_it_comes_to(begin: Begin) -> None:
    """An open one, a closed one, or none at all."""
    closed = _save_phase("q", status=PhaseStatus.BLOCKED)
    assert _after(begin, _plan(), closed, _add("t", phase_id="p")) == {"t": READY}
    assert _after(begin, _save("t", phase_id="q")) == {"t": 1}
    assert _after(begin, _save("t", phase_id="p")) == {"t": READY}
    assert _after(begin, _save("t", phase_id="q")) == {"t": 1}
    assert _after(begin, _save("t", phase_id=None)) == {"t": READY}


def test_a_loose_task_that_moves_between_initiatives_goes_by_the_one_it_comes_to(
    begin: Begin,
) -> None:
    """An active one, one that is not, or none at all."""
    archived = _save_initiative("i", status=InitiativeStatus.ARCHIVED)
    assert _after(begin, _plan(), archived, _add("t")) == {"t": READY}
    assert _after(begin, _save("t", initiative_id="i")) == {"t": 1}
    assert _after(begin, _save("t", initiative_id=None)) == {"t": READY}


def test_a_finished_task_is_in_no_queue(begin: Begin) -> None:
    """Until it is taken up again."""
    assert _after(begin, _add("t", status=COMPLETED)) == {}
    assert _after(begin, _save("t", status=PENDING)) == {"t": READY}
    assert _after(begin, _save("t", status=COMPLETED)) == {}


@for_each(
    ("change", "left"),
    [
        (lambda uow: uow.initiatives.remove("i"), {"outside": READY}),
        (lambda uow: uow.phases.remove("p"), {"outside": READY, "u": READY}),
        (_remove("t"), {"outside": 1, "u": READY, "sibling": READY}),
    ],
    ids=["an initiative", "a phase", "a task"],
)
def test_what_goes_with_a_removed_row_leaves_the_queues(
    begin: Begin, change: Change, left: dict[str, str | int]
) -> None:
    """With all its children, and what waited for any of them is freed."""
    _after(
        begin,
        _plan(),
        _add("outside"),
        _add("t", "sibling", phase_id="p"),
        _add("child", phase_id="p", parent_task_id="t"),
        _add("u", phase_id="q"),
        _needs("outside", "sibling", "child"),
    )
    assert _after(begin, change) == left


def test_what_comes_and_goes_in_one_transaction_leaves_nothing(begin: Begin) -> None:
    """Nor does it hold what it would have held."""
    _after(begin, _add("p"))
    found = _after(
        begin,
        _add("t", parent_task_id="p"),
        _add("u"),
        _needs("p", "u"),
        _remove("t", "u"),
    )
    assert found == {"p": READY}


def test_a_task_removed_and_added_again_in_one_transaction_is_a_new_one(begin: Begin) -> None:
    """What it waited for before is forgotten, and what waited for it too."""
    _after(begin, _add("a", "t", "w"), _needs("t", "a"), _needs("w", "t"))
    assert _after(begin, _remove("t"), _add("t")) == {"a": READY, "t": READY, "w": READY}


def test_what_is_undone_leaves_the_queues_alone(begin: Begin) -> None:
    """A unit of work that looked at its own openings and was not committed changed nothing."""
    _after(begin, _add("a", "b"))
    with begin() as uow:
        _add("c")(uow)
        _needs("a", "b")(uow)
        assert [task.id for task in uow.tasks.ready(9)] == ["b", "c"]
    assert _after(begin) == {"a": READY, "b": READY}


def test_a_lease_lives_through_all_that_happens_around_it(begin: Begin) -> None:
    """A gate that closes and opens, a new dependency, a new priority: it stays held as long."""
    with begin() as uow:
        agent = make(uow, AGENTS)
        uow.commit()
    _after(begin, _plan(), _add("t", phase_id="p"), _add("o"))
    with begin() as uow:
        claim = claims.claim(uow, agent.id, halts=NO_HALTS, phase_id="p")
        uow.commit()
    closed = _after(begin, _save_phase("p", status=PhaseStatus.BLOCKED), _needs("t", "o"))
    assert closed == {"t": HELD, "o": READY}
    with begin(write=False) as uow:
        assert uow.openings.get("t") == evolve(claim.opening, blockers=2)
    _after(begin, _save_phase("p", status=PhaseStatus.APPROVED), _save("t", order=3))
    assert _after(begin, _remove("o")) == {"t": HELD}
    with begin(write=False) as uow:
        assert uow.openings.get("t") == evolve(claim.opening, order=3)


def test_derived_rows_are_not_journalled(begin: Begin) -> None:
    """The journal tells of the task and of nothing that follows from it."""
    _after(begin, _add("t"), _save("t", status=BLOCKED))
    with begin(write=False) as uow:
        assert {entry.entity for entry in uow.journal.since(0)} == {TASKS.name}


@for_each("kind", [WAITING, OPENINGS, STANDINGS], ids=lambda kind: kind.name)
def test_derived_rows_are_not_saved_by_hand(begin: Begin, space: str, kind: Kind[object]) -> None:
    """They follow from others, and from nothing else."""
    row = {
        WAITING: WaitingTask(task_id="t", blockers=1),
        OPENINGS: Opening(task_id="t", rank=0, order=0, created_at=START),
        STANDINGS: first_standing("otter"),
    }[kind]
    with begin(space=space.replace("work", kind.area, 1)) as uow, pytest.raises(InvalidValue):
        uow.save(kind, [row])
