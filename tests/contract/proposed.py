"""Proposals of an agent to an initiative, and what a space keeps once they are decided on."""

from typing import Any, NamedTuple

from herdbook.domain.agents.model import Agent
from herdbook.domain.plan.model import (
    Initiative,
    Phase,
    PhaseStatus,
    Proposal,
    ProposalTarget,
    Task,
)
from herdbook.ports.engine.dictionary import CHANGE_SETS, HEADS, JOURNAL
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from tests.contract.turns import Begin

STAMPED = {"created_at", "updated_at", "version"}


class Plan(NamedTuple):
    """An initiative with a phase and a task in it, and an agent that has ideas about it."""

    agent: Agent
    initiative: Initiative
    phase: Phase
    task: Task


def add_plan(begin: Begin, status: PhaseStatus = PhaseStatus.APPROVED, name: str = "x") -> Plan:
    """Add a plan to propose something for."""
    with begin() as uow:
        agent = uow.agents.add(Agent(name=f"otter of {name}"))
        initiative = uow.initiatives.add(Initiative(name=name))
        phase = uow.phases.add(Phase(initiative_id=initiative.id, name="x", status=status))
        task = uow.tasks.add(Task(name="x", phase_id=phase.id, initiative_id=initiative.id))
        uow.commit()
    return Plan(agent, initiative, phase, task)


def propose(begin: Begin, plan: Plan, target_type: ProposalTarget, **given: Any) -> str:
    """Let the agent of a plan propose something; gives the proposal's id."""
    said = {"title": "Title", "summary": "Summary", "content": "Content", **given}
    with begin() as uow:
        proposal = uow.proposals.add(
            Proposal(
                agent_id=plan.agent.id,
                initiative_id=plan.initiative.id,
                target_type=target_type,
                **said,
            )
        )
        uow.commit()
    return proposal.id


def kept(store: Store, space: str) -> dict[str, dict[Any, dict[str, Any]]]:
    """All that a space keeps but its books, without the times and versions of saving."""
    left_out = {CHANGE_SETS, JOURNAL, HEADS}
    with store.transaction(space, write=False) as session:
        return {
            kind.name: {
                kind.key_of(row): {n: v for n, v in vars(row).items() if n not in STAMPED}
                for row in session.select(find(kind))
            }
            for kind in store.dictionary
            if kind not in left_out
        }
