"""Which processes run on this machine."""

from datetime import datetime
from typing import Protocol


class Processes(Protocol):
    """Tells when the process with this number was started, in UTC; None if there is none.

    A process that has ended and only waits for its parent to notice counts as none. Whoever asks
    twice about the same process gets the same time, up to what the machine's clock was set by.
    """

    def __call__(self, pid: int, /) -> datetime | None: ...
