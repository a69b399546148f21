"""Where agents stand: the fold of their ledgers, kept up to date."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from herdbook.domain.grading import Experience
from herdbook.domain.record.model import EventKind, ScoreEvent, Standing
from herdbook.domain.record.standing import fold
from herdbook.ports.unit_of_work.projections import find_differences
from tests.contract.turns import Begin

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _event(agent: str, minute: int, kind: EventKind, points: int, **given: object) -> ScoreEvent:
    at = START + timedelta(minutes=minute)
    return ScoreEvent(agent=agent, kind=kind, points=points, at=at, **given)


@pytest.fixture
def ledger(begin: Begin, space: str) -> Callable[..., list[ScoreEvent]]:
    """Adds entries in one transaction and checks every standing against a recount."""
    record = space.replace("work", "record", 1)

    def add(*events: ScoreEvent) -> list[ScoreEvent]:
        with begin(space=record) as uow:
            added = uow.ledger.add_all(events)
            uow.commit()
        with begin(space=record, write=False) as uow:
            assert find_differences(uow) == []
        return added

    return add


@pytest.fixture
def standing(begin: Begin, space: str) -> Callable[[str], Standing]:
    """Asks where an agent stands."""

    def ask(agent: str) -> Standing:
        with begin(space=space.replace("work", "record", 1), write=False) as uow:
            return uow.standings.of_agent(agent)

    return ask


Ledger = Callable[..., list[ScoreEvent]]
Ask = Callable[[str], Standing]


def test_a_standing_moves_with_every_entry(ledger: Ledger, standing: Ask) -> None:
    """It is the fold of all its agent's entries, over several transactions and within one."""
    events = ledger(_event("otter", 0, EventKind.TOOL, 3, count=3))
    events += ledger(
        _event("otter", 2, EventKind.BUG, -1),
        _event("heron", 1, EventKind.COMMIT, 5),
        _event("otter", 1, EventKind.COMMIT, 5),
    )
    own = [event for event in events if event.agent == "otter"]
    assert standing("otter") == fold("otter", own)
    assert (standing("otter").experience_points, standing("otter").active) == (8, False)
    assert standing("heron").commits == 1


def test_a_late_entry_refolds_from_before_it(ledger: Ledger, standing: Ask) -> None:
    """A score that fell to nothing before it was praised is not one that was praised before."""
    bad = _event("otter", 1, EventKind.COMMUNICATION, -70)
    good = _event("otter", 0, EventKind.COMMUNICATION, 20)
    ledger(bad)
    assert standing("otter").communication_score == 0
    events = ledger(good, _event("otter", 2, EventKind.TOOL, 1))
    assert standing("otter").communication_score == 10
    assert standing("otter").last_event_id == events[1].id


def test_entries_of_one_moment_count_in_the_order_of_their_ids(
    ledger: Ledger, standing: Ask
) -> None:
    """Whichever came first; a later one with a smaller id refolds."""
    ledger(_event("otter", 0, EventKind.COMMUNICATION, -70, id="b"))
    ledger(_event("otter", 0, EventKind.COMMUNICATION, 20, id="a"))
    assert standing("otter").communication_score == 10
    ledger(_event("otter", 0, EventKind.COMMUNICATION, 5, id="c"))
    assert (standing("otter").communication_score, standing("otter").last_event_id) == (15, "c")


def test_a_removed_entry_no_longer_counts(
    begin: Begin, space: str, ledger: Ledger, standing: Ask
) -> None:
    """Whether others are left or none."""
    first, second = ledger(
        _event("otter", 0, EventKind.TOOL, 1), _event("otter", 1, EventKind.BUG, -1)
    )
    for gone, left in [(second, [first]), (first, [])]:
        with begin(space=space.replace("work", "record", 1)) as uow:
            uow.ledger.remove(gone.id)
            uow.commit()
        ledger()
        assert standing("otter") == fold("otter", left)


def test_a_unit_of_work_knows_the_standing_it_has_moved(begin: Begin, space: str) -> None:
    """What was entered a moment ago counts before the commit already."""
    with begin(space=space.replace("work", "record", 1)) as uow:
        for commits in (1, 2):
            uow.ledger.add(_event("otter", commits, EventKind.COMMIT, 5))
            assert uow.standings.of_agent("otter").commits == commits


def test_a_standing_goes_by_the_settings_it_is_folded_with(begin: Begin, space: str) -> None:
    """How much experience a skill point takes is a setting."""
    rules = Experience(per_skill_point=4)
    with begin(space=space.replace("work", "record", 1), experience=rules) as uow:
        uow.ledger.add(_event("otter", 0, EventKind.TOOL, 5, count=5))
        found = uow.standings.of_agent("otter")
        assert (found.skill_points, found.experience_points) == (2, 1)
        assert find_differences(uow) == []
