"""Wake-ups: how whoever waits for changes of a store learns that there may be some.

A writer rings after its commit, when it holds no lock any more. A ring is only a hint and may be
lost or repeated: whoever is woken reads the journal after its own position, and looks there once
in a while without a ring too. So nothing is ever missed, only found later.

A ring may carry the entries that were committed. They are durable, and who has every entry before
them need not read the store.
"""

import threading
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

from herdbook.domain.journal import JournalEntry

LOOK = 1.0
"""After how many seconds without a ring to look for changes anyway."""


class Ring(NamedTuple):
    """That the last entry of a space has this number, and some of its last entries."""

    space: str
    seq: int
    entries: Sequence[JournalEntry] = ()


class Listener(Protocol):
    """Somebody who waits for changes of a store; a context manager that closes itself.

    Open it before the first look at the store, so that what is committed after that look rings.
    """

    def fileno(self) -> int:
        """A descriptor that can be read when there was a ring; `wait(0)` forgets the ring."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until somebody rings, but no longer than `timeout` nor the time of a look.

        Returns whether somebody rang, and forgets the rings until now. Whatever it returns, look.
        """

    def rings(self) -> list[Ring] | None:
        """The rings that the last wait has received; None if others may have been lost, or damaged.

        Those of other spaces may be among them.
        """

    def wake(self) -> None:
        """End the wait of another thread at once."""

    def close(self) -> None:
        """Stop listening; closing twice is no error."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Wakeups(Protocol):
    """The wake-ups of a store."""

    def ring(self, space: str, seq: int, entries: Sequence[JournalEntry] = ()) -> None:
        """Wake who listens to a space, whose last entry has this number; never raises an error.

        Many calls in a row may become one ring, but the last of them is always followed by one. It
        carries the entries, which were committed, unless they are too long.
        """

    def listen(self, space: str | None = None, *, look: float | None = None) -> Listener:
        """Listen to a space, or to all, and `look` after that many seconds, else after LOOK.

        Where nobody can be woken, every wait lasts until the next look.
        """

    def close(self) -> None:
        """Ring what is still to be rung."""


class CanWake(Protocol):
    """Something on which a thread waits."""

    def wake(self) -> None:
        """End the wait."""


class StopEvent(threading.Event):
    """Tells a thread to stop, and ends its wait."""

    waiter: CanWake | None = None
    """What the thread waits on; set before it looks whether it shall stop."""

    def set(self) -> None:
        """Tell the thread to stop."""
        super().set()
        waiter = self.waiter
        if waiter is not None:
            waiter.wake()
