"""Small steps of claiming, each in a unit of work of its own."""

from collections.abc import Callable
from datetime import timedelta

from herdbook.domain.plan.claims import Claim
from herdbook.domain.plan.model import Initiative, Phase, PhaseStatus, Task
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, OPENINGS, PHASES, TASKS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.cases import for_each
from tests.contract.rows import make
from tests.contract.turns import Begin

BLINK = timedelta(microseconds=1)
"""A lease that is over when the next transaction begins."""


def add_agents(begin: Begin, number: int = 1) -> list[str]:
    """Add agents, and give their ids."""
    with begin() as uow:
        agents = [make(uow, AGENTS).id for _ in range(number)]
        uow.commit()
    return agents


def add_tasks(begin: Begin, *tasks: Task) -> list[Task]:
    """Add tasks at one time."""
    with begin() as uow:
        added = uow.tasks.add_all(tasks)
        uow.commit()
    return added


def do(begin: Begin, use_case: Callable[..., object], *args: object, **options: object) -> object:
    """Run a use case in a unit of work of its own."""
    with begin() as uow:
        result = use_case(uow, *args, **options)
        uow.commit()
    return result


def claim_for(begin: Begin, agent_id: str, **options: object) -> Claim | None:
    """Claim whatever is most urgent."""
    return do(begin, claims.claim, agent_id, halts=NO_HALTS, **options)


def ready_ids(begin: Begin, **options: object) -> list[str]:
    """What can be claimed, most urgent first."""
    with begin(write=False) as uow:
        return [task.id for task in claims.ready(uow, **options)]


def get_task(begin: Begin, task_id: str) -> Task:
    """A task as it is kept."""
    with begin(write=False) as uow:
        return uow.tasks.get(task_id)


def everything(uow: UnitOfWork) -> list[object]:
    """All that claiming could have touched."""
    kinds = [INITIATIVES, PHASES, TASKS, OPENINGS]
    return [*(row for kind in kinds for row in uow.select(find(kind))), uow.journal.last()]


def add_initiative(begin: Begin, **given: object) -> Initiative:
    """Add an initiative."""
    with begin() as uow:
        initiative = uow.initiatives.add(Initiative(name="x", **given))
        uow.commit()
    return initiative


def add_phase(begin: Begin, initiative: Initiative, status: PhaseStatus) -> Phase:
    """Add a phase of an initiative."""
    with begin() as uow:
        phase = uow.phases.add(Phase(initiative_id=initiative.id, name="x", status=status))
        uow.commit()
    return phase


def get_phase(begin: Begin, phase: Phase) -> Phase:
    """A phase as it is kept now."""
    with begin(write=False) as uow:
        return uow.phases.get(phase.id)


WRITES = [claims.complete, claims.fail, claims.release, claims.heartbeat]
every_write = for_each("write", WRITES, ids=lambda write: write.__name__)
