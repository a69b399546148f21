"""The port to the processes of this machine."""

from datetime import datetime
from typing import Protocol


class Processes(Protocol):
    """Returns when the process with this pid was started, in UTC; None if there is none.

    A process that has ended and only waits to be reaped counts as none. Repeated calls for the same
    process return the same time, up to changes of the machine's clock.
    """

    def __call__(self, pid: int, /) -> datetime | None: ...
