"""The journal: every change, in order, by whom, and enough to tell it again."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from attrs import asdict, evolve

from herdbook.domain.journal import Actor, JournalEntry, Op
from herdbook.domain.record.standing import EntryContext, tool_entry
from herdbook.domain.secret import Secret
from herdbook.ports.engine.codec import encode_row
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    AGENTS,
    CHAT_MESSAGES,
    DICTIONARY,
    INITIATIVES,
    JOURNAL,
    LOG_CHUNKS,
    PHASES,
    PROJECTS,
    PROPOSALS,
    TASKS,
)
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from tests.cases import for_each
from tests.contract.conftest import Begin
from tests.contract.rows import ENTITIES, KEPT, make, value_for
from tests.contract.space import HERE, everything_in, work_in

with_our_clock = pytest.mark.parametrize("engine", ["memory", "lmdb", "duckdb"], indirect=True)

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def _journal(store: Store, space: str) -> list[JournalEntry]:
    with work_in(store, space, write=False) as uow:
        return list(uow.journal.all_entries())


def _record(space: str) -> str:
    return f"record/{space.partition('/')[2]}"


def test_entries_are_numbered_without_a_gap_in_the_order_of_the_changes(
    store: Store, begin: Begin, space: str
) -> None:
    """A space counts its changes from 1, transaction by transaction, each in its own order."""
    done = []
    for number in range(5):
        with begin() as uow:
            keys = [make(uow, PROJECTS).id for _ in range(number)]
            uow.commit()
        done += [(uow.tx, key) for key in keys]
    entries = _journal(store, space)
    assert [entry.seq for entry in entries] == list(range(1, 11))
    assert [(entry.tx, entry.key) for entry in entries] == done


def test_every_space_has_numbers_of_its_own(store: Store, begin: Begin, space: str) -> None:
    """What happens elsewhere moves no number here."""
    for name in (space, f"{space}-other", space):
        with begin(space=name) as uow:
            make(uow, PROJECTS)
            uow.commit()
    assert [entry.seq for entry in _journal(store, space)] == [1, 2]
    assert [entry.seq for entry in _journal(store, f"{space}-other")] == [1]


def test_what_was_undone_leaves_no_gap(store: Store, begin: Begin, space: str) -> None:
    """Numbers that a transaction would have had go to the next one that is committed."""
    keys = []
    for committed in (True, False, False, True):
        with begin() as uow:
            project = make(uow, PROJECTS)
            if committed:
                keys.append(project.id)
                uow.commit()
    assert [(entry.seq, entry.key) for entry in _journal(store, space)] == [
        (1, keys[0]),
        (2, keys[1]),
    ]


def test_writers_at_once_leave_no_gap_and_no_mixture(store: Store, space: str) -> None:
    """Of transactions that threads run at once each has a stretch of the journal to itself."""

    def write() -> None:
        for _ in range(8):
            with work_in(store, space) as uow:
                make(uow, PROJECTS)
                make(uow, TASKS)
                uow.commit()

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(write) for _ in range(3)]:
            future.result(60)
    entries = _journal(store, space)
    assert [entry.seq for entry in entries] == list(range(1, 49))
    halves = list(zip(entries[::2], entries[1::2], strict=True))
    assert all(first.tx == second.tx for first, second in halves)
    assert len({entry.tx for entry in entries}) == 24
    assert all(before.at < after.at for before, after in pairwise(entries))


def test_the_head_stands_where_the_journal_ends(store: Store, begin: Begin, space: str) -> None:
    """Number and clock of the last entry are the space's own, and `last` tells the number."""
    for _ in range(2):
        with begin() as uow:
            make(uow, PROJECTS)
            make(uow, PROJECTS)
            uow.commit()
    found = everything_in(store, space)
    (head,) = found["heads"]
    assert (head.seq, head.clock) == (4, found["journal"][-1].at)
    assert (head.schema_version, head.oldest_writer) == (
        DICTIONARY.version,
        DICTIONARY.oldest_writer,
    )
    with begin(write=False) as uow:
        assert uow.journal.last() == 4


