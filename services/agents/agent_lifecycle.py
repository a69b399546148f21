"""The lifecycle of agents: register, wait for input, resume, stop, crash.

What an agent is at, and whether it is idle or running, follows its claims by a reaction
(`ports/unit_of_work/reactions.py`).
"""

from collections.abc import Container
from datetime import datetime
from random import Random
from typing import Final

from herdbook.domain.agents.current_work import status_at
from herdbook.domain.agents.model import ACTIVE_STATUSES, Agent, AgentMode, AgentStatus, has_crashed
from herdbook.domain.agents.names import propose_name
from herdbook.domain.entity import evolve
from herdbook.domain.errors import AlreadyExists, InvalidValue, StaleWrite
from herdbook.domain.journal import JournalEntry
from herdbook.domain.plan import claims as rules
from herdbook.domain.plan.claims import MAX_RETRIES
from herdbook.domain.values import Document
from herdbook.ports.engine.dictionary import AGENTS, JOURNAL
from herdbook.ports.engine.paging import select_all
from herdbook.ports.engine.query import find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.system import Processes
from herdbook.services import messaging

FEW_ENTRIES = 20
"""How many entries of an agent are read at once to find the one with which it asked."""
_ASKED: Final = frozenset({"status", "pending_questions"})
"""What an agent changes when it asks something; nothing else is a new question."""


def register(
    uow: UnitOfWork,
    name: str | None = None,
    *,
    provider: str | None = None,
    model: str | None = None,
    mode: AgentMode | None = None,
    session_id: str | None = None,
    host: str | None = None,
    pid: int | None = None,
    process_started_at: datetime | None = None,
    prompt: str | None = None,
    worktree_id: str | None = None,
    task_id: str | None = None,
    initiative_id: str | None = None,
    account_id: str | None = None,
    output_file_path: str | None = None,
    taken: Container[str] = (),
) -> Agent:
    """Register an agent, or resume one by name.

    A name stands for one agent. A known agent resumes in the session it had, or in another one
    after it has ended that one; what is not given stays as it was. One that comes back after it had
    ended begins the next session of its log. It is idle unless it is at a task. Without a name, it
    is the agent of the session, or a new agent with a name that is used neither here nor in
    `taken`.

    Raises AlreadyExists while the agent of that name is at work in another session.
    """
    given: dict[str, object] = {
        "provider": provider,
        "model": model,
        "mode": mode,
        "session_id": session_id,
        "prompt": prompt,
        "worktree_id": uow.actor.worktree if worktree_id is None else worktree_id,
        "task_id": task_id,
        "initiative_id": initiative_id,
        "account_id": account_id,
        "output_file_path": output_file_path,
    }
    fields = {field: value for field, value in given.items() if value is not None}
    known = _agent_of_session(uow, session_id) if name is None else uow.agents.by_name(name)
    if known is None:
        name = _new_name(uow, taken) if name is None else name
        fields |= _process_fields(None, host, pid, process_started_at)
        return uow.agents.add(_go_on(Agent(name=name), **fields))
    is_active = known.status in ACTIVE_STATUSES
    if is_active and (session_id is None or known.session_id != session_id):
        raise AlreadyExists(AGENTS.title, known.id, ("name",))
    if not is_active:
        fields["log_session"] = _next_log_session(uow, known.id)
    fields |= _process_fields(known, host, pid, process_started_at)
    return uow.agents.save(_go_on(known, **fields))


def wait(uow: UnitOfWork, agent_id: str, questions: Document | None = None) -> Agent:
    """Set an agent to waiting for a person, with the questions it asks."""
    waiting = AgentStatus.WAITING_FOR_INPUT
    agent = uow.agents.get(agent_id)
    return uow.agents.save(evolve(agent, status=waiting, pending_questions=questions))


def find_question(uow: UnitOfWork, agent_id: str) -> JournalEntry | None:
    """The change with which an agent that waits asked what it asks; None if it was folded."""
    where = {"entity": AGENTS.name, "key": agent_id}
    newest = find(JOURNAL, where, descending=True, limit=FEW_ENTRIES)
    for entry in select_all(uow, newest):
        if not _ASKED.isdisjoint(entry.after or ()):
            return entry
    return None


def answer(uow: UnitOfWork, agent_id: str, content: str, *, asked: int | None = None) -> Agent:
    """Answer an agent that waits for a person: it gets a message, and goes on.

    `asked` says which question is meant, by the number of the journal entry with which it asked.

    Raises InvalidValue if it does not wait for anybody: somebody else has answered it; and
    StaleWrite if it asks something else by now.
    """
    agent = uow.agents.get(agent_id)
    if agent.status is not AgentStatus.WAITING_FOR_INPUT:
        reason = f"agent {agent.name!r} waits for nobody (it is {agent.status}). Nothing was sent"
        raise InvalidValue("agent", reason)
    if asked is not None:
        _check_question(uow, agent, asked)
    messaging.send(uow, content, recipient_id=agent.id)
    return resume(uow, agent.id)


def resume(
    uow: UnitOfWork,
    agent_id: str,
    *,
    host: str | None = None,
    pid: int | None = None,
    process_started_at: datetime | None = None,
    session_id: str | None = None,
) -> Agent:
    """Let an agent go on: after a person answered, or after it stopped or crashed.

    It is running if it is at a task, else idle, and begins the next session of its log. Without a
    `pid`, an agent that waited keeps its process; for one that had ended, no process is known.
    """
    agent = uow.agents.get(agent_id)
    fields = _process_fields(agent, host, pid, process_started_at)
    fields["log_session"] = _next_log_session(uow, agent.id)
    if session_id is not None:
        fields["session_id"] = session_id
    return uow.agents.save(_go_on(agent, **fields))


