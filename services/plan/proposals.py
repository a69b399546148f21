"""Accept and dismiss the proposals of agents."""

from collections.abc import Sequence

from herdbook.domain.conversation import ChatRole
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import ChangeSet, Proposal, ProposalStatus
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import messaging
from herdbook.services.plan.accept_proposals import ProposalAcceptance


def accept(uow: UnitOfWork, proposal_id: str, *, summary: str | None = None) -> ChangeSet:
    """Accept a pending proposal; the change set it makes can be reverted."""
    return accept_all(uow, [proposal_id], summary=summary)


def accept_all(
    uow: UnitOfWork,
    proposal_ids: Sequence[str] = (),
    *,
    agent_id: str | None = None,
    summary: str | None = None,
) -> ChangeSet:
    """Accept pending proposals of one initiative, all or none, as one change set.

    They are named, or are all pending ones of an agent. The agent's open chat in that initiative
    gets a message that refers to the change set.

    Raises InvalidValue for one that is not pending or has unknown metadata, and UnknownReference
    where it names a row that does not exist. Nothing is written then.
    """
    proposals = _choose(uow, proposal_ids, agent_id)
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
    change_set = uow.change_sets.add(
        ChangeSet(
            initiative_id=proposals[0].initiative_id,
            agent_id=agents.pop() if len(agents) == 1 else None,
            summary=default_summary if summary is None else summary,
            tx=uow.tx,
        )
    )
    _post_to_chat(uow, change_set)
    return change_set


def dismiss(uow: UnitOfWork, proposal_id: str) -> Proposal:
    """Dismiss a pending proposal; raises InvalidValue if it is not pending."""
    proposal = uow.proposals.get(proposal_id)
    _check_pending(proposal)
    return uow.proposals.save(evolve(proposal, status=ProposalStatus.DISMISSED))


def dismiss_all(
    uow: UnitOfWork, proposal_ids: Sequence[str] = (), *, agent_id: str | None = None
) -> list[Proposal]:
    """Dismiss pending proposals, all or none: those that are named, or all of an agent.

    Raises InvalidValue if one that is named is not pending.
    """
    if agent_id is not None and not proposal_ids:
        agent = uow.agents.get(agent_id)
        return uow.proposals.set_status_of_agent(agent.id, ProposalStatus.DISMISSED)
    proposals = _choose(uow, proposal_ids, agent_id)
    for proposal in proposals:
        _check_pending(proposal)
    return uow.proposals.save_all(
        [evolve(each, status=ProposalStatus.DISMISSED) for each in proposals]
    )


def count_of_agent(uow: UnitOfWork, agent_id: str) -> dict[str, int]:
    """How many proposals an agent has in each status."""
    agent = uow.agents.get(agent_id)
    return {each.value: uow.proposals.count_of_agent(agent.id, each) for each in ProposalStatus}


def _choose(
    uow: UnitOfWork, proposal_ids: Sequence[str], agent_id: str | None
) -> Sequence[Proposal]:
    if bool(proposal_ids) is (agent_id is not None):
        raise InvalidValue("proposal_ids", "name at least one proposal, or their agent, not both")
    if agent_id is None:
        return uow.proposals.get_many(dict.fromkeys(proposal_ids))
    return uow.proposals.of_agent(uow.agents.get(agent_id).id, ProposalStatus.PENDING)


def _post_to_chat(uow: UnitOfWork, change_set: ChangeSet) -> None:
    """Tell the open chat of the agent whose proposals were accepted, if it has one."""
    if change_set.agent_id is None:
        return
    chat = uow.chat_sessions.active_for_agent(
        change_set.agent_id, initiative_id=change_set.initiative_id
    )
    if chat is not None:
        message = f"accepted: {change_set.summary}"
        messaging.post_to_chat(uow, chat.id, ChatRole.SYSTEM, message, change_set_id=change_set.id)


def _check_pending(proposal: Proposal) -> None:
    if proposal.status is not ProposalStatus.PENDING:
        reason = f"proposal {proposal.id!r} is {proposal.status} already. Nothing was written"
        raise InvalidValue("status", reason)


def _check(uow: UnitOfWork, proposals: Sequence[Proposal]) -> None:
    if not proposals:
        raise InvalidValue("agent_id", "there is no pending proposal of this agent")
    for proposal in proposals:
        _check_pending(proposal)
    if len({each.initiative_id for each in proposals}) > 1:
        reason = "these are of several initiatives; accept those of one initiative at a time"
        raise InvalidValue("proposal_ids", reason)
    other = uow.change_sets.of_tx(uow.tx)
    if other is not None:
        reason = f"this transaction is change set {other.id!r} already; accept all of it at once"
        raise InvalidValue("proposal_ids", reason)
