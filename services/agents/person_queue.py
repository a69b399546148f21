"""What waits for a person: one rule for the command line, programs and the dashboard.

Each entry names the operations that answer it, so that nobody who shows it needs a rule of its own.
An entry waits only if work or an agent is held up until a person acts; oldest first.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.conversation import Message, MessageStatus, Party
from herdbook.domain.plan.model import (
    OPEN_INITIATIVES,
    UNFINISHED,
    ErrandStatus,
    Initiative,
    InitiativeStatus,
    Phase,
    PhaseStatus,
    ProposalStatus,
    TaskStatus,
)
from herdbook.domain.plan.readiness import phase_is_open
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    ERRANDS,
    INITIATIVES,
    MESSAGES,
    PHASES,
    PROPOSALS,
    STANDINGS,
    TASKS,
)
from herdbook.ports.engine.paging import PAGE, chunks, select_all
from herdbook.ports.engine.query import Query, any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.agents.agent_lifecycle import find_question
from herdbook.services.plan.review_subjects import Reviewed, review_steps

E = TypeVar("E")
LIMIT = 200
"""How many of one sort are told; a person who has more to answer begins with the oldest."""


class PersonAction(NamedTuple):
    """An operation that answers an entry; `text` is the parameter that the person writes."""

    label: str
    method: str
    params: dict[str, Any]
    text: str | None = None


class QueueEntry(NamedTuple):
    """Something that waits for a person.

    `kind` is question, message, approval, review, proposal, failed, crashed, halted or exhausted.
    `subject` is the id of the row, or the name of a halted agent; `task` is the name of a task that
    is still there. `asked` says which question of an agent it is, by the number of the journal
    entry with which it asked. After one that is `cut`, there are more of its sort.
    """

    kind: str
    subject: str
    since: datetime
    title: str
    text: str
    agent: str | None = None
    task_id: str | None = None
    task: str | None = None
    actions: tuple[PersonAction, ...] = ()
    asked: int | None = None
    cut: bool = False


def work_waiting(uow: UnitOfWork) -> list[QueueEntry]:
    """What waits for a person in a repository, oldest first."""
    found = [
        *_first(_questions(uow)),
        *_first(_unread_messages(uow)),
        *_first(_unanswered_messages(uow)),
        *_first(_phases(uow)),
        *_first(_initiatives(uow)),
        *_first(_errands(uow)),
        *_first(_proposals(uow)),
        *_first(_failed_tasks(uow)),
        *_first(_crashed_agents(uow)),
    ]
    tasks = uow.get(TASKS, [each.task_id for each in found if each.task_id is not None])
    names = {task.id: task.name for task in tasks if task is not None}
    named = [each._replace(task=names.get(each.task_id or "")) for each in found]
    return sorted(named, key=lambda each: each.since)


def record_waiting(uow: UnitOfWork) -> list[QueueEntry]:
    """What waits for a person in the record: halted agents and exhausted accounts."""
    found = [*_first(_halted_agents(uow)), *_first(_exhausted_accounts(uow))]
    return sorted(found, key=lambda each: each.since)


def _first(entries: Iterator[QueueEntry]) -> list[QueueEntry]:
    """The first entries of a sort; the last of them says if there are more."""
    found = list(islice(entries, LIMIT))
    if next(entries, None) is not None:
        found[-1] = found[-1]._replace(cut=True)
    return found


def _rows(uow: UnitOfWork, query: Query[E]) -> Iterator[E]:
    """The rows of a query, which the unit of work does not keep: most may wait for nobody."""
    return select_all(uow.session, query._replace(limit=PAGE))


def _find_agent(uow: UnitOfWork, agent_id: str | None) -> Agent | None:
    return None if agent_id is None else uow.agents.find(agent_id)


def _questions(uow: UnitOfWork) -> Iterator[QueueEntry]:
    for agent in _rows(uow, find(AGENTS, {"status": AgentStatus.WAITING_FOR_INPUT})):
        texts, choices = _read_questions(agent.pending_questions)
        question = find_question(uow, agent.id)
        answer = {"agent": agent.id} | ({} if question is None else {"asked": question.seq})
        yield QueueEntry(
            "question",
            agent.id,
            agent.updated_at if question is None else question.time,
            f"{agent.name} asks",
            "\n".join(texts) or "It waits for you and has not said why.",
            agent.name,
            agent.task_id,
            actions=(
                *(
                    PersonAction(each, "agent.answer", {**answer, "content": each})
                    for each in choices
                ),
                PersonAction("Reply", "agent.answer", answer, "content"),
            ),
            asked=None if question is None else question.seq,
        )


def _read_questions(document: object) -> tuple[list[str], list[str]]:
    """The texts of questions, and the choices of the only one that offers some."""
    entries = document if isinstance(document, list) else [] if document is None else [document]
    texts, choices = [], []
    for each in entries:
        if isinstance(each, dict):
            texts.append(str(each.get("question") or each.get("text") or ""))
            options = each.get("options") or each.get("choices") or []
            choices += [_label(each) for each in options] if isinstance(options, list) else []
        else:
            texts.append(str(each))
    single = len(entries) == 1
    return [each for each in texts if each], [each for each in choices if each] if single else []


def _label(option: object) -> str:
    found = option.get("label", "") if isinstance(option, dict) else option
    return str(found)


def _unread_messages(uow: UnitOfWork) -> Iterator[QueueEntry]:
    """All messages to the person that are unread."""
    unread = {"recipient_type": Party.USER, "status": MessageStatus.PENDING}
    return _messages(uow, _rows(uow, find(MESSAGES, unread)))


def _unanswered_messages(uow: UnitOfWork) -> Iterator[QueueEntry]:
    """Messages that the person has read, and that need an answer."""
    read = {"requires_response": True, "status": MessageStatus.READ}
    found = _rows(uow, find(MESSAGES, read))
    return _messages(uow, (each for each in found if each.recipient_type is Party.USER))


def _messages(uow: UnitOfWork, found: Iterable[Message]) -> Iterator[QueueEntry]:
    for each in found:
        sender = _find_agent(uow, each.sender_id)
        name = sender.name if sender else "somebody"
        reply = PersonAction("Reply", "message.reply", {"message": each.id}, "content")
        seen = PersonAction("Mark as read", "message.read", {"message": each.id})
        asks = each.requires_response
        yield QueueEntry(
            "question" if asks else "message",
            each.id,
            each.created_at,
            f"{name} {'asks' if asks else 'writes'}",
            each.content,
            sender.name if sender else None,
            sender.task_id if sender else None,
            actions=(reply,) if asks else (seen, reply),
        )


def _phases(uow: UnitOfWork) -> Iterator[QueueEntry]:
    """Phases whose work could begin if a person approved them, and those handed in for a review."""
    active = find(INITIATIVES, {"status": InitiativeStatus.ACTIVE})
    for some in chunks(_rows(uow, active), PAGE):
        initiatives = {each.id: each for each in some}
        for phase in _rows(uow, find(PHASES, {"initiative_id": any_of(initiatives)})):
            yield from _phase(uow, phase, initiatives[phase.initiative_id])


def _phase(uow: UnitOfWork, phase: Phase, initiative: Initiative) -> Iterator[QueueEntry]:
    if phase.status is PhaseStatus.PENDING_REVIEW:
        yield QueueEntry(
            "review",
            phase.id,
            phase.updated_at,
            f"Review phase {phase.name}",
            f"All its tasks are done, in {initiative.name}.",
            actions=_ends_of_review(phase),
        )
    elif (
        phase.status is PhaseStatus.PENDING
        and not phase_is_open(phase, initiative)
        and _is_next(uow, phase)
    ):
        yield QueueEntry(
            "approval",
            phase.id,
            phase.updated_at,
            f"Approve phase {phase.name}",
            f"Its tasks wait for it, in {initiative.name}.",
            actions=(PersonAction("Approve", "phase.approve", {"phase_ids": [phase.id]}),),
        )


def _is_next(uow: UnitOfWork, phase: Phase) -> bool:
    """Whether only the approval keeps its tasks from starting, and there are any."""
    if any(each.status is not PhaseStatus.COMPLETED for each in uow.phases.dependencies(phase.id)):
        return False
    left = {"phase_id": phase.id, "status": any_of(UNFINISHED)}
    return uow.count(find(TASKS, left)) > 0


def _initiatives(uow: UnitOfWork) -> Iterator[QueueEntry]:
    """Initiatives that were handed in."""
    handed_in = {"status": InitiativeStatus.PENDING_REVIEW}
    for initiative in _rows(uow, find(INITIATIVES, handed_in)):
        yield QueueEntry(
            "review",
            initiative.id,
            initiative.updated_at,
            f"Review initiative {initiative.name}",
            "It was handed in.",
            actions=_ends_of_review(initiative),
        )


def _errands(uow: UnitOfWork) -> Iterator[QueueEntry]:
    """Errands that were handed in."""
    waiting = {"status": any_of((ErrandStatus.PENDING_REVIEW, ErrandStatus.CONFLICT))}
    for errand in _rows(uow, find(ERRANDS, waiting)):
        conflict = errand.status is ErrandStatus.CONFLICT
        yield QueueEntry(
            "review",
            errand.id,
            errand.updated_at,
            f"{'Conflict in' if conflict else 'Review'} errand on {errand.branch}",
            errand.description,
            actions=_ends_of_review(errand),
        )


def _ends_of_review(row: Reviewed) -> tuple[PersonAction, ...]:
    return tuple(PersonAction(*each) for each in review_steps(row))


def _proposals(uow: UnitOfWork) -> Iterator[QueueEntry]:
    open_ = find(INITIATIVES, {"status": any_of(OPEN_INITIATIVES)})
    for some in chunks((each.id for each in _rows(uow, open_)), PAGE):
        pending = {"initiative_id": any_of(some), "status": ProposalStatus.PENDING}
        for each in _rows(uow, find(PROPOSALS, pending)):
            agent = _find_agent(uow, each.agent_id)
            name = agent.name if agent else "somebody"
            given = {"proposal": each.id}
            yield QueueEntry(
                "proposal",
                each.id,
                each.created_at,
                f"{name} proposes a {each.target_type}: {each.title}",
                each.summary,
                agent.name if agent else None,
                actions=(
                    PersonAction("Accept", "proposal.accept", given),
                    PersonAction("Dismiss", "proposal.dismiss", given),
                ),
            )


def _failed_tasks(uow: UnitOfWork) -> Iterator[QueueEntry]:
    """Tasks that failed too often; one that a person blocked is that person's own affair."""
    for task in _rows(uow, find(TASKS, {"status": TaskStatus.BLOCKED})):
        if not task.retry_count:
            continue
        yield QueueEntry(
            "failed",
            task.id,
            task.updated_at,
            f"{task.name} failed",
            f"{task.retry_count} attempts came to nothing.",
            task_id=task.id,
            actions=(PersonAction("Try again", "task.retry", {"task": task.id}),),
        )


