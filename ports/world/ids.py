"""The id generator port."""

from typing import Protocol


class Ids(Protocol):
    """Returns the random part of an id: at most 40 characters of a-z and 0-9, never repeated."""

    def __call__(self) -> str: ...
