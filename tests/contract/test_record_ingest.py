"""What hooks told becomes the record, on every store: all of it, and nothing of it twice."""

import json
import os
import signal
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.hosts import parse_event
from herdbook.domain.errors import AlreadyExists
from herdbook.domain.grading import Experience, Grade
from herdbook.domain.record.events import HookEvent, Meaning, SessionSetup, event_time
from herdbook.domain.record.model import Commit, EventKind, ScoreEvent, Standing
from herdbook.domain.record.standing import EntryContext, bug_entry, fold
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services.record import grading, record_ingest
from herdbook.services.record.record_ingest import FlushReport
from tests.contract.children import LIMIT, Child, Died, at_once
from tests.contract.conftest import SHARED
from tests.contract.wrapped import WrappedSession, WrappedStore

START = 1_700_000_000_000_000
SPACE = "record/kills"

between_processes = pytest.mark.parametrize("engine", SHARED, indirect=True)


def told(number: int, event: str = "PostToolUse", agent: str = "otter", **more: Any) -> HookEvent:
    """The event with this number, of an agent in its session."""
    raw = {"session_id": f"s-{agent}", **more.pop("raw", {})}
    parsed = parse_event(
        id=f"{number:032x}",
        at=START + number,
        event=event,
        cwd="/somewhere",
        env={"HERDBOOK_AGENT": agent},
        raw=raw,
    )
    return parsed._replace(**more)


@pytest.fixture
def record(space: str) -> str:
    return space.replace("work", "record", 1)


def kept(store: Store, record: str) -> tuple[list[ScoreEvent], list[Commit]]:
    """The ledger and the commits, of which every standing must be the fold."""

    def ask(uow: UnitOfWork) -> tuple[list[ScoreEvent], list[Commit]]:
        assert find_differences(uow) == []
        return uow.ledger.page(), uow.commits.page()

    return read(store, record, ask)


def stands(store: Store, record: str, agent: str = "otter") -> Standing:
    """Where an agent stands, without what is buffered."""
    return read(store, record, lambda uow: uow.standings.of_agent(agent))


def flush(store: Store, record: str, *events: HookEvent) -> FlushReport:
    """One flush, in a transaction of its own."""
    return run(store, record, record_ingest.flush, events)


def test_a_flush_counts_tools_commands_and_commits(store: Store, record: str) -> None:
    """Each is worth what the rules say, and a commit is known by its hash."""
    report = flush(
        store,
        record,
        told(1),
        told(2, "command.executed"),
        told(3, "post-commit", project="app", commit_hash="c0ffee", subject="fix it"),
        told(4, "PostToolUseFailure"),
    )
    assert (report.applied, report.doubled, report.uncounted, report.aside) == (3, 0, 1, [])
    now = stands(store, record)
    assert (now.experience_points, now.commits) == (1 + 2 + 5, 1)
    _, (commit,) = kept(store, record)
    assert (commit.project, commit.commit_hash, commit.task) == ("app", "c0ffee", "fix it")


def test_counts_of_one_flush_are_one_entry_per_agent_session_and_kind(
    store: Store, record: str
) -> None:
    """Fifty tools are a line in the ledger, and another agent's are another."""
    events = [told(number) for number in range(50)]
    flush(store, record, *events, *(told(100 + each, agent="heron") for each in range(3)))
    ledger, _ = kept(store, record)
    assert {(each.agent, each.kind, each.count) for each in ledger} == {
        ("otter", EventKind.TOOL, 50),
        ("heron", EventKind.TOOL, 3),
    }


def test_what_was_written_at_once_stays_between_the_tools_of_a_flush(
    store: Store, record: str
) -> None:
    """A bug after a promotion costs the point that was won; before it, it halts."""
    rules = Experience(per_skill_point=2)

    def report(uow: UnitOfWork) -> None:
        uow.ledger.add(bug_entry(EntryContext("otter", event_time(told(3)), id="sco_bug")))

    run(store, record, report, experience=rules)
    tools = [told(1), told(2), told(4)]
    run(store, record, record_ingest.flush, tools, experience=rules)
    now = stands(store, record)
    assert (now.skill_points, now.experience_points, now.active) == (1, 1, True)
    ledger = read(store, record, lambda uow: uow.ledger.page())
    assert sorted(each.count for each in ledger) == [1, 1, 2]


