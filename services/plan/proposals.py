"""Accept and dismiss the proposals of agents."""

from collections.abc import Sequence

from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import ChangeSet, Proposal, ProposalStatus
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.plan.accept_proposals import ProposalAcceptance


def accept(uow: UnitOfWork, proposal_id: str, *, summary: str | None = None) -> ChangeSet:
    """Accept a pending proposal; the change set it makes can be reverted."""
    return accept_all(uow, [proposal_id], summary=summary)


def accept_all(
    uow: UnitOfWork, proposal_ids: Sequence[str], *, summary: str | None = None
) -> ChangeSet:
    """Accept pending proposals of one initiative, all or none, as one change set.

    Raises InvalidValue for one that is not pending or has unknown metadata, and UnknownReference
    where it names a row that does not exist. Nothing is written then.
    """
    proposals = uow.proposals.get_many(dict.fromkeys(proposal_ids))
    _check(uow, proposals)
    acceptance = ProposalAcceptance(uow, proposals)
    acceptance.prepare()
    acceptance.write()
    accepted = [evolve(each, status=ProposalStatus.ACCEPTED) for each in proposals]
    uow.proposals.save_all(accepted)
    agents = {each.agent_id for each in proposals}
    default_summary = (
        proposals[0].summary if len(proposals) == 1 else "; ".join(p.title for p in proposals)
    )
    return uow.change_sets.add(
        ChangeSet(
            initiative_id=proposals[0].initiative_id,
            agent_id=agents.pop() if len(agents) == 1 else None,
            summary=default_summary if summary is None else summary,
            tx=uow.tx,
        )
    )


def dismiss(uow: UnitOfWork, proposal_id: str) -> Proposal:
    """Dismiss a pending proposal; raises InvalidValue if it is not pending."""
    proposal = uow.proposals.get(proposal_id)
    _check_pending(proposal)
    return uow.proposals.save(evolve(proposal, status=ProposalStatus.DISMISSED))


def dismiss_all_of(uow: UnitOfWork, agent_id: str) -> list[Proposal]:
    """Dismiss all pending proposals of an agent."""
    agent = uow.agents.get(agent_id)
    return uow.proposals.set_status_of_agent(agent.id, ProposalStatus.DISMISSED)


def _check_pending(proposal: Proposal) -> None:
    if proposal.status is not ProposalStatus.PENDING:
        reason = f"proposal {proposal.id!r} is {proposal.status} already. Nothing was written"
        raise InvalidValue("status", reason)


def _check(uow: UnitOfWork, proposals: Sequence[Proposal]) -> None:
    if not proposals:
        raise InvalidValue("proposal_ids", "name at least one proposal")
    for proposal in proposals:
        _check_pending(proposal)
    if len({each.initiative_id for each in proposals}) > 1:
        reason = "these are of several initiatives; accept those of one initiative at a time"
        raise InvalidValue("proposal_ids", reason)
    other = uow.change_sets.of_tx(uow.tx)
    if other is not None:
        reason = f"this transaction is change set {other.id!r} already; accept all of it at once"
        raise InvalidValue("proposal_ids", reason)
