"""Who starts backups, and when: at most every so often, and after the last write."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from herdbook.adapters.user_state import backup_schedule
from herdbook.adapters.user_state.backup_schedule import BackupTimer
from herdbook.adapters.workspace import Workspace
from herdbook.domain.location.areas import Area

Started = list[list[Area]]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A folder outside any repository, whose user wants backups."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Workspace(tmp_path, {"HOME": str(tmp_path / "home"), "HERDBOOK_BACKUP": "daily"})


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The backups that were started, each marked as it is when a process is started."""
    found: Started = []

    def start(workspace: Workspace, areas: list[Area]) -> None:
        for area in areas:
            mark = backup_schedule._mark(workspace, area)
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        found.append(list(areas))

    monkeypatch.setattr(backup_schedule, "start", start)
    return found


def age(workspace: Workspace, seconds: float) -> None:
    """Let the last backup of work be older."""
    then = time.time() - seconds
    os.utime(backup_schedule._mark(workspace, Area.WORK), (then, then))


def test_a_backup_is_started_when_the_last_one_is_old(
    workspace: Workspace, started: Started
) -> None:
    """The first write starts one, the next does not, and one after ten minutes does."""
    for seconds, expected in ((0, 1), (0, 1), (599, 1), (601, 2)):
        if started:
            age(workspace, seconds)
        backup_schedule.start_if_due(workspace, [Area.WORK])
        assert len(started) == expected
    age(workspace, -10 * 86_400)  # the clock was set back
    backup_schedule.start_if_due(workspace, [Area.WORK])
    assert len(started) == 3


def test_off_and_memory_start_none(workspace: Workspace, started: Started) -> None:
    """Whatever was written."""
    for setting in ({"HERDBOOK_BACKUP": "off"}, {"HERDBOOK_WORK": "memory://"}):
        other = Workspace(workspace.folder, {**workspace.variables, **setting})
        backup_schedule.start_if_due(other, [Area.WORK])
    assert started == []


def test_after_a_long_backup_the_next_one_waits_longer(
    workspace: Workspace, started: Started
) -> None:
    """Twenty times as long as it took, but hours at most."""
    backup_schedule.start_if_due(workspace, [Area.WORK])
    backup_schedule.note_duration(workspace, [Area.WORK], 3.0)
    assert backup_schedule.seconds_until_due(workspace, Area.WORK) <= 600
    backup_schedule.note_duration(workspace, [Area.WORK], 60.0)
    assert 1_100 < backup_schedule.seconds_until_due(workspace, Area.WORK) <= 1_200
    backup_schedule.note_duration(workspace, [Area.WORK], 86_400.0)
    assert backup_schedule.seconds_until_due(workspace, Area.WORK) < 7 * 3_600
    assert started


def test_a_server_starts_what_waits_when_it_ends(workspace: Workspace, started: Started) -> None:
    """Once for any number of writes, and not again if nothing was written since."""
    timer = BackupTimer()
    for _ in range(3):
        timer.after_write(workspace, Area.WORK)
    assert started == [[Area.WORK]]
    timer.close()
    assert started == [[Area.WORK], [Area.WORK]]
    timer.close()
    assert len(started) == 2


def test_a_server_starts_one_when_it_is_due(workspace: Workspace, started: Started) -> None:
    """Without another write, by a thread that keeps no process alive."""
    timer = BackupTimer()
    timer.after_write(workspace, Area.WORK)
    age(workspace, 599.9)
    timer.after_write(workspace, Area.WORK)
    (waiting,) = timer._waiting.values()
    assert waiting[0].daemon
    waiting[0].join(60)
    assert len(started) == 2


def test_a_started_process_is_detached_and_let_go(workspace: Workspace) -> None:
    """In a session of its own, with the folder's own settings; this is the real start."""
    script = """
import os, sys, time
from pathlib import Path
from herdbook.adapters.user_state import backup_schedule
from herdbook.adapters.workspace import Workspace
from herdbook.domain.location.areas import Area
backup_schedule.start(Workspace(Path(sys.argv[1]), dict(os.environ)), [Area.WORK])
(pid,) = backup_schedule._started
assert os.getsid(pid) != os.getsid(0)
for _ in range(600):
    backup_schedule._reap()
    if not backup_schedule._started:
        break
    time.sleep(0.1)
assert backup_schedule._started == []
"""
    command = [sys.executable, "-c", script, str(workspace.folder)]
    environment = {**os.environ, **workspace.variables, "HERDBOOK_BACKUP": "daily"}
    subprocess.run(command, env=environment, check=True, timeout=120)
