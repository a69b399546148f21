"""A ring carries what was committed: who follows gets the same from rings as from the store."""

import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from herdbook.adapters import open_store
from herdbook.adapters.wakeups.messages import LONGEST_CONTENT, encode_entries, encode_ring
from herdbook.adapters.wakeups.socket_folder import socket_folder
from herdbook.domain.agents.model import Agent
from herdbook.domain.clock import Stamp
from herdbook.domain.entity import evolve
from herdbook.domain.errors import JournalPruned
from herdbook.domain.journal import Actor, JournalEntry, Provenance
from herdbook.domain.plan.model import Initiative, Phase, Task
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read, run
from herdbook.services.journal import feed as feeds
from herdbook.services.journal.feed import Feed
from herdbook.services.journal.follower_cursor import FollowerCursor
from herdbook.services.journal.prune import prune
from tests.contract import followers
from tests.contract.children import Child, event, opened
from tests.contract.conftest import SHARED, Begin
from tests.contract.followers import HOUR

among_processes = pytest.mark.parametrize("engine", SHARED, indirect=True)
in_files = pytest.mark.parametrize("engine", ["lmdb", "duckdb"], indirect=True)


class Reads:
    """Counts how often a feed reads the store."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *args: Any) -> Any:
        self.count += 1
        return read(*args)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    counted = Reads()
    monkeypatch.setattr(feeds, "read", counted)
    return counted


@pytest.fixture
def feed(store: Store, space: str, reads: Reads) -> Iterator[Feed]:
    """One that has read everything, listens, and looks for nothing without a ring."""
    with _following(store, space) as following:
        reads.count = 0
        yield following


def _following(store: Store, space: str) -> Feed:
    feed = Feed(store, space, 0, look=HOUR)
    feed.fileno()
    while feed.take():
        continue
    return feed


def _add(store: Store, space: str, *names: str) -> None:
    run(store, space, lambda uow: uow.tasks.add_all([Task(name=each) for each in names]))


def _wait_for(feed: Feed, last: int) -> list[JournalEntry]:
    """The entries up to a number, by rings alone."""
    found: list[JournalEntry] = []
    while feed.since < last:
        assert feed.wait()
        while page := feed.take():
            found += page
    return found


def _journal(store: Store, space: str) -> list[JournalEntry]:
    return read(store, space, lambda uow: list(uow.journal.all_entries()))


def _send(store: Store, *messages: bytes) -> None:
    """Send datagrams to whoever listens to a space of the store, and nothing to whom just left."""
    folder = Path(socket_folder(store.uuid) or "missing")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        for message in messages:
            for each in folder.iterdir():
                with suppress(ConnectionRefusedError, FileNotFoundError):
                    sender.sendto(message, str(each))


def _message(store: Store, space: str, entries: Sequence[JournalEntry]) -> bytes:
    return encode_ring(store.node, space, entries[-1].seq, encode_entries(entries))


def _silently(store: Store, work: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Commit as a writer does that is killed before it rings."""
    with monkeypatch.context() as patch:
        patch.setattr(type(store.wakeups), "ring", lambda *_: None)
        work()


