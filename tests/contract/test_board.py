"""The board and the drawing of a plan, on every store."""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from herdbook.domain.agents.model import Agent
from herdbook.domain.conversation import Message
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.domain.journal import Actor
from herdbook.domain.plan.model import Initiative, Phase, Task
from herdbook.ports.engine.dictionary import OPENINGS, TASKS, WAITING
from herdbook.ports.engine.kinds import Kind
from herdbook.ports.engine.query import Query, find
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import messaging
from herdbook.services.agents import agent_lifecycle
from herdbook.services.plan import board as boards
from herdbook.services.plan import board_lanes, claims, diagram, schedule
from herdbook.services.plan.board import Board, BoardInitiative
from herdbook.services.plan.board_model import BoardState, Card, Lanes
from herdbook.services.plan.diagram import Diagram
from tests.cases import for_each
from tests.contract.turns import Begin
from tests.contract.wrapped import WrappedSession, WrappedStore


def board_of(begin: Begin, **asked: Any) -> Board:
    """The board as it is now."""
    with begin(write=False) as uow:
        return boards.board(uow, **asked)


def drawn(begin: Begin, **asked: Any) -> Diagram:
    """The drawing as it is now."""
    with begin(write=False) as uow:
        return diagram.build_diagram(uow, **asked)


def names(cards: Sequence[Card]) -> list[str]:
    return [card.task.name for card in cards]


def shown(found: Lanes) -> dict[str, list[str]]:
    """The names of the tasks in each lane that has any."""
    return {str(state): names(lane.cards) for state, lane in found.items() if lane.total}


def awaited(card: Card) -> list[tuple[str, str]]:
    return [(each.kind, each.name) for each in card.waits_for]


def login(uow: UnitOfWork, **given: Any) -> tuple[Initiative, Phase]:
    """An initiative with an open phase."""
    initiative = uow.initiatives.add(Initiative(name="login", **given))
    phase = Phase(initiative_id=initiative.id, name="schema", status="approved")
    return initiative, uow.phases.add(phase)


def test_tasks_stand_in_their_phase_by_what_can_be_done_about_them(begin: Begin) -> None:
    """Ready, held, waiting, blocked, in review and completed."""
    with begin() as uow:
        initiative, phase = login(uow)
        made = uow.tasks.add_all(
            [
                Task(name="first", phase_id=phase.id, order=1),
                Task(name="urgent", phase_id=phase.id, order=2, priority="high"),
                Task(name="later", phase_id=phase.id, order=3),
                Task(name="stuck", phase_id=phase.id, status="blocked"),
                Task(name="looked at", phase_id=phase.id, status="quality_review"),
                Task(name="done", phase_id=phase.id, status="completed"),
            ]
        )
        uow.tasks.add_dependency(made[2].id, made[0].id)
        uow.commit()
    (goal,) = board_of(begin).goals
    (stage,) = goal.stages
    assert (goal.initiative, stage.phase) == (initiative, phase)
    assert shown(stage.lanes) == {
        "ready": ["urgent", "first"],
        "waiting": ["later"],
        "blocked": ["stuck"],
        "review": ["looked at"],
        "completed": ["done"],
    }


def test_a_held_task_shows_who_holds_it_and_until_when(begin: Begin) -> None:
    """Who reviews it is not who did the work."""
    with begin() as uow:
        _, phase = login(uow)
        otter, lynx = uow.agents.add_all([Agent(name="otter"), Agent(name="lynx")])
        review = Task(name="review", phase_id=phase.id, status="quality_review")
        uow.tasks.add_all(
            [
                Task(name="work", phase_id=phase.id, priority="high"),
                evolve(review, assignee_id=otter.id, order=1),
                evolve(review, assignee_id=otter.id, order=2),
            ]
        )
        uow.commit()
    held = []
    for agent, said in ((otter, Actor()), (lynx, Actor(agent="lynx")), (lynx, Actor())):
        with begin(actor=said) as uow:
            held.append(claims.claim(uow, agent.id, halts=NO_HALTS, ttl=timedelta(hours=1)))
            uow.commit()
    (stage,) = board_of(begin).goals[0].stages
    assert shown(stage.lanes) == {"held": ["work", "review", "review"]}
    cards = stage.lanes[BoardState.HELD].cards
    assert [card.holder and card.holder.id for card in cards] == [otter.id, lynx.id, lynx.id]
    assert [card.for_review for card in cards] == [False, True, True]
    assert [card.lease_until for card in cards] == [each.opening.lease_until for each in held]


