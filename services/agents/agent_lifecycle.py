"""The agents of a repository: they come, wait, go on, stop, and some of them crash."""

from collections.abc import Container, Iterable
from datetime import datetime
from random import Random

from herdbook.domain.agents.model import AT_WORK, Agent, AgentMode, AgentStatus, has_crashed
from herdbook.domain.agents.names import propose
from herdbook.domain.entity import evolve
from herdbook.domain.errors import AlreadyExists
from herdbook.domain.location.identity import who
from herdbook.domain.plan import claims as rules
from herdbook.domain.plan.claims import MAX_RETRIES
from herdbook.domain.plan.model import TaskStatus
from herdbook.domain.plan.readiness import Opening, OpeningKind, OpeningState
from herdbook.domain.values import Document
from herdbook.ports.engine.dictionary import AGENTS, OPENINGS, TASKS
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.processes import Processes


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
    """Let an agent come to work: a new one, or one that is known and comes back.

    A name stands for one agent. It comes back in the session it had, or in another one once it is
    done with that; AlreadyExists while it is at work elsewhere. Without a name it is the agent of
    the session, else a new one, whose name nobody has here or in `taken`.
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
    said = {field: value for field, value in given.items() if value is not None}
    known = _of_session(uow, session_id) if name is None else uow.agents.by_name(name)
    if known is None:
        name = _new_name(uow, taken) if name is None else name
        said |= _process(None, host, pid, process_started_at)
        return uow.agents.add(_running(Agent(name=name), **said))
    if known.status in AT_WORK and (session_id is None or known.session_id != session_id):
        raise AlreadyExists(AGENTS.title, known.id, ("name",))
    return uow.agents.save(
        _running(known, **said, **_process(known, host, pid, process_started_at))
    )


def wait(uow: UnitOfWork, agent_id: str, questions: Document | None = None) -> Agent:
    """Let an agent wait for a person, who sees what it asks."""
    waiting = AgentStatus.WAITING_FOR_INPUT
    agent = uow.agents.get(agent_id)
    return uow.agents.save(evolve(agent, status=waiting, pending_questions=questions))


def resume(
    uow: UnitOfWork,
    agent_id: str,
    *,
    host: str | None = None,
    pid: int | None = None,
    process_started_at: datetime | None = None,
) -> Agent:
    """Let an agent go on: with its questions answered, or after it had stopped or crashed.

    Without a `pid` one that waited goes on in the process it had; of one that was gone, no process
    is known.
    """
    agent = uow.agents.get(agent_id)
    process = _process(agent, host, pid, process_started_at)
    return uow.agents.save(_running(agent, **process))


def stop(
    uow: UnitOfWork, agent_id: str, exit_code: int | None = None, result: Document | None = None
) -> Agent:
    """Write down that an agent has ended, how, and what came of it.

    What it still holds stays its own until the lease is over: who stops on purpose gives it back.
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
    """Write down that a person has seen what became of an agent and needs no reminding."""
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
    """Mark the agents of this host whose processes are gone, and free what they held.

    Anybody may have it at once. It counts a retry, as a lease that ran out does, and whoever had
    it can do nothing to it any more.
    """
    at_work = uow.agents.select(find(AGENTS, {"status": any_of(AT_WORK)}))
    gone = [
        agent
        for agent in at_work
        if agent.host == host
        and agent.pid is not None
        and has_crashed(agent, host, started_at_of(agent.pid))
    ]
    if not gone:
        return []
    _free_work(uow, [agent.id for agent in gone], max_retries)
    _free_reviews(uow, {agent.name for agent in gone})
    return uow.agents.save_all([evolve(agent, status=AgentStatus.CRASHED) for agent in gone])


def acting(
    uow: UnitOfWork,
    variable: str | None = None,
    session_id: str | None = None,
    worktree_id: str | None = None,
) -> Agent | None:
    """Who acts: the agent HERDBOOK_AGENT names, else the session's, else the only one running here.

    A name that nobody has here stands for nobody, and not for somebody else.
    """
    name = who(variable, None, ())
    if name is None:
        # Only now: a worktree may have a hundred agents, and every call would read them.
        session = _of_session(uow, session_id)
        if session is not None:
            return session
        running = AgentStatus.RUNNING
        here = [] if worktree_id is None else uow.agents.of_worktree(worktree_id, running)
        return here[0] if len(here) == 1 else None
    named = uow.agents.by_name(name)
    if named is None and name.startswith(f"{AGENTS.prefix}_"):
        return uow.agents.find(name)
    return named


def _process(
    agent: Agent | None, host: str | None, pid: int | None, started_at: datetime | None
) -> dict[str, object]:
    """What is known of the process an agent goes on in: the one it had, if nothing else is said."""
    if pid is None and agent is not None and agent.status in AT_WORK:
        return {}
    known = agent.host if agent is not None and host is None else host
    return {"host": known, "pid": pid, "process_started_at": started_at}


def _running(agent: Agent, **changes: object) -> Agent:
    """An agent at work, with nothing left of how it stood before."""
    return evolve(
        agent,
        **changes,
        status=AgentStatus.RUNNING,
        exit_code=None,
        pending_questions=None,
        user_dismissed_at=None,
    )


def _of_session(uow: UnitOfWork, session_id: str | None) -> Agent | None:
    """The agent of a session: its only one, or the only one of several that is at work."""
    agents = [] if session_id is None else uow.agents.by_session(session_id)
    if len(agents) > 1:
        agents = [agent for agent in agents if agent.status in AT_WORK]
    return agents[0] if len(agents) == 1 else None


class _Names(Container[str]):
    """The names that agents have, each asked for when it is proposed."""

    def __init__(self, uow: UnitOfWork, elsewhere: Container[str]) -> None:
        self._uow = uow
        self._elsewhere = elsewhere

    def __contains__(self, name: object) -> bool:
        return name in self._elsewhere or self._uow.agents.by_name(str(name)) is not None


def _new_name(uow: UnitOfWork, taken: Container[str]) -> str:
    # The transaction's own name is the chance in it: the same ids propose the same names.
    return propose(Random(uow.tx), _Names(uow, taken))  # noqa: S311 - a name is no secret


def _free_work(uow: UnitOfWork, agent_ids: Iterable[str], max_retries: int) -> None:
    theirs = uow.tasks.select(find(TASKS, {"assignee_id": any_of(agent_ids)}))
    held = [task for task in theirs if task.status is TaskStatus.IN_PROGRESS]
    uow.tasks.save_all([rules.fail(task, max_retries) for task in held])


def _free_reviews(uow: UnitOfWork, names: Container[str]) -> None:
    """End the leases of reviews that these agents took.

    A task under review belongs to whoever did the work, so only the journal knows the reviewer:
    whoever last moved the fence.
    """
    held = uow.openings.select(find(OPENINGS, {"state": OpeningState.HELD}))
    for opening in held:
        if opening.kind is OpeningKind.REVIEW and _last_claimer(uow, opening) in names:
            uow.openings.put(evolve(opening, lease_until=uow.now))
            uow.tasks.save(rules.release(uow.tasks.get(opening.task_id)))


def _last_claimer(uow: UnitOfWork, opening: Opening) -> str | None:
    entries = uow.journal.of_row(TASKS, opening.task_id)
    moved = (entry for entry in reversed(entries) if "fence" in (entry.after or {}))
    last = next(moved, None)
    return None if last is None else last.agent