def test_an_event_counts_once_however_often_it_is_read(store: Store, record: str) -> None:
    """Alone, among new ones, twice in one flush, and in another order."""
    first = [told(number) for number in range(5)]
    flush(store, record, *first)
    again = flush(store, record, *first, told(5), told(5))
    assert (again.applied, again.doubled) == (1, 6)
    last = flush(store, record, told(7), *reversed(first), told(6))
    assert (last.applied, last.doubled) == (2, 5)
    assert stands(store, record).experience_points == 8


def test_a_line_that_comes_late_into_the_buffer_is_not_lost(store: Store, record: str) -> None:
    """Also where what stands behind it in the buffer was flushed before."""
    flush(store, record, told(1), told(3))
    assert flush(store, record, told(1), told(2), told(3)).applied == 1
    assert stands(store, record).experience_points == 3


def test_two_sessions_of_one_agent_add_up(store: Store, record: str) -> None:
    """Fifty in each make a hundred."""
    for session in (1, 2):
        raw = {"session_id": f"s{session}"}
        flush(store, record, *(told(100 * session + each, raw=raw) for each in range(50)))
    assert stands(store, record).experience_points == 100


def test_the_same_commit_told_twice_counts_once(store: Store, record: str) -> None:
    """By two hooks under two ids, in one flush and in two."""
    same = {"event": "post-commit", "project": "app", "commit_hash": "c0ffee"}
    report = flush(store, record, told(1, **same), told(2, **same))
    assert (report.applied, report.doubled) == (1, 1)
    assert flush(store, record, told(3, **same)).doubled == 1
    assert stands(store, record).commits == 1


def test_what_cannot_be_applied_is_set_aside_and_holds_up_nobody(store: Store, record: str) -> None:
    """An unknown event, one of nobody, and a commit that git has lost; each with its reason."""
    nobody = parse_event(id="n", at=START, event="PostToolUse", raw="no JSON")
    report = flush(
        store, record, told(1, "Unheard"), nobody, told(2, "post-commit"), told(3), told(4)
    )
    assert report.applied == 2
    assert dict(report.aside).keys() == {told(1).id, "n", told(2).id}
    assert "'Unheard' is not known" in dict(report.aside)[told(1).id]
    assert stands(store, record).experience_points == 2


@pytest.mark.parametrize(
    "raw", [None, 5, "text", [], {"session_id": 7}, {"session_id": "a\0b"}, {"model": {"id": "\0"}}]
)
def test_whatever_a_host_sends_breaks_no_flush(store: Store, record: str, raw: object) -> None:
    """Fields that hold nonsense are as good as missing."""
    env = {"HERDBOOK_SESSION": "s"}
    start = parse_event("x", START, "SessionStart", env=env, raw=raw)
    tool = parse_event("y", START, "PostToolUse", env=env, raw=raw)
    report = flush(store, record, start, tool)
    assert (report.applied, report.aside) == (1, [])


def test_an_agent_without_a_name_is_called_after_its_session(store: Store, record: str) -> None:
    """By the beginning of its id."""
    event = parse_event("x", START, "PostToolUse", raw={"session_id": "0123456789abcdef"})
    flush(store, record, event)
    (entry,), _ = kept(store, record)
    assert (entry.agent, entry.session_id) == ("session-01234567", "0123456789abcdef")


def test_what_a_session_said_of_its_setup_holds_for_later_flushes(
    store: Store, record: str
) -> None:
    """The model is told once, at the start."""
    flush(store, record, told(1, "codex:SessionStart", raw={"model": "deep"}))
    flush(store, record, told(2))
    (entry,), _ = kept(store, record)
    assert (entry.provider, entry.model) == ("codex", "deep")


def commit(number: int, commit_hash: str, agent: str = "otter", **more: Any) -> HookEvent:
    """The event of a commit in the project `app`."""
    found = {"project": "app", "commit_hash": commit_hash, "subject": f"about {commit_hash}"}
    return told(number, "post-commit", agent, **{**found, **more})


def rewrite(number: int, *pairs: tuple[str, str]) -> HookEvent:
    """The event of a rewrite in the project `app`."""
    return told(number, "post-rewrite", project="app", rewrites=pairs)


def made(store: Store, record: str) -> list[tuple[str, str, str]]:
    """The commits of the record; each agent has as many entries for them."""
    ledger, commits = kept(store, record)
    for agent in ("otter", "heron"):
        entries = [each for each in ledger if (each.agent, each.kind) == (agent, EventKind.COMMIT)]
        assert len(entries) == sum(each.agent == agent for each in commits)
        assert stands(store, record, agent).commits == len(entries)
    return [(each.agent, each.commit_hash, each.task) for each in commits]