def test_a_held_task_says_whether_its_holder_waits_for_a_person(begin: Begin) -> None:
    """By waiting, or by a message that needs an answer; not for the answer of another agent."""
    with begin() as uow:
        names = ("asks", "writes", "tells", "asks another", "works")
        agents = uow.agents.add_all([Agent(name=each) for each in names])
        for agent in agents:
            task = uow.tasks.add(Task(name=agent.name))
            claims.claim(uow, agent.id, halts=NO_HALTS, task_id=task.id)
        asks, writes, tells, other, _ = agents
        agent_lifecycle.wait(uow, asks.id, ["may I?"])
        to_you: dict[str, Any] = {"sender_type": "agent", "recipient_type": "user", "content": "x"}
        to_tells = {**to_you, "recipient_type": "agent", "recipient_id": tells.id}
        asked = uow.messages.add(Message(**to_you, sender_id=writes.id, requires_response=True))
        uow.messages.add(Message(**to_you, sender_id=tells.id))
        uow.messages.add(Message(**to_tells, sender_id=other.id, requires_response=True))
        uow.commit()

    def waiting() -> set[str]:
        (stage,) = board_of(begin).goals[0].stages
        cards = stage.lanes[BoardState.HELD].cards
        return {each.task.name for each in cards if each.waits_for_you}

    assert waiting() == {"asks", "writes"}
    with begin() as uow:
        agent_lifecycle.answer(uow, asks.id, "yes")
        messaging.reply(uow, asked.id, "that one")
        uow.commit()
    assert waiting() == set()


def test_a_held_task_whose_agent_is_gone_is_held_by_nobody_known(begin: Begin) -> None:
    """It is shown all the same."""
    with begin() as uow:
        agent = uow.agents.add(Agent(name="otter"))
        uow.tasks.add(Task(name="work"))
        claims.claim(uow, agent.id, halts=NO_HALTS)
        uow.agents.remove(agent.id)
        uow.commit()
    (stage,) = board_of(begin).goals[0].stages
    assert [card.holder for card in stage.lanes[BoardState.HELD].cards] == [None]


def test_what_a_task_waits_for_is_told_by_name(begin: Begin) -> None:
    """Tasks and children that are not finished, its phase, phases ahead and its initiative."""
    with begin() as uow:
        initiative, ahead = login(uow)
        closed = uow.phases.add(Phase(initiative_id=initiative.id, name="page"))
        uow.phases.add_dependency(closed.id, ahead.id)
        parent, other, done = uow.tasks.add_all(
            [
                Task(name="parent", phase_id=closed.id),
                Task(name="other", phase_id=ahead.id, order=1),
                Task(name="done", phase_id=ahead.id, status="completed"),
            ]
        )
        uow.tasks.add(
            Task(name="child", phase_id=ahead.id, parent_task_id=parent.id, status="blocked")
        )
        uow.tasks.add_dependencies([(parent.id, other.id), (parent.id, done.id)])
        uow.commit()
    (card,) = board_of(begin).goals[0].stages[1].lanes[BoardState.WAITING].cards
    gate = [("phase", "page"), ("phase", "schema")]
    assert awaited(card) == [("task", "child"), ("task", "other"), *gate]
    assert card.more == 0
    with begin() as uow:
        uow.initiatives.save(evolve(initiative, status="pending_review"))
        uow.commit()
    (card,) = board_of(begin).goals[0].stages[1].lanes[BoardState.WAITING].cards
    assert awaited(card)[2:] == [("initiative", "login"), *gate]


def test_of_many_things_a_task_waits_for_some_are_named_and_the_rest_counted(begin: Begin) -> None:
    """Nobody reads forty names."""
    with begin() as uow:
        made = uow.tasks.add_all([Task(name=f"{n:02}", order=n) for n in range(40)])
        uow.tasks.add_dependencies((made[-1].id, each.id) for each in made[:-1])
        uow.commit()
    (stage,) = board_of(begin).goals[0].stages
    (card,) = stage.lanes[BoardState.WAITING].cards
    assert awaited(card) == [("task", f"{n:02}") for n in range(board_lanes.BLOCKERS_NAMED)]
    assert card.more == 39 - board_lanes.BLOCKERS_NAMED


