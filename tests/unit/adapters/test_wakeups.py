"""Many rings in a row become a few, and the last is never left out."""

import os
import threading
from collections.abc import Iterator
from itertools import count

import pytest

from herdbook.adapters.wakeups import coalesce
from herdbook.adapters.wakeups.coalesce import Coalescer, PendingRing, Rings


class Sent:
    """Takes what is sent, and says when something is."""

    def __init__(self) -> None:
        self.rings: list[Rings] = []
        self.arrived = threading.Semaphore(0)

    def __call__(self, rings: Rings) -> None:
        self.rings.append(rings)
        self.arrived.release()


@pytest.fixture
def sent() -> Sent:
    return Sent()


def test_the_first_is_sent_at_once_and_the_rest_together(sent: Sent) -> None:
    """The last number of each space, by a thread that nobody waits for."""
    ring = Coalescer(sent, 0.2)
    for seq in range(1, 6):
        ring("a", PendingRing(seq))
    ring("b", PendingRing(1))
    assert sent.rings == [{"a": PendingRing(1)}]
    for _ in range(2):
        sent.arrived.acquire()
    assert sent.rings == [{"a": PendingRing(1)}, {"a": PendingRing(5), "b": PendingRing(1)}]


def test_who_closes_does_not_wait_until_it_is_due(sent: Sent) -> None:
    """What was put off is sent, and once."""
    ring = Coalescer(sent, 3_600.0)
    ring("a", PendingRing(1))
    ring("a", PendingRing(2))
    ring.flush()
    ring.flush()
    assert sent.rings == [{"a": PendingRing(1)}, {"a": PendingRing(2)}]


def test_what_comes_while_others_are_sent_is_sent_after_them() -> None:
    """By whoever is at it: nobody waits for a slow ring."""
    begun, goes_on = threading.Event(), threading.Event()
    rings: list[Rings] = []
    done = threading.Semaphore(0)

    def send(given: Rings) -> None:
        rings.append(given)
        begun.set()
        goes_on.wait()
        done.release()

    ring = Coalescer(send, 0.0)
    thread = threading.Thread(target=ring, args=("a", PendingRing(1)))
    thread.start()
    begun.wait()
    ring("a", PendingRing(2))
    assert rings == [{"a": PendingRing(1)}]
    goes_on.set()
    for _ in range(2):
        done.acquire()
    thread.join()
    assert rings == [{"a": PendingRing(1)}, {"a": PendingRing(2)}]


def test_who_closes_waits_for_what_a_thread_is_sending() -> None:
    """A process that ended meanwhile would leave listeners that come later in the list unrung."""
    begun, goes_on = threading.Event(), threading.Event()
    ended: list[Rings] = []

    def send(given: Rings) -> None:
        if threading.current_thread().name == "herdbook-wakeups":
            begun.set()
            goes_on.wait()
        ended.append(given)

    ring = Coalescer(send, 0.05)
    ring("a", PendingRing(1))
    ring("a", PendingRing(2))  # by the thread
    begun.wait()
    closing = threading.Thread(target=ring.flush)
    closing.start()
    closing.join(0.1)
    assert closing.is_alive()
    goes_on.set()
    closing.join()
    assert ended == [{"a": PendingRing(1)}, {"a": PendingRing(2)}]


def test_sending_takes_no_more_than_half_of_the_time(
    sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a ring that took long there is a pause as long."""
    now, slept = count(100), []  # every look at the clock is a second later
    monkeypatch.setattr(coalesce, "monotonic", lambda: float(next(now)))
    monkeypatch.setattr(coalesce, "sleep", slept.append)
    ring = Coalescer(sent, 0.002)
    ring("a", PendingRing(1))
    assert ring._due == 100 + 2 + 1
    assert slept == []


def test_a_forked_child_sends_its_own(sent: Sent) -> None:
    """Though its parent was at it when it forked."""
    ring = Coalescer(sent, 3_600.0)
    ring("a", PendingRing(1))
    ring("a", PendingRing(2))
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        ring("b", PendingRing(7))
        os.write(writing, repr(sent.rings[1:]).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    assert os.read(reading, 100) == b"[{'b': PendingRing(seq=7, entries=())}]"
    os.close(reading)


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert all(each.daemon for each in threading.enumerate() if each.name == "herdbook-wakeups")