def stop(
    uow: UnitOfWork, agent_id: str, exit_code: int | None = None, result: Document | None = None
) -> Agent:
    """Record that an agent has ended, with its exit code and result.

    Tasks it still holds stay assigned to it until their leases expire: an agent that stops on
    purpose releases them first.
    """
    agent = uow.agents.get(agent_id)
    came = agent.result if result is None else result
    return uow.agents.save(
        evolve(
            agent,
            status=AgentStatus.STOPPED,
            exit_code=exit_code,
            result=came,
            pending_questions=None,
        )
    )


def dismiss(uow: UnitOfWork, agent_id: str) -> Agent:
    """Record that a person has seen how an agent ended, so that it is no longer shown."""
    agent = uow.agents.get(agent_id)
    if agent.user_dismissed_at is not None:
        return agent
    return uow.agents.save(evolve(agent, user_dismissed_at=uow.now))


def find_crashed(
    uow: UnitOfWork,
    host: str,
    started_at_of: Processes,
    *,
    max_retries: int = MAX_RETRIES,
) -> list[Agent]:
    """Mark the agents of this host whose processes have ended as crashed, and free their tasks.

    The tasks can be claimed at once. Each counts a retry, as an expired lease does, and the fence
    keeps the crashed agent from changing them.
    """
    gone = [
        agent
        for agent in uow.agents.at_work()
        if agent.host == host
        and agent.pid is not None
        and has_crashed(agent, host, started_at_of(agent.pid))
    ]
    if not gone:
        return []
    # Before their tasks: these let them go then, and the rows would be older ones.
    uow.agents.save_all([evolve(agent, status=AgentStatus.CRASHED) for agent in gone])
    ids = [agent.id for agent in gone]
    held = uow.tasks.in_progress_of(ids)
    uow.tasks.save_all([rules.fail(task, max_retries) for task in held])
    for review in uow.openings.reviews_of(ids):
        uow.openings.put(rules.expire_lease(review, uow.now))
        uow.tasks.save(rules.release(uow.tasks.get(review.task_id)))
    uow.reactions.run()
    return uow.agents.get_many(ids)


def find_acting_agent(
    uow: UnitOfWork, named: str | None = None, session_id: str | None = None
) -> Agent | None:
    """The acting agent: the one that is named, by name or id, else the one of the session.

    None if there is neither, and for a name that no agent has: a person acts then. An agent that
    merely works in the same worktree never acts for somebody who did not name it.
    """
    name = (named or "").strip()
    if not name:
        return _agent_of_session(uow, session_id)
    agent = uow.agents.by_name(name)
    if agent is None and name.startswith(f"{AGENTS.prefix}_"):
        return uow.agents.find(name)
    return agent


def _check_question(uow: UnitOfWork, agent: Agent, asked: int) -> None:
    question = find_question(uow, agent.id)
    now = 0 if question is None else question.seq
    if now != asked:
        reason = (
            f"what agent {agent.name!r} asks now is not what was asked with #{asked}. Nothing was "
            "sent; `herdbook waiting` shows what it asks"
        )
        raise StaleWrite(AGENTS.title, agent.id, asked, now, ("pending_questions",), reason)


def _process_fields(
    agent: Agent | None, host: str | None, pid: int | None, started_at: datetime | None
) -> dict[str, object]:
    """The process fields of an agent that goes on; none, to keep its process, without a `pid`."""
    if pid is None and agent is not None and agent.status in ACTIVE_STATUSES:
        return {}
    known = agent.host if agent is not None and host is None else host
    return {"host": known, "pid": pid, "process_started_at": started_at}


def _go_on(agent: Agent, **changes: object) -> Agent:
    """The agent at work again, without what it left when it waited or ended."""
    moved = evolve(agent, **changes)
    return evolve(
        moved,
        status=status_at(moved.task_id),
        exit_code=None,
        result=None,
        pending_questions=None,
        user_dismissed_at=None,
    )


def _next_log_session(uow: UnitOfWork, agent_id: str) -> int:
    """The number of the session after the last one that has a log."""
    return uow.log_chunks.session_count(agent_id) + 1


def _agent_of_session(uow: UnitOfWork, session_id: str | None) -> Agent | None:
    """The agent of a session: its only one, or the only one of several that is at work."""
    agents = [] if session_id is None else uow.agents.by_session(session_id)
    if len(agents) > 1:
        agents = [agent for agent in agents if agent.status in ACTIVE_STATUSES]
    return agents[0] if len(agents) == 1 else None


class UsedNames(Container[str]):
    """The names in use, each looked up only when it is proposed."""

    def __init__(self, uow: UnitOfWork, elsewhere: Container[str] = ()) -> None:
        self._uow = uow
        self._elsewhere = elsewhere

    def __contains__(self, name: object) -> bool:
        return name in self._elsewhere or self._uow.agents.by_name(str(name)) is not None


def _new_name(uow: UnitOfWork, taken: Container[str]) -> str:
    # The transaction's id is the random seed, so the same ids give the same names.
    return propose_name(Random(uow.tx), UsedNames(uow, taken))  # noqa: S311 - a name is no secret
