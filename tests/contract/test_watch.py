"""Who follows the journal or a log sees everything once, on every store."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

import pytest

from herdbook.adapters import open_store
from herdbook.domain.conversation import LogChunk
from herdbook.domain.errors import InvalidValue
from herdbook.domain.journal import JournalEntry
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import AGENTS
from herdbook.ports.engine.store import Session, Store
from herdbook.ports.repositories.journal import Journal
from herdbook.ports.unit_of_work.run import read, run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.services import messaging
from herdbook.services.agents import logs
from herdbook.services.journal import watch
from herdbook.services.journal.feed import Feed
from tests.cases import for_each
from tests.contract import followers
from tests.contract.children import Place, at_once, barrier, begun, event, opened
from tests.contract.claims import add_agents, add_tasks, do
from tests.contract.conftest import SHARED
from tests.contract.followers import LINES, UNITS, up_to
from tests.contract.rows import make
from tests.contract.turns import Begin
from tests.contract.wrapped import WrappedStore

WRITERS = 8
SPACE = "work/crowd"


class Watched(WrappedStore):
    """A store that knows how many of its transactions are open."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, lambda session: session)
        self.open = 0
        self.begun = 0

    @contextmanager
    def transaction(self, space: str, *, write: bool) -> Iterator[Session]:
        """Count, and begin."""
        with super().transaction(space, write=write) as session:
            self.open += 1
            self.begun += 1
            try:
                yield session
            finally:
                self.open -= 1


def _journal(begin: Begin) -> list[JournalEntry]:
    with begin(write=False) as uow:
        return list(uow.journal.all_entries())


def _at_once() -> bool:
    """Stop after what is there."""
    return True


def _no_wait() -> None:
    raise AssertionError("waited where there was something to give")


@for_each("limit", [1, 2, 3, 200])
@for_each("since", [0, 1, 3, 5, 6])
def test_what_is_there_is_given_from_any_place_on(
    begin: Begin, store: Store, space: str, since: int, limit: int
) -> None:
    """Every entry behind it in order, however small the looks are, and without a pause."""
    add_tasks(begin, *(Task(name="x") for _ in range(5)))
    found = watch.follow_journal(store, space, since, stop=_at_once, wait=_no_wait, limit=limit)
    assert list(found) == _journal(begin)[since:]


def test_who_has_entries_of_another_journal_is_told(begin: Begin, store: Store, space: str) -> None:
    """An earlier copy of the store ends before them; another store has others in their place."""
    add_tasks(begin, Task(name="x"), Task(name="x"))
    ours = _journal(begin)
    with Feed(store, space, 2, mark=ours[1].at) as feed:
        assert feed.take() == []
        assert (feed.is_replaced, feed.mark) == (False, ours[1].at)
    for since, mark in ((2, ours[0].at), (3, ours[1].at)):
        with Feed(store, space, since, mark=mark) as feed:
            assert feed.take() == []
            assert feed.is_replaced
            assert (feed.since, feed.last) == (since, 2)


