"""Random programs, run on every store and on memory at once: whole results must be the same.

The engine's transaction begins first and lends memory its time, and both draw the same ids; so
rows, journals and errors can be compared as they are, and no store has a clock to hide behind.
"""

import itertools
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from herdbook.adapters import open_store
from herdbook.domain.clock import Stamp
from herdbook.domain.entity import evolve
from herdbook.domain.errors import (
    AgentHalted,
    AlreadyExists,
    CycleRefused,
    InvalidValue,
    NotFound,
    StaleFence,
    StaleWrite,
    UnknownReference,
)
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    CHANGE_SETS,
    CHAT_MESSAGES,
    CHAT_SESSIONS,
    COMMITS,
    CONVERSATIONS,
    DICTIONARY,
    INITIATIVES,
    LOG_CHUNKS,
    OPENINGS,
    PAGES,
    PHASE_DEPENDENCIES,
    PHASES,
    PROJECTS,
    PROPOSALS,
    SCORE_EVENTS,
    STANDINGS,
    TASK_DEPENDENCIES,
    TASKS,
    WAITING,
)
from herdbook.ports.engine.kinds import Column, Kind
from herdbook.ports.engine.query import Query, Range, any_of, find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.projections import find_differences
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services.plan import claims
from tests.contract.conftest import SHARED, Begin
from tests.contract.space import everything_in, work_in

PLAN = [TASKS, TASKS, TASKS, PHASES, PHASES, INITIATIVES, TASK_DEPENDENCIES, TASK_DEPENDENCIES,
        PHASE_DEPENDENCIES, AGENTS, AGENTS, PAGES, PROJECTS, PROPOSALS, CONVERSATIONS, CHANGE_SETS,
        CHAT_SESSIONS, CHAT_MESSAGES, LOG_CHUNKS]  # fmt: skip
RECORD = [ACCOUNTS, SCORE_EVENTS, COMMITS]
DERIVED = {"work": [WAITING, OPENINGS], "record": [STANDINGS]}
REFUSALS = (AgentHalted, AlreadyExists, CycleRefused, InvalidValue, NotFound, StaleFence,
            StaleWrite, UnknownReference)  # fmt: skip
"""What a program may be answered; anything else is the store's own failure."""

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
NUMBERS = (-(2**63), -1, 0, 1, 2, 3, 2**53 + 1, 2**63 - 1)
MOMENTS = tuple(NOON + timedelta(microseconds=each) for each in (-(10**16), -1, 0, 1, 10**9))
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)  # fmt: skip

_numbers = itertools.count(1)


def _allowed(column: Column, values: tuple[Any, ...]) -> list[Any]:
    found = []
    for value in values:
        try:
            found.append(column.check(value))
        except InvalidValue:
            continue
    return found


OF_DOCUMENTS: dict[type, st.SearchStrategy[Any]] = {
    dict: st.dictionaries(TEXTS, DOCUMENTS, max_size=3),
    list: st.lists(st.sampled_from(["a", "b", "ä/x"]), max_size=3, unique=True),
    object: DOCUMENTS.filter(lambda value: value is not None),
}


def _values(column: Column) -> st.SearchStrategy[Any]:
    """Few different values of a column, so that rows meet."""
    match column.type_name:
        case "id":
            strategy = st.sampled_from(["x", "y", "ü", "x" * 64])
        case "name":
            strategy = st.sampled_from(["a", "b", "A", "ä", "\U0001f404" * 500])
        case "text":
            strategy = TEXTS
        case "integer":
            strategy = st.sampled_from(_allowed(column, NUMBERS))
        case "flag":
            strategy = st.booleans()
        case "moment":
            strategy = st.sampled_from(MOMENTS)
        case "choice" | "number choice":
            strategy = st.sampled_from(list(column.rule.python_type))
        case "stamp":
            strategy = st.sampled_from([Stamp(MOMENTS[0], number, "node") for number in (0, 7)])
        case "document":
            strategy = OF_DOCUMENTS[column.rule.python_type]
        case _:
            strategy = TEXTS
    return st.none() | strategy if column.optional else strategy


