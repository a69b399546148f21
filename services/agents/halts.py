"""Refuses work to halted agents, by what the record says about them."""

from collections.abc import Callable
from typing import Any

from herdbook.domain.errors import AgentHalted, HerdbookError
from herdbook.domain.grading import is_halted
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import Halt, Halts

OUT_OF_REACH = "the record was out of reach, so nobody knows whether it is halted"


class RecordHalts:
    """The halts of a record, which is read once per agent.

    `read` runs a question on the record, such as `partial(read, store, space)`; `warn` gets a
    sentence if the record cannot be read.
    """

    def __init__(
        self,
        read: Callable[[Callable[[UnitOfWork], Any]], Any],
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._read = read
        self._warn = warn
        self._known: dict[str, Halt | HerdbookError | None] = {}

    def find(self, agent: str) -> Halt | None:
        """The halt of an agent, if it is halted; HerdbookError if the record cannot be read."""
        if agent not in self._known:
            self._known[agent] = self._query(agent)
        known = self._known[agent]
        if isinstance(known, HerdbookError):
            raise known
        return known

    def _query(self, agent: str) -> Halt | HerdbookError | None:
        try:
            points: int = self._read(lambda uow: uow.standings.of_agent(agent).skill_points)
        except HerdbookError as error:
            self._warn(
                f"the record cannot be asked whether {agent} is halted, so it may go on: {error}"
            )
            return error
        return Halt(agent, points) if is_halted(points) else None


def note_if_unknown(halts: Halts, agent: str) -> str | None:
    """Raise AgentHalted for a halted agent.

    If the record cannot be read, the agent may go on; then this returns a note for the journal that
    says so.
    """
    try:
        halt = halts.find(agent)
    except HerdbookError:
        return OUT_OF_REACH
    if halt is not None:
        raise AgentHalted(halt.agent, halt.skill_points)
    return None


def refuse_halted(uow: UnitOfWork, halts: Halts, agent: str) -> None:
    """Raise AgentHalted for a halted agent; the journal notes it if the record cannot be read."""
    note = note_if_unknown(halts, agent)
    if note is not None:
        uow.add_note(note)
