"""What agents print, piece by piece, on every store."""

from datetime import timedelta

import pytest

from herdbook.domain.conversation import LogChunk
from herdbook.domain.entity import evolve
from herdbook.domain.errors import InvalidValue, NotFound
from herdbook.ports.engine.dictionary import LOG_CHUNKS
from herdbook.services.agents import agent_lifecycle, log_bounds, logs
from tests.cases import for_each
from tests.contract.claims import add_agents, do
from tests.contract.turns import Begin


def _read(begin: Begin, agent_id: str, **options: object) -> list[LogChunk]:
    with begin(write=False) as uow:
        return logs.read(uow, agent_id, **options)


def test_the_end_of_a_log_is_read_in_its_order(begin: Begin) -> None:
    """Across sessions, of this agent alone, and whole if it is short."""
    first, second = add_agents(begin, 2)
    for number in range(4):
        do(begin, logs.append, first, f"piece {number}")
        do(begin, logs.append, second, "of another")
    do(begin, agent_lifecycle.resume, first)
    do(begin, logs.append, first, "next session")

    def read_end(count: int) -> list[str]:
        with begin(write=False) as uow:
            return [each.content for each in logs.read_last(uow, first, count)]

    assert read_end(2) == ["piece 3", "next session"]
    assert read_end(9) == [*(f"piece {number}" for number in range(4)), "next session"]


def test_a_piece_of_a_log_carries_the_agents_name_of_the_moment(begin: Begin) -> None:
    """What was printed under an old name stays under it."""
    (agent_id,) = add_agents(begin)
    with begin() as uow:
        agent = uow.agents.get(agent_id)
        chunk = logs.append(uow, agent_id, "one")
        assert chunk == LogChunk(
            id=chunk.id,
            agent_id=agent_id,
            agent_name=agent.name,
            session_number=1,
            content="one",
            created_at=uow.now,
        )
        uow.agents.save(evolve(agent, name="brave-otter"))
        uow.commit()
    second = do(begin, logs.append, agent_id, "two")
    assert second.agent_name == "brave-otter"
    assert _read(begin, agent_id) == [chunk, second]


def test_a_log_outlives_its_agent_and_is_not_journalled(begin: Begin) -> None:
    """It is read as before; nothing more is printed by who is not there."""
    (agent_id,) = add_agents(begin)
    with begin(write=False) as uow:
        seq = uow.journal.last()
    chunk = do(begin, logs.append, agent_id, "x")
    with begin(write=False) as uow:
        assert uow.journal.last() == seq
    with begin() as uow:
        uow.agents.remove(agent_id)
        with pytest.raises(NotFound, match=agent_id):
            logs.append(uow, agent_id, "y")
        uow.commit()
    assert _read(begin, agent_id) == [chunk]


def test_a_log_is_read_in_pages_session_by_session(begin: Begin) -> None:
    """In the order of printing within each, whichever was printed last."""
    (agent_id, other) = add_agents(begin, 2)
    texts = [("a", None), ("c", 2), ("b", 1), ("d", None)]
    for text, session in texts:
        do(begin, logs.append, agent_id, text, session)
    do(begin, logs.append, other, "x")
    log = _read(begin, agent_id)
    assert [(chunk.content, chunk.session_number) for chunk in log] == [
        ("a", 1),
        ("b", 1),
        ("c", 2),
        ("d", 2),
    ]
    assert _read(begin, agent_id, limit=3) == log[:3]
    assert _read(begin, agent_id, limit=3, after=log[1].id) == log[2:]
    assert _read(begin, "agt_missing") == []


@for_each("session", [0, 2, 4, 9])
def test_sessions_are_counted_without_a_gap(begin: Begin, session: int) -> None:
    """A piece belongs to a session that has begun, or to the next one."""
    (agent_id,) = add_agents(begin)
    chunks = [
        LogChunk(agent_id=agent_id, agent_name="x", session_number=n, content="") for n in (1, 3)
    ]
    with begin() as uow:
        kept = [uow.log_chunks.append(chunk) for chunk in chunks]
        uow.commit()
    if session == 4:
        kept.append(do(begin, logs.append, agent_id, "", session))
    else:
        with begin() as uow:
            with pytest.raises(InvalidValue, match="its next one is 4"):
                logs.append(uow, agent_id, "", session)
            uow.commit()
    assert _read(begin, agent_id) == kept


def test_pieces_of_one_transaction_keep_their_order(begin: Begin) -> None:
    """Though they were printed at the same moment."""
    (agent_id,) = add_agents(begin)
    with begin() as uow:
        chunks = [logs.append(uow, agent_id, str(n)) for n in range(20)]
        uow.commit()
    assert _read(begin, agent_id) == chunks


def test_a_piece_is_later_than_the_one_before_whatever_the_clock_says(begin: Begin) -> None:
    """Where the clock was set back, the log goes on behind what it has."""
    (agent_id,) = add_agents(begin)
    with begin() as uow:
        ahead = uow.now + timedelta(hours=1)
        row = LogChunk(
            id="log_z",
            agent_id=agent_id,
            agent_name="x",
            session_number=1,
            content="ahead",
            created_at=ahead,
        )
        uow.insert_verbatim({LOG_CHUNKS: [row]})
        uow.commit()
    chunks = [do(begin, logs.append, agent_id, text) for text in "ab"]
    assert [chunk.created_at - ahead for chunk in chunks] == [
        timedelta(microseconds=1),
        timedelta(microseconds=2),
    ]
    assert _read(begin, agent_id) == [row, *chunks]


def test_a_session_that_grows_too_large_loses_its_first_pieces(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offset of the first that is left tells how much; a single large piece stays."""
    monkeypatch.setattr(log_bounds, "SESSION_LOG_BYTES", 40)
    (agent_id,) = add_agents(begin)
    for number in range(5):
        do(begin, logs.append, agent_id, f"{number}" * 10)
    found = _read(begin, agent_id)
    assert [each.content[0] for each in found] == ["2", "3", "4"]
    assert [each.offset for each in found] == [20, 30, 40]
    do(begin, logs.append, agent_id, "ü" * 50)
    assert [len(each.content) for each in _read(begin, agent_id)] == [50]


def test_only_the_last_sessions_of_an_agent_are_kept(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of others stay."""
    monkeypatch.setattr(log_bounds, "AGENT_LOG_SESSIONS", 2)
    agent_id, other = add_agents(begin, 2)
    do(begin, logs.append, other, "x")
    for number in range(1, 5):
        do(begin, logs.append, agent_id, "x", number)
    assert [each.session_number for each in _read(begin, agent_id)] == [3, 4]
    assert len(_read(begin, other)) == 1


def test_when_all_logs_are_too_large_the_oldest_sessions_go(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whosever they are, but never the one that begins."""
    monkeypatch.setattr(log_bounds, "SPACE_LOG_BYTES", 25)
    ids = add_agents(begin, 4)
    for agent_id in ids[:3]:
        do(begin, logs.append, agent_id, "x" * 10)
    assert [len(_read(begin, each)) for each in ids] == [0, 1, 1, 0]
    do(begin, logs.append, ids[3], "x" * 30)
    assert [len(_read(begin, each)) for each in ids] == [0, 0, 0, 1]
