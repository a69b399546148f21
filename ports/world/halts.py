"""Which agents are halted, for use cases that give out work."""

from typing import NamedTuple, Protocol


class Halt(NamedTuple):
    """An agent that is halted, and the skill points that it has left."""

    agent: str
    skill_points: int


class Halts(Protocol):
    """Knows which agents are halted.

    That is in the record, which is another store than that of an agent's tasks, so a use case asks
    here, and its caller provides the source.
    """

    def find(self, agent: str) -> Halt | None:
        """The halt of an agent by name; None if it is not halted.

        Raises HerdbookError if the record cannot be read.
        """


class FixedHalts:
    """A fixed set of halts, for tests and for programs without a record."""

    def __init__(self, *halts: Halt) -> None:
        self._halts = {each.agent: each for each in halts}

    def find(self, agent: str) -> Halt | None:
        """The halt of an agent by name; None if it is not in the set."""
        return self._halts.get(agent)


NO_HALTS = FixedHalts()
"""Nobody is halted."""
