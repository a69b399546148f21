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
from herdbook.ports.engine.wakeups import StopEvent
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import crud, messaging
from herdbook.services.journal import watch
from herdbook.services.journal.feed import Waiter

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
    if wait is None:
        return conversation
    answered = _wait_for(app, wait, messaging.find_answer, conversation.id)
    if answered is None:
        app.miss(
            f"there is no answer yet; `herdbook conversation show {conversation.id}` shows it "
            "when it comes"
        )
    return answered or conversation


def listen(app: AppContext, *, agent: str | None, wait: timedelta | None) -> Conversation | None:
    """The oldest unanswered question to an agent; with `wait`, the next one that comes."""
    own = app.read(Area.WORK, lambda uow: agent_id(app, uow, agent))
    return _wait_for(app, wait or timedelta(0), messaging.listen, own)


def _wait_for(
    app: AppContext, wait: timedelta, question: Callable[..., R | None], key: str
) -> R | None:
    end = time.monotonic() + wait.total_seconds()
    if not wait:
        return app.read(Area.WORK, question, key)
    from herdbook.entrypoints.liveness import renewed_leases  # noqa: PLC0415 - only to wait

    space = app.workspace.space(Area.WORK)
    with renewed_leases(app), app.open(Area.WORK) as store, Waiter(store, space) as waiter:
        stop = app.stop or StopEvent()
        stop.waiter = waiter
        return watch.wait_until(
            store,
            space,
            question,
            key,
            stop=lambda: stop.is_set() or time.monotonic() >= end,
            wait=lambda: waiter.wait(end - time.monotonic()),
        )