def test_a_phase_stands_behind_those_it_waits_for(begin: Begin) -> None:
    """Also where all of them were added at once."""
    with begin() as uow:
        initiative = uow.initiatives.add(Initiative(name="login"))
        rows = [Phase(initiative_id=initiative.id, name=str(n)) for n in range(8)]
        made = uow.phases.add_all(rows)
        for one, other in pairwise(made):
            uow.phases.add_dependency(other.id, one.id)
        uow.commit()
    stages = board_of(begin).goals[0].stages
    assert [stage.phase for stage in stages] == made
    assert [stage.waits_for for stage in stages] == [(), *((each,) for each in made[:-1])]


def test_a_lane_shows_the_first_and_counts_all(begin: Begin) -> None:
    """In a phase and outside of any."""
    with begin() as uow:
        initiative, phase = login(uow)
        for number in range(12):
            in_phase = {"phase_id": phase.id} if number % 2 else {"initiative_id": initiative.id}
            for status in ("pending", "blocked", "quality_review", "completed"):
                uow.tasks.add(Task(name=f"{number:02}", order=number, status=status, **in_phase))
        uow.commit()
    (goal,) = board_of(begin, limit=2).goals
    assert [stage.phase for stage in goal.stages] == [phase, None]
    for stage, first in zip(goal.stages, (["01", "03"], ["00", "02"]), strict=True):
        for state in (BoardState.READY, BoardState.BLOCKED, BoardState.REVIEW):
            assert stage.lanes[state].total == 6
            assert names(stage.lanes[state].cards) == first
        assert stage.lanes[BoardState.COMPLETED].total == 6
        assert len(stage.lanes[BoardState.COMPLETED].cards) == board_lanes.FINISHED_SHOWN


def test_the_tasks_that_were_finished_last_are_named_first(begin: Begin) -> None:
    """One that is open again, or gone, is not among them."""
    with begin() as uow:
        _, phase = login(uow)
        made = uow.tasks.add_all([Task(name=str(n), phase_id=phase.id) for n in range(6)])
        uow.commit()
    for number in (3, 1, 4, 0, 5):
        with begin() as uow:
            uow.tasks.save(evolve(uow.tasks.get(made[number].id), status="completed"))
            uow.commit()
    with begin() as uow:
        uow.tasks.save(evolve(uow.tasks.get(made[0].id), status="pending"))
        uow.tasks.remove(made[5].id)
        uow.commit()
    lane = board_of(begin).goals[0].stages[0].lanes[BoardState.COMPLETED]
    assert (lane.total, names(lane.cards)) == (3, ["4", "1", "3"])


def test_an_initiative_knows_its_critical_path(begin: Begin) -> None:
    """The same as is told when asked for it alone, over phases and loose tasks."""
    with begin() as uow:
        initiative, phase = login(uow)
        second = uow.phases.add(Phase(initiative_id=initiative.id, name="page"))
        uow.phases.add_dependency(second.id, phase.id)
        made = uow.tasks.add_all(
            [
                Task(name="a", phase_id=phase.id),
                Task(name="b", phase_id=phase.id),
                Task(name="c", phase_id=second.id),
                Task(name="d", initiative_id=initiative.id),
                Task(name="e", initiative_id=initiative.id),
            ]
        )
        uow.tasks.add_dependencies([(made[1].id, made[0].id), (made[3].id, made[2].id)])
        uow.commit()
    (goal,) = board_of(begin).goals
    assert goal.critical_path is not None
    assert [task.name for task in goal.critical_path] == ["a", "b", "c", "d"]
    with begin(write=False) as uow:
        alone = schedule.critical_path(uow, initiative_id=initiative.id)
    assert list(goal.critical_path) == alone