def _plant(uow: UnitOfWork) -> None:
    for n in (1, 2):
        initiative = uow.initiatives.add(INITIATIVES.entity(name=f"initiative {n}"))
        on_it = {"initiative_id": initiative.id}
        phase = uow.phases.add(PHASES.entity(name=f"phase {n}", status="approved", **on_it))
        uow.tasks.add(TASKS.entity(name=f"of {n}", **on_it))
        uow.tasks.add(TASKS.entity(name=f"of phase {n}", phase_id=phase.id))
        uow.agents.add(AGENTS.entity(name=f"agent {n}"))
        uow.chat_sessions.add(
            CHAT_SESSIONS.entity(target_type="phase", target_id=phase.id, **on_it)
        )


class Lockstep(RuleBasedStateMachine):
    """One program in two stores."""

    def __init__(self, memory: Store, engine: Store, times: dict[str, datetime]) -> None:
        super().__init__()
        self.stores = (memory, engine)
        self.times = times
        times["engine"] = NOON
        number = next(_numbers)
        self.spaces = [f"work/{number}-a", f"work/{number}-b", f"record/{number}"]
        self.open: ExitStack | None = None
        self.pair: tuple[UnitOfWork, UnitOfWork] | None = None
        self.begun = 0

    @property
    def area(self) -> str:
        """What the open transaction is about."""
        return self.both[0].area

    @property
    def both(self) -> tuple[UnitOfWork, UnitOfWork]:
        """Memory's unit of work and the engine's."""
        assert self.pair is not None
        return self.pair

    def agree(self, act: Callable[[UnitOfWork], Any]) -> Any:
        """Do the same to both; whatever comes of it must be the same, errors too."""
        results: list[tuple[Any, Any]] = []
        for uow in self.both:
            try:
                results.append((None, act(uow)))
            except REFUSALS as error:
                results.append((type(error), vars(error)))
        assert results[0] == results[1]
        refused, answer = results[0]
        return None if refused else answer

    def rows(self, kind: Kind[Any]) -> list[Any]:
        """What memory has of a kind, and so has the engine."""
        return self.both[0].session.select(find(kind))

    def begin(self, space: str, later: int) -> None:
        """Begin in both, at the engine's time."""
        self.begun += 1
        self.times["engine"] += timedelta(seconds=later)
        self.open = ExitStack()
        pair = []
        for store in reversed(self.stores):
            numbers = itertools.count()
            ids = (f"{self.begun:03}x{number:03}" for number in numbers)
            pair.append(self.open.enter_context(work_in(store, space, ids=ids.__next__)))
            self.times["memory"] = pair[0].now
        self.pair = pair[1], pair[0]
        assert self.pair[0].now == self.pair[1].now

    def end(self) -> None:
        """Leave both transactions."""
        if self.open is not None:
            self.open.close()
        self.open = self.pair = None

    @initialize()
    def plant(self) -> None:
        """Start with something to refer to."""
        self.begin(self.spaces[0], 0)
        self.agree(_plant)
        self._commit()

    @precondition(lambda self: self.pair is None)
    @rule(at=st.sampled_from([0, 0, 0, 1, 2]), later=st.sampled_from([0, 1, 1, 900, 7_200, -60]))
    def enter(self, at: int, later: int) -> None:
        """Begin a transaction in one of the spaces, mostly in the first."""
        self.begin(self.spaces[at], later)

    def _kind(self, data: st.DataObject, *more: Kind[Any], kept: bool = False) -> Kind[Any]:
        """A kind of this area; with `kept`, one there are rows of, if there are any."""
        own = [*(PLAN if self.area == "work" else RECORD), *more]
        some = [kind for kind in own if self.rows(kind)] if kept else []
        name = data.draw(st.sampled_from([kind.name for kind in some or own]), label="kind")
        return DICTIONARY.kinds[name]

    def _key(self, kind: Kind[Any], data: st.DataObject) -> str:
        known = [kind.key_of(row) for row in self.rows(kind)]
        return data.draw(st.sampled_from([*known * 6, "nobody"]), label=f"key of {kind.name}")

    def _field(self, kind: Kind[Any], column: Column, data: st.DataObject) -> Any:
        for reference in kind.references:
            if reference.field == column.name:
                if column.optional and data.draw(st.booleans(), label="empty"):
                    return None
                return self._key(DICTIONARY.kinds[reference.target], data)
        return data.draw(_values(column), label=column.name)

    def _fresh(self, kind: Kind[Any], data: st.DataObject) -> Any:
        given: dict[str, Any] = {}
        for name, column in kind.columns.items():
            if name == kind.key:
                given[name] = data.draw(st.sampled_from([*[""] * 5, "k1", "k2", "ü"]), label="key")
            elif not column.has_default or data.draw(st.booleans(), label=f"give {name}"):
                given[name] = self._field(kind, column, data)
        if kind is SCORE_EVENTS:
            # What an entry is worth follows from what it is; the ledger refuses anything else.
            given["points"] = given.get("count", 1) * data.draw(st.integers(1, 3))
            given["count"] = given.get("count", 1)
            if given["points"] > 10**6:
                given["count"], given["points"] = 1, 1
        return kind.entity(**given)

    def _add(self, kind: Kind[Any], data: st.DataObject) -> None:
        number = data.draw(st.sampled_from([1, 1, 1, 2, 3]), label="rows")
        rows = [self._fresh(kind, data) for _ in range(number)]
        self.agree(lambda uow: uow.add(kind, rows))

    def _commit(self) -> None:
        self.agree(lambda uow: uow.commit())
        self.end()

    @precondition(lambda self: self.pair is not None)
    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        """Add rows of a kind in one batch."""
        self._add(self._kind(data), data)

    @precondition(lambda self: self.pair is not None)
    @rule(data=st.data())
    def add_one_more(self, data: st.DataObject) -> None:
        """Add rows; twice as often as anything else."""
        self._add(self._kind(data), data)

    @precondition(lambda self: self.pair is not None)
    @rule(data=st.data())
    def save(self, data: st.DataObject) -> None:
        """Change some fields of some rows, of which one may be stale or missing."""
        kind = self._kind(data, kept=True)
        there = self.rows(kind)
        if not there:
            return
        some = st.lists(st.sampled_from(there), min_size=1, max_size=3, unique_by=kind.key_of)
        chosen = data.draw(some, label="rows")
        rows = []
        for row in chosen:
            names = data.draw(
                st.lists(st.sampled_from(list(kind.columns)), max_size=3, unique=True),
                label="names",
            )
            changes = {
                name: self._field(kind, kind.columns[name], data)
                for name in names
                if name not in {kind.key, "created_at", "updated_at", "version"}
            }
            if hasattr(row, "version") and data.draw(st.integers(0, 9), label="stale") == 0:
                changes["version"] = row.version - 1
            rows.append(evolve(row, **changes))
        self.agree(lambda uow: uow.save(kind, rows))

    @precondition(lambda self: self.pair is not None)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        """Remove rows, and all that hangs on them."""
        kind = self._kind(data, kept=True)
        keys = [self._key(kind, data) for _ in range(data.draw(st.integers(1, 2), label="rows"))]
        self.agree(lambda uow: uow.remove(kind, keys))

    @precondition(lambda self: self.pair is not None)
    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        """Fetch rows by key, in any order, some twice and some missing."""
        kind = self._kind(data, *DERIVED[self.area], kept=True)
        keys = [self._key(kind, data) for _ in range(data.draw(st.integers(0, 4), label="rows"))]
        self.agree(lambda uow: uow.session.get(kind, keys))
        self.agree(lambda uow: uow.get(kind, keys))

    @precondition(lambda self: self.pair is not None)
    @rule(data=st.data())
    def ask(self, data: st.DataObject) -> None:
        """Ask over a lookup: equality, choices, ranges, both ways, in pages."""
        kind = self._kind(data, *DERIVED[self.area], kept=True)
        query = self._query(kind, data)
        if query is not None:
            self.agree(lambda uow: uow.select(query))
            self.agree(lambda uow: uow.count(query))

    def _query(self, kind: Kind[Any], data: st.DataObject) -> Query[Any] | None:
        there = self.rows(kind)

        def value(name: str) -> Any:
            any_value, known = _values(kind.columns[name]), [getattr(row, name) for row in there]
            pool = st.sampled_from(known) | any_value if known else any_value
            return data.draw(pool, label=f"asked {name}")

        lookup = data.draw(st.sampled_from([(), *kind.all_lookups]), label="lookup")
        length = data.draw(st.integers(0, len(lookup)), label="fields")
        where = {name: value(name) for name in lookup[:length]}
        rest = (*lookup[length:], kind.key)
        if where and data.draw(st.booleans(), label="choice"):
            name = lookup[length - 1]
            where[name] = any_of([where[name], value(name), value(name)])
        if data.draw(st.booleans(), label="range"):
            low, high = value(rest[0]), value(rest[0])
            above, through = data.draw(st.booleans()), data.draw(st.booleans())
            where[rest[0]] = Range(low, high, above=above, through=through)
        try:
            return find(
                kind,
                where,
                descending=data.draw(st.booleans(), label="descending"),
                limit=data.draw(st.sampled_from([None, None, 1, 2]), label="limit"),
                after=data.draw(st.sampled_from([None, *there]), label="after"),
            )
        except InvalidValue:
            return None

    @precondition(lambda self: self.pair is not None and self.area == "work")
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        """Let an agent claim a task, or do something with one that is held."""
        agent, task = self._key(AGENTS, data), self._key(TASKS, data)
        held = next((row.fence for row in self.rows(TASKS) if row.id == task), 0)
        acts: list[Callable[[UnitOfWork], Any]] = [
            lambda uow: claims.claim(uow, agent, halts=NO_HALTS),
            lambda uow: claims.claim(uow, agent, halts=NO_HALTS),
            lambda uow: claims.heartbeat(uow, task, held),
            lambda uow: claims.complete(uow, task, held, "done"),
            lambda uow: claims.fail(uow, task, held),
            lambda uow: claims.release(uow, task, held),
            lambda uow: claims.retry(uow, task),
            lambda uow: claims.ready(uow, 3),
        ]
        self.agree(data.draw(st.sampled_from(acts), label="act"))

    @precondition(lambda self: self.pair is not None)
    @rule()
    def commit(self) -> None:
        """Make it last in both."""
        self._commit()

    @precondition(lambda self: self.pair is not None)
    @rule()
    def undo(self) -> None:
        """Leave both without a commit."""
        self.end()

    def teardown(self) -> None:
        """Compare everything the two stores keep."""
        self.end()
        memory, engine = self.stores
        written = [space for space in memory.spaces() if space in self.spaces]
        assert written == [space for space in engine.spaces() if space in self.spaces]
        for space in written:
            assert everything_in(memory, space) == everything_in(engine, space)
            with work_in(memory, space, write=False) as uow:
                assert find_differences(uow) == []


