"""The clock, the random ids and the processes of this machine."""

from collections.abc import Callable
from datetime import datetime

Clock = Callable[[], datetime]
"""Returns the time in UTC; embedded stores take one, a server's store has its own."""
Ids = Callable[[], str]
"""Returns the random part of an id: at most 40 characters of a-z and 0-9, never repeated."""
Processes = Callable[[int], datetime | None]
"""Returns when the process with this pid was started, in UTC; None if there is none.

A process that has ended and only waits to be reaped counts as none. Repeated calls for the same
process return the same time, up to changes of the machine's clock.
"""