def _crashed_agents(uow: UnitOfWork) -> Iterator[QueueEntry]:
    for agent in _rows(uow, find(AGENTS, {"status": AgentStatus.CRASHED})):
        if agent.user_dismissed_at is None:
            yield QueueEntry(
                "crashed",
                agent.id,
                agent.updated_at,
                f"{agent.name} crashed",
                "Its process is gone; its tasks can be claimed again.",
                agent.name,
                actions=(PersonAction("Dismiss", "agent.dismiss", {"agent": agent.id}),),
            )


def _halted_agents(uow: UnitOfWork) -> Iterator[QueueEntry]:
    for each in uow.standings.select_all(find(STANDINGS, limit=PAGE)):
        if each.active:
            continue
        yield QueueEntry(
            "halted",
            each.agent,
            each.last_event_at or uow.now,
            f"{each.agent} is halted",
            "It has no skill points left and may claim nothing.",
            each.agent,
            actions=(PersonAction("Reinstate", "reinstate", {"agent": each.agent}),),
        )


def _exhausted_accounts(uow: UnitOfWork) -> Iterator[QueueEntry]:
    for each in _rows(uow, find(ACCOUNTS, {"is_exhausted": True})):
        if each.exhausted_until is not None and each.exhausted_until <= uow.now:
            continue
        until = each.exhausted_until
        yield QueueEntry(
            "exhausted",
            each.id,
            each.updated_at,
            f"Account {each.email} is exhausted",
            f"It is free again at {until:%H:%M} UTC on {until:%d %B}."
            if until
            else "Nobody said until when.",
            actions=(PersonAction("Mark as available", "account.free", {"account": each.id}),),
        )