def _types(value: object) -> object:
    """The types within a value, which equality does not compare."""
    if isinstance(value, dict):
        return {key: _types(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [type(value), *map(_types, value)]
    return type(value)


def _fields(entries: Sequence[JournalEntry]) -> list[tuple[object, object]]:
    return [(vars(each), _types(dict(vars(each)))) for each in entries]


def _change_much(begin: Begin, store: Store, space: str) -> None:
    """Transactions that together set every field of an entry."""
    actor = Actor(
        person="Ann", agent="agt_1", session="s", worktree="wt_1", note="ü \U0001f600", trace_id="t"
    )
    with begin(actor=actor) as uow:
        plan = uow.initiatives.add(Initiative(name="plan \\ \" \n 'x'"))
        phase = uow.phases.add(Phase(initiative_id=plan.id, name="one"))
        task = uow.tasks.add(Task(phase_id=phase.id, name="a"))
        uow.commit()
    document = {"nested": [1, 2.5, True, None, {"ü": "€", "deep": [[]]}], "n": -(2**53)}
    with begin() as uow:
        uow.agents.add(Agent(name="b", task_id=task.id, result=document))
        uow.commit()
    run(store, space, lambda uow: uow.tasks.add(Task(name="once")), operation_id="op-1")
    with begin() as uow:
        there = Stamp(uow.now - timedelta(seconds=3), 7, "elsewhere")
        uow.receive(Provenance(there, "tx_there", (there._replace(counter=1),)))
        uow.tasks.add(Task(name="from elsewhere"))
        uow.receive(None)
        uow.commit()
    with begin() as uow:
        uow.initiatives.remove(plan.id)  # and its phase, and their tasks
        uow.commit()


def test_entries_of_rings_are_those_of_the_store(
    begin: Begin, store: Store, space: str, feed: Feed, reads: Reads
) -> None:
    """In every field, also in its type, and nobody has read the store for it."""
    _change_much(begin, store, space)
    last: int = read(store, space, lambda uow: uow.journal.last())
    found = _wait_for(feed, last)
    assert reads.count == 0
    assert _fields(found) == _fields(_journal(store, space))
    columns = vars(found[0]).keys()
    assert {name for name in columns if any(vars(each)[name] for each in found)} >= columns - {
        "recorded_at"  # only where a clock was wrong
    }


def test_a_document_is_carried_as_it_was_committed(store: Store, space: str, feed: Feed) -> None:
    """Though its owner changes it while a ring waits for its turn."""
    _add(store, space, "x")  # the next ring has to wait
    for number in range(5):
        agent = Agent(name=f"agent {number}", result={"list": [number]})
        run(store, space, lambda uow, this=agent: uow.agents.add(this))
        agent.result["list"].append(99)
    assert _wait_for(feed, 6) == _journal(store, space)


@among_processes
def test_another_process_gets_the_same(
    engine: str, new_url: Callable[[str], str], reads: Reads
) -> None:
    """What a child commits, each transaction as it was."""
    url = new_url(engine)
    with open_store(url) as store:
        _add(store, "work/x", "first")
        with _following(store, "work/x") as feed:
            reads.count = 0
            Child(followers.commit_tasks, url, "work/x", 3).result()
            assert _wait_for(feed, 4) == _journal(store, "work/x")[1:]
            assert reads.count == 0


def test_a_transaction_that_is_too_long_is_read(
    store: Store, space: str, feed: Feed, reads: Reads
) -> None:
    """By its length or by its number of entries: it is rung for without them."""
    long = "x" * (LONGEST_CONTENT // 8)
    for names in (["a"], ["long " + long[:400]] * 100, ["b"]):
        _add(store, space, *names)
        assert _wait_for(feed, _journal(store, space)[-1].seq)
    with_text = Task(name="c", description=long * 9)
    run(store, space, lambda uow: uow.tasks.add(with_text))
    assert _wait_for(feed, 103)[-1].after == _journal(store, space)[-1].after
    assert reads.count > 0


def test_many_commits_in_a_row_lose_nothing(store: Store, space: str, feed: Feed) -> None:
    """Though their rings are joined, some are too long for that, and the socket is full."""
    for number in range(40):
        _add(store, space, *["x" * (10 * number + 1)] * (1 + number % 4))
    store.wakeups.close()  # rings what it has put off
    journal = _journal(store, space)
    assert _wait_for(feed, journal[-1].seq) == journal


def test_a_listener_that_was_full_reads(store: Store, space: str, feed: Feed, reads: Reads) -> None:
    """Rings that found it full are lost, also the one for the last entry."""
    for number in range(40):
        _add(store, space, f"{number}")
        store.wakeups.close()
    assert feed.wait()
    found = []
    while page := feed.take():
        found += page
    assert found == _journal(store, space)
    assert reads.count > 0
    reads.count = 0
    _add(store, space, "then")
    assert _wait_for(feed, 41)
    assert reads.count == 0


def test_a_gap_is_read(
    store: Store, space: str, feed: Feed, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring was lost: what it would have carried comes from the store, before the rest."""
    _silently(store, lambda: _add(store, space, "lost"), monkeypatch)
    _add(store, space, "heard")
    assert _wait_for(feed, 2) == _journal(store, space)
    assert reads.count >= 1


def test_rings_out_of_order_and_twice(
    store: Store, space: str, feed: Feed, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two writers ring in another order than they have committed: each entry comes once."""
    _silently(store, lambda: [_add(store, space, each) for each in "abcd"], monkeypatch)
    journal = _journal(store, space)
    messages = [_message(store, space, [each]) for each in journal]
    _send(store, messages[1], messages[0], messages[1], messages[0])
    assert _wait_for(feed, 2) == journal[:2]
    assert reads.count == 0
    _send(store, messages[0], messages[3])
    assert _wait_for(feed, 4) == journal[2:]
    assert reads.count == 1
    _send(store, messages[2], *messages[:2])
    assert feed.wait()
    assert feed.take() == []
    assert reads.count == 1


def test_pages_are_no_longer_than_asked_for(store: Store, space: str) -> None:
    """Also those of rings; `last` says that there is more."""
    with Feed(store, space, 0, limit=2, look=HOUR) as feed:
        feed.fileno()
        assert feed.take() == []
        _add(store, space, "a", "b", "c")
        assert feed.wait()
        assert [each.seq for each in feed.take()] == [1, 2]
        assert feed.last == 3
        assert [each.seq for each in feed.take()] == [3]
        assert feed.take() == []


def test_what_is_damaged_is_only_a_ring(
    store: Store, space: str, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it says: the store is read, and nothing is raised."""
    _silently(store, lambda: _add(store, space, "a"), monkeypatch)
    (entry,) = _journal(store, space)
    whole = _message(store, space, [entry])
    head = f"{space} 1\0{store.node}\0".encode()
    damaged = [
        whole[: len(whole) // 2],
        whole.replace(b'"op":"add"', b'"op":"steal"'),
        whole.replace(b'"seq":1', b'"seq":"1"'),
        whole.replace(b'"schema_version"', b'"another_field"'),
        whole.replace(b"Z_0", b"Z_x"),
        *(head + each for each in (b"", b"{}", b"7", b"[7]", b"[[]]", b"[" * 9_000, b"\xff")),
        b"\xff\xfe",
        b"no number",
        b" 1",
    ]
    for each in damaged:
        with _following_from(store, space, 0) as fresh:
            reads.count = 0
            _send(store, each)
            assert fresh.wait()
            assert fresh.take() == [entry]
            assert reads.count == 1


def _following_from(store: Store, space: str, since: int) -> Feed:
    """One that knows of nothing after an entry yet."""
    feed = Feed(store, space, since, look=HOUR)
    feed.fileno()
    feed.last, feed._must_read = since, False
    return feed


def test_another_number_than_there_is_misleads_nobody(store: Store, space: str, feed: Feed) -> None:
    """Neither a smaller nor a larger one."""
    _send(store, f"{space} 99".encode())
    assert feed.wait()
    assert feed.take() == []
    assert feed.last == 0
    _add(store, space, "a")
    _send(store, f"{space} 0".encode())
    assert _wait_for(feed, 1) == _journal(store, space)
    assert feed.last == 1


def test_entries_of_another_space_are_not_taken(
    store: Store, space: str, feed: Feed, begin: Begin
) -> None:
    """Not even if their numbers would fit, as in a space whose socket has the same mark."""
    with begin.in_space(f"{space}-other")() as uow:
        uow.tasks.add(Task(name="theirs"))
        uow.commit()
    theirs = _journal(store, f"{space}-other")
    _send(store, _message(store, f"{space}-other", theirs))
    assert feed.wait()
    assert feed.take() == []
    assert feed.since == 0


def test_entries_of_another_incarnation_are_not_taken(
    store: Store, space: str, feed: Feed, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy has the same identity and the same listeners, but another node."""
    _silently(store, lambda: _add(store, space, "ours"), monkeypatch)
    (entry,) = _journal(store, space)
    (theirs,) = encode_entries([evolve(entry, key="theirs")])
    _send(store, encode_ring("0" * 32, space, 1, (theirs,)))
    assert _wait_for(feed, 1) == [entry]
    assert reads.count == 1


@in_files
def test_a_copy_does_not_mislead_who_follows_the_original(
    engine: str, new_url: Callable[[str], str], tmp_path: Path
) -> None:
    """What is committed to the copied file rings for both, and is in one of them."""
    url = new_url(engine)
    with open_store(url) as made:
        _add(made, "work/x", "both")
    original = Path(url.partition("://")[2])
    copied = tmp_path / original.name
    (shutil.copytree if original.is_dir() else shutil.copy)(original, copied)
    with (
        open_store(url) as store,
        open_store(f"{engine}://{copied}") as copy,
        _following(store, "work/x") as feed,
    ):
        assert store.uuid == copy.uuid
        _add(copy, "work/x", "copy")
        assert feed.wait()
        assert feed.take() == []
        _add(store, "work/x", "original")
        (entry,) = _wait_for(feed, 2)
        assert entry == _journal(store, "work/x")[1]


def test_who_is_behind_a_fold_is_told(
    store: Store, space: str, feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rings after the fold do not hide that entries before it are gone."""
    _silently(store, lambda: [_add(store, space, each) for each in "abc"], monkeypatch)
    prune(store, space, 2)
    _add(store, space, "d")
    assert feed.wait()
    with pytest.raises(JournalPruned):
        feed.take()


def test_who_has_everything_does_not_notice_a_fold(store: Store, space: str, feed: Feed) -> None:
    """The entries that were folded are those that it has."""
    _add(store, space, "a")
    assert _wait_for(feed, 1)
    prune(store, space, 1)
    _add(store, space, "b")
    assert [each.seq for each in _wait_for(feed, 2)] == [2]


def test_a_cursor_moves_with_what_rings_have_carried(store: Store, space: str) -> None:
    """It holds what was not taken, and lets the rest be folded."""
    now = iter(range(0, 10**9, 10**6))  # each look at the clock is days later
    _add(store, space, "first")
    cursor = FollowerCursor(
        lambda: nullcontext(store), space, "a test", clock=lambda: float(next(now))
    )
    with Feed(store, space, 1, look=HOUR, cursor=cursor) as feed:
        feed.fileno()
        feed.take()
        assert _positions(store, space) == [1]
        _add(store, space, "a")
        assert _wait_for(feed, 2)
        assert _positions(store, space) == [2]
    cursor.release()
    assert _positions(store, space) == []


def _positions(store: Store, space: str) -> list[int]:
    return read(store, space, lambda uow: [each.seq for each in uow.cursors.live()])


def test_a_hundred_and_fifty_followers_get_long_entries(
    store: Store, space: str, reads: Reads
) -> None:
    """No listener uses up the room that the kernel has for the others."""
    with ExitStack() as stack:
        following = [stack.enter_context(_following(store, space)) for _ in range(150)]
        reads.count = 0
        text = "x" * (LONGEST_CONTENT - 1_000)
        run(store, space, lambda uow: uow.tasks.add(Task(name="long", description=text)))
        journal = [_wait_for(each, 1) for each in following]
        assert reads.count == 0
    assert all(each == journal[0] for each in journal)
    assert journal[0] == _journal(store, space)


def test_a_forked_child_rings_with_its_own_entries(
    engine: str, new_url: Callable[[str], str]
) -> None:
    """Not with those that its parent has put off."""
    url = new_url(engine)
    with open_store(url) as store:
        _add(store, "work/x", "a")
        with _following(store, "work/x") as feed:
            for name in "bcd":
                _add(store, "work/x", name)
            if engine != "memory":  # what a child writes there only the child has
                pid = os.fork()
                if not pid:
                    with open_store(url) as own:
                        _add(own, "work/x", "child")
                    os._exit(0)
                assert os.waitpid(pid, 0)[1] == 0
            journal = _journal(store, "work/x")
            assert _wait_for(feed, journal[-1].seq) == journal[1:]


@among_processes
def test_nothing_is_lost_or_doubled_when_writers_are_killed(
    engine: str, new_url: Callable[[str], str]
) -> None:
    """Rings of a writer may lack its last commits, or be cut off in the middle of all listeners."""
    url = new_url(engine)
    ended, ready = event(url), event(url)
    with open_store(url) as store:
        _add(store, "work/x", "first")
    reader = Child(followers.follow_entries, url, "work/x", ended, ready)
    ready.wait()
    for number in range(3):
        started = event(url)
        writer = Child(followers.commit_for_ever, url, "work/x", number, started)
        started.wait()
        writer.kill()
        writer.wait()
    ended.set()
    with opened(url) as store:
        assert reader.result() == _journal(store, "work/x")
