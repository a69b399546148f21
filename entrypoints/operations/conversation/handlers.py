"""Questions between agents, with waiting: `conversation add`, `conversation listen`."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from herdbook.domain.conversation import Conversation
from herdbook.domain.location.areas import Area
from herdbook.entrypoints.context import AppContext
from herdbook.entrypoints.operations.call_use_case import agent_id
from herdbook.ports.engine.dictionary import AGENTS, INITIATIVES, PHASES, TASKS
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud, messaging
from herdbook.services.journal import watch

R = TypeVar("R")


def ask(
    app: AppContext,
    *,
    question: str,
    to: str,
    agent: str | None,
    task: str | None,
    phase: str | None,
    initiative: str | None,
    wait: timedelta | None,
) -> Conversation:
    """Ask another agent; with `wait`, the conversation has the answer if it comes in time."""

    def inside(uow: UnitOfWork) -> Conversation:
        return messaging.ask(
            uow,
            agent_id(app, uow, agent),
            crud.key_of(uow, AGENTS, to),
            question,
            task_id=crud.key_of(uow, TASKS, task) if task else None,
            phase_id=crud.key_of(uow, PHASES, phase) if phase else None,
            initiative_id=crud.key_of(uow, INITIATIVES, initiative) if initiative else None,
        )

    conversation = app.run(Area.WORK, inside)
    if wait is not None:
        answered = _wait_for(app, wait, messaging.find_answer, conversation.id)
        return answered or conversation
    return conversation


def listen(app: AppContext, *, agent: str | None, wait: timedelta | None) -> Conversation | None:
    """The oldest unanswered question to an agent; with `wait`, the next one that comes."""
    own = app.read(Area.WORK, lambda uow: agent_id(app, uow, agent))
    return _wait_for(app, wait or timedelta(0), messaging.listen, own)


def _wait_for(
    app: AppContext, wait: timedelta, question: Callable[..., R | None], key: str
) -> R | None:
    end = time.monotonic() + wait.total_seconds()
    with app.open(Area.WORK) as store:
        return watch.wait_until(
            store,
            app.workspace.space(Area.WORK),
            question,
            key,
            stop=lambda: app.should_stop() or time.monotonic() >= end,
            sleep=app.pause,
        )
