"""What processes do that claim in a crowd, print, or follow what others print and change."""

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from threading import Barrier, Event

from herdbook.adapters.wakeups import socket_folder
from herdbook.domain.conversation import LogChunk
from herdbook.domain.entity import evolve
from herdbook.domain.journal import JournalEntry
from herdbook.domain.plan.model import Task
from herdbook.ports.unit_of_work.run import run
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import NO_HALTS
from herdbook.services import messaging
from herdbook.services.agents import logs
from herdbook.services.journal import watch
from herdbook.services.journal.feed import Feed
from herdbook.services.plan import claims
from tests.contract.children import Place, opened

LONG = timedelta(days=1)
"""A lease that no slow machine outlasts."""
UNITS = 6
"""How many units of work a writer of the journal does."""
LINES = 10
"""How many lines a printer prints."""
HOUR = 3_600.0
"""A look that no test waits for: who comes back has been rung."""


def claim_until_none(
    place: Place, space: str, start: Barrier, agent_id: str, several: int
) -> list[str]:
    """Claim tasks, several in a unit of work, until none is left, and keep them."""

    def claim(uow: UnitOfWork) -> list[str]:
        given = (claims.claim(uow, agent_id, halts=NO_HALTS, ttl=LONG) for _ in range(several))
        return [each.task.id for each in given if each is not None]

    claimed: list[str] = []
    with opened(place) as store:
        start.wait()
        while given := run(store, space, claim):
            claimed += given
    return claimed


def add_tasks(place: Place, space: str, start: Barrier, number: int) -> None:
    """Add tasks, two in each unit of work, and change one of them."""

    def unit(uow: UnitOfWork, each: int) -> None:
        first, _ = uow.tasks.add_all([Task(name=f"{number} {each} {part}") for part in "ab"])
        uow.tasks.save(evolve(first, order=each))

    with opened(place) as store:
        start.wait()
        for each in range(UNITS):
            run(store, space, unit, each)


def follow_journal(place: Place, space: str, start: Barrier, ended: Event) -> list[JournalEntry]:
    """All entries that come, in pages smaller than what comes at once, until all is written."""
    with opened(place) as store:
        start.wait()
        return list(watch.follow_journal(store, space, stop=ended.is_set, limit=5))


def print_lines(place: Place, space: str, start: Barrier, agent_id: str, number: int) -> list[str]:
    """Print lines into an agent's log, by turns into its first session and its last."""
    printed = []
    with opened(place) as store:
        start.wait()
        for line in range(LINES):
            session = 1 if (number + line) % 2 else None
            text = f"{number} {line}"
            printed.append(run(store, space, logs.append, agent_id, text, session).id)
    return printed


def follow_printing(
    place: Place, space: str, start: Barrier, agent_id: str, ended: Event
) -> list[LogChunk]:
    """All that an agent prints until it has ended."""
    with opened(place) as store:
        start.wait()
        pieces = watch.follow_log(store, space, agent_id, stop=ended.is_set, limit=3)
        return list(pieces)


def answer_next(place: Place, space: str, agent_id: str, text: str) -> str:
    """Wait for a question to an agent and answer it."""
    with opened(place) as store:
        asked = watch.wait_until(store, space, messaging.listen, agent_id)
        assert asked is not None
        run(store, space, messaging.answer, asked.id, text)
        return asked.question


def up_to(number: int) -> Callable[[], bool]:
    """Something to stop by that says so after having been asked that many times."""
    asked = count()
    return lambda: next(asked) >= number


def follow_rings(place: Place, space: str, last: int, ready: Event) -> list[int]:
    """The numbers of all entries up to one, read after each ring and never without one."""
    seen: list[int] = []
    with opened(place) as store, Feed(store, space, 0, look=HOUR) as feed:
        feed.fileno()
        ready.set()
        while feed.since < last:
            assert feed.wait()
            while page := feed.take():
                seen += [each.seq for each in page]
    return seen


def follow_until(place: Place, space: str, ended: Event, ready: Event) -> list[int]:
    """The numbers of all entries until all is written."""
    with opened(place) as store:
        ready.set()
        return [each.seq for each in watch.follow_journal(store, space, stop=ended.is_set)]


def follow_entries(place: Place, space: str, ended: Event, ready: Event) -> list[JournalEntry]:
    """All entries until all is written."""
    with opened(place) as store:
        ready.set()
        return list(watch.follow_journal(store, space, stop=ended.is_set))


def commit_tasks(place: Place, space: str, count: int) -> None:
    """Add tasks, each in a unit of work of its own."""
    with opened(place) as store:
        for number in range(count):
            run(store, space, lambda uow, each=number: uow.tasks.add(Task(name=str(each))))


def commit_for_ever(place: Place, space: str, number: int, started: Event) -> None:
    """Add tasks until somebody kills this process."""
    with opened(place) as store:
        for each in count():
            run(store, space, lambda uow, at=each: uow.tasks.add(Task(name=f"{number} {at}")))
            started.set()


def follow_looks(place: Place, space: str, ready: Event) -> None:
    """Wait for changes until somebody kills this process, and look often."""
    with opened(place) as store, store.wakeups.listen(space, look=0.05) as listener:
        ready.set()
        while True:
            listener.wait()


def commit_elsewhere(url: str, root: str, space: str) -> None:
    """Commit as a process of another machine does, in a child: it sees none of the sockets here."""
    socket_folder.ROOT = root
    commit_tasks(url, space, 1)
