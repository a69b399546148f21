"""Where ids come from."""

from typing import Protocol


class Ids(Protocol):
    """Makes the random part of ids: at most 40 characters of a-z and 0-9, never the same twice."""

    def __call__(self) -> str: ...