class Clock:
    """A clock that stands where it was set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@with_our_clock
def test_stamps_rise_when_the_clock_steps_back(fresh: Callable[..., Store]) -> None:
    """A clock that stands still or runs backwards does not take the journal along."""
    clock = Clock()
    store = fresh(clock=clock)
    for seconds in (0, 0, -3_600, 1, -86_400, 7_200, 7_200):
        clock.now = NOON + timedelta(seconds=seconds)
        with work_in(store) as uow:
            assert uow.now == clock.now
            make(uow, PROJECTS)
            make(uow, PROJECTS)
            uow.commit()
    stamps = [entry.at for entry in _journal(store, HERE)]
    assert stamps == sorted(set(stamps))
    assert {stamp.node for stamp in stamps} == {store.node}
    walls = [(stamp.wall - NOON).total_seconds() for stamp in stamps]
    assert walls == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 7_200, 7_200, 7_200, 7_200]
    assert [stamp.counter for stamp in stamps] == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 0, 1, 2, 3]


@with_our_clock
def test_a_transaction_without_entries_moves_the_clock_all_the_same(
    fresh: Callable[..., Store],
) -> None:
    """What is not journalled still leaves its time in the head, so nothing later comes before."""
    clock = Clock()
    store = fresh(clock=clock)
    for hours, kind in ((0, PROJECTS), (2, LOG_CHUNKS), (1, PROJECTS)):
        clock.now = NOON + timedelta(hours=hours)
        with work_in(store) as uow:
            make(uow, kind)
            uow.commit()
    first, last = _journal(store, HERE)
    assert (first.at.wall, last.at.wall) == (NOON, NOON + timedelta(hours=2))


@with_our_clock
def test_a_clock_that_was_ten_years_ahead_once_does_not_change_the_times_people_see(
    fresh: Callable[..., Store],
) -> None:
    """Stamps go on from there, so that order holds; each entry also tells what time it was."""
    clock = Clock()
    store = fresh(clock=clock)
    times = [NOON, NOON + timedelta(days=3650), NOON + timedelta(hours=1)]
    for clock.now in times:
        with work_in(store) as uow:
            make(uow, PROJECTS)
            uow.commit()
    entries = _journal(store, HERE)
    assert [entry.time for entry in entries] == times
    assert [entry.recorded_at for entry in entries] == [None, None, times[2]]
    assert entries[0].at < entries[1].at < entries[2].at


def test_the_journal_keeps_what_is_to_be_known_about_who_did_it(begin: Begin) -> None:
    """A note of the actor stands beside every entry of the transaction, and of no other."""
    for note in ("HERDBOOK_USER is other", None):
        with begin(actor=Actor(person="me", note=note)) as uow:
            make(uow, PROJECTS)
            uow.commit()
    with begin(write=False) as uow:
        notes = [(each.person, each.note) for each in uow.journal.since(0, limit=10)]
    assert notes == [("me", "HERDBOOK_USER is other"), ("me", None)]


def test_stamps_rise_and_are_the_stores_own(store: Store, begin: Begin, space: str) -> None:
    """Every entry has a later stamp than the one before it, made by this store."""
    for _ in range(3):
        with begin() as uow:
            make(uow, PROJECTS)
            make(uow, PROJECTS)
            uow.commit()
    entries = _journal(store, space)
    assert all(before.at < after.at for before, after in pairwise(entries))
    assert {entry.at.node for entry in entries} == {store.node}


@for_each(
    "actor",
    [
        Actor(),
        Actor(person="Ada"),
        Actor(person="Ada", agent="brave-otter", session="s-1", worktree="0123456789ab"),
    ],
    ids=["nobody", "person", "all"],
)
def test_an_entry_tells_who_did_it(store: Store, begin: Begin, space: str, actor: Actor) -> None:
    """Whatever is known of who acts stands in every entry, and the worktree in new rows too."""
    with begin(actor=actor) as uow:
        project = make(uow, PROJECTS)
        uow.projects.remove(project.id)
        uow.commit()
    entries = _journal(store, space)
    assert [{name: getattr(entry, name) for name in asdict(actor)} for entry in entries] == [
        asdict(actor)
    ] * 2
    assert project.worktree_id == actor.worktree


def test_an_entry_tells_the_operation_and_the_schema(
    store: Store, begin: Begin, space: str
) -> None:
    """The operation a change was asked by stands in its entries, and the version it was made in."""
    run(store, space, lambda uow: make(uow, PROJECTS), operation_id="op-1")
    with begin() as uow:
        make(uow, PROJECTS)
        uow.commit()
    entries = _journal(store, space)
    assert [entry.operation_id for entry in entries] == ["op-1", None]
    assert {entry.schema_version for entry in entries} == {store.schema_version}


def test_an_entry_tells_exactly_what_changed(store: Store, begin: Begin, space: str) -> None:
    """Added rows are told whole, saved ones by the changed fields, removed ones whole again."""
    with begin() as uow:
        task = make(uow, TASKS, name="one", description="long", order=3)
        uow.commit()
    with begin() as uow:
        saved = uow.tasks.save(evolve(task, name="two", description=None, summary="done"))
        uow.commit()
    with begin() as uow:
        uow.tasks.remove(task.id)
        uow.commit()
    added, changed, removed = _journal(store, space)
    assert (added.op, added.before, added.after) == (Op.ADD, None, encode_row(TASKS, task))
    times = [row.updated_at.isoformat(timespec="microseconds") for row in (task, saved)]
    assert (changed.op, changed.before, changed.after) == (
        Op.SAVE,
        {"name": "one", "description": "long", "summary": None}
        | {"version": 1, "updated_at": times[0]},
        {"name": "two", "description": None, "summary": "done"}
        | {"version": 2, "updated_at": times[1]},
    )
    assert (removed.op, removed.before, removed.after) == (
        Op.REMOVE,
        encode_row(TASKS, saved),
        None,
    )


def test_a_nested_document_is_told_as_it_is(store: Store, begin: Begin, space: str) -> None:
    """A changed document stands there whole, before and after."""
    first, second = {"a": [1, {"b": None}], "c": 2.5}, {"a": [], "ü": "\U0001f404"}
    with begin() as uow:
        proposal = make(uow, PROPOSALS, metadata=first)
        uow.proposals.save(evolve(proposal, metadata=second))
        uow.commit()
    changed = [each for each in _journal(store, space) if each.entity == PROPOSALS.name][-1]
    assert changed.before is not None
    assert changed.after is not None
    assert (changed.before["metadata"], changed.after["metadata"]) == (first, second)


def test_a_row_changed_twice_has_two_entries(store: Store, begin: Begin, space: str) -> None:
    """Within one transaction too, every change is told with what it found and what it left."""
    with begin() as uow:
        task = make(uow, TASKS, order=1)
        task = uow.tasks.save(evolve(task, order=2))
        uow.tasks.save(evolve(task, order=3))
        uow.commit()
    _, first, second = _journal(store, space)
    assert [(each.before, each.after) for each in (first, second)] == [
        ({"version": 1, "order": 1}, {"version": 2, "order": 2}),
        ({"version": 2, "order": 2}, {"version": 3, "order": 3}),
    ]


def test_secrets_are_nowhere_in_the_journal(store: Store, begin: Begin, space: str) -> None:
    """What was added, saved, emptied or removed as a secret is told as ***, and so is a change."""
    where = _record(space)
    with begin(space=where) as uow:
        account = make(uow, ACCOUNTS, config="s3cr3t-1", credentials="s3cr3t-2")
        uow.commit()
    with begin(space=where) as uow:
        account = uow.accounts.save(evolve(account, credentials="s3cr3t-3"))
        account = uow.accounts.save(evolve(account, credentials=None))
        account = uow.accounts.save(evolve(account, sort_order=9))
        uow.accounts.remove(account.id)
        uow.commit()
    entries = _journal(store, where)
    assert "s3cr3t" not in repr(entries) + json.dumps(
        [asdict(each) for each in entries], default=str
    )
    told = [((each.before or {}).get("credentials"), (each.after or {}).get("credentials"))
            for each in entries]  # fmt: skip
    assert told == [(None, "***"), ("***", "***"), ("***", None), (None, None), (None, None)]
    assert "credentials" not in (entries[3].after or {})
    assert [("config" in (each.before or {})) for each in entries[1:]] == [
        False,
        False,
        False,
        True,
    ]
    assert account.config == Secret("s3cr3t-1")


def test_of_what_is_only_appended_the_journal_tells_the_key(
    store: Store, begin: Begin, space: str
) -> None:
    """Append-only rows are entries without a before or an after."""
    with begin() as uow:
        message = make(uow, CHAT_MESSAGES, content="only once in the store")
        uow.remove(CHAT_MESSAGES, [message.id])
        uow.commit()
    with begin(write=False) as uow:
        added, removed = uow.journal.of_row(CHAT_MESSAGES, message.id)
    assert (added.op, added.before, added.after) == (Op.ADD, None, None)
    assert (removed.op, removed.before, removed.after) == (Op.REMOVE, None, None)
    assert "only once" not in repr(_journal(store, space))


def test_logs_derived_rows_and_operations_are_not_journalled(
    store: Store, begin: Begin, space: str
) -> None:
    """What follows from the rest, or is bulk, or keeps the books itself, is not told."""
    with begin() as uow:
        make(uow, LOG_CHUNKS)
        make(uow, TASKS)
        uow.commit()
    run(store, space, lambda _: None, operation_id="op-1")
    with begin(space=_record(space)) as uow:
        uow.ledger.add(tool_entry(EntryContext(agent="brave-otter", at=uow.now)))
        uow.commit()
    assert [entry.entity for entry in _journal(store, space)] == ["tasks"]
    assert [entry.entity for entry in _journal(store, _record(space))] == ["score_events"]
    kept = {*everything_in(store, space), *everything_in(store, _record(space))}
    assert kept >= {"log_chunks", "openings", "operations", "standings"}


def test_the_journal_is_read_in_pages(begin: Begin) -> None:
    """`since` gives what comes after a number, in order and no more than asked."""
    with begin() as uow:
        uow.add(PROJECTS, [PROJECTS.entity(name=f"{n}", url=f"{n}") for n in range(25)])
        uow.commit()
    with begin(write=False) as uow:
        pages = []
        seen = 0
        while page := uow.journal.since(seen, limit=10):
            pages.append([entry.seq for entry in page])
            seen = page[-1].seq
        assert uow.journal.since(25) == []
        assert [entry.seq for entry in uow.journal.since(22)] == [23, 24, 25]
        assert uow.journal.since(-1) == list(uow.journal.all_entries())
    assert pages == [list(range(1, 11)), list(range(11, 21)), list(range(21, 26))]


def test_the_journal_tells_of_one_row_and_of_one_transaction(begin: Begin) -> None:
    """`of_row` and `of_tx` give exactly what concerns them, in order."""
    with begin() as uow:
        one, other = make(uow, TASKS, id="same"), make(uow, PROJECTS, id="same")
        uow.commit()
    first = uow.tx
    with begin() as uow:
        uow.tasks.save(one)
        make(uow, AGENTS)
        uow.projects.remove(other.id)
        uow.commit()
    second = uow.tx
    with begin(write=False) as uow:
        whole = list(uow.journal.all_entries())
        assert [entry.tx for entry in whole] == [first] * 2 + [second] * 3
        assert uow.journal.of_row(TASKS, "same") == [whole[0], whole[2]]
        assert uow.journal.of_row(PROJECTS, "same") == [whole[1], whole[4]]
        assert uow.journal.of_row(AGENTS, "same") == []
        assert uow.journal.of_tx(first) == whole[:2]
        assert uow.journal.of_tx(second) == whole[2:]
        assert uow.journal.of_tx("tx_unknown") == []


def test_a_reader_that_follows_misses_nothing(store: Store, space: str) -> None:
    """Who asks for what came since the last time, while others write, sees all of it in order."""
    written = 20

    def write() -> None:
        for _ in range(written):
            with work_in(store, space) as uow:
                make(uow, PROJECTS)
                uow.commit()

    seen: list[int] = []
    with ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(write) for _ in range(2)]
        while len(seen) < 2 * written:
            ended = all(writer.done() for writer in writers)
            with work_in(store, space, write=False) as uow:
                found = [entry.seq for entry in uow.journal.since(seen[-1] if seen else 0)]
            if ended and not found:
                break
            seen += found
        for writer in writers:
            writer.result(60)
    assert seen == list(range(1, 2 * written + 1))


def _replayed(entries: list[JournalEntry]) -> dict[str, dict[str, dict[str, Any]]]:
    """The rows that a reader of the journal alone would have, as the wire writes them."""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in entries:
        kept = rows.setdefault(entry.entity, {})
        if entry.op is Op.REMOVE:
            del kept[entry.key]
            continue
        row = {**kept.get(entry.key, {}), **(entry.after or {})}
        kept[entry.key] = {name: value for name, value in row.items() if value is not None}
    return rows


def _lively(begin: Begin, space: str) -> None:
    """Let much happen: rows of every kind, saved, emptied and removed."""
    for area in ("work", "record"):
        where = f"{area}/{space.partition('/')[2]}"
        kinds = [kind for kind in ENTITIES if kind.area == area]
        rows = []
        with begin(space=where) as uow:
            rows = [(kind, make(uow, kind, full=True)) for kind in kinds for _ in range(2)]
            uow.commit()
        with begin(space=where) as uow:
            for number, (kind, row) in enumerate(rows):
                if kind in KEPT:
                    uow.save(kind, [_changed(uow, kind, row.id, number)])
            uow.commit()
        if area == "work":
            with begin(space=where) as uow:
                _remove_some(uow)
                uow.commit()


def _changed(uow: UnitOfWork, kind: Any, key: str, number: int) -> Any:
    """A row with every second of its plain fields emptied, or filled with something else."""
    (row,) = uow.get_existing(kind, [key])
    fixed = {"id", "created_at", "updated_at", "version"} | {each.field for each in kind.references}
    fields = [name for name in kind.columns if name not in fixed][number % 2 :: 2]
    return evolve(
        row,
        **{
            name: None
            if kind.columns[name].optional
            else value_for(kind.columns[name], 10**6 + number)
            for name in fields
        },
    )


def _remove_some(uow: UnitOfWork) -> None:
    for kind in (AGENTS, TASKS, PHASES, INITIATIVES):
        keys = [row.id for row in uow.select(find(kind, limit=3))]
        uow.remove(kind, keys)


def test_the_journal_alone_rebuilds_the_rows(store: Store, begin: Begin, space: str) -> None:
    """Applying every `after` in order gives the rows as they are, secrets as ***."""
    _lively(begin, space)
    for where in (space, _record(space)):
        rows = _replayed(_journal(store, where))
        found = everything_in(store, where)
        for kind in ENTITIES:
            kept = found.get(kind.name, [])
            if not kind.journalled or kind.area != where.partition("/")[0]:
                continue
            told = rows.get(kind.name, {})
            if kind.append_only:
                assert set(told) == {kind.key_of(row) for row in kept}
            else:
                assert told == {row.id: encode_row(kind, row) for row in kept}, kind.name


def test_every_before_is_the_after_that_came_before_it(
    store: Store, begin: Begin, space: str
) -> None:
    """Read backwards from any entry the journal tells the same story."""
    _lively(begin, space)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for entry in _journal(store, space):
        if DICTIONARY.kinds[entry.entity].append_only:
            continue
        row = rows.setdefault((entry.entity, entry.key), {})
        assert {name: row.get(name) for name in entry.before or {}} == (entry.before or {})
        row.update(entry.after or {})


def test_entries_come_back_as_the_values_they_are(store: Store, begin: Begin, space: str) -> None:
    """A journal entry has its types back: a stamp, an op, documents."""
    with begin() as uow:
        make(uow, TASKS)
        uow.commit()
    (entry,) = _journal(store, space)
    assert entry == JournalEntry(**vars(entry))
    for name in JOURNAL.columns:
        value = getattr(entry, name)
        assert value is None or isinstance(value, JOURNAL.columns[name].rule.python_type), name
