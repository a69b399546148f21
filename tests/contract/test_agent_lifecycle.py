"""Agents that come, wait, go on and stop, and which of them acts, on every store."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from herdbook.domain.agents.model import Agent, AgentMode, AgentStatus
from herdbook.domain.entity import evolve
from herdbook.domain.errors import AlreadyExists, NotFound
from herdbook.domain.journal import Actor
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.unit_of_work import unit_of_work
from herdbook.services.agents import agent_lifecycle
from tests.cases import for_each
from tests.contract.claims import do
from tests.contract.turns import Begin

IDLE, RUNNING, WAITING, STOPPED, _ = AgentStatus
HERE = "here"
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PROCESS = {"host": HERE, "pid": 7, "process_started_at": STARTED}
NAME = re.compile(r"[a-z]+-[a-z]+(-\d+)?")


def _get(begin: Begin, agent_id: str) -> Agent:
    with begin(write=False) as uow:
        return uow.agents.get(agent_id)


def _nobody(_: int) -> datetime | None:
    """A machine on which no process runs."""
    return None


def test_an_agent_that_comes_is_kept_as_it_says(begin: Begin) -> None:
    """All it is given, idle without a task, in the worktree it comes from."""
    given = {
        "provider": "codex",
        "model": "m-1",
        "mode": AgentMode.PLAN,
        "session_id": "s-1",
        "prompt": "Do it",
        "account_id": "acc_1",
        "output_file_path": "out.txt",
        **PROCESS,
    }
    with begin(actor=Actor(worktree="wt-1")) as uow:
        agent = agent_lifecycle.register(uow, "brave-otter", **given)
        uow.commit()
    assert _get(begin, agent.id) == agent
    assert agent == Agent(
        id=agent.id,
        name="brave-otter",
        status=IDLE,
        worktree_id="wt-1",
        created_at=agent.created_at,
        updated_at=agent.created_at,
        version=1,
        **given,
    )


def test_an_agent_without_a_name_gets_one_that_nobody_has(begin: Begin) -> None:
    """An adjective and an animal, each time others."""
    agents = [do(begin, agent_lifecycle.register) for _ in range(20)]
    assert all(NAME.fullmatch(agent.name) for agent in agents)
    assert len({agent.name for agent in agents}) == 20


def test_a_name_that_is_taken_is_not_given_again(store: Store, space: str) -> None:
    """Where chance proposes the same names, the next free one is taken, every time the same."""

    def registered(number: int, taken: tuple[str, ...] = (), where: str = space) -> str:
        # Ids that begin alike make the same chance in each of these units of work.
        ids = iter(["same", f"x{number}"])
        with unit_of_work(store, where, ids=lambda: next(ids)) as uow:
            agent = agent_lifecycle.register(uow, taken=taken)
            uow.commit()
        return agent.name

    first, second, third = (registered(number) for number in range(3))
    assert len({first, second, third}) == 3
    assert registered(3, taken=(first,), where=f"{space}-b") == second


def test_coming_again_in_the_same_session_resumes_the_agent(begin: Begin) -> None:
    """It is the same row, running in its new process; what was not said again stays."""
    first = do(
        begin, agent_lifecycle.register, "brave-otter", session_id="s-1", model="m-1", **PROCESS
    )
    do(begin, agent_lifecycle.wait, first.id, ["Which one?"])
    do(begin, agent_lifecycle.dismiss, first.id)
    again = do(
        begin, agent_lifecycle.register, "brave-otter", session_id="s-1", **{**PROCESS, "pid": 8}
    )
    assert again == evolve(first, pid=8, updated_at=again.updated_at, version=4)
    assert _get(begin, first.id) == again


def test_coming_again_without_a_name_is_coming_as_the_sessions_agent(begin: Begin) -> None:
    """A session that says twice that it begins has one agent, in the process it had."""
    first = do(begin, agent_lifecycle.register, session_id="s-1", **PROCESS)
    again = do(begin, agent_lifecycle.register, session_id="s-1")
    assert again == evolve(first, updated_at=again.updated_at, version=2)
    assert do(begin, agent_lifecycle.register, session_id="s-2").id != first.id


@for_each(
    ("first_session", "session"), [("s-1", "s-2"), ("s-1", None), (None, "s-2"), (None, None)]
)
@for_each("status", [IDLE, WAITING])
def test_a_name_at_work_in_another_session_is_refused(
    begin: Begin, status: AgentStatus, first_session: str | None, session: str | None
) -> None:
    """Nor can two that have none be the same; nothing is written, and the agent goes on."""
    first = do(begin, agent_lifecycle.register, "brave-otter", session_id=first_session)
    if status is WAITING:
        first = do(begin, agent_lifecycle.wait, first.id)
    with begin() as uow:
        with pytest.raises(AlreadyExists) as refusal:
            agent_lifecycle.register(uow, "brave-otter", session_id=session)
        uow.commit()
    assert (refusal.value.key, refusal.value.fields) == (first.id, ("name",))
    assert _get(begin, first.id) == first


@pytest.mark.parametrize("ending", [agent_lifecycle.stop, None], ids=["stopped", "crashed"])
def test_an_agent_that_is_done_comes_back_in_another_session(
    begin: Begin, ending: Callable[..., Agent] | None
) -> None:
    """A name stands for one agent, whose old process and exit are forgotten."""
    first = do(begin, agent_lifecycle.register, "brave-otter", session_id="s-1", **PROCESS)
    if ending:
        do(begin, ending, first.id, 3)
    else:
        do(begin, agent_lifecycle.find_crashed, HERE, _nobody)
    again = do(begin, agent_lifecycle.register, "brave-otter", session_id="s-2")
    assert (again.id, again.status, again.session_id) == (first.id, IDLE, "s-2")
    assert (again.pid, again.process_started_at, again.exit_code) == (None, None, None)


def test_an_agent_waits_with_its_questions_until_it_is_resumed(begin: Begin) -> None:
    """The questions are there while it waits and gone when it goes on, in the same process."""
    agent = do(begin, agent_lifecycle.register, **PROCESS)
    questions = [{"ask": "Red or blue?", "options": ["red", "blue"]}]
    waiting = do(begin, agent_lifecycle.wait, agent.id, questions)
    assert (waiting.status, waiting.pending_questions) == (WAITING, questions)
    assert _get(begin, agent.id) == waiting
    resumed = do(begin, agent_lifecycle.resume, agent.id)
    assert resumed == evolve(agent, updated_at=resumed.updated_at, version=3)


def test_an_agent_that_goes_on_in_another_process_is_known_by_that(begin: Begin) -> None:
    """Its new process counts, and the host it had unless told otherwise."""
    agent = do(begin, agent_lifecycle.register, **PROCESS)
    do(begin, agent_lifecycle.stop, agent.id, 1)
    later = STARTED + timedelta(hours=1)
    resumed = do(begin, agent_lifecycle.resume, agent.id, pid=9, process_started_at=later)
    assert (resumed.status, resumed.exit_code) == (IDLE, None)
    assert (resumed.host, resumed.pid, resumed.process_started_at) == (HERE, 9, later)


def test_an_agent_that_stops_says_how(begin: Begin) -> None:
    """Its exit code and what came of it are kept, and it asks nothing any more."""
    agent = do(begin, agent_lifecycle.register)
    do(begin, agent_lifecycle.wait, agent.id, ["?"])
    stopped = do(begin, agent_lifecycle.stop, agent.id, 3, {"files": 2})
    assert (stopped.status, stopped.exit_code, stopped.result) == (STOPPED, 3, {"files": 2})
    assert stopped.pending_questions is None
    assert _get(begin, agent.id) == stopped


def test_dismissing_twice_is_dismissing_once(begin: Begin) -> None:
    """The first time counts."""
    agent = do(begin, agent_lifecycle.register)
    with begin() as uow:
        dismissed = agent_lifecycle.dismiss(uow, agent.id)
        assert dismissed.user_dismissed_at == uow.now
        uow.commit()
    assert do(begin, agent_lifecycle.dismiss, agent.id) == dismissed == _get(begin, agent.id)


@for_each(
    "use_case",
    [agent_lifecycle.wait, agent_lifecycle.resume, agent_lifecycle.stop, agent_lifecycle.dismiss],
    ids=lambda it: it.__name__,
)
def test_an_agent_that_is_not_there_is_named(begin: Begin, use_case: Callable[..., Agent]) -> None:
    """Nothing is made up for it."""
    with begin() as uow, pytest.raises(NotFound, match="agt_missing"):
        use_case(uow, "agt_missing")


def test_the_variable_names_who_acts(begin: Begin) -> None:
    """By name or by id, before the session; a name nobody has is nobody."""
    with begin() as uow:
        named = agent_lifecycle.register(uow, "brave-otter", worktree_id="there")
        agent_lifecycle.register(uow, "quiet-heron", session_id="s-1", worktree_id="here")
        uow.commit()
    with begin(write=False) as uow:
        assert agent_lifecycle.find_acting_agent(uow, " brave-otter ", "s-1") == named
        assert agent_lifecycle.find_acting_agent(uow, named.id, "s-1") == named
        assert agent_lifecycle.find_acting_agent(uow, "nobody-here", "s-1") is None
        assert agent_lifecycle.find_acting_agent(uow, "agt_missing", "s-1") is None


def test_the_session_tells_who_acts_where_no_variable_does(begin: Begin) -> None:
    """Its only agent, or the only one of several at work; between more it is nobody."""
    with begin() as uow:
        first = agent_lifecycle.register(uow, "a", session_id="s-1")
        agent_lifecycle.register(uow, "b", session_id="s-2")
        uow.commit()
    with begin(write=False) as uow:
        assert agent_lifecycle.find_acting_agent(uow, "  ", "s-1") == first
        assert agent_lifecycle.find_acting_agent(uow, None, "s-unknown") is None
    second = do(begin, agent_lifecycle.register, "c", session_id="s-1")
    with begin(write=False) as uow:
        assert agent_lifecycle.find_acting_agent(uow, None, "s-1") is None
    do(begin, agent_lifecycle.stop, first.id)
    with begin(write=False) as uow:
        assert agent_lifecycle.find_acting_agent(uow, None, "s-1") == second


def test_nobody_acts_because_it_is_alone_in_a_worktree(begin: Begin) -> None:
    """What a person does there is the person's, however few agents are at work."""
    with begin() as uow:
        agent_lifecycle.register(uow, "a", session_id="s-1", worktree_id="here")
        uow.commit()
    with begin(write=False, actor=Actor(person="ann", worktree="here")) as uow:
        assert agent_lifecycle.find_acting_agent(uow) is None
        assert agent_lifecycle.find_acting_agent(uow, "", None) is None
