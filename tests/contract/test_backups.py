"""A backup of any store can be restored into any other, up to any change that its journal tells."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.user_state.backup_files import BackupFolder
from herdbook.domain.conversation import LogChunk
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, SpaceRefused
from herdbook.domain.journal import Position
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import (
    ACCOUNTS,
    CHAT_MESSAGES,
    DICTIONARY,
    JOURNAL,
    TASKS,
)
from herdbook.ports.engine.digests import digest_space
from herdbook.ports.engine.query import find
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import run
from herdbook.services.backups.chains import choose_chain, find_chains, newest_chain
from herdbook.services.backups.restore import AssembledSpace, assemble, deliver, refuse_used
from herdbook.services.backups.write_backup import (
    WrittenBackup,
    write_automatic,
    write_copy,
    write_segment,
)
from herdbook.services.journal.prune import prune
from herdbook.services.stores.store_check import check
from tests.contract.conftest import ENGINES
from tests.contract.inhabited import content, inhabit, record_of, work_on
from tests.contract.rows import make
from tests.contract.space import work_in

NewUrl = Callable[[str], str]
DERIVED = {kind.name for kind in DICTIONARY if kind.derived}


@pytest.fixture
def files(tmp_path: Path) -> BackupFolder:
    """Where the backups of a space are kept."""
    return BackupFolder(tmp_path / "backups")


@pytest.fixture
def scratch() -> Iterator[Store]:
    """Where backups are put together; commands use an LMDB store for it."""
    with open_store("memory://") as opened:
        yield opened


@pytest.fixture
def target(fresh: Callable[..., Store]) -> Store:
    """An empty store."""
    return fresh()


MOST_CHANGES = 1_000
"""How often a writer writes at most while backups are taken."""


def copied(store: Store, space: str, files: BackupFolder, **options: Any) -> WrittenBackup:
    """Write a copy of a space."""
    told = write_copy(store, space, files, **options)
    assert told is not None
    return told


def restored(
    files: BackupFolder,
    scratch: Store,
    target: Store,
    at: Position | None = None,
    **options: Any,
) -> AssembledSpace:
    """Restore the newest backup, or what leads to a position."""
    chain = newest_chain(files) if at is None else choose_chain(find_chains(files), at)
    assert chain is not None
    refuse_used(target)
    assembled = assemble(chain, files, scratch, at=at, **options)
    return deliver(assembled, scratch, target)


def digest(store: Store, space: str) -> str:
    """The digest of a space."""
    with store.transaction(space, write=False) as session:
        return digest_space(session, store.dictionary).whole


def original(store: Store, space: str) -> dict[str, list[Any]]:
    """All rows of a space that do not follow from others."""
    return {name: rows for name, rows in content(store, space).items() if name not in DERIVED}


@pytest.mark.parametrize("area", ["work", "record", "checkpoints"])
@pytest.mark.parametrize("origin", ENGINES)
def test_a_copy_is_restored_on_any_engine_from_any_engine(
    origin: str, area: str, files: BackupFolder, target: Store, new_url: NewUrl
) -> None:
    """Every row with its bytes, the journal, leases and secrets; the digests are equal."""
    space = f"{area}/anywhere"
    with open_store(new_url(origin)) as source, open_store("memory://") as scratch:
        inhabit(source, space)
        told = copied(source, space, files, secrets=True)
        result = restored(files, scratch, target)
        assert content(target, space) == content(source, space)
        assert result.digest == result.recorded == told.digest == digest(source, space)
        assert target.node != source.node  # so that no two stores issue the same stamps
    assert digest(target, space) == told.digest
    assert (result.flaws, check(target, [space])) == (0, [])
    with work_in(target, space) as uow:
        make(uow, ACCOUNTS if area == "record" else TASKS) if area != "checkpoints" else None
        uow.commit()


def test_secrets_stay_where_they_are_unless_they_are_asked_for(
    store: Store, space: str, files: BackupFolder, scratch: Store, target: Store
) -> None:
    """No byte of one is in the file, and the restore names the rows that lack them."""
    record = record_of(space)
    with work_in(store, record) as uow:
        account = make(uow, ACCOUNTS, full=True)
        uow.commit()
    told = copied(store, record, files)
    written = b"".join(files.read(told.name))
    assert account.credentials.reveal().encode() not in written
    assert b"s3cr3t" not in written
    result = restored(files, scratch, target)
    assert result.masked == {ACCOUNTS.name: [account.id]}
    assert result.digest == result.recorded
    hidden: dict[str, Any] = dict.fromkeys(ACCOUNTS.secrets)
    with work_in(target, record, write=False) as uow:
        assert uow.accounts.get(account.id) == evolve(account, **hidden)


def log(store: Store, space: str, text: str) -> None:
    """Add a line of a log, of which no journal tells."""
    line = LogChunk(agent_id="x", agent_name="x", session_number=1, content=text)
    run(store, space, lambda uow: uow.log_chunks.add(line))


def test_segments_bring_what_came_after_the_copy(
    store: Store, space: str, files: BackupFolder, scratch: Store, target: Store
) -> None:
    """Also rows that the journal only names or does not know, and those that are gone."""
    inhabit(store, space)
    log(store, space, "goes later")
    copied(store, space, files)
    assert write_segment(store, space, files) is None
    inhabit_again(store, space)
    first = write_segment(store, space, files)
    assert first is not None
    work_on(store, space)
    with work_in(store, space) as uow:
        for each in uow.log_chunks.page():
            uow.log_chunks.remove(each.id)
        uow.commit()
    log(store, space, "came last")
    second = write_segment(store, space, files)
    assert second is not None
    assert second.rows < first.rows
    assert write_segment(store, space, files) is None
    result = restored(files, scratch, target)
    assert original(target, space) == original(store, space)
    assert len(result.files) == 3
    assert check(target, [space]) == []


def inhabit_again(store: Store, space: str) -> None:
    """Add rows of kinds that the journal only names, and change others."""
    with work_in(store, space) as uow:
        make(uow, CHAT_MESSAGES, full=True)
        task = uow.tasks.add(Task(name="of a later day"))
        uow.tasks.save(evolve(task, description="changed at once"))
        uow.commit()
    log(store, space, "of a later day")


def test_checkpoints_are_in_segments_too(
    store: Store, space: str, files: BackupFolder, scratch: Store, target: Store
) -> None:
    """Their bytes are kept, and one that was replaced under its key is the new one."""
    space = space.replace("work", "checkpoints", 1)
    inhabit(store, space)
    copied(store, space, files)
    inhabit(store, space)
    assert write_segment(store, space, files) is not None
    result = restored(files, scratch, target)
    assert content(target, space) == content(store, space)
    assert result.seq == 0


def test_every_position_can_be_restored(store: Store, space: str, files: BackupFolder) -> None:
    """Before the copy by the journal's earlier values, after it by segments; as it was then."""
    states: dict[int, dict[str, list[Any]]] = {}
    times: dict[int, datetime] = {}

    def note() -> None:
        with store.transaction(space, write=False) as session:
            assert session.head is not None
            states[session.head.seq] = original(store, space)
            assert session.head.clock is not None
            times[session.head.seq] = session.head.clock.wall

    task = run(store, space, lambda uow: uow.tasks.add(Task(name="first")))
    note()
    for number in range(9):
        run(store, space, step, task.id, number)
        note()
        if number == 3:
            copied(store, space, files)
        if number in (5, 7):
            write_segment(store, space, files)
    last = newest_chain(files)
    assert last is not None
    reachable = [seq for seq in states if seq <= last.headers[-1].seq]
    assert len(reachable) > 6
    for seq in reachable:
        for at in (seq, times[seq]):
            with open_store("memory://") as scratch, open_store("memory://") as target:
                result = restored(files, scratch, target, at)
                assert result.seq == seq
                assert without_clock(target, space) == states_without_clock(states[seq])
                assert check(target, [space]) == []
    with open_store("memory://") as scratch, open_store("memory://") as target:
        with pytest.raises(InvalidValue, match=f"last position in this backup is {max(reachable)}"):
            restored(files, scratch, target, max(states))
        assert target.spaces() == []


