"""Which agents are halted, as far as use cases need to know before they give out work."""

from typing import NamedTuple, Protocol


class Halt(NamedTuple):
    """An agent that is halted, and the skill points that it has left."""

    agent: str
    skill_points: int


class Halts(Protocol):
    """Knows which agents are halted.

    The record of that is another store than the one an agent's tasks are in, so a use case asks
    here, and the caller has to say where that is known from.
    """

    def find(self, agent: str) -> Halt | None:
        """The halt of the agent of that name; None if it is not halted.

        Raises HerdbookError if the record cannot be asked.
        """


class FixedHalts:
    """Halts that the caller names, for tests and for programs without a record."""

    def __init__(self, *halts: Halt) -> None:
        self._halts = {each.agent: each for each in halts}

    def find(self, agent: str) -> Halt | None:
        """The halt of the agent of that name, if it was given."""
        return self._halts.get(agent)


NO_HALTS = FixedHalts()
"""Nobody is halted."""