def _compare(url: str, chosen: settings) -> None:
    times: dict[str, datetime] = {}
    with (
        open_store("memory://", clock=lambda: times["memory"]) as memory,
        open_store(url, clock=lambda: times["engine"]) as engine,
    ):
        memory.node = engine.node  # type: ignore[misc]  # the journal's stamps carry it
        run_state_machine_as_test(lambda: Lockstep(memory, engine, times), settings=chosen)


@pytest.mark.parametrize("engine", SHARED)
def test_every_store_agrees_with_memory(engine: str, new_url: Callable[[str], str]) -> None:
    """Whatever is done, a store answers, refuses, keeps and journals as memory does."""
    _compare(new_url(engine), settings(max_examples=30, stateful_step_count=25))


def test_a_count_puts_limits_and_pages_aside(begin: Begin) -> None:
    """How many rows a query admits does not depend on how many of them were asked for."""
    with begin() as uow:
        rows = [AGENTS.entity(id=f"k{n}", name=f"{n}", worktree_id=w) for n, w in enumerate("xyxy")]
        uow.add(AGENTS, rows)
        for where in ({}, {"worktree_id": "x"}, {"worktree_id": any_of("xy")}):
            query = find(AGENTS, where)
            first = uow.select(query)[0]
            limited = find(AGENTS, where, limit=1, after=first)
            assert uow.count(limited) == uow.count(query) == len(uow.select(query))


@pytest.mark.soak
@pytest.mark.parametrize("engine", SHARED)
def test_every_store_agrees_with_memory_for_long(
    engine: str, new_url: Callable[[str], str]
) -> None:
    """The same with programs that are longer and new in every run."""
    _compare(new_url(engine), settings(max_examples=500, stateful_step_count=100))