REWRITTEN: dict[str, tuple[list[HookEvent], list[tuple[str, str, str]]]] = {
    "amended": (
        [commit(1, "a"), commit(2, "b"), rewrite(3, ("a", "b"))],
        [("otter", "b", "about b")],
    ),
    "amended again": (
        [
            commit(1, "a"),
            commit(2, "b"),
            rewrite(3, ("a", "b")),
            commit(4, "c"),
            rewrite(5, ("b", "c")),
        ],
        [("otter", "c", "about c")],
    ),
    "rebased by another": (
        [commit(1, "a"), commit(2, "b", "heron"), rewrite(3, ("a", "b"))],
        [("otter", "b", "about b")],
    ),
    "rebased without a hook": (
        [commit(1, "a"), rewrite(3, ("a", "b"))],
        [("otter", "b", "about a")],
    ),
    "squashed": (
        [
            commit(1, "a"),
            commit(2, "b", "heron"),
            commit(3, "c"),
            rewrite(4, ("a", "c"), ("b", "c")),
        ],
        [("otter", "c", "about c")],
    ),
    "not in the record": (
        [commit(2, "b"), rewrite(3, ("a", "b"))],
        [("otter", "b", "about b")],
    ),
    "in a circle": (
        [commit(1, "a"), commit(2, "b"), rewrite(3, ("a", "b")), rewrite(4, ("b", "a"))],
        [("otter", "b", "about b")],
    ),
}


@pytest.mark.parametrize("way", REWRITTEN)
def test_a_rewritten_commit_takes_the_place_of_the_old_one(
    store: Store, record: str, way: str
) -> None:
    """However its events are split into flushes, and in whichever order they are read."""
    events, expected = REWRITTEN[way]
    orders = list(permutations(events))[:24] if way != "in a circle" else [tuple(events)]
    for number, order in enumerate(orders):
        together, apart = f"{record}-{number}-1", f"{record}-{number}-2"
        flush(store, together, *order)
        for event in order:
            flush(store, apart, event)
        for space in (together, apart):
            assert [found[:2] for found in made(store, space)] == [each[:2] for each in expected]
            if list(order) == events:
                assert made(store, space) == expected
        assert stands(store, together) == stands(store, apart)


def test_a_judgement_follows_the_commit_it_is_about(store: Store, record: str) -> None:
    """Both a retrospective and the grade of one party, so that nobody grades it twice."""
    flush(store, record, commit(1, "a"), commit(2, "c"))
    good = {"agent_grade": Grade.GOOD, "user_grade": Grade.GOOD}
    run(store, record, grading.grade, "otter", "app", "a", **good)
    run(store, record, grading.grade, "otter", "app", "c", user_grade=Grade.GOOD)
    before = stands(store, record).communication_score
    flush(store, record, rewrite(3, ("a", "b"), ("c", "d")))
    for commit_hash, grades in (("b", good), ("d", {"user_grade": Grade.GOOD})):
        with pytest.raises(AlreadyExists):
            run(store, record, grading.grade, "otter", "app", commit_hash, **grades)
    assert stands(store, record).communication_score == before
    run(store, record, grading.grade, "otter", "app", "d", agent_grade=Grade.BAD)
    judged = read(store, record, lambda uow: uow.retrospectives.page())
    assert {each.commit_hash for each in judged} == {"b", "d"}


def setups(store: Store, record: str) -> list[tuple[str, str | None, str | None]]:
    """What each entry of the ledger says its agent ran as, in the order of time."""
    ledger, _ = kept(store, record)
    ordered = sorted(ledger, key=lambda each: each.at)
    return [(each.provider, each.model, each.mode) for each in ordered]


def test_a_setup_holds_from_the_moment_it_is_told(store: Store, record: str) -> None:
    """A model that changes, and a mode that is entered and left, for every entry after it."""
    events = [
        told(1, "claude-code:SessionStart", raw={"model": "opus"}),
        told(2),
        told(3, raw={"permission_mode": "plan"}),
        commit(4, "a"),
        told(5, raw={"permission_mode": "acceptEdits"}),
        told(6, "claude-code:SessionStart", raw={"model": "sonnet"}),
        commit(7, "b"),
    ]
    for space, parts in ((f"{record}-1", [events]), (f"{record}-2", [[each] for each in events])):
        for part in parts:
            flush(store, space, *part)
        assert setups(store, space) == [
            ("claude", "opus", None),
            ("claude", "opus", "plan"),
            ("claude", "opus", "plan"),
            ("claude", "opus", "execute"),
            ("claude", "sonnet", "execute"),
        ]