def step(uow: Any, task_id: str, number: int) -> None:
    """Change a row twice, add one, and remove the one before, in one transaction."""
    task = uow.tasks.get(task_id)
    task = uow.tasks.save(evolve(task, description=f"step {number}"))
    uow.tasks.save(evolve(task, description=None if number % 2 else f"step {number}, again"))
    for each in uow.tasks.page():
        if each.id != task_id:
            uow.tasks.remove(each.id)
    uow.tasks.add(Task(name=f"of step {number}"))


def states_without_clock(state: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """A state without the head's clock, which also ticks where the journal tells of nothing."""
    heads = [evolve(each, clock=None) for each in state["heads"]]
    return {**state, "heads": heads}


def without_clock(store: Store, space: str) -> dict[str, list[Any]]:
    """What a space holds, in the same terms."""
    return states_without_clock(original(store, space))


def test_a_position_within_a_transaction_is_the_end_of_the_one_before(
    store: Store, space: str, files: BackupFolder, scratch: Store, target: Store
) -> None:
    """A half of a transaction never was a state of the space."""
    task = run(store, space, lambda uow: uow.tasks.add(Task(name="first")))
    with store.transaction(space, write=False) as session:
        before = session.head.seq  # type: ignore[union-attr]
    run(store, space, step, task.id, 1)
    copied(store, space, files)
    assert restored(files, scratch, target, before + 2).seq == before


def test_what_was_written_once_and_removed_is_no_position_of_a_later_copy(
    store: Store, space: str, files: BackupFolder, scratch: Store, target: Store
) -> None:
    """The refusal says from where on positions can be restored; the target stays empty."""
    with work_in(store, space) as uow:
        message = make(uow, CHAT_MESSAGES)
        uow.commit()
    with work_in(store, space, write=False) as uow:
        position = uow.journal.last()
    run(store, space, lambda uow: uow.chat_sessions.remove(message.chat_session_id))
    copied(store, space, files)
    with pytest.raises(InvalidValue, match="holds no more than its key.*Nothing was written"):
        restored(files, scratch, target, position)
    assert target.spaces() == []


def test_a_store_in_use_is_refused_and_named(
    store: Store, space: str, files: BackupFolder, scratch: Store
) -> None:
    """The sentence says what is there, and nothing is changed."""
    inhabit(store, space)
    copied(store, space, files)
    before = content(store, space)
    with pytest.raises(SpaceRefused, match=r"is there already \(\d+ \w+.*Nothing was changed"):
        restored(files, scratch, store)
    assert content(store, space) == before


def test_a_restore_that_was_interrupted_goes_on(
    store: Store, space: str, files: BackupFolder, scratch: Store, target: Store
) -> None:
    """Called again with the same backup, it ends with the same digest."""
    inhabit(store, space)
    told = copied(store, space, files, secrets=True)
    chain = newest_chain(files)
    assert chain is not None
    assembled = assemble(chain, files, scratch)

    def stop(_space: str, _done: int, _total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        deliver(assembled, scratch, target, progress=stop)
    refuse_used(target)
    assert deliver(assembled, scratch, target).digest == told.digest
    with pytest.raises(SpaceRefused):
        refuse_used(target)


def test_a_copy_taken_while_eight_write_is_a_state_that_was(
    store: Store, space: str, files: BackupFolder
) -> None:
    """Taken back to its position, what the writers left at last equals each copy and segment."""
    changes: list[int] = []
    errors: list[BaseException] = []
    all_taken = threading.Event()

    def write(number: int) -> None:
        try:
            mine = run(store, space, lambda uow: uow.tasks.add(Task(name=f"of {number}")))
            for count in range(MOST_CHANGES):
                run(store, space, change, mine.id, count)
                changes.append(count)
                if all_taken.is_set():
                    break
        except BaseException as error:  # noqa: BLE001 - told below
            errors.append(error)

    writers = [threading.Thread(target=write, args=(each,)) for each in range(8)]
    for each in writers:
        each.start()
    taken: list[WrittenBackup] = []
    for _ in range(3):
        enough = len(changes) + 20
        while len(changes) < enough and not errors:
            threading.Event().wait(0.005)
        told = write_segment(store, space, files) if taken else copied(store, space, files)
        taken += [told] if told is not None else []
    all_taken.set()
    for each in writers:
        each.join()
    assert not errors
    assert len({each.header.seq for each in taken}) == 3
    last = BackupFolder(files.folder / "last")
    copied(store, space, last)
    for backup in taken:
        with open_store("memory://") as one, open_store("memory://") as other:
            with open_store("memory://") as scratch:
                restored(files, scratch, one, backup.header.seq)
            with open_store("memory://") as scratch:
                restored(last, scratch, other, backup.header.seq)
            assert without_clock(one, space) == without_clock(other, space)
            assert check(one, [space]) == []


def change(uow: Any, task_id: str, count: int) -> None:
    """Save a task, and add one beside it."""
    task = uow.tasks.get(task_id)
    uow.tasks.save(evolve(task, description=f"change {count}"))
    uow.tasks.add(Task(name=f"{task.name}, {count}"))
    uow.log_chunks.add(LogChunk(agent_id="x", agent_name="x", session_number=1, content="line"))


def test_the_first_of_a_day_is_a_copy_and_the_rest_are_segments(
    store: Store, space: str, files: BackupFolder
) -> None:
    """Older copies go with their segments, beyond a number or a size; the newest stays."""
    now = datetime.now(UTC)
    types = []
    for day in range(4):
        for _ in range(2):
            work = run(store, space, lambda uow: uow.tasks.add(Task(name="work")))
            told = write_automatic(
                store, space, files, keep=2, most_bytes=2**30, now=now + timedelta(days=day)
            )
            assert told is not None
            types.append(told.header.type)
    assert work
    # Every copy is taken today, so each other day finds none of its own.
    assert types == ["copy", "segment", *["copy"] * 6]
    assert [each.headers[0].type for each in find_chains(files)] == ["copy", "copy"]
    write_automatic(store, space, files, keep=2, most_bytes=1, now=now + timedelta(days=9))
    assert len(files.names()) == 1


def test_another_history_is_not_continued(store: Store, space: str, files: BackupFolder) -> None:
    """A store that is not the one that was copied gets a copy of its own, and no segment."""
    inhabit(store, space)
    copied(store, space, files)
    with open_store("memory://") as other:
        inhabit(other, space)
        told = write_automatic(other, space, files, keep=7, most_bytes=2**30, now=datetime.now(UTC))
    assert told is not None
    assert told.header.type == "copy"


def test_the_journal_or_a_segment_holds_every_field() -> None:
    """What is journalled and can be saved has no bytes, and every secret may be empty."""
    for kind in DICTIONARY:
        if kind.journalled and not kind.append_only:
            assert not kind.bytes_fields
        assert all(kind.columns[name].optional for name in kind.secrets)
    assert find(JOURNAL, by=("seq",), descending=True)


def test_a_folded_journal_is_backed_up_and_restored(
    store: Store, space: str, files: BackupFolder, scratch: Store, target: Store
) -> None:
    """What a copy still has of it is not lost by a later segment; what is folded is refused."""
    task = run(store, space, lambda uow: uow.tasks.add(Task(name="first")))
    for number in range(3):
        run(store, space, step, task.id, number)
    told = copied(store, space, files)
    prune(store, space, told.header.seq)
    run(store, space, step, task.id, 4)
    run(store, space, lambda uow: uow.cursors.hold("reader", uow.journal.last() - 1, "a test"))
    later = write_segment(store, space, files)
    assert later is not None
    result = restored(files, scratch, target)
    assert (result.seq, check(target, [space])) == (later.header.seq, [])
    with target.transaction(space, write=False) as session:
        assert session.count(find(JOURNAL)) == later.header.seq
    fold = BackupFolder(files.folder / "folded")
    copied(store, space, fold)
    for at, expected in ((None, later.header.seq), (told.header.seq, told.header.seq)):
        with open_store("memory://") as one, open_store("memory://") as other:
            assert restored(fold, one, other, at).seq == expected
            assert check(other, [space]) == []
    with (
        open_store("memory://") as one,
        open_store("memory://") as other,
        pytest.raises(InvalidValue, match=f"first position in this backup is {told.header.seq}"),
    ):
        restored(fold, one, other, told.header.seq - 1)


def test_a_fold_beyond_the_backup_is_followed_by_a_copy(
    store: Store, space: str, files: BackupFolder
) -> None:
    """A segment would have a gap, so none is written."""
    run(store, space, lambda uow: uow.tasks.add(Task(name="first")))
    copied(store, space, files)
    for name in ("second", "third"):
        run(store, space, lambda uow, name=name: uow.tasks.add(Task(name=name)))
    with store.transaction(space, write=False) as session:
        assert session.head is not None
        last = session.head.seq
    prune(store, space, last)
    told = write_automatic(store, space, files, keep=7, most_bytes=2**30, now=datetime.now(UTC))
    assert told is not None
    assert told.header.type == "copy"
