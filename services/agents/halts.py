"""Keep halted agents from work: what the record says of them, and what follows from it."""

from collections.abc import Callable
from typing import Any

from herdbook.domain.errors import AgentHalted, HerdbookError
from herdbook.domain.grading import is_halted
from herdbook.ports.unit_of_work.unit_of_work import UnitOfWork
from herdbook.ports.world.halts import Halt, Halts

OUT_OF_REACH = "the record was out of reach, so nobody knows whether it is halted"


class RecordHalts:
    """The halts of a record, which is asked for each agent once.

    `read` asks the record a question, such as `partial(read, store, space)`; `warn` is told where
    the record cannot be asked.
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
        """The halt of the agent of that name; HerdbookError if the record cannot be asked."""
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
    """Refuse a halted agent: AgentHalted.

    Where the record is out of reach the agent may go on; then this gives the note that tells so in
    the journal.
    """
    try:
        halt = halts.find(agent)
    except HerdbookError:
        return OUT_OF_REACH
    if halt is not None:
        raise AgentHalted(halt.agent, halt.skill_points)
    return None


def refuse_halted(uow: UnitOfWork, halts: Halts, agent: str) -> None:
    """Refuse a halted agent: AgentHalted. The journal tells where nobody knows whether it is."""
    note = note_if_unknown(halts, agent)
    if note is not None:
        uow.add_note(note)
