"""What an agent-tracker's database may tell, for tests that need no file of one."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from herdbook.adapters.agent_tracker.reader import read
from herdbook.ports.world.agent_tracker import TrackedKind, TrackerContents, TrackerRecord

FIXTURES = Path(__file__).parents[1] / "fixtures" / "agent-tracker"
START = datetime(2026, 1, 2, 3, tzinfo=UTC)


def fixture(name: str) -> TrackerContents:
    """What a database tells that lmdb-js has written."""
    return read(FIXTURES / name)


def minute(number: int) -> datetime:
    """A time in the tracker's life."""
    return START + timedelta(minutes=number)


def agent(key: str = "agt-1", **fields: Any) -> TrackerRecord:
    """An agent with its totals; those that are not given are as the tracker begins them."""
    told = {
        "id": key,
        "name": "otter",
        "model": "sonnet",
        "skill_points": 1,
        "experience_points": 0,
        "communication_score": 60,
        "total_commits": 0,
        "total_bugs": 0,
        "updated_at": minute(50),
    }
    return TrackerRecord(TrackedKind.AGENT, key, {**told, **fields})


def commit(number: int, key: str = "agt-1", **fields: Any) -> TrackerRecord:
    """A commit in the project `shop`."""
    told = {
        "agent_id": key,
        "commit_hash": f"{number:040x}",
        "project_path": "shop",
        "task_description": f"task {number}",
        "experience_gained": 5,
        "timestamp": minute(number),
    }
    return TrackerRecord(TrackedKind.COMMIT, f"shop:{number:040x}", {**told, **fields})


def retrospective(number: int, key: str = "agt-1", **fields: Any) -> TrackerRecord:
    """Both parties' judgement of a commit, which says neither whose nor where it was."""
    told = {
        "commit": f"{number:040x}",
        "timestamp": minute(number).isoformat(),
        "task": f"task {number}",
        "agent_grade": 2,
        "user_grade": 5,
        "score_before": 60,
        "score_after": 67,
        "agent_note": "went well",
        "user_note": "clear",
    }
    record = TrackerRecord(TrackedKind.RETROSPECTIVE, f"{key}:{number:040x}", told)
    return record._replace(fields={**told, **fields})


def communication(number: int, grade: Any, key: str = "agt-1") -> TrackerRecord:
    """A grade that one party gave, which says when by its key alone."""
    at = int(minute(number).timestamp() * 1000)
    fields = {"agent_id": key, "commit_hash": f"{number:040x}", "grade": grade}
    return TrackerRecord(TrackedKind.COMMUNICATION, f"{key}:{number:040x}:{at}", fields)


def activity(number: int, key: str = "agt-1") -> TrackerRecord:
    """What an agent did, which says who and when by its key alone."""
    fields = {"task": f"task {number}", "actions": "a", "outcome": "o", "decisions": "d"}
    return TrackerRecord(TrackedKind.ACTIVITY, f"{key}:{minute(number).isoformat()}", fields)


def tracked(number: int) -> TrackerContents:
    """A database that has come so far, with records that make no sense among the others."""
    records = [
        agent(
            skill_points=number % 4 - 1,
            experience_points=number * 700,
            communication_score=number * 3,
            total_commits=number,
            total_bugs=number % 3,
        ),
        *(commit(each) for each in range(number % 7)),
        *(retrospective(each) for each in range(number % 3)),
        *(communication(each, grade) for each, grade in enumerate([1, 2, -1, "x"])),
        *(activity(each) for each in range(number % 5)),
    ]
    return TrackerContents(tuple(records))