def test_where_nothing_waits_there_is_no_critical_path(begin: Begin) -> None:
    """One task alone is no chain; tasks without an initiative have a chain of their own."""
    with begin() as uow:
        _, phase = login(uow)
        made = uow.tasks.add_all(
            [Task(name="a", phase_id=phase.id), Task(name="b"), Task(name="c")]
        )
        uow.commit()
    assert [goal.critical_path for goal in board_of(begin).goals] == [(), ()]
    with begin() as uow:
        uow.tasks.add_dependency(made[1].id, made[2].id)
        uow.commit()
    assert [goal.critical_path for goal in board_of(begin).goals] == [(), (made[2], made[1])]


def test_a_waiting_task_of_the_critical_path_is_shown_before_others(begin: Begin) -> None:
    """A mark that is not shown marks nothing."""
    with begin() as uow:
        _, phase = login(uow)
        made = uow.tasks.add_all([Task(name=str(n), order=n, phase_id=phase.id) for n in range(6)])
        pairs = [(made[n].id, made[0].id) for n in (1, 2, 3, 4)]
        uow.tasks.add_dependencies([*pairs, (made[5].id, made[4].id)])
        uow.commit()
    lane = board_of(begin, limit=2).goals[0].stages[0].lanes[BoardState.WAITING]
    assert (lane.total, names(lane.cards)) == (5, ["4", "5"])


