"""Lanes: who held which task from when to when, on every store."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.entity import evolve
from herdbook.domain.errors import HerdbookError, InvalidValue, JournalPruned
from herdbook.domain.location.areas import Area
from herdbook.domain.plan.lanes import ClaimEnd, LaneSpan, LaneState, MarkKind
from herdbook.domain.plan.model import PhaseStatus, Task, TaskStatus
from herdbook.domain.plan.readiness import holder_of
from herdbook.domain.record.model import Commit
from herdbook.ports.engine.dictionary import OPENINGS, TASKS
from herdbook.ports.engine.query import any_of, find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import messaging
from herdbook.services.agents import agent_lifecycle
from herdbook.services.journal.prune import prune
from herdbook.services.journal.undo import undo
from herdbook.services.plan import claims, lanes
from herdbook.services.plan.lanes import LaneGroup, LaneWindow, read_lanes
from herdbook.services.plan.move_task import move_task
from herdbook.services.plan.status import YOU, status
from tests.contract.claims import BLINK, add_initiative, add_phase, add_tasks, claim_for, do
from tests.contract.pasts import entries_of
from tests.contract.test_use_cases import SHARES, Spaces, Transaction, programs
from tests.contract.turns import Begin

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
LOST = "lost"
"""Who reviews a task if nobody does, or if the store has lost it with the opening."""
Holders = dict[str, str | None]


def holders_of(uow: UnitOfWork) -> Holders:
    """The tasks that are worked on or reviewed now, and who does; LOST where the store forgot."""
    held = any_of((TaskStatus.IN_PROGRESS, TaskStatus.QUALITY_REVIEW))
    openings = {each.task_id: each for each in uow.select(find(OPENINGS))}
    holders: Holders = {}
    for task in uow.select(find(TASKS, {"status": held})):
        holder = holder_of(task, openings.get(task.id))
        is_lost = task.status is TaskStatus.QUALITY_REVIEW and holder is None
        holders[task.id] = LOST if is_lost else holder
    return holders


def check_holders(spans: Holders, stored: Holders) -> None:
    """What spans tell is what the store knows."""
    lost = {key for key, holder in stored.items() if holder is LOST}
    told = {key: holder for key, holder in spans.items() if key not in lost}
    assert told == {key: holder for key, holder in stored.items() if key not in lost}


def spans_of(window: LaneWindow) -> list[LaneSpan]:
    """All spans of all lanes."""
    return [each.span for lane in window.lanes for each in lane.spans]


def open_holders(spans: list[LaneSpan]) -> Holders:
    """Who holds what at the end of a window."""
    return {each.task_id: each.agent_id for each in spans if each.until is None and each.task_id}


def holders_at(spans: list[LaneSpan], moment: datetime) -> Holders:
    """Who held what at a moment of a window."""
    return {
        each.task_id: each.agent_id
        for each in spans
        if each.task_id and each.since <= moment and (each.until is None or moment < each.until)
    }


def check_no_overlap(spans: list[LaneSpan]) -> None:
    """No two spans of a task, or of an agent without one, share a moment; only the last lasts."""
    by_row: dict[str | None, list[LaneSpan]] = {}
    for each in spans:
        by_row.setdefault(each.task_id or each.agent_id, []).append(each)
    for own in by_row.values():
        own.sort(key=lambda each: (each.since, each.until is None, each.until))
        for earlier, later in pairwise(own):
            assert earlier.until is not None
            assert earlier.since <= earlier.until <= later.since


DEEDS = (
    *("claim", "claim", "claim", "claim briefly", "complete", "complete", "fail", "release"),
    *(
        "write",
        "reply",
        "wait",
        "answer",
        "stop",
        "move",
        "remove task",
        "remove agent",
        "add task",
        "undo",
        "crash",
    ),
)
"""What is done in a program; claims come often, since the rest is about what is held."""
deeds = st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 30)), min_size=10, max_size=40)


class LittleHerd:
    """Agents that work on a plan, some of it with reviews, by real use cases."""

    def __init__(self, spaces: Spaces) -> None:
        self.spaces = spaces
        with spaces.begin(Area.WORK) as uow:
            for agent in [*uow.agents.page(), uow.agents.add(Agent(name="mole"))]:
                uow.agents.save(evolve(agent, host="here", pid=7))
            uow.tasks.add_all([Task(name=f"loose {number}") for number in range(3)])
            for phase in uow.phases.page():
                uow.phases.save(evolve(phase, status=PhaseStatus.APPROVED))
            uow.commit()

    def attempt(self, deed: str, number: int) -> None:
        """Do something, or nothing if it is refused."""
        with self.spaces.begin(Area.WORK) as uow, suppress(HerdbookError, IndexError):
            self._do(uow, deed, number)
            uow.commit()

    def _do(self, uow: UnitOfWork, deed: str, number: int) -> None:
        agents, tasks = uow.agents.page(), uow.tasks.page()
        if not (agents and tasks):
            return  # an undone transaction took them along
        agent = agents[number % len(agents)].id
        if deed in _ENDINGS:
            held = sorted(key for key, holder in holders_of(uow).items() if holder == agent)
            task = uow.tasks.get(held[0])
            _ENDINGS[deed](uow, task.id, task.fence)
        elif deed in _OF_TASKS:
            _OF_TASKS[deed](uow, tasks[number % len(tasks)].id, number)
        elif deed != "remove agent" or len(agents) > 1:
            _OF_AGENTS[deed](uow, agent)


def _claim(uow: UnitOfWork, agent_id: str, ttl: timedelta = claims.LEASE) -> None:
    claims.claim(uow, agent_id, halts=NO_HALTS, ttl=ttl)


_ENDINGS = {"complete": claims.complete, "fail": claims.fail, "release": claims.release}
_OF_TASKS = {
    "move": lambda uow, key, number: move_task(uow, key, ("ready", "completed")[number % 2]),
    "remove task": lambda uow, key, _: uow.tasks.remove(key),
}
_OF_AGENTS = {
    "claim": _claim,
    "claim briefly": lambda uow, key: _claim(uow, key, BLINK),
    "write": lambda uow, key: messaging.send(uow, "may I?", sender_id=key, requires_response=True),
    "reply": lambda uow, _: messaging.reply(
        uow, uow.messages.requiring_response()[0].id, "you may"
    ),
    "wait": lambda uow, key: agent_lifecycle.wait(uow, key, ["may I?"]),
    "answer": lambda uow, key: agent_lifecycle.answer(uow, key, "you may"),
    "stop": agent_lifecycle.stop,
    "remove agent": lambda uow, key: uow.agents.remove(key),
    "add task": lambda uow, _: uow.tasks.add(Task(name="another")),
    "undo": lambda uow, _: undo(uow),
    "crash": lambda uow, _: agent_lifecycle.find_crashed(uow, "here", lambda _: None),
}


def asking_agents(window: LaneWindow) -> set[str | None]:
    """Who waits for a person at the end of a window."""
    last = [each for each in spans_of(window) if each.until is None]
    return {each.agent_id for each in last if each.state is LaneState.ASKING}


def check_asking(store: Store, space: str, seq: int) -> None:
    """Those wait for a person of whom `status` tells so, and their lanes say it."""
    window = read(store, space, read_lanes, since=LONG_AGO, limit=1_000, at=seq)
    rows = read(store, space, status, at=seq).rows
    waiting = {each.agent.id for each in rows if each.agent and YOU in each.waiting_for}
    assert asking_agents(window) == waiting
    told = {each.id for each in window.lanes if each.status == AgentStatus.WAITING_FOR_INPUT}
    assert told == waiting


def check_positions(store: Store, space: str, taken: dict[int, Holders]) -> list[LaneSpan]:
    """Compare open spans with what was held, at each position and seen from the end."""
    options = {"since": LONG_AGO, "limit": 1_000}
    last = spans_of(read(store, space, read_lanes, **options))
    check_no_overlap(last)
    check_holders(open_holders(last), taken[max(taken)])
    for seq in sorted(taken)[:: -max(1, len(taken) // 4)]:
        check_asking(store, space, seq)
    times = {each.seq: each.time for each in entries_of(store, space)}
    for seq, holders in taken.items():
        then = spans_of(read(store, space, read_lanes, **options, at=seq))
        check_no_overlap(then)
        check_holders(open_holders(then), holders)
        if seq + 1 in times and times[seq] < times[seq + 1]:
            check_holders(holders_at(last, times[seq]), holders)
            late = spans_of(read(store, space, read_lanes, since=times[seq], limit=1_000))
            check_no_overlap(late)
            check_holders(open_holders(late), taken[max(taken)])
            check_holders(holders_at(late, times[seq]), holders)
    return last


def snapshot_holders(store: Store, space: str, taken: dict[int, Holders]) -> None:
    """Note who holds what at the end of the journal."""
    with unit_of_work(store, space, write=False) as uow:
        taken.setdefault(uow.journal.last(), holders_of(uow))


def test_open_spans_are_what_the_store_holds(store: Store, engine: str) -> None:
    """At each position of the journal, seen from there, from the end, and in a later window."""
    seen: set[LaneState] = set()

    @settings(max_examples=max(3, settings.default.max_examples // (2 * SHARES[engine])))
    @given(program=deeds)
    def holds(program: list[tuple[str, int]]) -> None:
        herd = LittleHerd(Spaces(store))
        space = herd.spaces.names[Area.WORK]
        taken: dict[int, Holders] = {}
        snapshot_holders(store, space, taken)
        for deed, number in program:
            herd.attempt(deed, number)
            snapshot_holders(store, space, taken)
        spans = check_positions(store, space, taken)
        seen.update(each.state for each in spans)

    holds()
    assert LaneState.HELD in seen


def test_any_use_case_keeps_spans_apart(store: Store, engine: str) -> None:
    """After any program of use cases, also where rows come and go otherwise than by claims."""

    @settings(max_examples=max(2, settings.default.max_examples // (4 * SHARES[engine])))
    @given(program=programs)
    def holds(program: list[Transaction]) -> None:
        spaces = Spaces(store)
        space = spaces.names[Area.WORK]
        taken: dict[int, Holders] = {}
        snapshot_holders(store, space, taken)
        for transaction in program:
            spaces.attempt(transaction)
            snapshot_holders(store, space, taken)
        check_positions(store, space, taken)

    holds()


def lanes_of(begin: Begin, **options: object) -> LaneWindow:
    """The lanes as a reader sees them."""
    with begin(write=False) as uow:
        return read_lanes(uow, **options)


def bars_of(window: LaneWindow) -> dict[str | None, list[tuple[object, ...]]]:
    """The bars of each lane, without their times."""
    return {
        lane.name: [
            (each.task, each.agent, each.span.state, each.span.end, each.track)
            for each in lane.spans
        ]
        for lane in window.lanes
    }


def named_agents(begin: Begin, *names: str) -> list[str]:
    with begin() as uow:
        added = uow.agents.add_all([Agent(name=name) for name in names])
        uow.commit()
    return [each.id for each in added]


def test_a_little_session_has_the_right_bars(begin: Begin) -> None:
    """Claims, a wait for a person, a question to another agent, a review, and how each ended."""
    otter, lynx, _ = named_agents(begin, "otter", "lynx", "mole")
    goal = add_initiative(begin, quality_review=True)
    phase = add_phase(begin, goal, PhaseStatus.APPROVED)
    first, _ = add_tasks(
        begin, Task(name="first", phase_id=phase.id), Task(name="second", priority="low")
    )
    work = claim_for(begin, otter)
    do(begin, agent_lifecycle.wait, otter, [{"question": "may I merge?"}])
    do(begin, agent_lifecycle.answer, otter, "yes")
    asked = do(begin, messaging.ask, otter, lynx, "which port?", task_id=first.id)
    do(begin, messaging.answer, asked.id, "8080")
    do(begin, claims.complete, first.id, work.fence)
    review = claim_for(begin, lynx)
    assert review.task.id == first.id
    claim_for(begin, otter)
    do(begin, claims.fail, first.id, review.fence)
    window = lanes_of(begin)
    held, asks, seen = LaneState.HELD, LaneState.ASKING, LaneState.REVIEW
    assert bars_of(window) == {
        "lynx": [("first", "lynx", seen, ClaimEnd.FAILED, 0)],
        "mole": [],
        "otter": [
            ("first", "otter", held, ClaimEnd.HANDED_IN, 0),
            ("first", "otter", asks, ClaimEnd.HANDED_IN, 0),
            ("first", "otter", held, ClaimEnd.HANDED_IN, 0),
            ("second", "otter", held, None, 0),
        ],
    }
    assert (window.total, window.idle, window.span_count) == (3, 1, 5)
    marks = {lane.name: [(each.kind, each.text) for each in lane.marks] for lane in window.lanes}
    assert marks["otter"] == [
        (MarkKind.ASKED, "may I merge?"),
        (MarkKind.ANSWERED, "may I merge?"),
        (MarkKind.ASKED, "which port?"),
        (MarkKind.ANSWERED, "8080"),
    ]
    by_phase = bars_of(lanes_of(begin, group=LaneGroup.PHASE))
    assert {name: len(bars) for name, bars in by_phase.items()} == {phase.name: 4, None: 1}


def test_an_agent_waits_from_its_message_until_the_answer(begin: Begin) -> None:
    """With the task that it holds, and without one; also in a window that begins later."""
    otter, lynx = named_agents(begin, "otter", "lynx")
    add_tasks(begin, Task(name="one"))
    claim_for(begin, otter)
    asked = [
        do(begin, messaging.send, "may I?", sender_id=each, requires_response=True)
        for each in (otter, lynx)
    ]
    do(begin, messaging.send, "which port?", sender_id=lynx, recipient_id=otter)
    with begin(write=False) as uow:
        later = uow.now
    held, asks = LaneState.HELD, LaneState.ASKING
    window = lanes_of(begin)
    assert bars_of(window) == {
        "lynx": [(None, "lynx", asks, None, 0)],
        "otter": [("one", "otter", held, None, 0), ("one", "otter", asks, None, 0)],
    }
    late = lanes_of(begin, since=later)
    assert asking_agents(late) == asking_agents(window) == {otter, lynx}
    assert {each.status for each in late.lanes} == {AgentStatus.WAITING_FOR_INPUT}
    assert [each.since for each in spans_of(late) if each.state is asks] == [
        each.since for each in spans_of(window) if each.state is asks
    ]
    for message in asked:
        do(begin, messaging.reply, message.id, "you may")
    window = lanes_of(begin)
    assert asking_agents(window) == set()
    assert bars_of(window)["otter"][-1] == ("one", "otter", held, None, 0)


def test_what_was_held_before_the_window_is_shown(begin: Begin) -> None:
    """With the time of its claim, also if its agent has been removed since."""
    otter, lynx = named_agents(begin, "otter", "lynx")
    add_tasks(begin, Task(name="one"), Task(name="two", order=1))
    claim, _ = claim_for(begin, otter), claim_for(begin, lynx)
    with begin(write=False) as uow:
        later = uow.now
    do(begin, lambda uow: uow.agents.remove(lynx))
    window = lanes_of(begin, since=later)
    assert [(each.name, each.is_gone, len(each.spans)) for each in window.lanes] == [
        ("lynx", True, 1),
        ("otter", False, 1),
        (None, False, 1),
    ]
    (span,) = window.lanes[1].spans
    assert claim.stamp is not None
    assert (span.span.since, span.span.until) == (claim.stamp.wall, None)
    assert span.span.since < window.begin
    assert window.lanes[0].spans[0].span.end is ClaimEnd.TAKEN_OVER


def test_claims_that_last_together_have_tracks_of_their_own(begin: Begin) -> None:
    """In the lane of an agent that holds several, and of a phase."""
    (otter,) = named_agents(begin, "otter")
    add_tasks(begin, *(Task(name=f"{number}", order=number) for number in range(3)))
    held = [claim_for(begin, otter) for _ in range(2)]
    do(begin, claims.complete, held[0].task.id, held[0].fence)
    claim_for(begin, otter)
    (lane,) = lanes_of(begin).lanes
    assert lane.tracks == 2
    assert [(each.task, each.track) for each in lane.spans] == [("0", 0), ("1", 1), ("2", 0)]


def test_a_journal_that_was_folded_says_where_it_begins(
    store: Store, space: str, begin: Begin
) -> None:
    """What is held there shows; a window that ends before it is refused."""
    (otter,) = named_agents(begin, "otter")
    add_tasks(begin, Task(name="one"))
    claim_for(begin, otter)
    with begin(write=False) as uow:
        last = uow.journal.last()
    add_tasks(begin, Task(name="three"))
    prune(store, space, last)
    window = lanes_of(begin)
    assert window.begin < window.known_since < window.end
    assert not window.is_cut
    assert bars_of(window) == {"otter": [("one", "otter", LaneState.HELD, None, 0)]}
    with pytest.raises(JournalPruned, match=f"begins at #{last + 1}"):
        read(store, space, read_lanes, at=LONG_AGO)


def test_more_entries_than_are_read_are_cut(begin: Begin, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said from where on all is known, and what was held there shows."""
    (otter,) = named_agents(begin, "otter")
    add_tasks(begin, Task(name="one"))
    claim_for(begin, otter)
    for number in range(5):
        add_tasks(begin, Task(name=f"more {number}"))
    monkeypatch.setattr(lanes, "MAX_ENTRIES", 3)
    window = lanes_of(begin)
    assert window.is_cut
    assert window.begin < window.known_since
    assert bars_of(window) == {"otter": [("one", "otter", LaneState.HELD, None, 0)]}


