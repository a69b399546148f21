"""The clock port."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Returns the time in UTC; embedded stores take one, a server's store has its own."""

    def __call__(self) -> datetime: ...