def test_with_too_many_tasks_no_critical_path_is_looked_for(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is told apart from there being none; a smaller initiative still has its own."""
    monkeypatch.setattr(boards, "PATH_BUDGET", 5)
    with begin() as uow:
        for size in (6, 3):
            _, phase = login(uow)
            uow.tasks.add_all([Task(name="x", phase_id=phase.id) for _ in range(size)])
        uow.commit()
    assert [goal.critical_path for goal in board_of(begin).goals].count(None) == 1
    assert [goal.critical_path for goal in board_of(begin).goals].count(()) == 1


def test_only_open_initiatives_are_on_the_board(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed ones and those too many are counted; one alone is shown whatever it is."""
    monkeypatch.setattr(boards, "MAX_INITIATIVES", 2)
    with begin() as uow:
        statuses = ("active", "completed", "pending_review", "archived", "active")
        made = [uow.initiatives.add(Initiative(name=each, status=each)) for each in statuses]
        uow.tasks.add(Task(name="x"))
        uow.commit()
    found = board_of(begin)
    assert (len(found.goals), found.more_goals, found.closed) == (3, 1, 2)
    assert found.goals[-1].initiative is None
    assert not {made[1].id, made[3].id} & {one.initiative.id for one in found.goals[:2]}
    alone = board_of(begin, initiative_id=made[3].id)
    assert [goal.initiative for goal in alone.goals] == [made[3]]
    with pytest.raises(NotFound):
        board_of(begin, initiative_id="ini_nobody")


def test_tasks_without_a_phase_that_are_too_many_are_counted_all_the_same(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not shown, and every number on the board is true."""
    monkeypatch.setattr(board_lanes, "SCAN_LIMIT", 3)
    with begin() as uow:
        uow.tasks.add_all([Task(name="x") for _ in range(5)])
        uow.tasks.add_all([Task(name="x", status="completed") for _ in range(4)])
        uow.commit()
    found = board_of(begin)
    (stage,) = found.goals[0].stages
    assert found.unseen == 3
    assert (stage.lanes[BoardState.READY].total, stage.lanes[BoardState.COMPLETED].total) == (5, 4)
    assert (found.totals[BoardState.READY], found.totals[BoardState.COMPLETED]) == (5, 4)
    assert sum(found.totals.values()) == 9


def test_the_lanes_of_each_initiative_are_true_however_many_tasks_have_no_phase(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of an initiative none of whose tasks is among those that are shown."""
    monkeypatch.setattr(board_lanes, "SCAN_LIMIT", 3)
    with begin() as uow:
        uow.tasks.add_all([Task(name="x", priority="high") for _ in range(5)])
        goals = uow.initiatives.add_all([Initiative(name="one"), Initiative(name="two")])
        for number, goal in enumerate(goals, 2):
            own = {"initiative_id": goal.id, "priority": "low"}
            made = uow.tasks.add_all([Task(name="y", **own) for _ in range(2 * number)])
            uow.tasks.add_dependencies([(made[1].id, made[0].id)])
            uow.tasks.add_all([Task(name="z", status="completed", **own) for _ in range(number)])
        uow.commit()
    found = board_of(begin)

    def totals(goal: BoardInitiative) -> tuple[str | None, tuple[int, ...]]:
        lanes = goal.stages[-1].lanes
        shown = (BoardState.READY, BoardState.WAITING, BoardState.COMPLETED)
        name = None if goal.initiative is None else goal.initiative.name
        return name, tuple(lanes[state].total for state in shown)

    wanted = {"one": (3, 1, 2), "two": (5, 1, 3), None: (5, 0, 0)}
    assert dict(map(totals, found.goals)) == wanted
    assert found.totals[BoardState.READY] == 3 + 5 + 5
    assert found.unseen > 0
    alone = board_of(begin, initiative_id=goals[1].id)
    assert totals(alone.goals[0]) == ("two", (5, 1, 3))
    assert alone.totals[BoardState.READY] == 5


def test_an_empty_space_has_an_empty_board(begin: Begin) -> None:
    """Nothing is shown, and nothing fails."""
    found = board_of(begin)
    assert (found.goals, found.seq, found.unseen) == ((), 0, 0)
    assert drawn(begin) == Diagram((), (), ())


STATUSES = ("pending", "pending", "pending", "blocked", "quality_review", "completed")


@for_each("seed", range(4))
def test_every_task_is_counted_once_and_in_the_right_lane(begin: Begin, seed: int) -> None:
    """Against every row of a random plan, looked at one by one."""
    chance = random.Random(seed)
    with begin() as uow:
        initiative, phase = login(uow)
        closed = uow.phases.add(Phase(initiative_id=initiative.id, name="closed"))
        agents = uow.agents.add_all([Agent(name="otter"), Agent(name="lynx")])
        made = []
        for number in range(40):
            spot = chance.choice(
                [{"phase_id": phase.id}, {"phase_id": closed.id}, {"initiative_id": initiative.id}]
            )
            status = chance.choice(STATUSES)
            made.append(uow.tasks.add(Task(name=str(number), status=status, **spot)))
        pairs = {tuple(sorted(chance.sample(range(40), 2))) for _ in range(25)}
        uow.tasks.add_dependencies((made[b].id, made[a].id) for a, b in pairs)
        for agent in agents:
            claims.claim(uow, agent.id, halts=NO_HALTS)
        uow.commit()
    with begin(write=False) as uow:
        wanted = slowly(uow)
        (goal,) = boards.board(uow, initiative_id=initiative.id, limit=40).goals
    assert counted(goal) == wanted
    for stage in goal.stages:
        for state, lane in stage.lanes.items():
            if state is not BoardState.COMPLETED:
                assert len(lane.cards) == lane.total


def slowly(uow: UnitOfWork) -> Counter[tuple[str | None, BoardState]]:
    """How many tasks of each phase are in each state, from all rows."""
    openings = {row.task_id: row for row in uow.select(find(OPENINGS))}
    waiting = {row.task_id for row in uow.select(find(WAITING))}
    found: Counter[tuple[str | None, BoardState]] = Counter()
    for task in uow.select(find(TASKS)):
        opening = openings.get(task.id)
        state = BoardState.WAITING if task.id in waiting else BoardState.READY
        if task.status in ("completed", "blocked"):
            state = BoardState(task.status)
        elif opening is not None and opening.state == "held":
            state = BoardState.HELD
        elif task.status == "quality_review":
            state = BoardState.REVIEW
        found[task.phase_id, state] += 1
    return found


def counted(goal: BoardInitiative) -> Counter[tuple[str | None, BoardState]]:
    found: Counter[tuple[str | None, BoardState]] = Counter()
    for stage in goal.stages:
        for state, lane in stage.lanes.items():
            if lane.total:
                found[stage.phase.id if stage.phase else None, state] = lane.total
    return found


class Weighing(WrappedSession):
    """A session that knows how many rows it has handed out."""

    rows = 0

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        type(self).rows = 0

    def get(self, kind: Kind[Any], keys: Sequence[Any]) -> list[Any]:
        """Hand out rows, and count them."""
        found = self._session.get(kind, keys)
        type(self).rows += len(found)
        return found

    def select(self, query: Query[Any]) -> list[Any]:
        """Hand out rows, and count them."""
        found = self._session.select(query)
        type(self).rows += len(found)
        return found


def test_a_large_phase_is_counted_and_not_loaded(
    store: Store, space: str, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that a board takes from the store do not grow with the plan."""
    monkeypatch.setattr(boards, "PATH_BUDGET", 100)
    taken = []
    with begin() as uow:
        _, phase = login(uow)
        first = uow.tasks.add(Task(name="first", phase_id=phase.id))
        uow.commit()
    for _ in range(2):
        with begin() as uow:
            made = uow.tasks.add_all([Task(name="x", phase_id=phase.id) for _ in range(800)])
            uow.tasks.add_dependencies((each.id, first.id) for each in made[:400])
            uow.commit()
        found = read(WrappedStore(store, Weighing), space, boards.board)
        taken.append(Weighing.rows)
    (stage,) = found.goals[0].stages
    assert (stage.lanes[BoardState.READY].total, stage.lanes[BoardState.WAITING].total) == (
        801,
        800,
    )
    assert taken[0] == taken[1] < 500


def test_a_drawing_has_waves_states_and_arrows(begin: Begin) -> None:
    """One arrow between phases, and those between tasks and from children to parents."""
    with begin() as uow:
        initiative, phase = login(uow)
        second = uow.phases.add(Phase(initiative_id=initiative.id, name="page"))
        uow.phases.add_dependency(second.id, phase.id)
        a, b, c = uow.tasks.add_all(
            [
                Task(name=name, phase_id=key)
                for name, key in zip("abc", [phase.id] * 2 + [second.id], strict=True)
            ]
        )
        child = uow.tasks.add(Task(name="child", parent_task_id=c.id))
        uow.tasks.add_dependency(b.id, a.id)
        uow.tasks.add(Task(name="done", status="completed"))
        uow.commit()
    found = drawn(begin)
    assert {
        node.task.name: (node.wave, str(node.state), node.critical, node.after)
        for node in found.nodes
    } == {
        "a": (1, "ready", True, ()),
        "child": (1, "ready", False, ()),
        "b": (2, "waiting", True, (a.id,)),
        "c": (3, "waiting", True, (child.id,)),
    }
    assert [(each.phase.id, each.after) for each in found.stretches] == [
        (phase.id, ()),
        (second.id, (phase.id,)),
    ]
    assert found.critical_path == (a.id, b.id, c.id)


def test_a_drawing_passes_through_what_is_elsewhere(begin: Begin) -> None:
    """A task of another initiative between two of this one is not drawn, but its arrow is."""
    with begin() as uow:
        initiative, phase = login(uow)
        a, b = uow.tasks.add_all([Task(name=name, phase_id=phase.id) for name in "ab"])
        between = uow.tasks.add(Task(name="between"))
        uow.tasks.add_dependencies([(b.id, between.id), (between.id, a.id)])
        uow.commit()
    for asked in ({"initiative_id": initiative.id}, {"phase_id": phase.id}):
        found = drawn(begin, **asked)
        assert [(node.task.name, node.after) for node in found.nodes] == [("a", ()), ("b", (a.id,))]


def test_a_drawing_that_nobody_could_read_is_refused(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the number of tasks, and what to ask for instead; finished tasks do not count."""
    monkeypatch.setattr(diagram, "MAX_TASKS", 3)
    with begin() as uow:
        initiative, phase = login(uow)
        uow.tasks.add_all([Task(name="x", phase_id=phase.id) for _ in range(4)])
        other, small = login(uow)
        uow.tasks.add_all([Task(name="x", phase_id=small.id) for _ in range(2)])
        done = [Task(name="x", initiative_id=other.id, status="completed") for _ in range(4)]
        uow.tasks.add_all(done)
        uow.commit()
    for asked in ({}, {"initiative_id": initiative.id}, {"phase_id": phase.id}):
        with pytest.raises(InvalidValue, match="unfinished tasks, more than the 3 of one drawing"):
            drawn(begin, **asked)
    assert len(drawn(begin, initiative_id=other.id).nodes) == 2
    with pytest.raises(NotFound):
        drawn(begin, initiative_id="ini_nobody")
