"""What an editor shows beside a file, on every store: remarks, and who is at work."""

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.plan.model import Initiative, LineType, Phase, Task
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.agents import agent_lifecycle, editor_comments
from herdbook.services.agents.editor_comments import AgentAssignment, InitiativeComments
from herdbook.services.plan import claims, reviews
from herdbook.services.plan.reviews import CommentThread
from tests.contract.claims import do
from tests.contract.turns import Begin

HERE, THERE = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
PLACE = {"file_path": "src/a.py", "line_number": 7, "line_type": LineType.ADDED}


def _initiatives(begin: Begin, *rows: Initiative) -> list[Initiative]:
    return do(begin, lambda uow: uow.initiatives.add_all(rows))


def _current(begin: Begin, branch: str | None = None, worktree: str | None = None) -> str | None:
    with begin(write=False) as uow:
        found = editor_comments.current_initiative(uow, branch, worktree)
    return None if found is None else found.name


def test_the_initiative_at_hand_is_the_one_of_the_branch(begin: Begin) -> None:
    """An active one before one that is under review, and none that is over."""
    _initiatives(
        begin,
        Initiative(name="over", branch="gone", status="completed"),
        Initiative(name="under review", branch="login", status="pending_review"),
        Initiative(name="active", branch="login"),
        Initiative(name="other", branch="logout"),
    )
    assert _current(begin, "login") == "active"
    assert _current(begin, "logout") == "other"
    assert _current(begin, "gone") is None


def test_without_one_of_the_branch_it_is_the_one_that_agents_here_are_at(begin: Begin) -> None:
    """By what an agent names, else by its task; two of them decide nothing."""

    def arrange(uow: UnitOfWork) -> None:
        one, other = uow.initiatives.add_all([Initiative(name="one"), Initiative(name="other")])
        phase = uow.phases.add(Phase(initiative_id=one.id, name="p", status="approved"))
        uow.tasks.add(Task(name="x", phase_id=phase.id))
        agent = uow.agents.add(Agent(name="otter", status="running", worktree_id=HERE))
        claims.claim(uow, agent.id, halts=NO_HALTS)
        at_other = {"status": "running", "initiative_id": other.id}
        uow.agents.add(Agent(name="heron", worktree_id=THERE, **at_other))

    do(begin, arrange)
    assert _current(begin, "side", HERE) == "one"
    assert _current(begin, "side", THERE) == "other"
    assert _current(begin, "side", "cccccccccccc") is None
    other = do(begin, lambda uow: uow.agents.by_name("heron").initiative_id)
    third = Agent(name="vole", status="running", worktree_id=HERE, initiative_id=other)
    do(begin, lambda uow: uow.agents.add(third))
    assert _current(begin, "side", HERE) is None


def test_else_it_is_the_only_active_one(begin: Begin) -> None:
    """Of two active ones neither is."""
    assert _current(begin, "side") is None
    _initiatives(begin, Initiative(name="one"), Initiative(name="two", status="pending_review"))
    assert _current(begin, "side") == "one"
    _initiatives(begin, Initiative(name="three"))
    assert _current(begin, "side") is None


def test_the_margin_holds_all_threads_of_the_initiative_at_hand(begin: Begin) -> None:
    """Of all its phases, oldest first, resolved or not, and none of another initiative."""
    one, other = _initiatives(begin, Initiative(name="1", branch="a"), Initiative(name="2"))
    rows = [Phase(initiative_id=each.id, name="p") for each in (one, one, other)]
    first, second, elsewhere = do(begin, lambda uow: uow.phases.add_all(rows))
    late = do(begin, reviews.comment, second.id, "Why?", **PLACE)
    later = do(begin, reviews.comment, first.id, "And why?", **PLACE)
    do(begin, reviews.comment, elsewhere.id, "Elsewhere", **PLACE)
    reply = do(begin, reviews.reply, late.id, "Because.")
    solved = do(begin, reviews.resolve, later.id)
    with begin(write=False) as uow:
        found = editor_comments.initiative_comments(uow, "a", HERE)
        assert editor_comments.initiative_comments(uow, None, None) == InitiativeComments(None, ())
    expected = ((second, CommentThread(late, (reply,))), (first, CommentThread(solved, ())))
    assert (found.initiative, found.threads) == (one, expected)


def test_hands_are_the_agents_somebody_may_want_to_see(begin: Begin) -> None:
    """By name, with the tasks they hold or were set to; none that stopped or was dismissed."""

    def arrange(uow: UnitOfWork) -> tuple[Initiative, Task, Task]:
        goal = uow.initiatives.add(Initiative(name="one"))
        _, named = uow.tasks.add_all(
            [Task(name="held", initiative_id=goal.id), Task(name="named", status="blocked")]
        )
        otter = uow.agents.add(Agent(name="otter", status="running"))
        uow.agents.add(Agent(name="heron", task_id=named.id))
        uow.agents.add(Agent(name="vole", status="stopped"))
        agent_lifecycle.dismiss(uow, uow.agents.add(Agent(name="moth", status="crashed")).id)
        return goal, claims.claim(uow, otter.id, halts=NO_HALTS).task, named

    goal, held, named = do(begin, arrange)
    with begin(write=False) as uow:
        heron, otter = editor_comments.agent_assignments(uow)
    assert heron == AgentAssignment(heron.agent, (named,), None)
    assert otter == AgentAssignment(otter.agent, (held,), goal)
    assert (heron.agent.name, otter.agent.name) == ("heron", "otter")


@pytest.mark.parametrize("number", [2, 40])
def test_hands_take_as_many_questions_for_many_agents_as_for_few(begin: Begin, number: int) -> None:
    """Nothing is asked agent by agent."""

    def arrange(uow: UnitOfWork) -> None:
        goal = uow.initiatives.add(Initiative(name="one"))
        phase = uow.phases.add(Phase(initiative_id=goal.id, name="p", status="approved"))
        agents = uow.agents.add_all([Agent(name=f"a{n}", status="running") for n in range(number)])
        uow.tasks.add_all([Task(name=each.name, phase_id=phase.id) for each in agents])
        for agent in agents:
            claims.claim(uow, agent.id, halts=NO_HALTS)

    do(begin, arrange)
    with begin(write=False) as uow:
        asked = []
        session = uow.session
        for name in ("get", "select"):
            original = getattr(session, name)
            setattr(session, name, lambda *a, _do=original: asked.append(1) or _do(*a))
        assert len(editor_comments.agent_assignments(uow)) == number
    assert 1 <= len(asked) <= 6
