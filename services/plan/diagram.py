"""The diagram of a plan: unfinished tasks, their waves and their dependencies.

Between two phases there is one arrow instead of one between each two of their tasks.
"""

from collections.abc import Iterable
from typing import NamedTuple

from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.graph import Edges
from herdbook.domain.plan.model import (
    UNFINISHED,
    Initiative,
    InitiativeStatus,
    Phase,
    Task,
)
from herdbook.domain.plan.pick_up import PickUpOrder, pick_up_order
from herdbook.domain.plan.readiness import phase_is_open
from herdbook.ports.engine.dictionary import INITIATIVES, OPENINGS, PHASES, TASKS
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan import schedule
from herdbook.services.plan.board_model import BoardState, state_of

MAX_TASKS = 5_000
"""How many tasks one diagram holds at most."""
_GATE, _DONE = "gate:", "done:"


class DiagramNode(NamedTuple):
    """A task of a diagram; `after` has the ids of the shown tasks and phases it waits for."""

    task: Task
    wave: int
    state: BoardState
    critical: bool
    after: tuple[str, ...]


class DiagramPhase(NamedTuple):
    """A phase of a diagram; `after` has the ids of the shown phases and tasks it waits for."""

    phase: Phase
    initiative: Initiative
    after: tuple[str, ...]


class Diagram(NamedTuple):
    """The nodes in the order of waves, their phases by initiative, and the critical path.

    `pick_up` is in which order so many agents would pick up the tasks, if that was asked for.
    """

    nodes: tuple[DiagramNode, ...]
    stretches: tuple[DiagramPhase, ...]
    critical_path: tuple[str, ...]
    pick_up: PickUpOrder | None = None


def build_diagram(
    uow: UnitOfWork,
    *,
    initiative_id: str | None = None,
    phase_id: str | None = None,
    agents: int | None = None,
) -> Diagram:
    """The diagram of the unfinished tasks of a space, an initiative or a phase.

    Raises NotFound if the initiative or phase does not exist, and InvalidValue for more tasks than
    one diagram can hold, and for a number of agents that nobody has.
    """
    _refuse_too_much(uow, initiative_id, phase_id)
    found = schedule.layout(uow, initiative_id=initiative_id, phase_id=phase_id)
    tasks = [task for wave in found.waves for task in wave]
    phase_ids = list(dict.fromkeys(task.phase_id for task in tasks if task.phase_id))
    path = [task.id for task in found.critical_path] if len(found.critical_path) > 1 else []
    openings = uow.get(OPENINGS, [task.id for task in tasks])
    wave_of = {task.id: at for at, wave in enumerate(found.waves, start=1) for task in wave}
    arrows = _Arrows(found.edges, wave_of, phase_ids)
    phases = uow.get_existing(PHASES, phase_ids)
    owners = list(dict.fromkeys(phase.initiative_id for phase in phases))
    initiatives = {each.id: each for each in uow.get_existing(INITIATIVES, owners)}
    phases.sort(key=lambda phase: owners.index(phase.initiative_id))
    nodes = tuple(
        DiagramNode(
            task,
            wave_of[task.id],
            state_of(task, opening),
            task.id in path,
            # What its phase waits for is shown at the phase, not at each of its tasks.
            arrows.of(task.id, but=f"{_GATE}{task.phase_id}"),
        )
        for task, opening in zip(tasks, openings, strict=True)
    )
    stretches = tuple(
        DiagramPhase(phase, initiatives[phase.initiative_id], arrows.of(f"{_GATE}{phase.id}"))
        for phase in phases
    )
    pick_up = None
    if agents is not None:
        open_phases = {each.phase.id for each in stretches if _is_open(each)}
        pick_up = pick_up_order(
            found.items,
            found.edges,
            agents,
            held=[node.task.id for node in nodes if node.state is BoardState.HELD],
            closed={node.task.id for node in nodes if _waits_for_person(uow, node, open_phases)},
        )
    return Diagram(nodes, stretches, tuple(path), pick_up)


def _is_open(stretch: DiagramPhase) -> bool:
    """Whether nothing that a person decides keeps the tasks of a phase from starting."""
    is_active = stretch.initiative.status is InitiativeStatus.ACTIVE
    return is_active and phase_is_open(stretch.phase, stretch.initiative)


def _waits_for_person(uow: UnitOfWork, node: DiagramNode, open_phases: set[str]) -> bool:
    """Whether somebody has to decide something before a task can be picked up."""
    task = node.task
    if node.state is not BoardState.WAITING:
        return node.state is BoardState.BLOCKED
    if task.phase_id is not None:
        return task.phase_id not in open_phases
    owner = None if task.initiative_id is None else uow.initiatives.find(task.initiative_id)
    return owner is not None and owner.status is not InitiativeStatus.ACTIVE


class _Arrows:
    """The arrows of a diagram: edges of the plan's graph that skip all nodes not shown."""

    def __init__(self, edges: Edges, tasks: Iterable[str], phases: Iterable[str]) -> None:
        self._edges = edges
        self._shown = {key: key for key in tasks}
        self._shown |= {f"{_DONE}{key}": key for key in phases}

    def of(self, node: str, but: str = "") -> tuple[str, ...]:
        """The ids of the shown tasks and phases that a node waits for, not following `but`."""
        found: dict[str, None] = {}
        seen = {node, but}
        left = [node]
        while left:
            for other in self._edges.get(left.pop(), ()):
                if other in self._shown:
                    found[self._shown[other]] = None
                elif other not in seen:
                    seen.add(other)
                    left.append(other)
        return tuple(sorted(found))


def _refuse_too_much(uow: UnitOfWork, initiative_id: str | None, phase_id: str | None) -> None:
    left = any_of(UNFINISHED)
    if phase_id is not None:
        count = uow.count(find(TASKS, {"phase_id": phase_id, "status": left}))
    elif initiative_id is not None:
        phases = [phase.id for phase in uow.phases.of_initiative(initiative_id)]
        inside = [uow.count(find(TASKS, {"phase_id": key, "status": left})) for key in phases]
        loose = uow.count(find(TASKS, {"phase_id": None, "status": left}))
        count = sum(inside) + min(loose, uow.count(find(TASKS, {"initiative_id": initiative_id})))
    else:
        count = uow.count(find(TASKS, {"status": left}))
    if count > MAX_TASKS:
        reason = f"has {count} unfinished tasks, more than the {MAX_TASKS} of one drawing"
        narrower = "; ask for one initiative or one phase" if phase_id is None else ""
        raise InvalidValue("plan", reason + narrower)
