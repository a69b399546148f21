"""Input without a bound, and clocks that are wrong, through the installed program."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from herdbook.domain.location.areas import Area
from herdbook.domain.plan.model import Task
from herdbook.entrypoints.hooks import hook
from herdbook.ports.unit_of_work.run import run
from tests.attacks.conftest import PROGRAM, Person

MEGABYTE = 1 << 20
INSTALLED = [sys.executable, "-I", "-S", str(Path(hook.__file__).resolve())]


@pytest.mark.parametrize("command", [INSTALLED, [str(PROGRAM), "hook"]], ids=["installed", "typed"])
def test_a_hundred_megabytes_leave_two_in_the_spool(person: Person, command: list[str]) -> None:
    """All of it is read, so that the host can go on, and told by its size and digest."""
    with subprocess.Popen(
        [*command, "PostToolUse"],
        env=person.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None
        noise = os.urandom(MEGABYTE)
        for _ in range(100):
            running.stdin.write(noise)
        told, complaint = running.communicate()
    assert (running.returncode, told, complaint) == (0, b"", b"")
    (spool,) = (person.home / ".local/state/herdbook/spool").iterdir()
    assert spool.stat().st_size <= 2 * MEGABYTE
    event = json.loads(spool.read_bytes())
    assert event["raw"]["herdbook_cut"]["size"] == 100 * MEGABYTE


def test_a_huge_event_still_counts(person: Person, app: Path) -> None:
    """A tool that printed megabytes has been used all the same."""
    given = {"session_id": "s-1", "tool_name": "Bash", "tool_response": {"stdout": "x" * 5_000_000}}
    person.tries(app, "hook", "PostToolUse", stdin=json.dumps(given), HERDBOOK_AGENT="otter")
    person.runs(app, "flush")
    (standing,) = person.asks(app, "standing")
    assert (standing["agent"], standing["experience_points"]) == ("otter", 1)


@pytest.mark.parametrize("engine", ["lmdb", "duckdb"])
def test_one_writer_with_a_wrong_clock_does_not_spoil_the_times_of_all(
    person: Person, app: Path, engine: str
) -> None:
    """Later entries tell the right time, nobody is locked out, and `doctor` says what happened."""
    person.chooses(engine)
    person.runs(app, "task", "add", "one")
    here = person.at(app)
    with here.open(Area.WORK) as store:
        store._clock = lambda: datetime.now(UTC) + timedelta(days=3650)  # type: ignore[attr-defined]
        run(
            store,
            here.workspace.space(Area.WORK),
            lambda uow: uow.tasks.add(Task(name="from 2036")),
        )
    person.runs(app, "task", "add", "three")
    lines = person.runs(app, "journal", "list").splitlines()
    year = str(datetime.now(UTC).year)
    assert [line.split()[1][:4] == year for line in lines if "tasks" in line] == [True, False, True]
    assert person.asks(app, "status")["spaces"][0]["last_entry"]["at"].startswith(year)
    told = person.tries(app, "doctor")
    assert "ahead of this machine's clock" in told.stdout
    person.runs(app, "task", "add", "four")


@pytest.mark.parametrize("value", ["9999999d", "1e400", "-5m", "99999999999999999999s"])
def test_a_lease_beyond_time_is_refused_as_a_value(person: Person, app: Path, value: str) -> None:
    """Nothing is said to have gone wrong inside."""
    person.runs(app, "agent", "add", "otter")
    person.runs(app, "task", "add", "one")
    told = person.tries(app, "claim", "--agent", "otter", f"--ttl={value}")
    assert told.returncode == 2, told.stderr
    assert "internal error" not in told.stderr


@pytest.mark.parametrize(
    "value", ["9999-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"]
)
@pytest.mark.parametrize("engine", ["lmdb", "duckdb"])
def test_any_moment_is_kept_or_refused_as_a_value(person: Person, engine: str, value: str) -> None:
    """From the first second that can be told to the last."""
    person.chooses(engine)
    words = ["account", "add", "a@example.com", "--exhausted-until", value]
    told = person.tries(person.home, *words)
    assert told.returncode in (0, 2), told.stderr
    if told.returncode == 0:
        assert value[:19] in person.runs(person.home, "account", "list", "--json")
