"""When an agent counts as crashed."""

from datetime import UTC, datetime, timedelta

import pytest

from herdbook.domain.agents.model import (
    ACTIVE_STATUSES,
    START_TOLERANCE,
    Agent,
    AgentStatus,
    has_crashed,
)
from tests.cases import for_each

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BLINK = timedelta(microseconds=1)


def _agent(**given: object) -> Agent:
    values = {"status": AgentStatus.RUNNING, "host": "here", "pid": 7, **given}
    return Agent(name="brave-otter", **{"process_started_at": STARTED, **values})


@for_each("status", AgentStatus)
def test_an_agent_at_work_whose_process_is_gone_has_crashed(status: AgentStatus) -> None:
    """One that has ended cannot crash; an idle one has a process, too."""
    assert has_crashed(_agent(status=status), "here", None) is (status in ACTIVE_STATUSES)


def test_an_agent_whose_process_runs_has_not_crashed() -> None:
    """The number and the start are those it came with."""
    assert not has_crashed(_agent(), "here", STARTED)


@pytest.mark.parametrize("sign", [1, -1])
def test_another_process_of_the_same_number_does_not_keep_an_agent_alive(sign: int) -> None:
    """Its start tells, up to what setting the machine's clock may have moved it by."""
    assert not has_crashed(_agent(), "here", STARTED + sign * START_TOLERANCE)
    assert has_crashed(_agent(), "here", STARTED + sign * (START_TOLERANCE + BLINK))


def test_of_another_host_nothing_can_be_said() -> None:
    """Nor of an agent without a host or without a process."""
    for given in ({"host": "there"}, {"host": None}, {"pid": None}):
        assert not has_crashed(_agent(**given), "here", None)


def test_of_an_agent_without_a_known_start_only_the_number_counts() -> None:
    """Any process that has it keeps the agent alive."""
    agent = _agent(process_started_at=None)
    assert not has_crashed(agent, "here", STARTED)
    assert has_crashed(agent, "here", None)
