"""What happened is told in words, by whole transactions, newest first."""

from datetime import UTC, datetime

import pytest

from herdbook.domain.agents.model import Agent, AgentStatus
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue
from herdbook.domain.plan.model import Task
from herdbook.ports.engine.dictionary import TASKS
from herdbook.ports.engine.store import Store
from herdbook.ports.unit_of_work.run import read
from herdbook.services.journal import history
from herdbook.services.journal.history import list_history
from herdbook.services.journal.prune import prune
from tests.contract.conftest import Begin


def test_history_tells_whole_transactions_in_words(store: Store, space: str, begin: Begin) -> None:
    """However few are asked for; rows that are gone have the name that they had."""
    with begin() as uow:
        first, second = uow.tasks.add_all([Task(name="one"), Task(name="two")])
        uow.tasks.add_dependency(second.id, first.id)
        uow.commit()
    with begin() as uow:
        asked = [{"question": "May I?"}]
        uow.agents.add(Agent(name="otter"))
        uow.tasks.save(evolve(first, name="uno", description="d" * 100))
        uow.commit()
    with begin() as uow:
        (agent,) = uow.agents.page()
        waiting = AgentStatus.WAITING_FOR_INPUT
        uow.agents.save(evolve(agent, status=waiting, pending_questions=asked))
        uow.remove(TASKS, [second.id])
        uow.commit()
    found = read(store, space, list_history)
    texts = [[each["text"] for each in step["entries"]] for step in found["steps"]]
    assert texts[0][0] == "agent otter: status waiting for input, pending questions May I?"
    assert "removed task two" in texts[0]
    assert sorted(texts[1]) == ["added agent otter", f"task uno: name uno, description {'d' * 60}…"]
    assert texts[2] == ["added task uno", "added task two", texts[2][2]]
    assert texts[2][2].startswith("added task dependency ")
    assert (found["first"], found["last"]) == (1, found["steps"][0]["seq"])
    ends = [step["seq"] for step in found["steps"]]
    assert [step["before"] for step in found["steps"]] == [*ends[1:], 0]
    assert read(store, space, list_history, limit=1)["steps"] == found["steps"][:1]
    earlier = read(store, space, list_history, before=ends[1] + 1, limit=1)["steps"]
    assert earlier == found["steps"][1:2]
    then = read(store, space, list_history, at=ends[2])["steps"]
    assert then[0]["entries"][0]["text"] == "added task one"
    for wrong in (0, 1001):
        with pytest.raises(InvalidValue):
            read(store, space, list_history, limit=wrong)
    prune(store, space, ends[2])
    left = read(store, space, list_history)
    assert (left["first"], len(left["steps"])) == (ends[2] + 1, 2)


def test_a_time_is_told_to_the_second(store: Store, space: str, begin: Begin) -> None:
    """Nobody reads microseconds."""
    with begin() as uow:
        agent = uow.agents.add(Agent(name="otter"))
        uow.commit()
    started = datetime(2026, 5, 1, 12, 30, 5, 170_000, UTC)
    with begin() as uow:
        uow.agents.save(evolve(agent, process_started_at=started))
        uow.commit()
    (entry,) = read(store, space, list_history)["steps"][0]["entries"]
    assert entry["text"] == "agent otter: process started at 2026-05-01 12:30:05 UTC"


def test_a_long_transaction_is_told_in_parts(
    store: Store, space: str, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each part says from where to where the transaction reaches, and nothing is told twice."""
    monkeypatch.setattr(history, "MOST", 5)
    for names in (["first"], [f"task {number}" for number in range(12)], ["last"]):
        with begin() as uow:
            uow.tasks.add_all([Task(name=each) for each in names])
            uow.commit()
    whole = (1, 13)
    expected = [
        [((13, 14), ["last"]), (whole, ["task 8", "task 9", "task 10", "task 11"])],
        [(whole, ["task 3", "task 4", "task 5", "task 6", "task 7"])],
        [(whole, ["task 0", "task 1", "task 2"]), ((0, 1), ["first"])],
        [],
    ]
    before = None
    for wanted in expected:
        steps = read(store, space, list_history, before=before, limit=4)["steps"]
        parts = [
            ((step["before"], step["seq"]), [each["name"] for each in step["entries"]])
            for step in steps
        ]
        assert parts == wanted
        before = steps[-1]["entries"][0]["seq"] if steps else None
    then = read(store, space, list_history, at=13, limit=5)["steps"]
    assert [(step["before"], len(step["entries"])) for step in then] == [(1, 5)]
