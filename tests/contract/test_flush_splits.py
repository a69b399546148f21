"""However often and whenever the spool is flushed, the record tells the same."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from herdbook.adapters.hosts import parse_event
from herdbook.domain.grading import Experience
from herdbook.domain.record.events import HookEvent, event_time
from herdbook.domain.record.standing import EntryContext, bug_entry
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.run import read
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork, unit_of_work
from herdbook.services.record import record_ingest
from herdbook.services.record.setup_advice import advise

START = 1_700_000_000_000_000
RULES = Experience(per_skill_point=2)
SHARES = {"memory": 1, "lmdb": 4, "postgres": 20, "duckdb": 50}
"""How many examples run on the fastest store for each that runs on this one."""
AGENTS, SESSIONS = ("otter", "heron", ""), ("s1", "s2", "s3", "")
HASHES = [f"{number:040x}" for number in range(1, 7)]

_numbers = itertools.count(1)


class Step(NamedTuple):
    """An event of a hook, or a bug that somebody reported at that moment."""

    event: HookEvent
    is_bug: bool = False


names = {
    "claude-code:SessionStart": st.fixed_dictionaries({"model": st.sampled_from(["opus", "fast"])}),
    "PostToolUse": st.fixed_dictionaries(
        {}, optional={"permission_mode": st.sampled_from(["plan", "default", "acceptEdits"])}
    ),
    "codex:PostToolUse": st.fixed_dictionaries({}, optional={"model": st.just("gpt")}),
    "tool.execute.after": st.fixed_dictionaries(
        {"exit": st.sampled_from([0, 1])}, optional={"agent": st.sampled_from(["plan", "build"])}
    ),
    "command.executed": st.just({}),
    "post-commit": st.fixed_dictionaries({"commit": st.sampled_from(HASHES)}),
    "post-rewrite": st.lists(
        st.tuples(st.sampled_from(HASHES), st.sampled_from(HASHES)), min_size=1, max_size=3
    ).map(lambda pairs: {"input": "".join(f"{old} {new}\n" for old, new in pairs)}),
    "agent-registration": st.fixed_dictionaries(
        {"agent": st.sampled_from(AGENTS[:2])},
        optional={
            "provider": st.sampled_from(["codex", "cursor"]),
            "model": st.just("registered"),
            "mode": st.just("discuss"),
            "session_id": st.sampled_from(SESSIONS[:3]),
        },
    ),
    "bug": st.just({}),
}

OFTEN = [*sorted(names), *["PostToolUse"] * 4, "bug"]
"""What happens, and how often; tools and bugs in turn decide who rises and who is halted."""


@st.composite
def steps(draw: st.DrawFn) -> list[Step]:
    """A sequence of what happens, in the order of the spool."""
    found: list[Step] = []
    at = START
    for number in range(draw(st.integers(1, 25))):
        at += draw(st.integers(1, 3))
        name = draw(st.sampled_from(OFTEN))
        raw: dict[str, Any] = draw(names[name])
        session = draw(st.sampled_from(SESSIONS))
        env = {"HERDBOOK_AGENT": draw(st.sampled_from(AGENTS))}
        if name.startswith("post-"):
            env["CLAUDE_CODE_SESSION_ID"] = session
        elif name != "agent-registration" and session:
            raw = {**raw, "session_id": session}
        event = parse_event(f"{number:03}", at, name, "/somewhere", env, raw)
        found.append(Step(event, name == "bug"))
    return found


def run_split(store: Store, program: Sequence[Step], ends: set[int]) -> str:
    """Let everything happen, with a flush after each of these places; the space it is in."""
    space = f"record/split-{next(_numbers)}"
    waiting: list[HookEvent] = []
    for number, step in enumerate(program):
        if step.is_bug:
            _report_bug(store, space, step.event)
        else:
            waiting.append(step.event)
        if number in ends or number == len(program) - 1:
            with unit_of_work(store, space, experience=RULES) as uow:
                record_ingest.flush(uow, waiting)
                uow.commit()
            waiting = []
    return space


def _report_bug(store: Store, space: str, event: HookEvent) -> None:
    with unit_of_work(store, space, experience=RULES) as uow:
        on = EntryContext(event.agent or "otter", event_time(event), id=f"sco_{event.id}")
        uow.ledger.add(bug_entry(on))
        uow.commit()


def tell(uow: UnitOfWork) -> tuple[object, ...]:
    """Everything that people read in the record."""
    assert find_differences(uow) == []
    commits = sorted((each.agent, each.commit_hash, each.at) for each in uow.commits.page())
    return record_ingest.standings_with(uow), advise(uow), commits


def test_any_split_into_flushes_gives_the_same_standings_and_advice(
    store: Store, engine: str
) -> None:
    """Whatever hosts, git and people do meanwhile, and also where the spool is read again."""

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=steps(), ends=st.sets(st.integers(0, 24)))
    def holds(program: list[Step], ends: set[int]) -> None:
        once = run_split(store, program, set())
        often = run_split(store, program, ends)
        events = [step.event for step in program if not step.is_bug]
        told = read(store, once, tell, experience=RULES)
        assert read(store, often, tell, experience=RULES) == told
        for space in (once, often):
            with unit_of_work(store, space, experience=RULES) as uow:
                assert record_ingest.flush(uow, events).applied == 0
                uow.commit()
            assert read(store, space, tell, experience=RULES) == told

    holds()


def test_what_waits_is_seen_as_it_will_be_after_the_flush(store: Store, engine: str) -> None:
    """A standing that counts the spool is the one that the flush makes."""

    @settings(max_examples=max(2, settings.default.max_examples // SHARES[engine]))
    @given(program=steps(), end=st.integers(0, 24))
    def holds(program: list[Step], end: int) -> None:
        space = f"record/split-{next(_numbers)}"
        events = [step.event for step in program if not step.is_bug]
        for part in (events[:end], events[end:]):
            with unit_of_work(store, space, experience=RULES, write=False) as uow:
                seen = record_ingest.standings_with(uow, part)
            with unit_of_work(store, space, experience=RULES) as uow:
                record_ingest.flush(uow, part)
                uow.commit()
            with unit_of_work(store, space, experience=RULES, write=False) as uow:
                assert record_ingest.standings_with(uow) == [
                    each for each in seen if each.last_event_id is not None
                ]

    holds()