def test_two_sessions_of_one_agent_keep_their_setups_apart(store: Store, record: str) -> None:
    """A commit goes by its own session; one that names none by what the agent did last."""

    def in_session(number: int, name: str, session: str | None, **raw: Any) -> HookEvent:
        event = (
            commit(number, f"c{number}") if name == "post-commit" else told(number, name, raw=raw)
        )
        return event._replace(session_id=session)

    flush(
        store,
        record,
        in_session(1, "claude-code:SessionStart", "s1", model="opus"),
        in_session(2, "codex:SessionStart", "s2", model="gpt"),
        in_session(3, "post-commit", "s1"),
        in_session(4, "post-commit", "s2"),
        in_session(5, "claude-code:PostToolUse", "s1"),
        in_session(6, "post-commit", None),
    )
    assert [each[:2] for each in setups(store, record)] == [
        ("claude", "opus"),
        ("codex", "gpt"),
        ("claude", "opus"),
        ("claude", "opus"),
    ]


def test_what_nobody_told_is_as_the_agent_was_registered_else_unknown(
    store: Store, record: str
) -> None:
    """Field by field, but no model of another provider; and never a provider by default."""
    registered = {"agent": "otter", "provider": "codex", "model": "gpt", "mode": "discuss"}
    events = [
        told(1),
        told(2, "agent-registration", raw=registered),
        told(3),
        told(4, raw={"model": "deep"}),
        told(5, "claude-code:PostToolUse", raw={"session_id": "other"}),
    ]
    for event in events:
        flush(store, record, event)
    assert setups(store, record) == [
        ("unknown", None, None),
        ("codex", "gpt", "discuss"),
        ("codex", "deep", "discuss"),
        ("claude", None, None),
    ]


def test_a_registration_in_a_session_is_what_the_agent_told_last(store: Store, record: str) -> None:
    """Also for a commit of another flush that names no session."""
    raw = {"agent": "otter", "provider": "codex", "session_id": "s-otter"}
    events = [
        told(1, "claude-code:PostToolUse"),
        told(2, "agent-registration", raw=raw),
        commit(3, "a")._replace(session_id=None),
    ]
    for space, parts in ((f"{record}-1", [events]), (f"{record}-2", [[each] for each in events])):
        for part in parts:
            flush(store, space, *part)
        assert [each[0] for each in setups(store, space)] == ["claude", "codex"]


def test_a_session_is_its_agent_s_from_the_moment_that_is_told(store: Store, record: str) -> None:
    """By an event that names the agent, or by its registration; before, it has its own name."""
    session = {"env": {"CLAUDE_CODE_SESSION_ID": "0123456789"}, "cwd": "/app"}
    raw = {"agent": "otter", "session_id": "0123456789"}
    events = [
        parse_event("1", START + 1, "post-commit", **session, raw={"commit": "a" * 40}),
        parse_event("2", START + 2, "agent-registration", raw=raw),
        parse_event("3", START + 3, "post-commit", **session, raw={"commit": "b" * 40}),
    ]
    for space, parts in ((f"{record}-1", [events]), (f"{record}-2", [[each] for each in events])):
        for part in parts:
            flush(store, space, *part)
        _, commits = kept(store, space)
        assert [each.agent for each in commits] == ["session-01234567", "otter"]
        assert {each[0] for each in setups(store, space)} == {"claude"}


def test_a_commit_of_nobody_is_told_by_its_folder(store: Store, record: str) -> None:
    """It counts for nobody."""
    events = [
        parse_event(f"{number}", START, "post-commit", "/app", raw={"commit": f"{number}" * 40})
        for number in range(3)
    ]
    report = flush(store, record, *events)
    assert (report.applied, report.uncounted, report.dropped) == (0, 0, {"/app": 3})


def test_a_read_sees_what_is_buffered_and_writes_nothing(store: Store, record: str) -> None:
    """Also late events, agents nobody knew, and what was flushed but is still in the buffer."""
    flush(store, record, told(5), told(9, agent="vole"))
    run(store, record, lambda uow: uow.ledger.add(bug_entry(EntryContext("otter", uow.now))))
    before = kept(store, record)
    buffer = [told(5), told(6), told(7, "command.executed"), told(8, agent="heron")]
    found = read(store, record, record_ingest.standings_with, buffer)
    assert [(each.agent, each.experience_points) for each in found] == [
        ("heron", 1),
        ("otter", 4),
        ("vole", 1),
    ]
    assert kept(store, record) == before
    flush(store, record, *buffer)
    for each in found:
        assert stands(store, record, each.agent) == each


