"""Which agents are alive: marks crashed ones, and renews the leases of those that were seen."""

from collections.abc import Iterable

from herdbook.domain.agents.model import ACTIVE_STATUSES, Agent, has_crashed
from herdbook.domain.errors import HerdbookError
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.activity import AgentActivity
from herdbook.ports.world.system import Processes
from herdbook.services.agents import agent_lifecycle
from herdbook.services.plan import lease_renewal


def any_crashed(agents: Iterable[Agent], host: str, started_at_of: Processes) -> bool:
    """Whether the process of one of these agents is gone; False if the system does not tell."""
    try:
        return any(
            has_crashed(each, host, started_at_of(each.pid))
            for each in agents
            if each.host == host and each.pid is not None and each.status in ACTIVE_STATUSES
        )
    except HerdbookError:
        return False


def is_outdated(uow: UnitOfWork, host: str, started_at_of: Processes) -> bool:
    """Whether an agent of this host has crashed, or a lease has expired, since it was recorded."""
    if uow.openings.expired_leases(uow.now):
        return True
    return any_crashed(uow.agents.at_work(), host, started_at_of)


def update(uow: UnitOfWork, host: str, started_at_of: Processes, activity: AgentActivity) -> None:
    """Mark the crashed agents of this host, and renew the leases of agents that were seen."""
    agent_lifecycle.find_crashed(uow, host, started_at_of)
    lease_renewal.renew_seen(uow, activity)