def test_who_follows_a_journal_that_becomes_shorter_is_told(
    begin: Begin, store: Store, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of waiting until the other one is as long, and missing all of it."""
    add_tasks(begin, Task(name="x"), Task(name="x"))
    following = watch.follow_journal(store, space, wait=lambda: None, limit=2)
    assert [next(following).seq, next(following).seq] == [1, 2]
    monkeypatch.setattr(Journal, "last", lambda _: 1)
    with pytest.raises(InvalidValue, match="ends at #1: if it was one, an earlier copy"):
        next(following)


def test_a_space_nobody_wrote_in_has_no_news(store: Store, space: str) -> None:
    """Neither in its journal nor in anybody's log."""
    assert list(watch.follow_journal(store, space, stop=_at_once, wait=_no_wait)) == []
    log = watch.follow_log(store, space, "agt_x", stop=_at_once, wait=_no_wait)
    assert list(log) == []


def test_who_waits_is_given_what_was_committed_meanwhile(
    begin: Begin, store: Store, space: str
) -> None:
    """Whoever waits is the caller's choice; after each wait there is one look."""
    (agent_id,) = add_agents(begin)
    waited: list[str] = []

    def wait() -> None:
        waited.append("")
        if len(waited) == 3:
            add_tasks(begin, Task(name="x"))
        if len(waited) == 8:
            do(begin, logs.append, agent_id, "y")

    found = watch.follow_journal(store, space, 1, stop=lambda: len(waited) == 5, wait=wait)
    assert [entry.entity for entry in found] == ["tasks"]
    log = watch.follow_log(store, space, agent_id, stop=lambda: len(waited) == 10, wait=wait)
    assert [chunk.content for chunk in log] == ["y"]
    assert len(waited) == 10


def test_no_transaction_is_open_while_somebody_looks_at_news(
    begin: Begin, store: Store, space: str
) -> None:
    """Neither while an entry or a piece is in their hands nor while nothing happens."""
    (agent_id,) = add_agents(begin)
    do(begin, logs.append, agent_id, "x")
    watched = Watched(store)

    def wait() -> None:
        assert watched.open == 0

    news: list[Iterator[object]] = [
        watch.follow_journal(watched, space, stop=up_to(3), wait=wait),
        watch.follow_log(watched, space, agent_id, stop=up_to(3), wait=wait),
    ]
    for each in news:
        before = watched.begun
        for _ in each:
            assert watched.open == 0
        assert watched.begun > before + 3


def test_who_writes_while_following_hears_of_it(begin: Begin, store: Store, space: str) -> None:
    """Each entry in turn leads to another, in the same thread."""
    add_tasks(begin, Task(name="0"))
    news = watch.follow_journal(store, space)
    for number, entry in zip(range(1, 6), news, strict=False):
        assert entry.seq == number
        add_tasks(begin, Task(name=str(number)))
    news.close()


def test_following_ends_though_others_go_on(begin: Begin, store: Store, space: str) -> None:
    """What is written after it was told to stop is not waited for."""
    (agent_id,) = add_agents(begin)
    add_tasks(begin, *(Task(name="x") for _ in range(3)))
    last = _journal(begin)[-1].seq
    seen = []
    for entry in watch.follow_journal(store, space, stop=_at_once, limit=3):
        seen.append(entry.seq)
        add_tasks(begin, Task(name="more"))
    assert seen == list(range(1, last + 1))
    printed = [do(begin, logs.append, agent_id, text, n) for text, n in (("a", 1), ("b", 2))]
    heard = []
    for chunk in watch.follow_log(store, space, agent_id, stop=_at_once, limit=1):
        heard.append(chunk)
        for session in (1, None, 3):
            do(begin, logs.append, agent_id, "more", session)
    assert heard == printed


def test_a_log_is_followed_over_its_sessions(begin: Begin, store: Store, space: str) -> None:
    """Also where an earlier session prints once more after a later one has begun."""
    (agent_id,) = add_agents(begin)
    steps = iter([("a", 1), ("b", 2), ("c", 1), ("d", 2), ("e", 3), ("f", 1), ("g", 2)])
    printed: list[LogChunk] = []

    def wait() -> None:
        for text, session in steps:
            printed.append(do(begin, logs.append, agent_id, text, session))
            return

    stop = lambda: len(printed) == 7  # noqa: E731 - said where it is used
    assert list(watch.follow_log(store, space, agent_id, stop=stop, wait=wait)) == printed


@for_each("number", range(6))
@for_each("limit", [1, 200])
def test_a_log_is_followed_from_any_piece_on(
    begin: Begin, store: Store, space: str, number: int, limit: int
) -> None:
    """What was there behind it in the order of reading, and then whatever is printed."""
    (agent_id,) = add_agents(begin)
    for session in (1, 1, 2, 2, 3, 3):
        do(begin, logs.append, agent_id, "x", session)
    with begin(write=False) as uow:
        log = logs.read(uow, agent_id)
    later: list[LogChunk] = []

    def wait() -> None:
        sessions = (1, 2, 3) if not later else ()
        later.extend(do(begin, logs.append, agent_id, "y", each) for each in sessions)

    found = watch.follow_log(
        store,
        space,
        agent_id,
        log[number].id,
        stop=lambda: bool(later),
        wait=wait,
        limit=limit,
    )
    first = log[number].session_number
    heard = list(found)
    assert heard[: 5 - number] == log[number + 1 :]
    assert {chunk.id for chunk in heard[5 - number :]} == {chunk.id for chunk in later}
    assert len(heard) == 5 - number + 3
    assert first == 1 + number // 2


def test_a_log_is_not_followed_from_a_piece_of_another(
    begin: Begin, store: Store, space: str
) -> None:
    """It would be followed from nowhere."""
    one, other = add_agents(begin, 2)
    chunk = do(begin, logs.append, other, "x")
    with pytest.raises(InvalidValue, match="after"):
        next(watch.follow_log(store, space, one, chunk.id))


def test_asking_goes_on_until_there_is_an_answer(begin: Begin, store: Store, space: str) -> None:
    """Or until it was told to stop, and then once more."""
    one, other = add_agents(begin, 2)
    waited: list[str] = []

    def wait() -> None:
        waited.append("")
        if len(waited) == 3:
            do(begin, messaging.ask, one, other, "?")

    heard = watch.wait_until(store, space, messaging.listen, other, wait=wait)
    assert heard is not None
    assert (heard.question, len(waited)) == ("?", 3)
    assert watch.wait_until(store, space, messaging.listen, one, stop=up_to(1), wait=wait) is None
    assert len(waited) == 4


@pytest.fixture
def place(engine: str, new_url: Callable[[str], str]) -> Place:
    """A new store of the engine, as workers come to it."""
    url = new_url(engine)
    return url if engine in SHARED else open_store(url)


def _agents(uow: UnitOfWork) -> list[str]:
    return [make(uow, AGENTS).id for _ in range(2)]


def test_who_follows_the_journal_misses_nothing_that_eight_write(place: Place) -> None:
    """Every entry once, in order, as it is kept."""
    start, ended = barrier(place, WRITERS + 1), event(place)
    follower = begun(place, followers.follow_journal, SPACE, start, ended)
    at_once(place, followers.add_tasks, [(SPACE, start, number) for number in range(WRITERS)])
    ended.set()
    heard = follower()
    with opened(place) as store:
        kept = read(store, SPACE, lambda uow: list(uow.journal.all_entries()))
    assert len(kept) == 3 * UNITS * WRITERS
    assert heard == kept


def test_who_follows_a_log_misses_nothing_that_eight_print(place: Place) -> None:
    """Every piece once, each session in the order it is read in."""
    with opened(place) as store:
        agent_id, _ = run(store, SPACE, _agents)
        for session in (1, 2):
            run(store, SPACE, logs.append, agent_id, "begin", session)
    start, ended = barrier(place, WRITERS + 1), event(place)
    follower = begun(place, followers.follow_printing, SPACE, start, agent_id, ended)
    jobs = [(SPACE, start, agent_id, number) for number in range(WRITERS)]
    printed = list(chain(*at_once(place, followers.print_lines, jobs)))
    ended.set()
    heard = follower()
    with opened(place) as store:
        kept = read(store, SPACE, lambda uow: uow.log_chunks.of_agent(agent_id))
    assert len(heard) == len(kept) == LINES * WRITERS + 2
    assert {chunk.id for chunk in kept} >= set(printed)
    assert sorted(heard, key=lambda chunk: chunk.session_number) == kept


def test_an_agent_that_listens_in_another_process_answers(place: Place) -> None:
    """Who asked follows until the answer is there."""
    with opened(place) as store:
        one, other = run(store, SPACE, _agents)
    listener = begun(place, followers.answer_next, SPACE, other, "blue")
    with opened(place) as store:
        asked = run(store, SPACE, messaging.ask, one, other, "red or blue?")
        answered = watch.wait_until(store, SPACE, messaging.find_answer, asked.id)
    assert listener() == "red or blue?"
    assert answered is not None
    assert answered.answer == "blue"