def test_the_sessions_of_halted_agents_are_found(store: Store, record: str) -> None:
    """Those the ledger knows, and those that hooks told of just now."""
    flush(store, record, told(1), told(2, agent="heron"))
    run(store, record, lambda uow: uow.ledger.add(bug_entry(EntryContext("otter", uow.now))))
    found = read(store, record, record_ingest.halted_sessions, [("new", "otter"), ("s", "heron")])
    assert found == {"s-otter": "otter", "new": "otter"}


class DiesAt(WrappedSession):
    """A session whose process is killed when it is asked for the last of so many things."""

    def __init__(self, session: Session, left: list[int]) -> None:
        super().__init__(session)
        self._left = left

    def _step(self) -> None:
        step(self._left)

    def get(self, *args: Any) -> Any:
        """Count, and ask."""
        self._step()
        return self._session.get(*args)

    def select(self, *args: Any) -> Any:
        """Count, and ask."""
        self._step()
        return self._session.select(*args)

    def insert(self, *args: Any) -> None:
        """Count, and write."""
        self._step()
        self._session.insert(*args)

    def replace(self, *args: Any) -> None:
        """Count, and write."""
        self._step()
        self._session.replace(*args)

    def commit(self) -> None:
        """Count before and after."""
        self._step()
        self._session.commit()
        self._step()


def step(left: list[int]) -> None:
    """Go one step further, or die as by `kill -9`."""
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def buffered(buffer: Path) -> list[HookEvent]:
    """What is in a buffer of lines."""
    lines = buffer.read_text().splitlines() if buffer.exists() else []
    events = [HookEvent(*json.loads(line)) for line in lines]
    return [
        each._replace(meaning=Meaning(each.meaning or ""), setup=SessionSetup(*each.setup))
        for each in events
    ]


def leave(buffer: Path, *events: HookEvent) -> None:
    """Add lines to a buffer."""
    with buffer.open("a") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in events)


def flush_and_clear(url: str, buffer: Path, steps: int) -> FlushReport:
    """Flush a buffer and clear it, unless killed at this step; 0 is never."""
    left = [steps]
    with open_store(url, patience=LIMIT) as store:
        dying: Any = WrappedStore(store, lambda session: DiesAt(session, left))
        events = buffered(buffer)
        report = run(dying, SPACE, record_ingest.flush, events)
        step(left)
        buffer.unlink()
        step(left)
    return report


def killed_at(steps: int, url: str, buffer: Path) -> bool:
    """Flush in a process of its own; whether it came to that step and died."""
    try:
        Child(flush_and_clear, url, buffer, steps).result()
    except Died as death:
        return death.exitcode == -signal.SIGKILL
    return False


@between_processes
def test_a_flush_killed_at_any_step_loses_nothing_and_counts_nothing_twice(
    engine: str, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    """Whatever it had done, the next one completes it, with what has come in between."""
    url, buffer = new_url(engine), tmp_path / "buffer"
    with open_store(url):
        pass
    number = steps = 0
    died = True
    while died:
        steps += 1
        same = {"project": "app", "commit_hash": f"c{number}"}
        left = [told(number), told(number + 1), told(number + 2, "post-commit", **same)]
        leave(buffer, *left)
        died = killed_at(steps, url, buffer)
        leave(buffer, told(number + 3), told(number + 4, "Stop"))
        Child(flush_and_clear, url, buffer, 0).result()
        number += 10
        assert not buffer.exists()
        with open_store(url) as store:
            now = stands(store, SPACE)
            ledger, commits = kept(store, SPACE)
        assert (now.experience_points, now.commits) == (8 * steps, steps)
        assert now == fold("otter", ledger)
        assert len(commits) == steps
    assert steps > len(("reading", "writing", "committing", "clearing"))


@between_processes
def test_flushes_of_one_buffer_at_the_same_time_count_it_once(
    engine: str, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    """Each event is applied by one of them."""
    url, buffer = new_url(engine), tmp_path / "buffer"
    with open_store(url):
        pass
    leave(buffer, *(told(number) for number in range(30)))
    reports = at_once(url, flush_part, [(buffer, size) for size in (10, 20, 30, 30)])
    assert sum(report.applied for report in reports) == 30
    with open_store(url) as store:
        assert stands(store, SPACE).experience_points == 30


def flush_part(url: str, buffer: Path, size: int) -> FlushReport:
    """Flush what was in a buffer when it had so many lines."""
    with open_store(url, patience=LIMIT) as store:
        return run(store, SPACE, record_ingest.flush, buffered(buffer)[:size])
