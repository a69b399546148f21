"""What the stores of all engines do alike."""

from typing import TYPE_CHECKING, Self

from herdbook.domain.errors import StoreTooNew

if TYPE_CHECKING:
    from herdbook.ports.engine.kinds import Dictionary


class BaseStore:
    """A store that closes itself, and with it the wake-ups that it has made."""

    def close(self) -> None:
        """Ring what is still to be rung; a store then releases what it has open."""
        if "wakeups" in vars(self):
            vars(self)["wakeups"].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def refuse_newer(place: str, version: int, dictionary: "Dictionary") -> None:
    """Raise StoreTooNew for a store that a newer program laid out."""
    if version > dictionary.version:
        raise StoreTooNew(place, version, dictionary.version)