def test_commits_are_marks_of_their_agents(begin: Begin) -> None:
    """Of agents that are known here, in the window, and of none beside it."""
    (otter,) = named_agents(begin, "otter")
    with begin(write=False) as uow:
        now = uow.now
    commits = [
        Commit(agent=agent, project="x", commit_hash=text, task=text, experience_gained=1, at=at)
        for agent, text, at in (
            ("otter", "a1", now - timedelta(hours=1)),
            ("otter", "b2", now - timedelta(hours=9)),
            ("stranger", "c3", now - timedelta(hours=1)),
        )
    ]
    (lane,) = lanes_of(begin, commits=commits).lanes
    assert [(each.kind, each.agent_id, each.subject) for each in lane.marks] == [
        (MarkKind.COMMIT, otter, "a1")
    ]


def test_lanes_are_limited_and_counted(begin: Begin) -> None:
    """Those with something in them come first, by name."""
    names = [f"agent {number:03}" for number in range(12)]
    ids = named_agents(begin, *names)
    add_tasks(begin, Task(name="one"))
    claim_for(begin, ids[7])
    window = lanes_of(begin, limit=3)
    assert [each.name for each in window.lanes] == ["agent 007", "agent 000", "agent 001"]
    assert (window.total, window.idle) == (12, 11)


def test_a_window_that_ends_before_it_begins_is_refused(begin: Begin) -> None:
    with begin(write=False) as uow:
        now = uow.now
    with pytest.raises(InvalidValue, match="from: is"):
        lanes_of(begin, since=now, until=now - timedelta(hours=1))
