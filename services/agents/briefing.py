"""What an agent needs to know when its session begins: who it is, what it holds, what waits."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.conversation import Conversation, Message, MessageStatus
from herdbook.domain.plan.model import Task
from herdbook.domain.plan.readiness import OpeningState
from herdbook.ports.engine.dictionary import CONVERSATIONS, MESSAGES, OPENINGS
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork

MOST_WAITING = 2
"""How many questions and how many messages are shown."""
MOST_READY = 3
"""How many ready tasks are shown."""


class HeldTask(NamedTuple):
    """A task that an agent holds, what is left of its lease, and whether it reviews it."""

    task: Task
    left: timedelta | None
    is_review: bool = False


class WaitingText(NamedTuple):
    """A question or message to an agent that waits for its answer; no sender is the person."""

    row: Conversation | Message
    sender: str | None


class Briefing(NamedTuple):
    """The state of the plan for one agent; without an agent, only what anybody could claim."""

    agent: Agent | None
    holds: tuple[HeldTask, ...]
    questions: tuple[WaitingText, ...]
    messages: tuple[WaitingText, ...]
    ready: tuple[Task, ...]
    ready_count: int


def brief(uow: UnitOfWork, agent: Agent | None) -> Briefing:
    """The briefing of an agent, or of somebody who is not registered."""
    questions: list[Conversation] = []
    messages: list[Message] = []
    if agent is not None:
        asked = {"to_agent_id": agent.id, "status": "pending"}
        questions = uow.conversations.select(find(CONVERSATIONS, asked, limit=MOST_WAITING))
        unread = {"recipient_id": agent.id, "status": MessageStatus.PENDING}
        messages = uow.messages.select(find(MESSAGES, unread, limit=MOST_WAITING))
    senders = [
        *(each.from_agent_id for each in questions),
        *(each.sender_id for each in messages if each.sender_id),
    ]
    names = _names(uow, senders)
    ready = uow.count(find(OPENINGS, {"state": OpeningState.READY}))
    return Briefing(
        agent,
        () if agent is None else held_tasks(uow, agent),
        tuple(WaitingText(each, names.get(each.from_agent_id, "?")) for each in questions),
        tuple(WaitingText(each, _sender(each, names)) for each in messages),
        tuple(uow.tasks.ready(MOST_READY)),
        ready,
    )


def held_tasks(uow: UnitOfWork, agent: Agent) -> tuple[HeldTask, ...]:
    """What an agent works on and reviews, each with what is left of its lease."""
    tasks = uow.tasks.in_progress_of([agent.id])
    reviews = [
        each for each in uow.openings.reviews_of([agent.id]) if each.state is OpeningState.HELD
    ]
    openings = [uow.openings.find(task.id) for task in tasks]
    reviewed = uow.tasks.get_many(each.task_id for each in reviews)

    def left(until: datetime | None) -> timedelta | None:
        return None if until is None else until - uow.now

    return (
        *(
            HeldTask(task, left(None if opening is None else opening.lease_until))
            for task, opening in zip(tasks, openings, strict=True)
        ),
        *(
            HeldTask(task, left(each.lease_until), is_review=True)
            for task, each in zip(reviewed, reviews, strict=True)
        ),
    )


def forgotten_tasks(uow: UnitOfWork, agent: Agent | None) -> tuple[HeldTask, ...]:
    """What an agent holds at the end of its turn, unless it has said that it waits for a person."""
    if agent is None or agent.status is AgentStatus.WAITING_FOR_INPUT:
        return ()
    return held_tasks(uow, agent)


def _names(uow: UnitOfWork, agent_ids: Iterable[str]) -> dict[str, str]:
    found = (uow.agents.find(each) for each in dict.fromkeys(agent_ids))
    return {each.id: each.name for each in found if each is not None}


def _sender(message: Message, names: dict[str, str]) -> str | None:
    return None if message.sender_id is None else names.get(message.sender_id, "?")
